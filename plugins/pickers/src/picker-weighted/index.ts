// perf: pick() runs for every decision of a rule that names weighted.
import type { PickerDefinition } from '@signalbox/plugin-api';
import { createRaceTrack, takeHighest } from '../race.ts';

/**
 * A draw without replacement in which a candidate comes first with probability score ÷ Σ scores: the keys are ln(u)/score (Efraimidis and
 * Spirakis, Weighted random sampling with a reservoir, Information Processing Letters 97(5), 2006). Zero scores come last, in random
 * order; with all at zero every candidate is equally likely.
 */
export const weighted: PickerDefinition = {
  doc: 'Draws with probability in proportion to the score.',
  setup() {
    const track = createRaceTrack();
    return {
      pick(scores, candidates, random, k, out) {
        const { length } = candidates;
        const race = track.begin(length);
        for (let i = 0; i < length; i++) {
          const score = scores[i]!;
          const u = 1 - random.next();
          race.keys[i] = score > 0 ? Math.log(u) / score : -1e300 * (2 - u);
        }
        return takeHighest(race, length, k, out);
      },
    };
  },
};
