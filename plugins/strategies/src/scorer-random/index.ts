// perf: score() runs for every decision of a rule that names random.
import { hashPair } from '@signalbox/chwbl';
import type { ScorerDefinition } from '@signalbox/plugin-api';
import { createEndpointHashes } from '../endpoint-hashes.ts';

/** A uniform draw per candidate from (request seed, endpoint): the best of n is each with probability 1/n, and a replay draws the same. */
export const random: ScorerDefinition = {
  doc: 'A uniform draw for each candidate, seeded by the request: every candidate is best equally often.',
  reads: ['candidate.name'],
  setup() {
    const hashes = createEndpointHashes();
    return {
      score(request, candidates, out) {
        const names = candidates.values('candidate.name');
        const key = { hi: request.seed >>> 0, lo: 0x72616e64 };
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          out[i] = hashPair(key, hashes.of(slot, names[slot])).hi / 2 ** 32;
        }
      },
    };
  },
};
