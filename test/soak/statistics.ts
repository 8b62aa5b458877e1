/** The middle of some numbers; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Slope of the line through some points that outliers do not bend: the median over all pairs (Theil 1950, Sen 1968). */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes: number[] = [];
  for (const [i, [x1, y1]] of points.entries())
    for (const [x2, y2] of points.slice(i + 1)) if (x2 !== x1) slopes.push((y2 - y1) / (x2 - x1));
  return median(slopes);
}
