import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { toHundredths } from './hundredths.ts';

test('is the number rounded to hundredths, as JavaScript writes it', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.double({ min: -10, max: 1e5, noNaN: true }),
        fc.integer(),
      ),
      (value) => {
        expect(toHundredths(value)).toBe(String(Math.round(value * 100) / 100));
      },
    ),
  );
  expect([0, -0, 0.004, 0.005, 0.1, 0.994, 0.996, 12, 3.1649, 21474836.47, 21474836.48].map(toHundredths)).toEqual([
    '0',
    '0',
    '0',
    '0.01',
    '0.1',
    '0.99',
    '1',
    '12',
    '3.16',
    '21474836.47',
    '21474836.48',
  ]);
});
