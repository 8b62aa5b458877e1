import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fleet } from './fleet/fleet.ts';
import { Frame } from './frame.ts';
import { createRanking } from './ranking.ts';
import type { Direction, RankTerm, RankTier } from './ranking.ts';
import { createSeededRandom } from './seeded-random.ts';

const CAPACITY = 64;
const random = createSeededRandom(1);
const fleet = new Fleet({ capacity: CAPACITY, allocate: (bytes) => new ArrayBuffer(bytes), random });
for (let slot = 0; slot < CAPACITY; slot++) {
  fleet.table.hashHi[slot] = Math.imul(slot + 1, 0x9e3779b1);
  fleet.table.hashLo[slot] = Math.imul(slot + 7, 0x85ebca6b);
}
const ranking = createRanking(fleet);

const term = (values: readonly number[], direction: Direction, weight = 1): RankTerm => ({
  name: 'given',
  weight,
  direction,
  evaluate: (_host, _slots, length, out) => {
    for (let i = 0; i < length; i++) out[i] = values[i] ?? Number.NaN;
  },
});

function shortlist(tiers: readonly RankTier[], length: number, k: number, seed: number): readonly number[] {
  const frame = new Frame({
    signals: 0,
    late: [],
    columns: [],
    pools: [],
    shortlist: CAPACITY,
    parts: 4,
    properties: 0,
  });
  frame.seed = seed;
  const slots = Int32Array.from({ length }, (_, i) => i);
  const listed = ranking.rank(tiers, undefined, random, frame, slots, length, k);
  return [...frame.slots.subarray(0, listed)];
}

/** Few different values, so that many tie; unknown and infinite ones among them. */
const value = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Infinity, -Infinity) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
);
const values = fc.array(value, { minLength: 1, maxLength: CAPACITY });
const direction = fc.constantFrom<Direction>('lowest', 'highest');
const seed = fc.integer({ min: 0, max: 2 ** 32 - 1 });

/** How good a value is: higher is better, and what is unknown, or infinite on the wrong side, is worst. */
const merit = (given: number, way: Direction): number => {
  const signed = way === 'lowest' ? -given : given;
  return Number.isNaN(signed) ? -Infinity : signed;
};

test('a shortlist holds the best of a lone scorer, best first, at any length', () => {
  fc.assert(
    fc.property(values, direction, fc.integer({ min: 1, max: CAPACITY }), seed, (given, way, k, drawn) => {
      const listed = shortlist([[term(given, way)]], given.length, k, drawn);
      const best = given.map((one) => merit(one, way)).sort((a, b) => (a === b ? 0 : b - a));
      expect(listed.map((slot) => merit(given[slot] ?? Number.NaN, way))).toEqual(best.slice(0, k));
      expect(new Set(listed).size).toBe(listed.length);
    }),
    { numRuns: 2000 },
  );
});

test('a shorter shortlist is the beginning of a longer one, ties and later tiers included', () => {
  fc.assert(
    fc.property(values, values, direction, fc.integer({ min: 1, max: 16 }), seed, (first, then, way, k, drawn) => {
      const tiers = [[term(first, way)], [term(then, 'lowest')]];
      // Past the length at which a pass over all is made for each place.
      const whole = shortlist(tiers, first.length, CAPACITY, drawn);
      expect(shortlist(tiers, first.length, k, drawn)).toEqual(whole.slice(0, k));
    }),
    { numRuns: 2000 },
  );
});

test('the same holds for one lone scorer, whose ties no other tier parts', () => {
  fc.assert(
    fc.property(values, direction, fc.integer({ min: 1, max: 16 }), seed, (given, way, k, drawn) => {
      const tiers = [[term(given, way)]];
      const whole = shortlist(tiers, given.length, CAPACITY, drawn);
      expect(shortlist(tiers, given.length, k, drawn)).toEqual(whole.slice(0, k));
    }),
    { numRuns: 2000 },
  );
});

test('the same holds for a weighted sum, whose values tie within a billionth', () => {
  const nearly = fc.constantFrom(0, 0.25, 0.25 + 4e-10, 0.5, 0.5 + 9e-10, 0.5 + 18e-10, 1, Number.NaN);
  const scores = fc.array(nearly, { minLength: 1, maxLength: CAPACITY });
  fc.assert(
    fc.property(scores, scores, fc.integer({ min: 1, max: 16 }), seed, (one, other, k, drawn) => {
      const tiers = [[term(one, 'score', 0.5), term(other, 'score', 0.5)]];
      const whole = shortlist(tiers, one.length, CAPACITY, drawn);
      expect(shortlist(tiers, one.length, k, drawn)).toEqual(whole.slice(0, k));
    }),
    { numRuns: 2000 },
  );
});

test('ties fall to another endpoint with another seed', () => {
  const winners = new Set(
    Array.from({ length: 200 }, (_, i) => shortlist([[term(Array(8).fill(1), 'lowest')]], 8, 1, i * 7919)[0]),
  );
  expect(winners.size).toBe(8);
});
