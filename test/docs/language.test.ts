import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineKeys, defineKinds, functionNames, reservedWords } from '../../packages/policy/src/index.ts';
import { units } from '../../packages/policy/src/syntax/units.ts';
import { repositoryRoot } from './source-files.ts';

const page = readFileSync(join(repositoryRoot, 'docs/reference/language.md'), 'utf8');

/** The text of a section from its heading to the next of the same or a higher level. */
function section(heading: string): string {
  const level = /^#+/.exec(heading)?.[0].length ?? 2;
  const start = page.indexOf(`\n${heading}\n`);
  const rest = page.slice(start + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return start < 0 ? '' : rest.slice(0, end < 0 ? undefined : end);
}

/** The words in back quotes of the first cell of each row. */
const rowNames = (text: string): string[] =>
  [...text.matchAll(/^\| ((?:`[a-z_]+`(?:, )?)+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name ?? ''),
  );

test('the tables of definitions have every key of gateway, tier and endpoint, and no other', () => {
  expect(rowNames(section('### gateway')).toSorted()).toEqual(defineKeys.gateway.toSorted());
  const both = new Set([...defineKeys.tier, ...defineKeys.endpoint]);
  expect(rowNames(section('### tier and endpoint')).toSorted()).toEqual([...both].toSorted());
});

test('the rows of the other kinds name every kind and every key', () => {
  const others = section('### The others');
  for (const kind of defineKinds) {
    if (kind === 'gateway' || kind === 'tier' || kind === 'endpoint') continue;
    const row = others.split('\n').find((line) => line.includes(`define ${kind}`)) ?? '';
    const keys = kind === 'profile' || kind === 'discovery' ? [] : defineKeys[kind];
    expect({ kind, missing: keys.filter((key) => !row.includes(`\`${key}\``)), found: row !== '' }).toEqual({
      kind,
      missing: [],
      found: true,
    });
  }
});

test('reserved words, functions and units are all named', () => {
  const reserved = /^Reserved[^`]*`([^`]*)`/m.exec(page)?.[1]?.split(/\s+/) ?? [];
  expect(reserved).toEqual(reservedWords);
  const scopes = section('## Scopes');
  expect([...functionNames].filter((name) => !new RegExp(`\`${name}[(\`]`).test(scopes))).toEqual([]);
  const literals = section('## Words and literals');
  expect([...units.keys()].filter((unit) => !new RegExp(`\\d${unit}\`|\`${unit}\` `).test(literals))).toEqual([]);
});
