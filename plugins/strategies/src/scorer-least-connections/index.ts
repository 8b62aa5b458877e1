import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Requests in flight, fewest best: the gateway's own ledger and the engine's report, whichever is fresher. */
export const leastConnections: ScorerDefinition = {
  doc: "Requests in flight, fewest best: the gateway's own ledger and the engine's report, whichever is fresher.",
  cost: true,
  reads: ['candidate.inflight_requests'],
  expression: 'inflight_requests',
};
