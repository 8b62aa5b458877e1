import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { arbitraryTypedPolicyText } from '../../../packages/policy/src/eval/arbitrary-policy-text.fixture.ts';
import {
  arbitraryPolicyText,
  arbitrarySensiblePolicyText,
} from '../../../packages/policy/src/syntax/arbitrary.fixture.ts';
import { createRandom } from '../mutations/mutate.ts';
import type { Random } from '../mutations/mutate.ts';
import { validPolicies } from '../support/policies.fixture.ts';

/** One text to try; the same seed gives the same. */
export interface FuzzInput {
  readonly seed: number;
  readonly maker: string;
  readonly text: string;
}

const errors = new URL('../errors/', import.meta.url);
const corpus: readonly string[] = [
  ...validPolicies.map(({ text }) => text),
  ...readdirSync(errors, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.txt'))
    .toSorted()
    .map((name) => readFileSync(new URL(name.replaceAll('\\', '/'), errors), 'utf8').split('\n---\n')[0] ?? ''),
];

/** Pieces at which readers of text go wrong. */
const DICTIONARY: readonly string[] = [
  ...' \t|\r|\n|\r\n|\u0000|\uFEFF|\u200B|\u202E|\u00A0|\u2028|\uD800|\uDC00|😀|漢|é|#|##|"|r"|\\|\\u|\\uD83D|//|/*|*/|\''.split(
    '|',
  ),
  ...'( ) [ ] { } , : . .. ... ?? ? = == != < <= > >= + - * / % $ @ & && | || ! ; ` ~ ^ -> :='.split(' '),
  ...'0 1. .5 1e9 1_ 99999999999999999999 5m 5 s 60/m 95% $ 1k/s 0x1F NaN Infinity __proto__ constructor toString'.split(
    ' ',
  ),
  ...'route group default test ensure given expect else queue reject admit when to where by then pick with next let use'.split(
    ' ',
  ),
  ...'not and or in matches contains exists true false language import define as always never any tier lowest(load)'.split(
    ' ',
  ),
];

const sampleOf = (arbitrary: fc.Arbitrary<string>, seed: number): string =>
  fc.sample(arbitrary, { seed, numRuns: 1 })[0] ?? '';

const from = <T>(random: Random, list: readonly T[], otherwise: T): T => list[random(list.length)] ?? otherwise;

/** One change at the level of characters, without a thought for what they mean. */
function mangled(text: string, random: Random): string {
  const at = random(text.length + 1);
  const end = Math.min(text.length, at + 1 + random(random(3) === 0 ? 60 : 4));
  switch (random(7)) {
    case 0:
      return text.slice(0, at) + text.slice(end);
    case 1:
      return text.slice(0, at) + from(random, DICTIONARY, '"') + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(at, end) + text.slice(at);
    case 3:
      return text.slice(0, at) + String.fromCharCode(random(random(2) === 0 ? 0x80 : 0x1_00_00)) + text.slice(at + 1);
    case 4: {
      const other = from(random, corpus, '');
      const cut = random(other.length + 1);
      return text.slice(0, at) + other.slice(cut, cut + random(200)) + text.slice(end);
    }
    case 5:
      return text.slice(0, at);
    default: {
      const to = random(text.length + 1);
      const rest = text.slice(0, at) + text.slice(end);
      return rest.slice(0, to) + text.slice(at, end) + rest.slice(to);
    }
  }
}

const mangledText = (text: string, random: Random): string => {
  let result = text;
  for (let times = 1 + random(6); times > 0; times -= 1) result = mangled(result, random);
  return result;
};

const bytes = (random: Random): string => {
  const length = random(400);
  return new TextDecoder(random(2) === 0 ? 'utf-8' : 'utf-16le').decode(
    Uint8Array.from({ length }, () => (random(3) === 0 ? random(256) : 32 + random(95))),
  );
};

const tokens = (random: Random): string =>
  Array.from({ length: random(120) }, () => from(random, DICTIONARY, ' ')).join(random(2) === 0 ? ' ' : '');

/** Up to 100 KB of one piece again and again. */
const repeated = (random: Random): string => {
  const text = random(2) === 0 ? from(random, corpus, 'x') : '';
  const start = random(text.length + 1);
  const piece =
    text === ''
      ? `${from(random, DICTIONARY, '(')}${from(random, DICTIONARY, ' ')}`
      : text.slice(start, start + 1 + random(60));
  return piece.repeat(Math.ceil(100_000 / Math.max(1, piece.length))).slice(0, 100_000);
};

const makers: readonly (readonly [name: string, share: number, make: (seed: number, random: Random) => string])[] = [
  ['grammar', 3, (seed) => sampleOf(arbitraryPolicyText, seed)],
  ['typed', 3, (seed) => sampleOf(arbitraryTypedPolicyText, seed)],
  ['sensible', 2, (seed) => sampleOf(arbitrarySensiblePolicyText, seed)],
  ['grammar mangled', 4, (seed, random) => mangledText(sampleOf(arbitraryPolicyText, seed), random)],
  ['sensible mangled', 3, (seed, random) => mangledText(sampleOf(arbitrarySensiblePolicyText, seed), random)],
  ['corpus mangled', 9, (_, random) => mangledText(from(random, corpus, ''), random)],
  ['tokens', 4, (_, random) => tokens(random)],
  ['bytes', 3, (_, random) => bytes(random)],
];
const shares = makers.flatMap(([name, share, make]) => Array.from({ length: share }, () => ({ name, make })));

/** How often a long text is tried: it takes the time of a thousand short ones. */
const LONG_EVERY = 250;

export function inputOf(seed: number): FuzzInput {
  const random = createRandom(Math.imul(seed, 0x9e_37_79_b1) ^ 0x5bd1_e995);
  for (let warm = 0; warm < 4; warm += 1) random(2);
  if (seed % LONG_EVERY === 0) return { seed, maker: 'repeated', text: repeated(random) };
  const maker = shares[random(shares.length)];
  return { seed, maker: maker?.name ?? '', text: maker?.make(seed, random) ?? '' };
}
