import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** Rows of the list of public reports. */
const ROWS = 80;

test('every row of the list has a test of its name here, or a reason why it has none', () => {
  const tested = new Set<number>();
  for (const name of readdirSync(import.meta.dirname)) {
    const text = readFileSync(new URL(name, import.meta.url), 'utf8');
    for (const [, row] of text.matchAll(/(?:test|test\.each\([^]*?\))\(\s*'bug-(\d\d):/g)) tested.add(Number(row));
  }
  const page = readFileSync(new URL('../not-applicable.md', import.meta.url), 'utf8');
  const excused = new Set([...page.matchAll(/^\| (\d+) \|/gm)].map(([, row]) => Number(row)));
  const missing = Array.from({ length: ROWS }, (_, i) => i + 1).filter((row) => !tested.has(row) && !excused.has(row));
  expect(missing).toEqual([]);
  expect([...tested].filter((row) => row < 1 || row > ROWS)).toEqual([]);
});
