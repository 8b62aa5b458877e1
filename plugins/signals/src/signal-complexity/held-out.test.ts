import { expect, test } from 'vitest';
import { countQuestions, countWords } from '../counts.ts';
import { createComplexityReader } from './complexity-of.ts';
import { areaUnderCurve, readRouteLlm } from './training-data.fixture.ts';

/** Uniform whole numbers below n, the same row each run (a multiply-with-carry generator is enough for resampling). */
function createResampler(): (n: number) => number {
  let state = 12_345;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

test('on the held-out half, complexity beats the textbook formula by 0.05 of AUC, with the paired 95 % interval above zero', () => {
  const { training, heldOut } = readRouteLlm();
  const trained = new Set(training.map(({ prompt }) => prompt));
  expect(heldOut.filter(({ prompt }) => trained.has(prompt))).toEqual([]);

  const complexityOf = createComplexityReader();
  const labels = heldOut.map(({ hard }) => hard);
  const ours = heldOut.map(({ prompt }) => complexityOf(prompt));
  const textbook = heldOut.map(({ prompt }) => 10 * countQuestions(prompt) + countWords(prompt) / 10);
  const oursAuc = areaUnderCurve(ours, labels);
  const textbookAuc = areaUnderCurve(textbook, labels);

  const next = createResampler();
  const differences = Array.from({ length: 1000 }, () => {
    const rows = heldOut.map(() => next(heldOut.length));
    const take = <T>(list: readonly T[]): T[] => rows.flatMap((row) => list.slice(row, row + 1));
    const resampled = take(labels);
    return areaUnderCurve(take(ours), resampled) - areaUnderCurve(take(textbook), resampled);
  }).sort((a, b) => a - b);
  const low = differences[25] ?? Number.NaN;
  const high = differences[974] ?? Number.NaN;
  process.stdout.write(
    `complexity on ${heldOut.length} held-out prompts, ${labels.filter(Boolean).length} of them hard: AUC ${oursAuc.toFixed(3)}, textbook ${textbookAuc.toFixed(3)}, ` +
      `difference ${(oursAuc - textbookAuc).toFixed(3)}, paired 95 % interval ${low.toFixed(3)} to ${high.toFixed(3)} (1,000 resamples)\n`,
  );
  expect(oursAuc - textbookAuc).toBeGreaterThanOrEqual(0.05);
  expect(low).toBeGreaterThan(0);
});
