import type { PropertyDefinition } from '@signalbox/plugin-api';

/** queued ÷ throughput + tokens ÷ throughput, all tokens alike: the formula to reason with. Unknown throughput gives an unknown latency. */
export const predictedLatencyTextbook: PropertyDefinition = {
  doc: "The textbook's latency: queued tokens ÷ throughput plus this request's prompt and output tokens ÷ throughput.",
  type: 'duration',
  reads: ['candidate.queued_tokens', 'candidate.throughput', 'request.prompt_tokens', 'request.output_tokens'],
  expression: 'queued_tokens / throughput + (prompt_tokens + (output_tokens ?? 0)) / throughput',
};
