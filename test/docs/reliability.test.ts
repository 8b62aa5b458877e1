import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DEFAULT_EJECTION } from '../../packages/core/src/fleet/ejection-rules.ts';
import { DEFAULT_LIMITS } from '../../packages/proxy/src/limits.ts';
import { repositoryRoot } from './source-files.ts';

const page = readFileSync(join(repositoryRoot, 'docs/reference/reliability.md'), 'utf8');
const [promises = '', figures = ''] = page.split('\n## Figures in code\n');

const cellsOf = (line: string): readonly string[] =>
  line
    .slice(2, -2)
    .split(' | ')
    .map((cell) => cell.trim());
const rowsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map(cellsOf);
const rows = rowsOf(promises).filter(([first]) => first !== 'promise');

/** Every test that a row names: the file, then one or more titles. */
const named = rows.flatMap(([, , heldBy = '']) =>
  [...heldBy.matchAll(/`([^`]+\.test\.ts)` “([^”]+)”/g)].map(([, file = '', title = '']) => ({ file, title })),
);

/** Whether the source has this text as a whole string, in whichever quotes. */
const hasTitle = (source: string, title: string): boolean =>
  ["'", '"', '`'].some((quote) => source.includes(quote + title.replaceAll(quote, `\\${quote}`) + quote));

test('every test that the page of reliability names exists, under that title', () => {
  expect(named.length).toBeGreaterThan(100);
  const missing = named.filter(({ file, title }) => {
    const path = join(repositoryRoot, file);
    return !existsSync(path) || !hasTitle(readFileSync(path, 'utf8'), title);
  });
  expect(missing).toEqual([]);
});

test('every promise has three cells, and is held by a test or said not to be', () => {
  expect(rows.length).toBeGreaterThan(60);
  const unclear = rows.filter(
    (cells) =>
      cells.length !== 3 || !(/`[^`]+\.test\.ts` “/.test(cells[2] ?? '') || /not held[^:]*: \S/.test(cells[2] ?? '')),
  );
  expect(unclear).toEqual([]);
});

/** The codes of a series, with ranges such as F1–F3 written out. */
const codesOn = (text: string): ReadonlySet<string> => {
  const codes = new Set<string>();
  for (const [, series = '', from = '', to = from] of text.matchAll(/\b([BFLS])(\d+)(?:–\1(\d+))?\b/g))
    for (let n = Number(from); n <= Number(to); n++) codes.add(series + n);
  return codes;
};

test('every code of the fault, load, boundary and security tables is on the page', () => {
  const series = { F: 19, L: 4, B: 3, S: 14 };
  const all = Object.entries(series).flatMap(([name, count]) =>
    Array.from({ length: count }, (_, i) => name + (i + 1)),
  );
  const found = codesOn(promises);
  expect(all.filter((code) => !found.has(code))).toEqual([]);
});

describe('figures in code', () => {
  const listed = new Map(rowsOf(figures).map(([name = '', value = '']) => [name.replaceAll('`', ''), value]));
  listed.delete('name');

  test.each([
    ['limits of the data plane', DEFAULT_LIMITS],
    ['ejection', DEFAULT_EJECTION],
  ])('%s are as the page says', (_name, constants) => {
    const shown = Object.fromEntries(Object.keys(constants).map((key) => [key, listed.get(key)]));
    expect(shown).toEqual(Object.fromEntries(Object.entries(constants).map(([key, value]) => [key, String(value)])));
  });

  test('and nothing else is listed', () => {
    expect([...listed.keys()].toSorted()).toEqual(
      [...Object.keys(DEFAULT_LIMITS), ...Object.keys(DEFAULT_EJECTION)].toSorted(),
    );
  });
});
