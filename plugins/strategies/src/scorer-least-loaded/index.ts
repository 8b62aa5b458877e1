import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Prompt tokens that wait for prefill, fewest best. */
export const leastLoaded: ScorerDefinition = {
  doc: 'Prompt tokens that wait for prefill, fewest best.',
  cost: true,
  reads: ['candidate.queued_tokens'],
  expression: 'queued_tokens',
};
