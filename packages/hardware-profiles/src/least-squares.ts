/**
 * Nonnegative least squares with relative weights: the coefficients x ≥ 0 that make Σ ((Σ_j rows[i][j]·x_j) / target[i] − 1)² least.
 * Exact for the few terms used here: every subset of active terms is solved by its normal equations (2ⁿ − 1 solves; n ≤ 6), and
 * the best subset whose solution is nonnegative wins. Rows whose target is not positive are left out. All zeros without rows.
 */
export function fitNonNegative(rows: readonly (readonly number[])[], targets: readonly number[]): number[] {
  const terms = rows[0]?.length ?? 0;
  if (terms > 6) throw new RangeError(`fitNonNegative takes at most 6 terms, got ${terms}`);
  const scaled: number[][] = [];
  rows.forEach((row, i) => {
    const target = targets[i] ?? 0;
    if (target > 0) scaled.push(row.map((value) => value / target));
  });
  let best: number[] = Array.from({ length: terms }, () => 0);
  let bestLoss = scaled.length;
  for (let mask = 1; mask < 1 << terms; mask++) {
    const active = best.map((_, j) => j).filter((j) => (mask >> j) & 1);
    const solution = solveNormalEquations(scaled, active);
    if (solution === undefined || solution.some((value) => value < 0)) continue;
    const x = Array.from({ length: terms }, () => 0);
    active.forEach((j, at) => (x[j] = solution[at] ?? 0));
    const loss = scaled.reduce(
      (sum, row) => sum + (row.reduce((s, value, j) => s + value * (x[j] ?? 0), 0) - 1) ** 2,
      0,
    );
    if (loss < bestLoss - 1e-12) {
      best = x;
      bestLoss = loss;
    }
  }
  return best;
}

function solveNormalEquations(rows: readonly (readonly number[])[], active: readonly number[]): number[] | undefined {
  const n = active.length;
  const matrix = active.map((j) => [
    ...active.map((k) => rows.reduce((sum, row) => sum + (row[j] ?? 0) * (row[k] ?? 0), 0)),
    rows.reduce((sum, row) => sum + (row[j] ?? 0), 0),
  ]);
  for (let column = 0; column < n; column++) {
    let pivot = column;
    for (let r = column + 1; r < n; r++)
      if (Math.abs(at(matrix, r, column)) > Math.abs(at(matrix, pivot, column))) pivot = r;
    const pivotRow = matrix[pivot] ?? [];
    const scale = pivotRow[column] ?? 0;
    if (Math.abs(scale) < 1e-18) return undefined;
    matrix[pivot] = matrix[column] ?? [];
    matrix[column] = pivotRow;
    for (let r = 0; r < n; r++) {
      if (r === column) continue;
      const factor = at(matrix, r, column) / scale;
      if (factor !== 0) matrix[r] = (matrix[r] ?? []).map((value, c) => value - factor * (pivotRow[c] ?? 0));
    }
  }
  return matrix.map((row, i) => (row[n] ?? 0) / (row[i] ?? 1));
}

const at = (matrix: readonly (readonly number[])[], row: number, column: number): number => matrix[row]?.[column] ?? 0;

/** The median of the values; NaN when there are none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
}
