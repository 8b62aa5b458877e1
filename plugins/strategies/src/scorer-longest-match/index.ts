// perf: score() runs for every decision of a rule that names longest_match.
import { boundLimit, createBound, withinLimit } from '@signalbox/chwbl';
import type { ScorerDefinition, ScorerInstance, SetupContext } from '@signalbox/plugin-api';

/** More than any number of uncached tokens. */
const BEYOND_BOUND = 1e9;

/**
 * Bounded-load longest match. A candidate is within the bound while load + 1 ≤ ceil(c · w/W · (m + 1)), loads being requests in flight,
 * m and W their sum and that of the weights over the candidates. Among those the longest cached prefix is best, then the lowest load for
 * each unit of weight; what ties even so is left to the policy. Candidates beyond the bound come behind, in the same order.
 *
 * As a cost: (beyond the bound: 10⁹) + whole uncached tokens + r/(1 + r), r = load ÷ weight, which lies below 1.
 */
export const longestMatch: ScorerDefinition = {
  doc: 'The longest cached prefix among the candidates within a bounded load, ties by load; the bound is a factor of the fair share.',
  cost: true,
  options: {
    type: 'object',
    properties: {
      bound: {
        type: 'number',
        minimum: 1,
        default: 1.25,
        description: 'How many times its fair share of the requests in flight an endpoint may hold.',
      },
    },
    additionalProperties: false,
  },
  positional: ['bound'],
  reads: ['request.prompt_tokens', 'candidate.prefix_hit', 'candidate.inflight_requests', 'candidate.weight'],
  setup({ options }: SetupContext<{ readonly bound: number }>): ScorerInstance {
    const bound = createBound(options.bound);
    const share = { weight: 1, totalWeight: 0, totalLoad: 0 };
    return {
      score(request, candidates, out) {
        const { length, slots } = candidates;
        const hits = candidates.column('candidate.prefix_hit');
        const loads = candidates.column('candidate.inflight_requests');
        const weights = candidates.column('candidate.weight');
        const tokens = orElse(request.number('request.prompt_tokens'), 0);
        share.totalWeight = 0;
        share.totalLoad = 0;
        for (let i = 0; i < length; i++) {
          share.totalWeight += weightOf(weights[slots[i]!]!);
          share.totalLoad += orElse(loads[slots[i]!]!, 0);
        }
        for (let i = 0; i < length; i++) {
          const slot = slots[i]!;
          const load = orElse(loads[slot]!, 0);
          share.weight = weightOf(weights[slot]!);
          const within = withinLimit(bound, load, boundLimit(bound, share));
          const uncached = Math.floor(tokens * (1 - Math.min(1, Math.max(0, orElse(hits[slot]!, 0)))));
          const relative = load / share.weight;
          out[i] = (within ? 0 : BEYOND_BOUND) + uncached + relative / (1 + relative);
        }
      },
    };
  },
};

function orElse(value: number, otherwise: number): number {
  return value === value ? value : otherwise;
}

function weightOf(weight: number): number {
  return weight > 0 ? weight : 1;
}
