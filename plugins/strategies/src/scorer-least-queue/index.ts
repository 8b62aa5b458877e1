import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Requests that wait inside the engine, fewest best: (max − q) ÷ (max − min) over the candidates. */
export const leastQueue: ScorerDefinition = {
  doc: 'Requests that wait inside the engine, fewest best: (max − q) ÷ (max − min) over the candidates.',
  cost: true,
  reads: ['candidate.queue_depth'],
  expression: 'queue_depth',
};
