// Fits the weights of `complexity` on the training half of the data and writes src/signal-complexity/weights.generated.ts.
//   node --conditions=@signalbox/source scripts/train-complexity.ts
//
// The method: logistic regression with an L2 penalty on standardised features, by Newton's method, in two stages. First the features
// that exam questions show are fitted on the exam rows. Then, with those fixed, the three features of open-ended requests, which exam
// questions hardly show, and the scale are fitted on the seed prompts. Penalties were chosen by cross-validation on the training half;
// the held-out half is never read here.
import { writeFileSync } from 'node:fs';
import { FEATURES, readFeatures } from '../src/signal-complexity/features.ts';
import { areaUnderCurve, readRouteLlm, readSeedPrompts } from '../src/signal-complexity/training-data.fixture.ts';
import type { LabelledPrompt } from '../src/signal-complexity/training-data.fixture.ts';

const EXAM_PENALTY = 300;
const SEED_PENALTY = 3;
/** Where the scale puts the training half's exam questions: the middle one, and the one that nine in ten do not reach. */
const MEDIAN = 35;
const NINTH_DECILE = 60;
const OPEN_ENDED = FEATURES.flatMap((feature, k) => (/^(analysis|making|look-up):/.test(feature) ? [k] : []));
const EXAM = FEATURES.flatMap((_, k) => (OPEN_ENDED.includes(k) ? [] : [k]));

interface Row {
  readonly x: Float64Array;
  readonly y: 0 | 1;
  /** Part of the score that is fixed. */
  readonly offset: number;
}

interface Fit {
  readonly weights: readonly number[];
  readonly bias: number;
}

function toRow({ prompt, hard }: LabelledPrompt): Row {
  const x = new Float64Array(FEATURES.length);
  readFeatures(prompt, x);
  return { x, y: hard ? 1 : 0, offset: 0 };
}

/** Weights of the features in `columns`; the others are 0. Without `intercept` the bias is 0 and features are not centred. */
function fit(rows: readonly Row[], columns: readonly number[], penalty: number, intercept: boolean): Fit {
  const n = columns.length;
  const mean = columns.map((c) => (intercept ? rows.reduce((sum, row) => sum + row.x[c], 0) / rows.length : 0));
  const spread = columns.map(
    (c, k) => Math.sqrt(rows.reduce((sum, row) => sum + (row.x[c] - mean[k]) ** 2, 0) / rows.length) || 1,
  );
  const points = rows.map((row) => [...columns.map((c, k) => (row.x[c] - mean[k]) / spread[k]), intercept ? 1 : 0]);
  let theta = Array.from({ length: n + 1 }, () => 0);
  for (let step = 0; step < 40; step++) {
    const hessian = Array.from({ length: n + 1 }, (_, i) =>
      Array.from({ length: n + 1 }, (_, j) => (i !== j ? 0 : i < n ? penalty : intercept ? 0 : 1)),
    );
    const gradient = theta.map((value, i) => (i < n ? -penalty * value : 0));
    rows.forEach((row, r) => {
      const point = points[r];
      const p = 1 / (1 + Math.exp(-point.reduce((sum, value, k) => sum + value * theta[k], row.offset)));
      for (let k = 0; k <= n; k++) {
        gradient[k] = gradient[k] + (row.y - p) * point[k];
        for (let j = 0; j <= n; j++) hessian[k][j] = hessian[k][j] + p * (1 - p) * point[k] * point[j];
      }
    });
    const change = solve(hessian, gradient);
    // Whole Newton steps can overshoot for ever where the classes are nearly separable.
    const longest = Math.max(1, ...change.map(Math.abs));
    theta = theta.map((value, k) => value + change[k] / longest);
  }
  const weights = Array.from({ length: FEATURES.length }, () => 0);
  columns.forEach((c, k) => (weights[c] = theta[k] / spread[k]));
  return { weights, bias: theta[n] - columns.reduce((sum, c, k) => sum + weights[c] * mean[k], 0) };
}

/** Gaussian elimination with partial pivoting. */
function solve(matrix: number[][], right: number[]): number[] {
  const n = right.length;
  for (let i = 0; i < n; i++) {
    let pivot = i;
    for (let j = i + 1; j < n; j++) if (Math.abs(matrix[j][i]) > Math.abs(matrix[pivot][i])) pivot = j;
    [matrix[i], matrix[pivot]] = [matrix[pivot], matrix[i]];
    [right[i], right[pivot]] = [right[pivot], right[i]];
    for (let j = i + 1; j < n; j++) {
      const factor = matrix[j][i] / matrix[i][i];
      for (let k = i; k < n; k++) matrix[j][k] = matrix[j][k] - factor * matrix[i][k];
      right[j] = right[j] - factor * right[i];
    }
  }
  const solution = Array.from({ length: n }, () => 0);
  for (let i = n - 1; i >= 0; i--) {
    let sum = right[i];
    for (let k = i + 1; k < n; k++) sum -= matrix[i][k] * solution[k];
    solution[i] = sum / matrix[i][i];
  }
  return solution;
}

const scoreOf = (model: Fit, row: Row): number =>
  model.bias + model.weights.reduce((sum, w, k) => sum + w * row.x[k], 0);

const logit = (percent: number): number => Math.log(percent / (100 - percent));

/** Both stages; the second takes the first's score, brought to scale, as given. */
function fitBoth(exam: readonly Row[], seeds: readonly Row[], examPenalty: number): Fit {
  const raw = fit(exam, EXAM, examPenalty, true);
  const scores = exam.map((row) => scoreOf(raw, row)).sort((a, b) => a - b);
  const quantile = (q: number): number => scores[Math.floor(q * scores.length)];
  const gain = (logit(NINTH_DECILE) - logit(MEDIAN)) / (quantile(0.9) - quantile(0.5));
  const first: Fit = {
    weights: raw.weights.map((w) => gain * w),
    bias: gain * (raw.bias - quantile(0.5)) + logit(MEDIAN),
  };
  const second = fit(
    seeds.map((row) => ({ ...row, offset: scoreOf(first, row) })),
    OPEN_ENDED,
    SEED_PENALTY,
    false,
  );
  return { weights: first.weights.map((w, k) => w + second.weights[k]), bias: first.bias };
}

const exam = readRouteLlm().training.map(toRow);
const seeds = readSeedPrompts().map(toRow);

for (const penalty of [50, 100, 200, 300, 500, 1000]) {
  const folds = [0, 1, 2, 3, 4].map((fold) => {
    const model = fitBoth(
      exam.filter((_, i) => i % 5 !== fold),
      seeds,
      penalty,
    );
    const held = exam.filter((_, i) => i % 5 === fold);
    return areaUnderCurve(
      held.map((row) => scoreOf(model, row)),
      held.map((row) => row.y === 1),
    );
  });
  process.stdout.write(
    `penalty ${penalty}: cross-validated AUC ${(folds.reduce((a, b) => a + b) / folds.length).toFixed(4)}\n`,
  );
}

const model = fitBoth(exam, seeds, EXAM_PENALTY);
const lines = FEATURES.map((feature, k) => `  ${model.weights[k].toFixed(5)}, // ${feature}`);
writeFileSync(
  new URL('../src/signal-complexity/weights.generated.ts', import.meta.url),
  `// Written by scripts/train-complexity.ts from data/; do not edit.

/** Weights of the features, in the order of \`FEATURES\`. */
export const WEIGHTS: readonly number[] = Object.freeze([
${lines.join('\n')}
]);

export const BIAS: number = ${model.bias.toFixed(5)};
`,
);
const range = (rows: readonly Row[]): string => {
  const scores = rows.map((row) => 100 / (1 + Math.exp(-scoreOf(model, row)))).sort((a, b) => a - b);
  return [0, 0.1, 0.5, 0.9, 1]
    .map((q) => scores[Math.min(scores.length - 1, Math.floor(q * scores.length))].toFixed(0))
    .join(' ');
};
process.stdout.write(`complexity of easy seeds (0, 10, 50, 90, 100 %): ${range(seeds.filter((row) => row.y === 0))}\n`);
process.stdout.write(`complexity of hard seeds: ${range(seeds.filter((row) => row.y === 1))}\n`);
process.stdout.write(`complexity of exam rows: ${range(exam)}\n`);
