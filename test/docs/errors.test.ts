import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { diagnosticCodes } from '../../packages/policy/src/index.ts';
import { repositoryRoot, sourceFiles } from './source-files.ts';

/** Where a code stands in the sources: as a property, behind a status, in the type of chwbl's codes, as first argument of `breakOff`. */
const PLACES: readonly RegExp[] = [
  /\bcode: '([a-z]+(?:_[a-z]+)*)'/g,
  /\b[45]\d\d,\s*'([a-z]+(?:_[a-z]+)*)'/g,
  /\bstatus < 500 \? '([a-z]+(?:_[a-z]+)*)' : '([a-z]+(?:_[a-z]+)*)'/g,
  /\bbreakOff\(\s*'([a-z]+(?:_[a-z]+)*)'/g,
  /\brawAnswer\([^';]*'([a-z]+(?:_[a-z]+)*)'/g,
  /'(ERR_CHWBL_[A-Z_]+)'/g,
];

/** Not codes of an error: values of the envelope's `type`, and a property called `code` of the catalogue. */
const OTHER_MEANINGS: ReadonlySet<string> = new Set(['server_error', 'invalid_request_error', 'api_error', 'signal']);

function codesInSources(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [path, text] of sourceFiles('packages')) {
    // The simulator speaks as a model server does; its codes are not ours.
    if (path.startsWith('packages/simulator/')) continue;
    for (const place of PLACES) {
      for (const [, ...codes] of text.matchAll(place)) {
        for (const code of codes) if (code !== undefined && !OTHER_MEANINGS.has(code)) found.set(code, path);
      }
    }
  }
  return found;
}

const page = readFileSync(join(repositoryRoot, 'docs/reference/errors.md'), 'utf8');
const listed = new Set([...page.matchAll(/^\| `([A-Za-z_]+)` \|/gm)].map(([, code]) => code ?? ''));

test('every error code in the sources is on the page of errors, and every code on the page is in the sources', () => {
  const codes = codesInSources();
  expect(codes.size).toBeGreaterThan(40);
  expect([...codes].filter(([code]) => !listed.has(code))).toEqual([]);
  expect([...listed].filter((code) => !codes.has(code))).toEqual([]);
});

test('no error has the code of a diagnostic, and no code is listed twice', () => {
  expect([...listed].filter((code) => code in diagnosticCodes)).toEqual([]);
  expect(page.match(/^\| `[A-Za-z_]+` \|/gm)).toHaveLength(listed.size);
});

test('SignalboxErrors are made with a literal code, so that the scan sees all of them', () => {
  const dynamic = [...sourceFiles('packages'), ...sourceFiles('plugins')].flatMap(([path, text]) =>
    [...text.matchAll(/new SignalboxError\(/g)]
      .filter(({ index }) => !/\bcode: '/.test(text.slice(index, index + 600)))
      .map(({ index }) => `${path}:${text.slice(0, index).split('\n').length}`),
  );
  expect(dynamic).toEqual([]);
});
