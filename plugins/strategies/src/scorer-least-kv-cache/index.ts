import type { ScorerDefinition } from '@signalbox/plugin-api';

/** Free share of the KV cache: 1 − use. */
export const leastKvCache: ScorerDefinition = {
  doc: 'Free share of the KV cache: 1 − use.',
  reads: ['candidate.kv_cache_used'],
  expression: '100% - kv_cache_used',
};
