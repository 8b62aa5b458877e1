import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hashString } from './hash.ts';
import { hashPair, logOfFraction, rendezvousScore } from './rendezvous-score.ts';

const word32 = fc.integer({ min: 0, max: 0xffffffff });
const hash64 = fc.record({ hi: word32, lo: word32 });

describe('the pair hash', () => {
  test('gives different nodes different hashes, for every key', () => {
    fc.assert(
      fc.property(hash64, hash64, hash64, (key, one, other) => {
        fc.pre(one.hi !== other.hi || one.lo !== other.lo);
        expect(hashPair(key, one)).not.toEqual(hashPair(key, other));
      }),
    );
  });

  test('tells key from node', () => {
    const one = hashString('gpu-0');
    const other = hashString('gpu-1');
    expect(hashPair(one, other)).not.toEqual(hashPair(other, one));
    expect(hashPair(one, one)).not.toEqual(hashPair(other, other));
  });

  test('flipping any bit of key or node flips each bit of the hash about half the time', () => {
    const flips = new Float64Array(64);
    const trials = 400 * 128;
    for (let index = 0; index < 400; index++) {
      const key = hashString(`key-${index}`);
      const node = hashString(`node-${index}`);
      const pair = hashPair(key, node);
      for (let bit = 0; bit < 128; bit++) {
        const hi = bit & 32 ? 1 << (bit & 31) : 0;
        const lo = bit & 32 ? 0 : 1 << (bit & 31);
        const input = bit < 64 ? key : node;
        const flipped = { hi: (input.hi ^ hi) >>> 0, lo: (input.lo ^ lo) >>> 0 };
        const other = bit < 64 ? hashPair(flipped, node) : hashPair(key, flipped);
        for (let at = 0; at < 32; at++) {
          flips[at] = (flips[at] ?? 0) + (((pair.hi ^ other.hi) >>> at) & 1);
          flips[32 + at] = (flips[32 + at] ?? 0) + (((pair.lo ^ other.lo) >>> at) & 1);
        }
      }
    }
    for (const count of flips) expect(Math.abs(count / trials - 0.5)).toBeLessThan(5 * Math.sqrt(0.25 / trials));
  });
});

describe('the logarithm', () => {
  test('equals Math.log to two units in the last place over the whole range', () => {
    const edges = [0, 1, 2, 0x7fffffff, 0x80000000, 0xb504f333, 0xb504f334, 0xfffffffe, 0xffffffff];
    const half = fc.oneof(fc.constantFrom(...edges), word32, fc.integer({ min: 0, max: 70000 }));
    fc.assert(
      fc.property(half, half, (hi, lo) => {
        const fraction = (hi * 65536 + (lo >>> 16) + 0.5) / 2 ** 48;
        const expected = Math.log(fraction);
        expect(Math.abs(logOfFraction(hi, lo) - expected)).toBeLessThanOrEqual(2 ** -51 * Math.abs(expected));
      }),
      { numRuns: 5000 },
    );
  });

  test('rises strictly from one fraction to the next', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 48n - 2n }), (top) => {
        const at = (value: bigint): number => logOfFraction(Number(value >> 16n), Number((value & 0xffffn) << 16n));
        expect(at(top)).toBeLessThan(at(top + 1n));
      }),
      { numRuns: 5000 },
    );
    expect(logOfFraction(0, 0)).toBeGreaterThan(-34.7);
    expect(logOfFraction(0xffffffff, 0xffffffff)).toBeLessThan(0);
  });
});

test('a score is ln(u) over the weight: below zero, nearer to zero for a heavier node', () => {
  fc.assert(
    fc.property(hash64, hash64, fc.double({ min: 0.001, max: 1000, noNaN: true }), (key, node, weight) => {
      const score = rendezvousScore(key, node, weight);
      expect(score).toBeLessThan(0);
      expect(rendezvousScore(key, node, weight * 2)).toBe(score / 2);
    }),
  );
});
