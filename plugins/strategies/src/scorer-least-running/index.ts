import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Requests that the engine is running, fewest best. */
export const leastRunning: ScorerDefinition = {
  doc: 'Requests that the engine is running, fewest best.',
  cost: true,
  reads: ['candidate.running'],
  expression: 'running',
};
