import type { ValueType } from '@signalbox/plugin-api';
import { compilePolicy } from '@signalbox/policy';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { writtenValue } from './written-value.ts';

/** A property of each type that a number may have. */
const PROPERTIES = [
  ['predicted_wait', 'duration'],
  ['throughput', 'rate'],
  ['price', 'money'],
  ['gpu_memory', 'bytes'],
  ['queued_tokens', 'count'],
  ['power', 'number'],
] as const satisfies readonly (readonly [string, ValueType])[];

function readBack(property: string, text: string): unknown {
  const { checks, diagnostics } = compilePolicy({
    path: 'main.route',
    text: `default to tier "a"\ntest "t" { given endpoint "x" { tier: "a", ${property}: ${text} } expect default }`,
  });
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  return checks?.tests[0]?.endpoints[0]?.properties[property];
}

test('the compiler reads a written number back to the last bit, whatever its unit', () => {
  const amount = fc.oneof(
    fc.double({ min: 1e-300, max: 1e15, noNaN: true }),
    fc.double({ min: 1e-12, max: 1, noNaN: true }),
    fc.nat(),
    fc.constantFrom(0, 1e-9, 0.1, 0.9, 1 / 3, 1e21, 123456789.125),
  );
  fc.assert(
    fc.property(amount, fc.constantFrom(...PROPERTIES), (value, [property, type]) => {
      const plain = value === 0 ? 0 : value;
      expect(readBack(property, writtenValue(plain, type))).toBe(plain);
    }),
    { numRuns: 500 },
  );
});

test('a percent with up to nine digits is read back as well, and any other to the last but one bit', () => {
  fc.assert(
    fc.property(fc.nat(999_999_999), fc.integer({ min: 0, max: 9 }), (digits, places) => {
      const value = Number(`${digits}e-${places}`) / 100;
      expect(readBack('kv_cache_used', writtenValue(value, 'percent'))).toBe(value);
    }),
  );
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 10, noNaN: true }), (value) => {
      expect(
        Math.abs(Number(readBack('kv_cache_used', writtenValue(value, 'percent'))) / value - 1),
      ).toBeLessThanOrEqual(Number.EPSILON);
    }),
  );
});

test('values are written as people write them', () => {
  expect(
    [
      [0.9, 'percent'],
      [0.5, 'duration'],
      [200_000, 'count'],
      [5, 'money'],
      [24_000_000_000, 'bytes'],
      [1e-7, 'number'],
      [1e22, 'number'],
      [true, 'bool'],
      ['a "b"', 'string'],
      [['a', 'b'], { list: 'string' }],
    ].map(([value, type]) => writtenValue(value as number, type as ValueType)),
  ).toEqual([
    '90%',
    '0.5s',
    '200000',
    '$5',
    '24GB',
    '0.0000001',
    '10000000000000000000000',
    'true',
    '"a \\"b\\""',
    '["a", "b"]',
  ]);
});
