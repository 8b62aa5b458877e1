import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { answerUsage } from './answer.ts';
import { NO_USAGE, usageOf } from './usage.ts';

const encoder = new TextEncoder();

const numbers = ['0', '7', '812', '-1', '-0', '1.5', '2e2', '1e400', '123456789012345678'];
const others = ['null', 'true', '"5"', '[]', '[{"cached_tokens":3}]'];
const gap = fc.constantFrom('', '', ' ', '\n\t');

function object(names: readonly string[], value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const member = fc.tuple(fc.constantFrom(...names), gap, gap, value).map((parts) => {
    const [name, before, behind, json] = parts;
    return `${before}"${name}"${behind}:${before}${json}${behind}`;
  });
  return fc.array(member, { maxLength: 8 }).map((members) => `{${members.join(',')}}`);
}

const details = object(
  ['cached_tokens', 'cached_token\\u0073', 'audio_tokens'],
  fc.constantFrom(...numbers, ...others, '{"cached_tokens":9}'),
);
const usage = object(
  [
    'prompt_tokens',
    'completion_tokens',
    'total_tokens',
    'input_tokens',
    'output_tokens',
    'prompt_tokens_details',
    'input_tokens_details',
    'cache_read_input_tokens',
    'prompt_cache_hit_tokens',
    'cached_tokens',
    '__proto__',
    '\\u0070rompt_tokens',
    'output_token\\u0073',
  ],
  fc.oneof(fc.constantFrom(...numbers), fc.constantFrom(...others), details),
);

it('the counts read from the bytes of an answer are those of the parsed object: twin keys, escapes, odd values', () => {
  fc.assert(
    fc.property(fc.oneof({ weight: 9, arbitrary: usage }, fc.constantFrom(...others, ...numbers)), (json) => {
      const answer = `{"choices":[{"usage":{"prompt_tokens":1}}],"usage":${json},"id":"x"}`;
      expect(answerUsage(encoder.encode(answer))).toEqual(usageOf(JSON.parse(answer)) ?? NO_USAGE);
    }),
    { numRuns: 500 },
  );
});

it('an answer that breaks off before the end of its usage has none; what stands behind is not looked at', () => {
  const answer = '{"id":"x","usage":{"prompt_tokens":812,"completion_tokens":64}';
  for (let cut = 0; cut < answer.length; cut++)
    expect(answerUsage(encoder.encode(answer.slice(0, cut)))).toEqual(NO_USAGE);
  expect(answerUsage(encoder.encode(`${answer},,`))).toMatchObject({ promptTokens: 812, outputTokens: 64 });
});

it('usage is that of the top level wherever else the word stands, first or last, and the last of two counts', () => {
  const decoys = [
    '"content":"say \\"usage\\":{\\"prompt_tokens\\":1}"',
    '"x\\"usage":{"prompt_tokens":2}',
    '"\\\\":"usage"',
    '"inner":{"usage":{"prompt_tokens":3}}',
    '"list":[{"usage":{"prompt_tokens":4}}]',
    '"usage_tier":"usage"',
    `"padding":"${'x'.repeat(3000)}"`,
  ];
  const counted = '"usage":{"prompt_tokens":812,"completion_tokens":64}';
  const members = fc
    .tuple(
      fc.subarray(decoys),
      fc.constantFrom([], [counted], ['"usage":{"prompt_tokens":7}', counted], ['"usage":null']),
    )
    .chain(([around, own]) => fc.shuffledSubarray([...around, ...own], { minLength: around.length + own.length }));
  fc.assert(
    fc.property(members, gap, (chosen, space) => {
      const answer = `${space}{${chosen.join(`${space},${space}`)}}${space}`;
      expect(answerUsage(encoder.encode(answer))).toEqual(usageOf(JSON.parse(answer)) ?? NO_USAGE);
    }),
    { numRuns: 2000 },
  );
});
