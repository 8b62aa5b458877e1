// perf: observed for every request and every token group; typed arrays, no allocation.

/** A histogram with fixed upper bounds, cumulative only when it is read. Values and bounds are in one unit, seconds by convention. */
export interface Histogram {
  readonly bounds: readonly number[];
  /** One count per bound and a last one for what lies above them. */
  readonly counts: Float64Array;
  sum: number;
  count: number;
}

export function createHistogram(bounds: readonly number[]): Histogram {
  return { bounds, counts: new Float64Array(bounds.length + 1), sum: 0, count: 0 };
}

/** Counts `value`, which NaN leaves uncounted. */
export function observe(histogram: Histogram, value: number): void {
  if (value !== value) return;
  const { bounds, counts } = histogram;
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value <= bounds[middle]!) high = middle;
    else low = middle + 1;
  }
  counts[low]!++;
  histogram.sum += value;
  histogram.count++;
}

export const DURATION_BOUNDS: readonly number[] = [
  0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600, 1800, 3600,
];
export const TTFT_BOUNDS: readonly number[] = [
  0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600,
];
export const INTER_TOKEN_BOUNDS: readonly number[] = [
  0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5,
];
export const DECISION_BOUNDS: readonly number[] = [
  1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2,
];
