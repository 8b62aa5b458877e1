// perf: these run for every scored decision, over arrays of up to some thousand candidates.

/**
 * Clamps `scores[0..n)` into [0, 1] in place; NaN and infinities become 0. Returns how many were not finite.
 */
export function clampScores(scores: Float64Array, n: number): number {
  let invalid = 0;
  for (let i = 0; i < n; i++) {
    const score = scores[i]!;
    if (score >= 0 && score <= 1) continue;
    if (score > 1 && score !== Infinity) scores[i] = 1;
    else {
      if (!(score < 0) || score === -Infinity) invalid++;
      scores[i] = 0;
    }
  }
  return invalid;
}

/**
 * Turns raw costs (lower is better) in `values[0..n)` into scores in place by min–max over the known ones: the lowest gives 1, the
 * highest 0, all equal gives 1, unknown or infinite gives 0. Returns how many were not finite.
 */
export function normaliseCosts(values: Float64Array, n: number): number {
  return normalise(values, n, -1);
}

/** Like `normaliseCosts`, with the highest value best. */
export function normaliseGains(values: Float64Array, n: number): number {
  return normalise(values, n, 1);
}

function normalise(values: Float64Array, n: number, sign: 1 | -1): number {
  let low = Infinity;
  let high = -Infinity;
  let invalid = 0;
  for (let i = 0; i < n; i++) {
    const value = values[i]!;
    if (value - value !== 0) {
      invalid++;
      continue;
    }
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const span = high - low;
  for (let i = 0; i < n; i++) {
    const value = values[i]!;
    if (value - value !== 0) values[i] = 0;
    else if (span === 0) values[i] = 1;
    else values[i] = sign > 0 ? (value - low) / span : (high - value) / span;
  }
  return invalid;
}
