// perf: score() runs for every decision of a rule that names declared_order.
import type { ScorerDefinition } from '@signalbox/plugin-api';

/** The place in which the policy declares an endpoint, first best. For `then declared_order`. */
export const declaredOrder: ScorerDefinition = {
  doc: 'The order in which the policy declares the endpoints, first best; meant for `then`.',
  cost: true,
  reads: ['candidate.declared_order'],
  setup() {
    return {
      score(_request, candidates, out) {
        const order = candidates.column('candidate.declared_order');
        for (let i = 0; i < candidates.length; i++) {
          const slot = candidates.slots[i]!;
          const place = order[slot]!;
          out[i] = place === place ? place : slot;
        }
      },
    };
  },
};
