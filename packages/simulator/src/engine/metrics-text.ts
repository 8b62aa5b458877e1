import type { Engine } from './engine.ts';
import type { Histogram } from './histogram.ts';

/** What a scrape says beside the engine's own numbers. */
export interface MetricsContext {
  /** Value of the `model_name` label. */
  readonly modelName: string;
  /** Start of the process, seconds since 1970: a scraper tells a restart by it. */
  readonly startSeconds: number;
  /** Time of the scrape, seconds since 1970: the value of the LoRA info series. */
  readonly nowSeconds: number;
  /** True when the engine serves adapters: only then is the LoRA info series shown, as with vLLM. */
  readonly servesAdapters: boolean;
}

/**
 * The engine's metrics in Prometheus text, under vLLM's names and labels (checked against the families of vLLM 0.26). Families that
 * a simulation has no figure for (multi-modal cache, flops, sleep state, external cache) are left out rather than shown as 0.
 */
export function renderMetrics(engine: Engine, context: MetricsContext): string {
  const { metrics } = engine;
  const state = engine.state();
  const label = `engine="0",model_name="${escapeLabel(context.modelName)}"`;
  const lines: string[] = [];
  const family = (name: string, type: string, help: string): void =>
    void lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  const single = (name: string, type: 'gauge' | 'counter', help: string, value: number): void => {
    family(name, type, help);
    lines.push(`${name}{${label}} ${number(value)}`);
  };

  family('process_start_time_seconds', 'gauge', 'Start time of the process since unix epoch in seconds.');
  lines.push(`process_start_time_seconds ${number(context.startSeconds)}`);
  single('vllm:num_requests_running', 'gauge', 'Number of requests in model execution batches.', state.running);
  single('vllm:num_requests_waiting', 'gauge', 'Number of requests waiting to be processed.', state.waiting);
  single('vllm:kv_cache_usage_perc', 'gauge', 'KV-cache usage. 1 means 100 percent usage.', state.kvUsage);
  family('vllm:cache_config_info', 'gauge', 'Information of the LLMEngine CacheConfig');
  lines.push(
    `vllm:cache_config_info{block_size="${engine.blockSize}",cache_dtype="auto",enable_prefix_caching="True",engine="0",gpu_memory_utilization="0.9",num_gpu_blocks="${engine.kvBlocks}"} 1.0`,
  );
  single(
    'vllm:prefix_cache_queries_total',
    'counter',
    'Prefix cache queries, in terms of number of queried tokens.',
    metrics.prefixCacheQueries,
  );
  single(
    'vllm:prefix_cache_hits_total',
    'counter',
    'Prefix cache hits, in terms of number of cached tokens.',
    metrics.prefixCacheHits,
  );
  single(
    'vllm:num_preemptions_total',
    'counter',
    'Cumulative number of preemption from the engine.',
    metrics.preemptions,
  );
  single('vllm:prompt_tokens_total', 'counter', 'Number of prefill tokens processed.', metrics.promptTokens);
  single(
    'vllm:prompt_tokens_cached_total',
    'counter',
    'Number of prompt tokens found in the prefix cache.',
    metrics.prefixCacheHits,
  );
  single('vllm:generation_tokens_total', 'counter', 'Number of generation tokens processed.', metrics.generationTokens);
  family('vllm:request_success_total', 'counter', 'Count of successfully processed requests.');
  for (const [reason, count] of Object.entries(metrics.finished)) {
    lines.push(`vllm:request_success_total{${label},finished_reason="${reason}"} ${number(count)}`);
  }
  if (context.servesAdapters) {
    family('vllm:lora_requests_info', 'gauge', 'Running stats on lora requests.');
    lines.push(
      `vllm:lora_requests_info{max_lora="${engine.maxAdapters}",running_lora_adapters="${escapeLabel(state.runningAdapters.join(','))}",waiting_lora_adapters="${escapeLabel(state.waitingAdapters.join(','))}"} ${number(context.nowSeconds)}`,
    );
  }

  const histograms: readonly (readonly [string, string, Histogram])[] = [
    ['time_to_first_token_seconds', 'Histogram of time to first token in seconds.', metrics.timeToFirstToken],
    ['inter_token_latency_seconds', 'Histogram of inter-token latency in seconds.', metrics.interTokenLatency],
    [
      'request_time_per_output_token_seconds',
      'Histogram of time per output token in seconds per request.',
      metrics.timePerOutputToken,
    ],
    ['e2e_request_latency_seconds', 'Histogram of e2e request latency in seconds.', metrics.requestLatency],
    ['request_queue_time_seconds', 'Histogram of time spent in WAITING phase for request.', metrics.queueTime],
    ['request_prefill_time_seconds', 'Histogram of time spent in PREFILL phase for request.', metrics.prefillTime],
    ['request_decode_time_seconds', 'Histogram of time spent in DECODE phase for request.', metrics.decodeTime],
    ['request_inference_time_seconds', 'Histogram of time spent in RUNNING phase for request.', metrics.inferenceTime],
    ['request_prompt_tokens', 'Number of prefill tokens processed.', metrics.requestPromptTokens],
    ['request_generation_tokens', 'Number of generation tokens processed.', metrics.requestGenerationTokens],
    ['request_params_max_tokens', 'Histogram of the max_tokens request parameter.', metrics.requestMaxTokens],
    ['iteration_tokens_total', 'Histogram of number of tokens per engine_step.', metrics.iterationTokens],
  ];
  for (const [name, help, histogram] of histograms) {
    const full = `vllm:${name}`;
    family(full, 'histogram', help);
    let below = 0;
    histogram.bounds.forEach((bound, i) => {
      below += histogram.counts[i] ?? 0;
      lines.push(`${full}_bucket{${label},le="${number(bound)}"} ${number(below)}`);
    });
    lines.push(`${full}_bucket{${label},le="+Inf"} ${number(histogram.count())}`);
    lines.push(
      `${full}_sum{${label}} ${number(histogram.sum())}`,
      `${full}_count{${label}} ${number(histogram.count())}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

/** A number as the Python client writes it: whole numbers with `.0`. */
const number = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e15 ? `${value}.0` : String(value);

const escapeLabel = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
