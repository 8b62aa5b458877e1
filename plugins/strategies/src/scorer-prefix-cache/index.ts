import type { ScorerDefinition } from '@signalbox/plugin-api';

/** The share of this prompt that the endpoint has cached; unknown counts as nothing. */
export const prefixCache: ScorerDefinition = {
  doc: 'Share of this prompt that the endpoint has in its prefix cache, most best; unknown counts as nothing.',
  reads: ['candidate.prefix_hit'],
  expression: 'prefix_hit ?? 0%',
};
