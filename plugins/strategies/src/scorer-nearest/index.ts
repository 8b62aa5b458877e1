// perf: score() runs for every decision of a rule that names nearest.
import type { ScorerDefinition, ScorerInstance, SetupContext } from '@signalbox/plugin-api';

const SAME_ZONE = 1;
const SAME_REGION = 0.5;
const ELSEWHERE = 0;

/** How near an endpoint is to the place given: 1 in the same zone, 0.5 in the same region, 0 elsewhere or where its place is unknown. */
export const nearest: ScorerDefinition = {
  doc: 'Nearness by labels: 1 in the zone given, 0.5 in the region given, 0 elsewhere.',
  options: {
    type: 'object',
    properties: {
      zone: { type: 'string', minLength: 1, description: 'The zone to be near to.' },
      region: { type: 'string', minLength: 1, description: 'The region to be near to.' },
    },
    additionalProperties: false,
  },
  positional: ['zone', 'region'],
  reads: ['candidate.zone', 'candidate.region'],
  setup({ options }: SetupContext<{ readonly zone?: string; readonly region?: string }>): ScorerInstance {
    return {
      score(_request, candidates, out) {
        const zones = candidates.values('candidate.zone');
        const regions = candidates.values('candidate.region');
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          if (options.zone !== undefined && zones[slot] === options.zone) out[i] = SAME_ZONE;
          else out[i] = options.region !== undefined && regions[slot] === options.region ? SAME_REGION : ELSEWHERE;
        }
      },
    };
  },
};
