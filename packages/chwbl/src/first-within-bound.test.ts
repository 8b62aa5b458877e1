import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundLimit, createBound, withinLimit } from './bound.ts';
import type { CandidateColumns } from './first-within-bound.ts';
import { firstInOrder, firstWithinBound, markWithinBound } from './first-within-bound.ts';
import type { Hash64 } from './hash.ts';
import { hashString } from './hash.ts';
import { createRanker } from './ranker.ts';
import { rendezvousScore } from './rendezvous-score.ts';

interface Fleet {
  readonly candidates: CandidateColumns;
  readonly loads: Float64Array;
}

/** A fleet of `weights.length` slots, of which those in `chosen` are candidates. */
function fleetOf(weights: readonly number[], chosen: readonly number[], loads: readonly number[]): Fleet {
  const hashes = weights.map((_, slot) => hashString(`node-${slot}`));
  return {
    candidates: {
      hashHi: Uint32Array.from(hashes, (hash) => hash.hi),
      hashLo: Uint32Array.from(hashes, (hash) => hash.lo),
      weights: Float64Array.from(weights),
      slots: Int32Array.from(chosen),
      length: chosen.length,
    },
    loads: Float64Array.from(loads),
  };
}

/** The plain definition: sort by score, highest first. */
function sortedSlots({ hashHi, hashLo, weights, slots, length }: CandidateColumns, key: Hash64): number[] {
  const scored = Array.from(slots.subarray(0, length), (slot) => {
    const node = { hi: hashHi[slot] ?? 0, lo: hashLo[slot] ?? 0 };
    return { slot, score: rendezvousScore(key, node, weights[slot] ?? 0) };
  });
  return scored.toSorted((one, other) => other.score - one.score).map(({ slot }) => slot);
}

const fleet = fc.integer({ min: 1, max: 40 }).chain((size) =>
  fc
    .record({
      weights: fc.oneof(
        fc.constant(Array.from({ length: size }, () => 1)),
        fc.array(fc.double({ min: 0.01, max: 100, noNaN: true }), { minLength: size, maxLength: size }),
      ),
      chosen: fc.shuffledSubarray([...Array(size).keys()], { minLength: 1 }),
      loads: fc.array(fc.nat({ max: 50 }), { minLength: size, maxLength: size }),
    })
    .map(({ weights, chosen, loads }) => fleetOf(weights, chosen, loads)),
);
const bound = fc
  .record({
    factor: fc.double({ min: 1, max: 2, noNaN: true }),
    unit: fc.constantFrom('requests' as const, 'tokens' as const),
  })
  .map(({ factor, unit }) => createBound(factor, unit));
const key = fc.string().map((text) => hashString(text));

describe('firstWithinBound', () => {
  test('gives the first acceptable node of the sorted order', () => {
    fc.assert(
      fc.property(fleet, bound, key, ({ candidates, loads }, limitBound, hash) => {
        const { weights, slots, length } = candidates;
        const chosen = Array.from(slots.subarray(0, length));
        const totalWeight = chosen.reduce((sum, slot) => sum + (weights[slot] ?? 0), 0);
        const totalLoad = chosen.reduce((sum, slot) => sum + (loads[slot] ?? 0), 0);
        const expected = sortedSlots(candidates, hash).find((slot) => {
          const limit = boundLimit(limitBound, { weight: weights[slot] ?? 0, totalWeight, totalLoad });
          return withinLimit(limitBound, loads[slot] ?? 0, limit);
        });
        expect(firstWithinBound(candidates, hash, loads, limitBound)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  test('gives the first node when nothing is loaded', () => {
    fc.assert(
      fc.property(fleet, bound, key, ({ candidates, loads }, limitBound, hash) => {
        expect(firstWithinBound(candidates, hash, loads.fill(0), limitBound)).toBe(firstInOrder(candidates, hash));
        expect(firstInOrder(candidates, hash)).toBe(sortedSlots(candidates, hash)[0]);
      }),
    );
  });

  test('reads integer columns and columns on shared memory alike', () => {
    const { candidates } = fleetOf([1, 2, 3, 4], [0, 1, 2, 3], []);
    const shared = new Int32Array(new SharedArrayBuffer(16));
    shared.set([9, 0, 2, 5]);
    const hash = hashString('user-100');
    const expected = firstWithinBound(candidates, hash, Float64Array.from(shared), createBound(1));
    expect(firstWithinBound(candidates, hash, shared, createBound(1))).toBe(expected);
    expect(firstWithinBound(candidates, hash, Uint32Array.from(shared), createBound(1))).toBe(expected);
  });

  test('leaves out nodes of weight 0, and gives -1 without candidates', () => {
    const { candidates, loads } = fleetOf([0, 1, Number.NaN], [0, 1, 2], [0, 1000, 0]);
    for (let index = 0; index < 50; index++) {
      expect(firstWithinBound(candidates, hashString(`k${index}`), loads, createBound())).toBe(1);
    }
    candidates.length = 1;
    expect(firstWithinBound(candidates, hashString('k'), loads, createBound())).toBe(-1);
    candidates.length = 0;
    expect(firstWithinBound(candidates, hashString('k'), loads, createBound())).toBe(-1);
    expect(firstInOrder(candidates, hashString('k'))).toBe(-1);
  });

  test('nodes with the same hash and score go by slot', () => {
    const { candidates, loads } = fleetOf([1, 1, 1], [2, 1, 0], [0, 0, 0]);
    candidates.hashHi.fill(7);
    candidates.hashLo.fill(7);
    expect(firstWithinBound(candidates, hashString('k'), loads, createBound())).toBe(0);
  });
});

test('markWithinBound marks what the bound allows and never nothing', () => {
  fc.assert(
    fc.property(fleet, bound, ({ candidates, loads }, limitBound) => {
      const mask = new Uint8Array(candidates.length);
      const count = markWithinBound(candidates, loads, limitBound, mask);
      expect(count).toBeGreaterThan(0);
      expect(mask.reduce((sum, bit) => sum + bit, 0)).toBe(count);
      const first = firstWithinBound(candidates, hashString('some key'), loads, limitBound);
      expect(mask[candidates.slots.indexOf(first)]).toBe(1);
    }),
  );
});

describe('a ranker', () => {
  test('gives the whole order lazily, the top k and the membership mask of one and the same order', () => {
    const ranker = createRanker(40);
    fc.assert(
      fc.property(fleet, key, fc.nat({ max: 45 }), ({ candidates }, hash, k) => {
        const expected = sortedSlots(candidates, hash);
        ranker.begin(candidates, hash);
        const lazily = expected.map(() => ranker.next());
        expect(lazily).toEqual(expected);
        expect(ranker.next()).toBe(-1);

        const out = new Int32Array(45);
        const count = ranker.top(candidates, hash, k, out);
        expect([...out.subarray(0, count)]).toEqual(expected.slice(0, k));
        expect(ranker.next()).toBe(-1);

        const mask = new Uint8Array(candidates.length);
        expect(ranker.among(candidates, hash, k, mask)).toBe(count);
        const members = [...candidates.slots].filter((_, place) => mask[place] === 1);
        expect(new Set(members)).toEqual(new Set(expected.slice(0, k)));
        expect(members).toHaveLength(count);
      }),
      { numRuns: 500 },
    );
  });

  test('with as many places as candidates all are members, even those of weight 0, which no order holds', () => {
    const { candidates } = fleetOf([1, 0, 1], [0, 1, 2], []);
    const mask = new Uint8Array(3);
    expect(createRanker(3).among(candidates, hashString('k'), 3, mask)).toBe(3);
    expect([...mask]).toEqual([1, 1, 1]);
    expect(createRanker(3).among(candidates, hashString('k'), 2, mask)).toBe(2);
    expect([...mask]).toEqual([1, 0, 1]);
    expect(createRanker(3).top(candidates, hashString('k'), 3, new Int32Array(3))).toBe(2);
  });

  test('a call over its capacity, and a k that is no count, are refused', () => {
    const { candidates } = fleetOf([1, 1], [0, 1], [0, 0]);
    const mask = new Uint8Array(2);
    expect(() => createRanker(1).begin(candidates, hashString('k'))).toThrow(/createRanker\(2\)/);
    expect(() => createRanker(1).among(candidates, hashString('k'), 1, mask)).toThrow(/capacity 1/);
    expect(() => createRanker(2).top(candidates, hashString('k'), -1, new Int32Array(2))).toThrow(/at least 0/);
    expect(() => createRanker(-1)).toThrow(/capacity is -1/);
  });
});

test('a pick at 1,000 nodes stays under ten times its bar of 60 µs', () => {
  const weights = Array.from({ length: 1000 }, (_, slot) => 1 + (slot % 3));
  const { candidates, loads } = fleetOf(
    weights,
    [...weights.keys()],
    weights.map((_, slot) => (slot * 7919) % 13),
  );
  const keys = Array.from({ length: 500 }, (_, index) => hashString(`session-${index}`));
  const startMs = performance.now();
  const picked = keys.map((hash) => firstWithinBound(candidates, hash, loads, createBound()));
  const microseconds = ((performance.now() - startMs) * 1000) / keys.length;
  process.stdout.write(`firstWithinBound, 1,000 nodes: ${microseconds.toFixed(1)} µs a call\n`);
  expect(new Set(picked).size).toBeGreaterThan(200);
  expect(microseconds).toBeLessThan(600);
});
