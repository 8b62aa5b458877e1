import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Requests in flight divided by the endpoint's weight, fewest best. */
export const leastRequests: ScorerDefinition = {
  doc: "Requests in flight divided by the endpoint's weight, fewest best.",
  cost: true,
  reads: ['candidate.inflight_requests', 'candidate.weight'],
  expression: 'inflight_requests / weight',
};
