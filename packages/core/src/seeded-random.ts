import type { RandomSource } from '@signalbox/plugin-api';

/** A source that can be set back to a seed, so that one object serves every request. */
export interface SeededRandom extends RandomSource {
  reset(seed: number): void;
}

/** Uniform numbers in [0, 1) from a 32-bit seed: the mulberry32 generator by Tommy Ettinger (public domain). Not for secrets. */
export function createSeededRandom(seed: number): SeededRandom {
  let state = seed | 0;
  return {
    reset(next) {
      state = next | 0;
    },
    next() {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    },
  };
}

/** A permutation of 32-bit integers that spreads a counter over them: the final mix of MurmurHash3. */
export function spread(counter: number): number {
  let x = counter;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
