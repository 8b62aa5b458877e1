// perf: one factor per candidate of every request whose policy reads a prediction.
import type { Clock } from '@signalbox/plugin-api';

/**
 * What an endpoint's measurements say of its predictions: one mean ratio of measured to predicted time per slot, with its spread. Slots
 * never share one, so that a slow endpoint in a mixed fleet is known as slow and the others are not blamed.
 */
export interface Corrections {
  /** Takes in one measured time. Times that are not above 0 are passed over. */
  learn(slot: number, measured: number, predicted: number): void;
  /** What to multiply a prediction by: 1 where nothing is known, and again once what was learned is old. */
  factor(slot: number): number;
}

export interface CorrectionOptions {
  readonly clock: Clock;
  /** Time constant in which what was learned fades towards 1: an endpoint that got no traffic for being slow is tried again. */
  readonly windowMs: number;
  /** Share of requests that the corrected prediction should cover: 0.5 is the mean, 0.95 adds 1.645 standard deviations. */
  readonly percentile: number;
}

/** Weight of a new ratio; the first one counts whole. */
const STEP = 0.1;
const LOWEST = 0.05;
const HIGHEST = 20;

export function createCorrections({ clock, windowMs, percentile }: CorrectionOptions): Corrections {
  const deviations = normalQuantile(percentile);
  let mean = new Float64Array(64).fill(Number.NaN);
  let variance = new Float64Array(64);
  let learnedAt = new Float64Array(64);
  return {
    learn(slot, measured, predicted) {
      if (!(measured > 0) || !(predicted > 0)) return;
      if (slot >= mean.length) {
        const capacity = 2 * (slot + 1);
        mean = widen(mean, capacity, Number.NaN);
        variance = widen(variance, capacity, 0);
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
      learnedAt[slot] = clock.now();
    },
    factor(slot) {
      if (slot >= mean.length) return 1;
      const average = mean[slot]!;
      if (average !== average) return 1;
      const learned = Math.max(LOWEST, average + deviations * Math.sqrt(variance[slot]!));
      return 1 + (learned - 1) * Math.exp((learnedAt[slot]! - clock.now()) / windowMs);
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
