import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Requests in flight by the gateway's own ledger, which is never older than an engine's report; fewest best. */
export const leastConnections: ScorerDefinition = {
  doc: "Requests in flight by the gateway's own ledger, which is never older than an engine's report; fewest best.",
  cost: true,
  reads: ['candidate.inflight_requests'],
  expression: 'inflight_requests',
};
