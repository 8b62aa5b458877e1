import type { ValueType } from '@signalbox/plugin-api';
import { builtin } from './entries.ts';
import type { Parameter, PropertyEntry } from './entries.ts';

export const PRECISIONS: readonly string[] = ['fp32', 'bf16', 'fp16', 'fp8', 'int8', 'int4'];
const STATES: readonly string[] = ['ready', 'loading', 'asleep', 'draining'];

interface Extra {
  readonly better?: 'low' | 'high';
  readonly expression?: string;
  readonly parameters?: readonly Parameter[];
}

const property = (name: string, type: ValueType, doc: string, extra: Extra = {}): PropertyEntry => ({
  kind: 'property',
  name,
  type,
  doc,
  provider: builtin,
  better: extra.better ?? 'low',
  parameters: extra.parameters ?? [],
  ...(extra.expression === undefined ? {} : { expression: extra.expression }),
});

const high = { better: 'high' } as const;
const strings: ValueType = { list: 'string' };

/** Candidate properties and filters that every build knows. A plugin that provides one of these names takes its place. */
export const builtInProperties: readonly PropertyEntry[] = [
  property('name', 'string', 'Name of the endpoint.'),
  property('state', { enum: STATES }, 'What the endpoint is doing: ready, loading, asleep or draining.'),
  property('queue_depth', 'count', 'Requests that wait in the engine.'),
  property('running', 'count', 'Requests that the engine is working on.'),
  property('batch_size', 'count', 'Requests in the running batch.'),
  property('queued_tokens', 'count', 'Prompt tokens of the requests in flight.'),
  property('decode_tokens', 'count', 'Output tokens still expected of the requests in flight.'),
  property('inflight_requests', 'count', 'Requests in flight.'),
  property('inflight_tokens', 'count', 'Prompt and output tokens of the requests in flight.'),
  property(
    'load',
    'percent',
    'Prompt tokens in flight weighed 0.1 plus decode tokens weighed 1.0, over one second of throughput; above 100 % the endpoint is behind.',
    {
      expression: '(0.1 * queued_tokens + 1.0 * decode_tokens) / (throughput * 1s)',
    },
  ),
  property('kv_cache_used', 'percent', 'Used share of the KV cache.'),
  property('prefix_hit', 'percent', 'Share of this prompt that the endpoint has cached.', high),
  property('predicted_wait', 'duration', 'Predicted time in the queue.'),
  property('predicted_ttft', 'duration', 'Predicted time to the first token.'),
  property('predicted_latency', 'duration', 'Predicted time to the last token.'),
  property('predicted_tpot', 'duration', 'Predicted time per output token.'),
  property('throughput', 'rate', 'Output tokens per second that the endpoint can make.', high),
  property('error_rate', 'percent', 'Share of failed attempts in the last 30 seconds.'),
  property('healthy', 'bool', 'Whether the endpoint is not ejected.', high),
  property('draining', 'bool', 'Whether the endpoint takes no new requests.'),
  property('age', 'duration', "Age of the endpoint's last metrics."),
  property('gpu', 'string', 'GPU model.'),
  property('gpu_count', 'number', 'GPUs per replica.', high),
  property('gpu_memory', 'bytes', 'Memory of one GPU.', high),
  property('precision', { enum: PRECISIONS }, 'Number format of the weights.'),
  property('model_size', 'count', 'Parameters of the model.'),
  property('context_window', 'count', 'Tokens that prompt and output may take together.', high),
  property(
    'max_requests',
    'count',
    'Most requests that the endpoint takes at once, where the tier states it or has an adaptive limit.',
    high,
  ),
  property(
    'max_tokens_in_flight',
    'count',
    'Most tokens that the endpoint takes at once, where the tier states it.',
    high,
  ),
  property('max_batch', 'count', 'Most requests in one batch, where the tier states it.', high),
  property('supports', strings, 'Features of the model: tools, vision, json_schema, embeddings …', high),
  property('tier', 'string', 'Tier of the endpoint.'),
  property(
    'weight',
    'number',
    'Share of the load that the endpoint is meant to take, relative to the others; 1 unless written.',
    high,
  ),
  property('zone', 'string', 'Zone of the endpoint.'),
  property('region', 'string', 'Region of the endpoint.'),
  property('price', 'money', 'Price of the endpoint per hour.'),
  property('cost', 'money', 'Estimated cost of this request on the endpoint.'),
  property('power', 'number', 'Power draw in watts.'),
  property('loras', strings, 'Adapters that are resident.', high),
  property('lora_slots_free', 'number', 'Room for more adapters.', high),
  property('has_model', 'bool', 'Whether the endpoint serves the model that the request names.', high),
  property('has_lora', 'bool', 'Whether the adapter that the request names is resident.', {
    ...high,
    expression: 'lora in loras',
  }),
  property('fits_context', 'bool', 'Whether prompt and output fit the context window.', {
    ...high,
    expression: 'prompt_tokens + (max_tokens ?? output_tokens ?? 0) <= context_window',
  }),
  property('under_load', 'bool', 'Whether the load is below the share given; the textbook cut is `under_load(95%)`.', {
    ...high,
    expression: 'load < max',
    parameters: [{ name: 'max', kind: 'value', type: 'percent', optional: true, default: 0.95, minimum: 0 }],
  }),
  property(
    'under_bound',
    'bool',
    'Whether one more request keeps the endpoint within the bound, a factor of the mean load.',
    {
      ...high,
      parameters: [{ name: 'bound', kind: 'value', type: 'number', optional: true, default: 1.25, minimum: 1 }],
    },
  ),
  property('among', 'bool', 'Whether the endpoint is one of the first n for the key, a stable subset.', {
    ...high,
    parameters: [
      { name: 'key', kind: 'key' },
      { name: 'places', kind: 'value', type: 'count', minimum: 1, whole: true },
      { name: 'grow', kind: 'value', type: 'bool', optional: true, default: false },
    ],
  }),
];
