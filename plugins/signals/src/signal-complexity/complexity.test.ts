import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createComplexityReader } from './complexity-of.ts';
import { FEATURES, READ_CHARS, readFeatures } from './features.ts';
import { BIAS, WEIGHTS } from './weights.generated.ts';

const complexityOf = createComplexityReader();

function features(text: string): { readonly [name: string]: number } {
  const out = new Float64Array(FEATURES.length);
  readFeatures(text, out);
  return Object.fromEntries(
    FEATURES.map((feature, k) => [feature.slice(0, feature.indexOf(':')), out[k] ?? Number.NaN]),
  );
}

test.each(['Is Paris in France?', 'What is the capital of Peru?', 'Who wrote Hamlet?', 'hi', 'Thanks a lot!'])(
  '%s is simple',
  (text) => {
    expect(complexityOf(text)).toBeLessThan(50);
  },
);

test.each([
  'Analyze the economic impact of climate change on small island states.',
  'Please compare the tax systems of Estonia and Denmark, and recommend one for a start-up.',
  'Can you prove that the square root of 2 is irrational?',
  'Design a rate limiter for a multi-region API and discuss its failure modes.',
])('%s is hard', (text) => {
  expect(complexityOf(text)).toBeGreaterThan(50);
});

test('is 100 ÷ (1 + exp(−(bias + Σ weight · feature)))', () => {
  const text = 'If 3x + 5 = 20, what is x? Show each step.';
  const out = new Float64Array(FEATURES.length);
  readFeatures(text, out);
  const sum = WEIGHTS.reduce((total, weight, k) => total + weight * (out[k] ?? 0), BIAS);
  expect(complexityOf(text)).toBeCloseTo(100 / (1 + Math.exp(-sum)), 10);
});

test('any text gives a number from 0 to 100, the same each time', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', maxLength: 400 })), (text) => {
      const value = complexityOf(text);
      expect(value).toBeGreaterThanOrEqual(0);
      expect(value).toBeLessThanOrEqual(100);
      expect(complexityOf(text)).toBe(value);
    }),
  );
});

describe('features', () => {
  test('count what their names say', () => {
    const seen = features('If a train costs $12,000 (each), what is 7 + 5? Please prove it.\nA. 1\nB. 2\n`x`');
    expect(seen['questions']).toBeCloseTo(Math.log1p(1));
    expect(seen['lines']).toBeCloseTo(Math.log1p(3));
    expect(seen['numbers']).toBeCloseTo(Math.log1p(5));
    expect(seen['brackets']).toBeCloseTo(Math.log1p(1));
    expect(seen['mathematics']).toBeCloseTo(Math.log1p(2));
    expect(seen['logic']).toBeCloseTo(Math.log1p(1));
    expect(seen['analysis']).toBeCloseTo(Math.log1p(1));
    expect(seen['choices']).toBe(1);
    expect(seen['code']).toBe(1);
    expect(seen['look-up']).toBe(0);
  });

  test('a verb counts where a clause begins, not inside one', () => {
    expect(features('Compare the two.')['analysis']).toBeGreaterThan(0);
    expect(features('Could you please compare the two?')['analysis']).toBeGreaterThan(0);
    expect(features('The report that they compare is old.')['analysis']).toBe(0);
  });

  test('a text longer than what is read counts whole in its length alone', () => {
    const long = 'word '.repeat(4 * READ_CHARS);
    expect(features(long)['words']).toBeCloseTo(Math.log1p(4 * READ_CHARS), 2);
  });
});

test('the weights are those that the training script writes: one for each feature, named as it is', () => {
  const lines =
    readFileSync(new URL('weights.generated.ts', import.meta.url), 'utf8').match(/^ {2}-?[\d.]+, \/\/ .+$/gm) ?? [];
  expect(lines.map((line) => line.slice(line.indexOf('//') + 3))).toEqual(FEATURES);
});
