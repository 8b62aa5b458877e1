// perf: evaluated for every candidate of every request whose policy reads a prediction.
import type { AttemptOutcome, CandidateView, OptionSchema, RequestView, SetupContext } from '@signalbox/plugin-api';
import { createCorrections } from './corrections.ts';
import { beyondBatch, createColumnReader, predict } from './latency-view.ts';
import type { Held, Prediction, PredictionColumns, Rates, Shape } from './latency-view.ts';

/** Predicted seconds of one request at one endpoint, corrected by what was learned of the endpoint. */
export interface PredictedTimes {
  wait: number;
  ttft: number;
  tpot: number;
  latency: number;
}

/** Predicts and learns. `start` names the request and candidates of a call, `at` gives the times for a slot, in an object it reuses. */
export interface Predictor {
  start(request: RequestView, candidates: CandidateView): void;
  at(slot: number): PredictedTimes;
  ended(slot: number, outcome: AttemptOutcome): void;
  /** The endpoint at the slot is another from now on. */
  forget(slot: number): void;
}

/** Options that every prediction takes. */
export const predictionOptions: OptionSchema = {
  type: 'object',
  properties: {
    window: {
      type: 'number',
      exclusiveMinimum: 0,
      default: 60,
      'x-unit': 'duration',
      description:
        'How long what was learned of an endpoint counts: it fades with this time constant towards what the fleet shows.',
    },
  },
  additionalProperties: false,
};

export interface PredictorOptions {
  /** Seconds. */
  readonly window: number;
  /** A fraction. */
  readonly percentile?: number;
}

/** A predictor that knows nothing yet but the profiles. */
export function createPredictor({ clock, options }: SetupContext<PredictorOptions>): Predictor {
  const settings = { clock, windowMs: options.window * 1000, percentile: options.percentile ?? 0.5 };
  const firstToken = createCorrections(settings);
  const decoding = createCorrections(settings);
  const read = createColumnReader();
  const known: (Rates | undefined)[] = [];
  const batchLimits: number[] = [];
  const raw: Prediction = { wait: NaN, prefill: NaN, tpot: NaN };
  const own = { promptTokens: 0, uncachedTokens: 0, outputTokens: 0 };
  const times: PredictedTimes = { wait: NaN, ttft: NaN, tpot: NaN, latency: NaN };
  let columns: PredictionColumns | undefined;

  return {
    start(request, candidates) {
      columns = read(request, candidates);
      own.promptTokens = columns.shape.promptTokens;
      own.outputTokens = columns.shape.outputTokens;
    },
    at(slot) {
      if (columns === undefined) return times;
      const rates = columns.rates(slot);
      // Endings come without columns, so the endpoint's rates and limit are kept for them. Nothing here reads them back.
      if (!sameRates(known[slot], rates)) known[slot] = copyRates(rates);
      batchLimits[slot] = columns.batchLimit(slot);
      own.uncachedTokens = columns.uncached(slot);
      predict(rates, columns.held(slot), own, raw);
      const slowness = firstToken.factor(slot);
      times.wait = raw.wait * slowness;
      times.ttft = (raw.wait + raw.prefill) * slowness;
      times.tpot = raw.tpot * decoding.factor(slot);
      times.latency = times.ttft + decodedTokens(rates, own) * times.tpot;
      return times;
    },
    ended(slot, outcome) {
      const rates = known[slot];
      if (rates === undefined || rates.kind === 'unknown' || !outcome.ok || outcome.before === undefined) return;
      const shape: Shape = {
        promptTokens: outcome.promptTokens,
        uncachedTokens: outcome.promptTokens - (outcome.cachedTokens > 0 ? outcome.cachedTokens : 0),
        outputTokens: outcome.outputTokens,
      };
      if (!(shape.promptTokens >= 0) || !(shape.outputTokens > 0)) return;
      predict(rates, heldBefore(outcome.before, batchLimits[slot] ?? NaN), shape, raw);
      const ttft = raw.wait + raw.prefill;
      const decode = decodedTokens(rates, shape) * raw.tpot;
      if (outcome.ttftMs < outcome.durationMs) {
        firstToken.learn(slot, outcome.ttftMs / 1000, ttft);
        decoding.learn(slot, (outcome.durationMs - outcome.ttftMs) / 1000, decode);
      } else {
        // A plain answer comes whole: all that can be learned is how the sum compares.
        firstToken.learn(slot, outcome.durationMs / 1000, ttft + decode);
        decoding.learn(slot, outcome.durationMs / 1000, ttft + decode);
      }
    },
    forget(slot) {
      if (slot < known.length) known[slot] = undefined;
      firstToken.forget(slot);
      decoding.forget(slot);
    },
  };
}

/** Prefill gives a profile's first token; a throughput counts all. */
function decodedTokens(rates: Rates, shape: Shape): number {
  return rates.kind === 'profile' ? Math.max(0, shape.outputTokens - 1) : shape.outputTokens;
}

/**
 * The load that an attempt met, as `held` of the columns gives it for the request in hand. Of an engine's own queue nothing was recorded, so
 * that without a batch limit a full batch counts as slowness of the endpoint.
 */
function heldBefore(before: NonNullable<AttemptOutcome['before']>, batchLimit: number): Held {
  const { inflightRequests: requests, inflightTokens, queuedTokens, decodeTokens } = before;
  const promptTokens = inflightTokens === undefined ? queuedTokens : Math.max(0, inflightTokens - decodeTokens);
  // How many requests the queued tokens belong to was not recorded: as many as they would be at the mean prompt in flight.
  const waiting = promptTokens > 0 ? Math.round((requests * queuedTokens) / promptTokens) : 0;
  return {
    requests,
    queuedTokens,
    waitingRequests: queuedTokens > 0 ? Math.max(1, waiting) : 0,
    decodeTokens,
    promptTokens,
    beyondBatch: beyondBatch(requests, batchLimit) ?? 0,
  };
}

function sameRates(kept: Rates | undefined, rates: Rates): boolean {
  if (kept === undefined || kept.kind !== rates.kind) return false;
  if (kept.kind === 'profile' && rates.kind === 'profile') {
    const x = kept.model;
    const y = rates.model;
    return (
      x.prefill.perTokenMs === y.prefill.perTokenMs &&
      x.prefill.fixedMs === y.prefill.fixedMs &&
      x.decode.aMs === y.decode.aMs &&
      x.decode.bMs === y.decode.bMs &&
      x.decode.kMs === y.decode.kMs &&
      x.decode.pMs === y.decode.pMs
    );
  }
  return kept.kind !== 'throughput' || rates.kind !== 'throughput' || kept.tokensPerSecond === rates.tokensPerSecond;
}

function copyRates(rates: Rates): Rates {
  return rates.kind === 'profile'
    ? { kind: 'profile', model: { prefill: { ...rates.model.prefill }, decode: { ...rates.model.decode } } }
    : { ...rates };
}
