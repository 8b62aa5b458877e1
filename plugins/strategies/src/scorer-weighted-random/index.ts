// perf: score() runs for every decision of a rule that names weighted_random.
import { rendezvousScore } from '@signalbox/chwbl';
import type { CandidateView, NumberColumn, ScorerDefinition } from '@signalbox/plugin-api';
import { createEndpointHashes } from '../endpoint-hashes.ts';

/** Worse than any draw of a candidate with room for at least one hundredth of a request: −ln(2⁻⁴⁹) ÷ 0.01 is 3,397. */
const FULL = 1e4;

/**
 * A draw with probabilities in proportion to free capacity, as an exponential race: the cost of candidate i is −ln(uᵢ)/wᵢ with uᵢ uniform
 * from (request seed, endpoint). The least of independent exponential times of rates wᵢ is the i-th with probability wᵢ ÷ Σw, and the
 * shortlist behind it is a weighted draw without replacement.
 */
export const weightedRandom: ScorerDefinition = {
  doc: 'A seeded draw in which a candidate is best with probability in proportion to its free capacity.',
  cost: true,
  reads: ['candidate.name', 'candidate.max_requests', 'candidate.inflight_requests', 'candidate.weight'],
  setup() {
    const hashes = createEndpointHashes();
    return {
      score(request, candidates, out) {
        const names = candidates.values('candidate.name');
        const limits = candidates.column('candidate.max_requests');
        const inflight = candidates.column('candidate.inflight_requests');
        const weights = candidates.column('candidate.weight');
        const perWeight = limitPerWeight(candidates, limits, weights);
        const key = { hi: request.seed >>> 0, lo: 0x77726e64 };
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const weight = weightOf(weights, slot);
          const limit = limits[slot]!;
          const held = inflight[slot]!;
          const capacity = limit === limit ? limit : perWeight * weight;
          const free = perWeight === 0 ? weight : capacity - (held === held ? held : 0);
          out[i] = free > 0 ? -rendezvousScore(key, hashes.of(slot, names[slot]), free) : FULL;
        }
      },
    };
  },
};

/** Mean request limit per unit of weight among the candidates that state one; 0 when none does. */
function limitPerWeight(candidates: CandidateView, limits: NumberColumn, weights: NumberColumn): number {
  let limit = 0;
  let weight = 0;
  for (let i = 0; i < candidates.length; i++) {
    const slot = candidates.slots[i]!;
    const own = limits[slot]!;
    if (own !== own) continue;
    limit += own;
    weight += weightOf(weights, slot);
  }
  return weight > 0 ? limit / weight : 0;
}

function weightOf(weights: NumberColumn, slot: number): number {
  const weight = weights[slot]!;
  return weight > 0 ? weight : 1;
}
