import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { reportText, runFuzz } from './fuzz-run.ts';
import { inputOf } from './inputs.ts';
import { minimise, tryText } from './properties.ts';

/* Bounded; `npm run fuzz -- --minutes 10` goes on. SIGNALBOX_FUZZ_TEXTS tries more, SIGNALBOX_SEED others. */
const texts = Number(process.env['SIGNALBOX_FUZZ_TEXTS'] ?? 1500);
/** Times are bars of `npm run fuzz`; here they only show that nothing hangs. */
const PATIENCE = 10;
const seed = Number(process.env['SIGNALBOX_SEED'] ?? 1);

test('no text makes the language crash, hang, format unstably or evaluate in two ways', () => {
  const report = runFuzz(seed, (tried) => tried < texts, PATIENCE);
  process.stdout.write(reportText(seed, report));
  expect(report.failures.map(({ input, failure }) => `${input.seed}: ${failure.kind} ${failure.what}`)).toEqual([]);
  expect(report.parsed).toBeGreaterThan(texts / 10);
  expect(report.compiled).toBeGreaterThan(texts / 20);
});

test('a seed gives the same text again', () => {
  expect([1, 2, 3, 250].map((one) => inputOf(one))).toEqual([1, 2, 3, 250].map((one) => inputOf(one)));
});

test('a text without a failure is not made smaller', () => {
  expect(minimise('default to any', 'crash', 20)).toBe('default to any');
});

describe('what was found once', () => {
  const folder = new URL('found/', import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  test.each(names)('%s', (name) => {
    expect(tryText(readFileSync(new URL(name, folder), 'utf8'), PATIENCE).failure).toBeUndefined();
  });
});
