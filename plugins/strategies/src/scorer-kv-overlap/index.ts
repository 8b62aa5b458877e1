import type { ScorerDefinition } from '@signalbox/plugin-api';

/** weight · blocks of the prompt that are not cached + blocks that the endpoint's requests hold. Unknown prefix hits count as nothing. */
export const kvOverlap: ScorerDefinition = {
  doc: 'Weighted uncached blocks of this prompt plus the blocks in use by requests in flight, fewest best.',
  cost: true,
  options: {
    type: 'object',
    properties: {
      overlap_weight: {
        type: 'number',
        minimum: 0,
        default: 1,
        description: 'What an uncached block counts against a block in use.',
      },
      block_tokens: { type: 'number', minimum: 1, default: 16, description: 'Tokens in a KV block of the engine.' },
    },
    additionalProperties: false,
  },
  positional: ['overlap_weight'],
  reads: ['request.prompt_tokens', 'candidate.prefix_hit', 'candidate.inflight_tokens'],
  expression:
    '(overlap_weight * (prompt_tokens - prompt_tokens * (prefix_hit ?? 0%)) + inflight_tokens) / block_tokens',
};
