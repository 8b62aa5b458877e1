import type { RandomSource } from '@signalbox/plugin-api';

/** Uniform numbers in [0, 1), the same row of them for the same seed. SplitMix32 over 32-bit steps; not for secrets. */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x9e3779b9) >>> 0;
      let x = state;
      x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
      x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
      return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
    },
  };
}
