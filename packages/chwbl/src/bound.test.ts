import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundLimit, createBound, withinLimit } from './bound.ts';
import { ChwblError } from './errors.ts';

describe('a bound', () => {
  test.each([0.99, 0, -1, Number.NaN, Infinity])('of %d is refused, with a code and what to do', (factor) => {
    expect(() => createBound(factor)).toThrow(ChwblError);
    expect(() => createBound(factor)).toThrow(expect.objectContaining({ code: 'ERR_CHWBL_BOUND' }));
    expect(() => createBound(factor)).toThrow(/expected a finite number of at least 1/);
  });

  test('of 1 is allowed; 1.25 in requests is what you get without asking', () => {
    expect(createBound(1).factor).toBe(1);
    expect(createBound()).toEqual({ factor: 1.25, unit: 'requests' });
  });
});

describe('the limit in requests', () => {
  test('is ceil(c · w/W · (m + 1)) exactly, checked in integers', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 500 }),
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 0, max: 100_000 }),
        fc.integer({ min: 0, max: 1_000_000 }),
        (hundredths, weight, otherWeight, totalLoad) => {
          const totalWeight = weight + otherWeight;
          const above = BigInt(hundredths) * BigInt(weight) * BigInt(totalLoad + 1);
          const below = 100n * BigInt(totalWeight);
          const expected = Number((above + below - 1n) / below);
          expect(boundLimit(createBound(hundredths / 100), { weight, totalWeight, totalLoad })).toBe(expected);
        },
      ),
      { numRuns: 5000 },
    );
  });

  test.each([
    { factor: 1, weight: 7, totalWeight: 7, totalLoad: 28, limit: 29 },
    { factor: 1.05, weight: 5, totalWeight: 6, totalLoad: 7, limit: 7 },
    { factor: 1.1, weight: 2, totalWeight: 5, totalLoad: 24, limit: 11 },
  ])(
    'is $limit for c = $factor and a share of $weight/$totalWeight of $totalLoad, where doubles land above it',
    (given) => {
      expect(boundLimit(createBound(given.factor), given)).toBe(given.limit);
    },
  );

  test('bug-54: with hundreds of idle nodes each still takes one request', () => {
    const bound = createBound(1.25);
    const limit = boundLimit(bound, { weight: 1, totalWeight: 500, totalLoad: 3 });
    expect(limit).toBe(1);
    expect(withinLimit(bound, 0, limit)).toBe(true);
    expect(withinLimit(bound, 1, limit)).toBe(false);
  });
});

describe('the limit in tokens', () => {
  test('is compared with the load before, so that an idle node takes a request of any size', () => {
    const bound = createBound(1, 'tokens');
    const limit = boundLimit(bound, { weight: 1, totalWeight: 2, totalLoad: 1000 });
    expect([0, 500, 501].map((load) => withinLimit(bound, load, limit))).toEqual([true, true, false]);
    expect(withinLimit(bound, 0, boundLimit(bound, { weight: 1, totalWeight: 2, totalLoad: 0 }))).toBe(true);
  });
});

describe('some node is always within its limit', () => {
  const factor = fc.oneof(fc.constant(1), fc.double({ min: 1, max: 4, noNaN: true }));
  const weight = fc.oneof(fc.constantFrom(0.1, 1, 3, 1e-9, 1e9), fc.double({ min: 0.001, max: 1000, noNaN: true }));

  function anyWithin(unit: 'requests' | 'tokens', c: number, nodes: readonly (readonly [number, number])[]): boolean {
    const bound = createBound(c, unit);
    const totalWeight = nodes.reduce((sum, [own]) => sum + own, 0);
    const totalLoad = nodes.reduce((sum, [, load]) => sum + load, 0);
    return nodes.some(([own, load]) =>
      withinLimit(bound, load, boundLimit(bound, { weight: own, totalWeight, totalLoad })),
    );
  }

  test('in requests, for any weights and loads', () => {
    const node = fc.tuple(weight, fc.nat({ max: 1_000_000 }));
    fc.assert(
      fc.property(factor, fc.array(node, { minLength: 1, maxLength: 60 }), (c, nodes) => {
        expect(anyWithin('requests', c, nodes)).toBe(true);
      }),
    );
  });

  test('in tokens, for any weights and loads', () => {
    const node = fc.tuple(weight, fc.double({ min: 0, max: 1e9, noNaN: true }));
    fc.assert(
      fc.property(factor, fc.array(node, { minLength: 1, maxLength: 60 }), (c, nodes) => {
        expect(anyWithin('tokens', c, nodes)).toBe(true);
      }),
    );
  });

  test('in tokens, for amounts near the least double', () => {
    for (const load of [Number.MIN_VALUE, 2e-323, 1e-310]) {
      for (const own of [0.1, 3, 1e9]) {
        const nodes = [[own, load] as const, [own, load] as const];
        expect(anyWithin('tokens', 1, nodes)).toBe(true);
        expect(anyWithin('tokens', 1, nodes.slice(1))).toBe(true);
      }
    }
  });

  test('at c = 1 when every node holds exactly its share, which rounding would deny', () => {
    for (let length = 1; length <= 400; length++) {
      for (const load of [7, 0.1, 1 / 3]) {
        const nodes = Array.from({ length }, () => [0.1, load] as const);
        expect(anyWithin('tokens', 1, nodes)).toBe(true);
        expect(
          anyWithin(
            'requests',
            1,
            nodes.map(([own]) => [own, 7] as const),
          ),
        ).toBe(true);
      }
    }
  });
});
