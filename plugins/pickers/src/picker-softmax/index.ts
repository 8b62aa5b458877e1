// perf: pick() runs for every decision of a rule that names softmax.
import type { PickerDefinition } from '@signalbox/plugin-api';
import { createRaceTrack, takeHighest } from '../race.ts';

/**
 * A draw without replacement in which a candidate comes first with probability exp(score/T) ÷ Σ exp(score/T): the keys are
 * score/T − ln(−ln u), the Gumbel trick. A low temperature T nears `best`, a high one a uniform draw.
 * Source: Kool, van Hoof and Welling, Stochastic beams and where to find them, ICML 2019.
 */
export const softmax: PickerDefinition = {
  doc: 'Draws with probability in proportion to exp(score ÷ temperature).',
  options: {
    type: 'object',
    properties: {
      temperature: {
        type: 'number',
        exclusiveMinimum: 0,
        default: 0.2,
        description: 'Scores lie in [0, 1]: at 0.1 a lead of 0.1 makes a candidate 2.7 times as likely.',
      },
    },
    additionalProperties: false,
  },
  positional: ['temperature'],
  setup({ options }: { readonly options: { readonly temperature: number } }) {
    const track = createRaceTrack();
    return {
      pick(scores, candidates, random, k, out) {
        const { length } = candidates;
        const race = track.begin(length);
        for (let i = 0; i < length; i++) {
          // 1 − next() keeps u in (0, 1]; at 1 the noise would be infinite.
          const u = Math.min(1 - random.next(), 1 - Number.EPSILON);
          race.keys[i] = scores[i]! / options.temperature - Math.log(-Math.log(u));
        }
        return takeHighest(race, length, k, out);
      },
    };
  },
};
