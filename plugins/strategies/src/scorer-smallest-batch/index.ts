import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Sequences in the running batch, fewest best. */
export const smallestBatch: ScorerDefinition = {
  doc: 'Sequences in the running batch, fewest best.',
  cost: true,
  reads: ['candidate.batch_size'],
  expression: 'batch_size',
};
