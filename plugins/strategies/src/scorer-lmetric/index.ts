import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Prompt tokens left to compute, times the batch with this request in it. Unknown prefix hits count as nothing. */
export const lmetric: ScorerDefinition = {
  doc: 'Uncached prompt tokens times (running batch + 1), least best: cache match and load in one product.',
  cost: true,
  reads: ['request.prompt_tokens', 'candidate.prefix_hit', 'candidate.batch_size'],
  expression: '(prompt_tokens - prompt_tokens * (prefix_hit ?? 0%)) * (batch_size + 1)',
};
