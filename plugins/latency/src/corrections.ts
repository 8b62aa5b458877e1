// perf: one factor per candidate of every request whose policy reads a prediction.
import type { Clock } from '@signalbox/plugin-api';

/**
 * What an endpoint's measurements say of its predictions: one mean ratio of measured to predicted time per slot, with its spread. Slots
 * never share one, so that a slow endpoint in a mixed fleet is known as slow and the others are not blamed. What holds of all alike (profiles
 * that are too hopeful of everybody) is the best guess for an endpoint that was not measured yet, or not for long: without it, one without
 * traffic would look faster or slower than its measured twins for that alone, and be flooded or starved.
 */
export interface Corrections {
  /** Takes in one measured time. Times that are not above 0 are passed over. */
  learn(slot: number, measured: number, predicted: number): void;
  /**
   * What to multiply a prediction by: what was learned of the endpoint, fading towards the fleet's factor. That is nine tenths of the
   * mean of what the latest answers made of their endpoints' factors; it fades towards 1 from the fleet's last answer on, and is 1 before the first.
   */
  factor(slot: number): number;
  /** Lets go of what was learned of the endpoint; what it taught of the fleet stays. */
  forget(slot: number): void;
}

export interface CorrectionOptions {
  readonly clock: Clock;
  /** Time constant of both fadings: an endpoint that gets no traffic for being slow is tried again, and so is a fleet. */
  readonly windowMs: number;
  /** Share of requests that the corrected prediction should cover: 0.5 is the mean, 0.95 adds 1.645 standard deviations. */
  readonly percentile: number;
}

/** Weight of a new ratio; the first one counts whole. */
const STEP = 0.1;
/**
 * What an endpoint without fresh answers is hoped to take of what the fleet's answers show: below 1, or one that was slow once would come as
 * close to the others as one likes and never be tried again.
 */
const OPTIMISM = 0.9;
const LOWEST = 0.05;
const HIGHEST = 20;

export function createCorrections({ clock, windowMs, percentile }: CorrectionOptions): Corrections {
  const deviations = normalQuantile(percentile);
  let mean = new Float64Array(64).fill(Number.NaN);
  let variance = new Float64Array(64);
  let learned = new Float64Array(64);
  let learnedAt = new Float64Array(64);
  let fleetLog = Number.NaN;
  let fleetFactor = 1;
  let fleetAt = 0;
  let base = 1;
  let baseAt = Number.NaN;
  return {
    learn(slot, measured, predicted) {
      if (!(measured > 0) || !(predicted > 0)) return;
      if (slot >= mean.length) {
        const capacity = 2 * (slot + 1);
        mean = widen(mean, capacity, Number.NaN);
        variance = widen(variance, capacity, 0);
        learned = widen(learned, capacity, 0);
        learnedAt = widen(learnedAt, capacity, 0);
      }
      const ratio = Math.min(HIGHEST, Math.max(LOWEST, measured / predicted));
      const before = mean[slot]!;
      if (before === before) {
        const error = ratio - before;
        mean[slot] = before + STEP * error;
        variance[slot] = (1 - STEP) * (variance[slot]! + STEP * error * error);
      } else {
        mean[slot] = ratio;
        variance[slot] = 0;
      }
      learned[slot] = Math.max(LOWEST, mean[slot] + deviations * Math.sqrt(variance[slot]));
      learnedAt[slot] = clock.now();
      // Of logarithms, so that twice as fast and twice as slow cancel out.
      const log = Math.log(learned[slot]);
      fleetLog = fleetLog === fleetLog ? fleetLog + STEP * (log - fleetLog) : log;
      fleetFactor = OPTIMISM * Math.exp(fleetLog);
      fleetAt = learnedAt[slot]!;
      baseAt = Number.NaN;
    },
    factor(slot) {
      const now = clock.now();
      if (now !== baseAt) {
        base = 1 + (fleetFactor - 1) * Math.exp((fleetAt - now) / windowMs);
        baseAt = now;
      }
      if (slot >= mean.length || mean[slot] !== mean[slot]) return base;
      return base + (learned[slot]! - base) * Math.exp((learnedAt[slot]! - now) / windowMs);
    },
    forget(slot) {
      if (slot < mean.length) mean[slot] = Number.NaN;
    },
  };
}

function widen(values: Float64Array<ArrayBuffer>, capacity: number, filler: number): Float64Array<ArrayBuffer> {
  const wider = new Float64Array(capacity).fill(filler);
  wider.set(values);
  return wider;
}

/**
 * Standard deviations above the mean that a normal variable stays below with probability p.
 * Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23; error below 4.5e-4.
 */
export function normalQuantile(p: number): number {
  if (p === 0.5) return 0;
  if (p < 0.5) return -normalQuantile(1 - p);
  const t = Math.sqrt(-2 * Math.log(1 - p));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}
