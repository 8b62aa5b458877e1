import type { PickerDefinition } from '@signalbox/plugin-api';

/**
 * Two distinct candidates drawn uniformly, the better of which is picked. Cost and herding stay low at any fleet size.
 * Source: Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001.
 */
export const powerOfTwo: PickerDefinition = {
  doc: 'Scores two candidates drawn at random and picks the better one.',
  setup() {
    return {
      sample(candidates, random, out) {
        const n = candidates.length;
        if (n <= 2) {
          for (let i = 0; i < n; i++) out[i] = i;
          return n;
        }
        const first = Math.floor(random.next() * n);
        const other = Math.floor(random.next() * (n - 1));
        out[0] = first;
        out[1] = other < first ? other : other + 1;
        return 2;
      },
    };
  },
};
