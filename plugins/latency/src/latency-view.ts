// perf: evaluated for every candidate of every request whose policy reads a prediction.
import { decodeStepMs, prefillMs } from '@signalbox/hardware-profiles';
import type { LatencyModel } from '@signalbox/hardware-profiles';
import type { CandidateView, NumberColumn, RequestView } from '@signalbox/plugin-api';

/** What predictions read. Milliseconds, tokens, tokens per second, shares. */
export const PREDICTION_READS: readonly string[] = Object.freeze([
  'request.prompt_tokens',
  'request.output_tokens',
  'candidate.prefill_fixed',
  'candidate.prefill_per_token',
  'candidate.decode_a',
  'candidate.decode_b',
  'candidate.decode_k',
  'candidate.decode_p',
  'candidate.throughput',
  'candidate.max_batch',
  'candidate.inflight_requests',
  'candidate.waiting_requests',
  'candidate.queued_tokens',
  'candidate.decode_tokens',
  'candidate.inflight_tokens',
  'candidate.queue_depth',
  'candidate.prefix_hit',
]);

/** Output tokens of a request that says nothing of them. */
const OUTPUT_TOKENS = 256;
/** Work of a prompt token where only a throughput in output tokens is known. */
const PROMPT_WEIGHT = 0.1;

/** What an endpoint can do: its fitted latency model, or its throughput alone (output tokens per second of the whole endpoint). */
export type Rates =
  | { readonly kind: 'profile'; readonly model: LatencyModel }
  | { readonly kind: 'throughput'; readonly tokensPerSecond: number }
  | { readonly kind: 'unknown' };

/** What an endpoint holds, without the request in question. */
export interface Held {
  readonly requests: number;
  /** Prompt tokens not yet prefilled, and the requests they belong to. */
  readonly queuedTokens: number;
  readonly waitingRequests: number;
  /** Output tokens of the requests in flight. */
  readonly decodeTokens: number;
  /** Prompt tokens of all requests in flight. */
  readonly promptTokens: number;
  /** Requests that must end before ours finds a place in the batch. */
  readonly beyondBatch: number;
}

/** One request in tokens. */
export interface Shape {
  readonly promptTokens: number;
  readonly uncachedTokens: number;
  readonly outputTokens: number;
}

/** Seconds, before any correction. */
export interface Prediction {
  wait: number;
  prefill: number;
  tpot: number;
}

/**
 * Predicts one request at one endpoint into `out`.
 *
 * With a profile: the prompts ahead are prefilled one after another; a full batch lets one in for each sequence that ends, which by
 * Little's law is every (tokens per sequence × step time) ÷ batch; its own uncached prompt is prefilled; then each output token takes a
 * step `a + b·batch + k·context/1000 + p·newcomers`, the newcomers' prompt tokens per step in proportion to what is in flight.
 *
 * With a throughput T alone: prompt tokens ahead and own ones take 0.1/T seconds each; output tokens share T evenly with those in flight,
 * of which at most as many as our own output count for each request.
 *
 * With neither: NaN.
 */
export function predict(rates: Rates, held: Held, shape: Shape, out: Prediction): void {
  if (rates.kind === 'profile') predictByProfile(rates.model, held, shape, out);
  else if (rates.kind === 'throughput') predictByThroughput(rates.tokensPerSecond, held, shape, out);
  else {
    out.wait = NaN;
    out.prefill = NaN;
    out.tpot = NaN;
  }
}

function predictByProfile(model: LatencyModel, held: Held, shape: Shape, out: Prediction): void {
  const batch = held.requests + 1;
  const context = held.promptTokens + held.decodeTokens / 2 + shape.promptTokens + shape.outputTokens / 2;
  const perStep = held.decodeTokens > 0 ? (held.requests * held.promptTokens) / held.decodeTokens : 0;
  const stepMs = decodeStepMs(model, batch, context, perStep);
  let waitMs =
    held.waitingRequests > 0
      ? held.waitingRequests * model.prefill.fixedMs + held.queuedTokens * model.prefill.perTokenMs
      : 0;
  if (held.beyondBatch > 0 && held.requests > 0) {
    const tokensEach = held.decodeTokens / held.requests;
    const running = Math.max(1, held.requests - held.beyondBatch);
    waitMs += (held.beyondBatch * tokensEach * stepMs) / running;
  }
  out.wait = waitMs / 1000;
  out.prefill = prefillMs(model, shape.uncachedTokens) / 1000;
  out.tpot = stepMs / 1000;
}

function predictByThroughput(tokensPerSecond: number, held: Held, shape: Shape, out: Prediction): void {
  const own = Math.max(1, shape.outputTokens);
  const others = Math.min(held.decodeTokens, held.requests * own);
  out.wait = (PROMPT_WEIGHT * held.queuedTokens) / tokensPerSecond;
  out.prefill = (PROMPT_WEIGHT * shape.uncachedTokens) / tokensPerSecond;
  out.tpot = (own + others) / own / tokensPerSecond;
}

/** The columns of one call, so that each is asked for once. */
export interface PredictionColumns {
  readonly shape: { promptTokens: number; outputTokens: number };
  rates(slot: number): Rates;
  held(slot: number): Held;
  uncached(slot: number): number;
  /** Most sequences in the batch; NaN if unknown. */
  batchLimit(slot: number): number;
}

/** Columns of a candidate view. Reads only; the objects it gives are reused from call to call of the same reader. */
export function createColumnReader(): (request: RequestView, candidates: CandidateView) => PredictionColumns {
  const shape = { promptTokens: 0, outputTokens: 0 };
  const held = { requests: 0, queuedTokens: 0, waitingRequests: 0, decodeTokens: 0, promptTokens: 0, beyondBatch: 0 };
  const profile = {
    kind: 'profile',
    model: { prefill: { fixedMs: 0, perTokenMs: 0 }, decode: { aMs: 0, bMs: 0, kMs: 0, pMs: 0 } },
  } as const;
  const prefill: { fixedMs: number; perTokenMs: number } = profile.model.prefill;
  const decode: { aMs: number; bMs: number; kMs: number; pMs: number } = profile.model.decode;
  const throughputOnly = { kind: 'throughput', tokensPerSecond: 0 } as const;
  const stated: { tokensPerSecond: number } = throughputOnly;
  const nothing = { kind: 'unknown' } as const;

  let fixed: NumberColumn;
  let perToken: NumberColumn;
  let a: NumberColumn;
  let b: NumberColumn;
  let k: NumberColumn;
  let p: NumberColumn;
  let throughput: NumberColumn;
  let maxBatch: NumberColumn;
  let inflight: NumberColumn;
  let waiting: NumberColumn;
  let queued: NumberColumn;
  let decodeTokens: NumberColumn;
  let inflightTokens: NumberColumn;
  let queueDepth: NumberColumn;
  let prefixHit: NumberColumn;

  const columns: PredictionColumns = {
    shape,
    rates(slot) {
      const each = perToken[slot]!;
      const base = a[slot]!;
      if (each === each && base === base) {
        prefill.fixedMs = orZero(fixed[slot]!);
        prefill.perTokenMs = each;
        decode.aMs = base;
        decode.bMs = orZero(b[slot]!);
        decode.kMs = orZero(k[slot]!);
        decode.pMs = orZero(p[slot]!);
        return profile;
      }
      if (!(throughput[slot]! > 0)) return nothing;
      stated.tokensPerSecond = throughput[slot]!;
      return throughputOnly;
    },
    held(slot) {
      held.requests = orZero(inflight[slot]!);
      held.queuedTokens = orZero(queued[slot]!);
      held.waitingRequests = held.queuedTokens > 0 ? Math.max(1, orZero(waiting[slot]!)) : 0;
      held.decodeTokens = orZero(decodeTokens[slot]!);
      held.promptTokens = Math.max(0, orZero(inflightTokens[slot]!) - held.decodeTokens);
      // Without a batch limit, only requests that wait in the engine beyond our own unanswered ones tell that the batch is full: the
      // prompts of our own are in the prefill backlog already.
      const others = Math.max(0, orZero(queueDepth[slot]!) - orZero(waiting[slot]!));
      held.beyondBatch = beyondBatch(held.requests, maxBatch[slot]!) ?? others;
      return held;
    },
    batchLimit: (slot) => maxBatch[slot]!,
    uncached(slot) {
      const hit = prefixHit[slot]!;
      return shape.promptTokens * (1 - (hit > 0 ? Math.min(1, hit) : 0));
    },
  };

  return (request, candidates) => {
    const column = (key: string): NumberColumn => candidates.column(`candidate.${key}`);
    fixed = column('prefill_fixed');
    perToken = column('prefill_per_token');
    a = column('decode_a');
    b = column('decode_b');
    k = column('decode_k');
    p = column('decode_p');
    throughput = column('throughput');
    maxBatch = column('max_batch');
    inflight = column('inflight_requests');
    waiting = column('waiting_requests');
    queued = column('queued_tokens');
    decodeTokens = column('decode_tokens');
    inflightTokens = column('inflight_tokens');
    queueDepth = column('queue_depth');
    prefixHit = column('prefix_hit');
    const output = request.number('request.output_tokens');
    shape.promptTokens = orZero(request.number('request.prompt_tokens'));
    shape.outputTokens = output === output ? output : OUTPUT_TOKENS;
    return columns;
  };
}

/** Of so many in flight, those that must end before one more finds a place; undefined if the limit is NaN. */
export function beyondBatch(requests: number, batchLimit: number): number | undefined {
  return batchLimit === batchLimit ? Math.max(0, requests + 1 - batchLimit) : undefined;
}

function orZero(value: number): number {
  return value === value ? value : 0;
}
