import type { ScorerDefinition } from '@signalbox/plugin-api';

/** The textbook's latency, lowest best: queued ÷ throughput + tokens ÷ throughput. */
export const leastLatencyTextbook: ScorerDefinition = {
  doc: "The textbook's latency, least best: queued tokens ÷ throughput plus this request's prompt and output tokens ÷ throughput.",
  cost: true,
  reads: ['candidate.queued_tokens', 'candidate.throughput', 'request.prompt_tokens', 'request.output_tokens'],
  expression: 'queued_tokens / throughput + (prompt_tokens + (output_tokens ?? 0)) / throughput',
};
