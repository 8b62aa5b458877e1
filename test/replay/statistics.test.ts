import { expect, test } from 'vitest';
import { bootstrapRatio, mean, quantile, seededRandom } from './statistics.ts';

test('quantiles are by nearest rank', () => {
  const values = [5, 1, 4, 2, 3];
  expect([0, 0.2, 0.21, 0.5, 0.9, 1].map((q) => quantile(values, q))).toEqual([1, 1, 2, 3, 5, 5]);
  expect(quantile([], 0.5)).toBeNaN();
});

test('a subject at just 0.8 of the baseline everywhere has an interval of no width', () => {
  const baseline = Array.from({ length: 100 }, (_, index) => ({ index, value: 1 + (index % 7) }));
  const subject = baseline.map(({ index, value }) => ({ index, value: 0.8 * value }));
  const { ratio, low, high } = bootstrapRatio(subject, baseline, mean, seededRandom(1), 10, 200);
  for (const value of [ratio, low, high]) expect(value).toBeCloseTo(0.8, 10);
});

test('the interval of two equal but noisy subjects holds 1, and that of a clear difference does not', () => {
  const random = seededRandom(7);
  const noisy = (scale: number): { index: number; value: number }[] =>
    Array.from({ length: 500 }, (_, index) => ({ index, value: scale * (0.5 + random()) }));
  const baseline = noisy(1);
  const same = bootstrapRatio(noisy(1), baseline, mean, seededRandom(1));
  expect(same.low).toBeLessThan(1);
  expect(same.high).toBeGreaterThan(1);
  expect(bootstrapRatio(noisy(0.8), baseline, mean, seededRandom(1)).high).toBeLessThan(1);
});

test('equal seeds give equal intervals', () => {
  const values = Array.from({ length: 60 }, (_, index) => ({ index, value: (index * 37) % 11 }));
  const once = bootstrapRatio(values, values.toReversed(), mean, seededRandom(3), 5, 50);
  expect(bootstrapRatio(values, values.toReversed(), mean, seededRandom(3), 5, 50)).toEqual(once);
});
