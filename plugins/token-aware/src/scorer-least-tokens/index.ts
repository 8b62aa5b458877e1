import type { OptionSchema, ScorerDefinition } from '@signalbox/plugin-api';

const options: OptionSchema = {
  type: 'object',
  properties: {
    prompt_weight: { type: 'number', minimum: 0, default: 0.1, description: 'Work of one prompt token.' },
    decode_weight: { type: 'number', minimum: 0, default: 1, description: 'Work of one output token.' },
    output_estimate: {
      type: 'number',
      minimum: 0,
      default: 256,
      'x-unit': 'count',
      description: 'Output tokens of a request whose output_tokens are unknown.',
    },
  },
  additionalProperties: false,
};

/**
 * Seconds of token work that an endpoint would hold with this request: prompt tokens weigh 0.1 and output tokens 1.0, divided by its
 * tokens per second. An unknown throughput counts as the mean of the known ones; where none is known all count alike.
 */
export const leastTokens: ScorerDefinition = {
  doc: "Token work in flight plus this request's share, divided by throughput, least best. Prompt tokens weigh 0.1, output tokens 1.0.",
  cost: true,
  options,
  reads: [
    'candidate.queued_tokens',
    'candidate.decode_tokens',
    'candidate.throughput',
    'request.prompt_tokens',
    'request.output_tokens',
  ],
  expression:
    '(prompt_weight * (queued_tokens + prompt_tokens) + decode_weight * (decode_tokens + (output_tokens ?? output_estimate)))' +
    ' / (throughput ?? avg(throughput) ?? 1/s)',
};
