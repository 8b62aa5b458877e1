import { expect, test } from 'vitest';
import { median, slope } from './statistics.ts';

test('the median of an even number of values lies between the middle two', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([3, 1, 2])).toBe(2);
  expect(median([])).toBeNaN();
});

test('the slope of a line is its own, whatever one outlier says', () => {
  const line = Array.from({ length: 20 }, (_, x): [number, number] => [x, 3 * x + 5]);
  expect(slope(line)).toBe(3);
  line[19] = [19, 10_000];
  expect(slope(line)).toBe(3);
});
