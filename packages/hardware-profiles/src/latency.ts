import type { DecodeModel, PrefillModel } from './profile.ts';

/** The part of a profile that predictions read. */
export interface LatencyModel {
  readonly prefill: PrefillModel;
  readonly decode: DecodeModel;
}

/** Milliseconds to prefill `uncachedTokens` prompt tokens alone; 0 for none. */
export function prefillMs(model: LatencyModel, uncachedTokens: number): number {
  return uncachedTokens <= 0 ? 0 : model.prefill.fixedMs + model.prefill.perTokenMs * uncachedTokens;
}

/**
 * Milliseconds of one decode step, which gives one token to each sequence of the batch.
 * @param batch sequences in the batch; 0 gives 0
 * @param contextTokens tokens of context that the whole batch holds together
 * @param prefillTokens prompt tokens of newcomers that are prefilled in the same step
 */
export function decodeStepMs(model: LatencyModel, batch: number, contextTokens: number, prefillTokens = 0): number {
  if (batch <= 0) return 0;
  const { aMs, bMs, kMs, pMs } = model.decode;
  return aMs + bMs * batch + (kMs * contextTokens) / 1000 + pMs * prefillTokens;
}

/** Output tokens per second of the whole batch in steady decode, without newcomers. */
export function decodeTokensPerSecond(model: LatencyModel, batch: number, contextTokens = 0): number {
  const stepMs = decodeStepMs(model, batch, contextTokens);
  return stepMs > 0 ? (1000 * batch) / stepMs : 0;
}

/** Requests of one shape that are kept running: `concurrency` of them, each with so many prompt and output tokens. */
export interface SteadyLoad {
  readonly concurrency: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/**
 * Milliseconds per output token in a steady state where every finished request is replaced at once: the mean context is the prompt
 * and half the output, and each step carries `concurrency / outputTokens` newcomers' prompts. This is the form that is fitted:
 * TPOT = a + b·c + k·c·(prompt + output/2)/1000 + p·c·prompt/output.
 */
export function timePerOutputTokenMs(model: LatencyModel, load: SteadyLoad): number {
  const { concurrency, promptTokens, outputTokens } = load;
  return decodeStepMs(
    model,
    concurrency,
    concurrency * (promptTokens + outputTokens / 2),
    (concurrency * promptTokens) / Math.max(1, outputTokens),
  );
}

/** What a steady load yields, by Little's law over prefill and decode time. */
export interface Throughput {
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  /** Prompt and output tokens together. */
  readonly totalTokensPerSecond: number;
}

/** The throughput of a steady load with no waiting and no cached prompt. */
export function requestThroughput(model: LatencyModel, load: SteadyLoad): Throughput {
  const requestMs =
    prefillMs(model, load.promptTokens) + timePerOutputTokenMs(model, load) * Math.max(0, load.outputTokens - 1);
  const requestsPerSecond = requestMs > 0 ? (1000 * load.concurrency) / requestMs : 0;
  return {
    requestsPerSecond,
    outputTokensPerSecond: requestsPerSecond * load.outputTokens,
    totalTokensPerSecond: requestsPerSecond * (load.promptTokens + load.outputTokens),
  };
}

/** One request about to be sent, and the state of the server it would meet. */
export interface RequestShape {
  readonly promptTokens: number;
  /** Prompt tokens whose KV blocks the server holds; default 0. */
  readonly cachedTokens?: number;
  readonly outputTokens: number;
  /** Sequences decoding at the same time, this one among them; default 1. */
  readonly batch?: number;
  /** Context tokens of the whole batch; default this request's own prompt and half its output. */
  readonly contextTokens?: number;
}

/** Predicted milliseconds without queueing: `totalMs = prefillMs + decodeMs`; `prefillMs` is the time to the first token. */
export interface RequestPrediction {
  readonly prefillMs: number;
  readonly decodeMs: number;
  readonly totalMs: number;
}

/** Predicts one request: prefill of what is not cached gives the first token, each further token takes one decode step. */
export function predictRequest(model: LatencyModel, shape: RequestShape): RequestPrediction {
  const { promptTokens, cachedTokens = 0, outputTokens, batch = 1 } = shape;
  const contextTokens = shape.contextTokens ?? promptTokens + outputTokens / 2;
  // The last prompt token is always computed: its logits give the first output token.
  const uncached = Math.max(Math.min(1, promptTokens), promptTokens - cachedTokens);
  const prefill = prefillMs(model, uncached);
  const decode = Math.max(0, outputTokens - 1) * decodeStepMs(model, Math.max(1, batch), contextTokens);
  return { prefillMs: prefill, decodeMs: decode, totalMs: prefill + decode };
}

/** Milliseconds for a number of tokens at a plain rate. */
export function tokensToMs(tokens: number, tokensPerSecond: number): number {
  return (1000 * tokens) / tokensPerSecond;
}
