// perf: a few array reads and writes for each answer of an endpoint with an adaptive limit, one read for any other.
import type { FleetTable } from './fleet-table.ts';

/** What a latency is a latency of: the two are never compared with each other. */
export const LATENCY: { readonly firstToken: 0; readonly wholeAnswer: 1 } = Object.freeze({
  firstToken: 0,
  wholeAnswer: 1,
});

const INITIAL = 20;
const TOLERANCE = 1.5;
const LEAST_GRADIENT = 0.5;
/** Requests beyond what the endpoint is known to bear that are tried all the same. */
const HEADROOM = 4;
const STEP = 0.2;
/** What makes the gradient the least there is; more does not count for more, so that one answer alone decides nothing. */
const WORST = TOLERANCE / LEAST_GRADIENT;
/** The long mean looks back over some 600 answers; of the first ten it is the plain mean. */
const LONG_WEIGHT = 2 / (600 + 1);
const LONG_WARM_UP = 10;
const LONG_RECOVERY = 0.95;
const MOST_ANSWERS = 10;
const LEAST_ANSWERS = 4;
/** At the least gradient the limit tends to HEADROOM ÷ LEAST_GRADIENT = 8. Below this it has as good as arrived. */
const NEARLY_LEAST = 10;

/**
 * Limits on requests in flight that follow what endpoints bear. After each round of answers
 *
 *     g = clamp(1.5 · long ÷ short, 0.5, 1)        limit = 0.8 · limit + 0.2 · (limit · g + 4)
 *
 * and no growth while less than half the limit was in flight. `short` is the mean latency of the round, `long` that of some 600 answers. The
 * formula and its figures are those of Gradient2 in Netflix's concurrency-limits (`Gradient2Limit`: rttTolerance 1.5, queueSize 4, smoothing
 * 0.2, longWindow 600, initialLimit 20; long × 0.95 where it is more than twice the short).
 *
 * Three things differ, as model servers batch and callers stay:
 * - A latency is that of work done, not of a request: milliseconds to a first token per prompt token (`LATENCY.firstToken`), or of a whole
 *   plain answer per token. What long prompts or answers take says nothing about congestion.
 * - A round has ten answers (half the limit, if that is less, but four) to requests that were all sent under the limit in force: answers to
 *   earlier ones would be held against the limit twice. A 429, a 503 or a first token that never came counts as the worst latency.
 * - `long` learns from requests that found less than half the limit in flight (its first ten: less than a quarter). Fed by all, it would creep up to the latency of an overload
 *   that lasts, and the limit after it. Where the limit has come down to the least, all teach: then the endpoint is slower than it was.
 *
 * State belongs to the slot, and so outlives policy versions.
 */
export interface AdaptiveLimits {
  /** Switches the limit of a slot on or off. `declared` is the policy's own limit, or NaN; it is never exceeded. Writes `maxRequests`. */
  configure(slot: number, on: boolean, declared: number): void;
  /** Forgets all about a slot. */
  clear(slot: number): void;
  /**
   * An answer came. `latency`: of its kind, in any unit. `heldBefore`: requests that the endpoint had in flight when this one was sent, at
   * `sentMs` of the clock.
   */
  answered(slot: number, kind: 0 | 1, latency: number, heldBefore: number, sentMs: number, nowMs: number): void;
  /** The endpoint said that it has enough, or showed it by giving no first token in time. */
  overloaded(slot: number, heldBefore: number, sentMs: number, nowMs: number): void;
  /** The limit before it is rounded down; NaN where it is off. */
  limitOf(slot: number): number;
}

/** Limits for the slots of this table; all are off. */
export function createAdaptiveLimits(table: FleetTable): AdaptiveLimits {
  const { capacity } = table;
  const column = (): Float64Array => new Float64Array(capacity);
  const limits = column().fill(Number.NaN);
  const declaredLimits = column().fill(Number.NaN);
  const long = [column(), column()] as const;
  const learned = [column(), column()] as const;
  /** The round in hand: since when, latencies as shares of the long mean, answers, and the most requests that were in flight. */
  const sinceMs = column().fill(-Infinity);
  const ratios = column();
  const answers = column();
  const most = column();

  /** `maxRequests` is the limit in force, whichever it is: all who read it need not know. */
  const write = (slot: number): void => {
    const limit = limits[slot]!;
    const declared = declaredLimits[slot]!;
    if (limit !== limit) table.maxRequests[slot] = declared;
    else {
      if (limit > declared) limits[slot] = declared;
      table.maxRequests[slot] = Math.max(1, Math.floor(limits[slot]!));
    }
  };

  const endRound = (slot: number, nowMs: number): void => {
    const limit = limits[slot]!;
    const short = ratios[slot]! / answers[slot]!;
    const gradient = Math.min(1, Math.max(LEAST_GRADIENT, TOLERANCE / short));
    const next = (1 - STEP) * limit + STEP * (limit * gradient + HEADROOM);
    if (next <= limit || most[slot]! >= limit / 2) limits[slot] = next;
    // The long mean is of worse times.
    if (short < 0.5) for (const mean of long) mean[slot] = mean[slot]! * LONG_RECOVERY;
    sinceMs[slot] = nowMs;
    ratios[slot] = 0;
    answers[slot] = 0;
    most[slot] = 0;
    write(slot);
  };

  const count = (slot: number, ratio: number, heldBefore: number, nowMs: number): void => {
    ratios[slot] = ratios[slot]! + Math.min(WORST, ratio);
    const held = Math.max(heldBefore + 1, table.inflightRequests[slot]!);
    if (held > most[slot]!) most[slot] = held;
    const enough = Math.max(LEAST_ANSWERS, Math.min(MOST_ANSWERS, limits[slot]! / 2));
    if (++answers[slot]! >= enough) endRound(slot, nowMs);
  };

  const learn = (slot: number, kind: 0 | 1, latency: number): void => {
    const n = ++learned[kind][slot]!;
    mix(long[kind], slot, latency, n <= LONG_WARM_UP ? 1 / n : LONG_WEIGHT);
  };

  return {
    configure(slot, on, declared) {
      declaredLimits[slot] = declared;
      const before = limits[slot]!;
      if (!on) limits[slot] = Number.NaN;
      else if (before !== before) limits[slot] = INITIAL;
      write(slot);
    },

    clear(slot) {
      limits[slot] = Number.NaN;
      declaredLimits[slot] = Number.NaN;
      sinceMs[slot] = -Infinity;
      for (const values of [...long, ...learned, ratios, answers, most]) values[slot] = 0;
    },

    answered(slot, kind, latency, heldBefore, sentMs, nowMs) {
      const limit = limits[slot]!;
      if (limit !== limit || !(latency > 0) || sentMs < sinceMs[slot]!) return;
      const n = learned[kind][slot]!;
      if (n === 0 || heldBefore < (n < LONG_WARM_UP ? limit / 4 : limit / 2)) learn(slot, kind, latency);
      else if (limit < NEARLY_LEAST) mix(long[kind], slot, latency, LONG_WEIGHT);
      count(slot, latency / long[kind][slot]!, heldBefore, nowMs);
    },

    overloaded(slot, heldBefore, sentMs, nowMs) {
      const limit = limits[slot]!;
      if (limit === limit && sentMs >= sinceMs[slot]!) count(slot, WORST, heldBefore, nowMs);
    },

    limitOf: (slot) => limits[slot]!,
  };
}

function mix(means: Float64Array, slot: number, value: number, weight: number): void {
  means[slot] = means[slot]! + weight * (value - means[slot]!);
}
