/** A Prometheus histogram: counts per bucket (not cumulative), the last one above all bounds. */
export interface Histogram {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  sum(): number;
  count(): number;
  observe(value: number): void;
}

/** An empty histogram over ascending upper bounds. */
export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  let count = 0;
  return {
    bounds,
    counts,
    sum: () => sum,
    count: () => count,
    observe(value) {
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] ?? Infinity)) bucket++;
      counts[bucket] = (counts[bucket] ?? 0) + 1;
      sum += value;
      count++;
    },
  };
}
