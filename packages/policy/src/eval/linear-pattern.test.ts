import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compilePattern, LinearPattern } from './linear-pattern.ts';
import { parsePattern } from './pattern-nfa.ts';

const character = fc.constantFrom(
  'a',
  'b',
  'A',
  'k',
  's',
  '_',
  '1',
  '-',
  ' ',
  '\n',
  '\r',
  '\u2028',
  'é',
  'ſ',
  '\u212A',
  'ß',
  '语',
  '😀',
  '😁',
  '\ud83d',
);
const text = fc.array(character, { maxLength: 8 }).map((characters) => characters.join(''));
const flags = fc.subarray(['i', 'm', 's']).map((list) => list.join(''));

const atom = fc.constantFrom(
  'a',
  'b',
  'k',
  'é',
  '语',
  '😀',
  '.',
  '\\d',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '[ab]',
  '[^a]',
  '[^\\w]',
  '[a-z\\]\\-]',
  '[😀-😎]',
  '\\p{L}',
  '\\P{Lu}',
  '\\x61',
  '\\u0062',
  '\\u{1F600}',
  '\\ud83d\\ude00',
  '\\n',
  '\\.',
  '\\$',
);
const pattern: fc.Arbitrary<string> = fc.letrec<{ choice: string; sequence: string; term: string }>((tie) => ({
  choice: fc
    .array(tie('sequence'), { minLength: 1, maxLength: 3, depthIdentifier: 'p' })
    .map((parts) => parts.join('|')),
  sequence: fc.array(tie('term'), { maxLength: 4, depthIdentifier: 'p' }).map((parts) => parts.join('')),
  term: fc.oneof(
    { depthIdentifier: 'p', maxDepth: 3 },
    {
      weight: 6,
      arbitrary: fc
        .tuple(atom, fc.constantFrom('', '', '*', '+', '?', '{2}', '{1,}', '{0,2}', '*?', '+?', '{1,3}?'))
        .map(([one, count]) => one + count),
    },
    { weight: 2, arbitrary: fc.constantFrom('^', '$', '\\b', '\\B') },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom('(', '(?:'), tie('choice'), fc.constantFrom('', '*', '+', '?', '{2}', '{0,2}', '{2,}'))
        .map(([open, body, count]) => `${open}${body})${count}`),
    },
  ),
})).choice;

/** A text that RegExp, which tries every way through groups repeated within groups, is done with in time. */
const within = (source: string, drawn: string): string =>
  (source.match(/\)(?:[*+]|\{2,?\})/g) ?? []).length > 1 ? [...drawn].slice(0, 4).join('') : drawn;

describe('a linear pattern', () => {
  test('finds what RegExp finds', () => {
    fc.assert(
      fc.property(pattern, flags, fc.array(text, { minLength: 1, maxLength: 6 }), (source, given, drawn) => {
        // This engine finds `\B` between the halves of one character, against the standard (`/\B/u` in `A😁1`).
        const texts = drawn
          .map((one) => (source.includes('\\B') ? one.replaceAll(/[\ud800-\udfff]/g, '-') : one))
          .map((one) => within(source, one));
        const native = new RegExp(source, `${given}u`);
        const linear = new LinearPattern(parsePattern(source), given);
        expect(texts.map((one) => linear.test(one))).toEqual(texts.map((one) => native.test(one)));
        const { necessary } = parsePattern(source);
        const filter = new RegExp(necessary ?? '', `${given}u`);
        expect(texts.filter((one) => native.test(one) && !filter.test(one))).toEqual([]);
        expect(texts.map((one) => compilePattern(source, given).test(one))).toEqual(
          texts.map((one) => native.test(one)),
        );
      }),
      { numRuns: 1500 },
    );
  });

  test('gives the same results after it has forgotten its states', () => {
    // The states of this one are the places of `a` among the last twelve characters: 4,096.
    const source = 'a[ab]{11}c';
    const native = new RegExp(source, 'u');
    const linear = new LinearPattern(parsePattern(source), '');
    let state = 1;
    const letters = Array.from({ length: 60_000 }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state & 0x10000) === 0 ? 'a' : 'b';
    }).join('');
    for (const probe of [letters, `${letters}c`, letters.slice(0, 100), `${letters.slice(0, 99)}c`]) {
      expect(linear.test(probe)).toBe(native.test(probe));
    }
  });

  test.each([
    ['a*b', 'a'],
    ['\\w*\\d*\\s*x', '1'],
    ['(a+)+$', 'a'],
    ['(a|a)*c', 'a'],
    ['error.*timeout.*refused', 'error '],
  ])('%s reads each character of a hostile text once', (source, piece) => {
    const linear = compilePattern(source, '');
    // A backtracking engine takes from seconds to longer than the sun will shine for most of these.
    const hostile = `${piece.repeat(200_000)}!`;
    expect(linear.test(hostile)).toBe(false);
  });

  test('a pattern that begins with ^ stops at the first character that rules it out', () => {
    let reads = 0;
    const watched = {
      length: 200,
      charCodeAt: () => {
        reads++;
        return 120;
      },
    };
    expect(compilePattern('^ba+', '').test(watched as unknown as string)).toBe(false);
    expect(reads).toBe(1);
  });

  test('a character outside the basic plane is one character', () => {
    expect(compilePattern('^.{1}$', '').test('😀')).toBe(true);
    expect(compilePattern('^[😀-😎]+$', 'i').test('😁😂')).toBe(true);
  });

  test('patterns without repetition are left to RegExp, others are not', () => {
    expect(compilePattern('\\bstack trace\\b|\\bTypeError\\b', 'i')).toBeInstanceOf(RegExp);
    expect(compilePattern('a+', '')).toBeInstanceOf(LinearPattern);
  });

  test.each([
    ['error.*timeout', 'timeout'],
    ['^\\s*(def|class) \\w+:', '(?:def|class) '],
    ['https?://x', '://x'],
    ['(ab+|c)d', 'd'],
    ['a+|b', 'a|b'],
    ['a*', undefined],
    ['a*|b', undefined],
    ['(?:foo){2,}', 'foo'],
  ])('no text without the necessary part of %s is read: %s', (source, necessary) => {
    expect(parsePattern(source).necessary).toBe(necessary);
  });

  test('the necessary part is asked first, and never in place of the pattern', () => {
    const filler = '.'.repeat(1000);
    const linear = compilePattern('error.*timeout', '');
    expect(linear.test(`${filler}error`)).toBe(false);
    expect(linear.test(`${filler}timeout, error`)).toBe(false);
    expect(linear.test(`${filler}error: timeout`)).toBe(true);
  });

  test.each(['\\-', 'a(?=b)', '(?<!a)b', '(a)\\1', '(?<x>a)\\k<x>', '(?i:a)', '(', 'a{3000}{10}'])(
    '%s is refused',
    (source) => {
      expect(() => compilePattern(source, '')).toThrow(SyntaxError);
    },
  );
});
