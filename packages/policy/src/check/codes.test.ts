import { readdirSync, readFileSync } from 'node:fs';
import type { PluginManifest } from '@signalbox/plugin-api';
import { describe, expect, test } from 'vitest';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import { diagnosticCodes } from '../diagnostics/codes.ts';
import type { DiagnosticCode } from '../diagnostics/codes.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ResolvedPlugin } from './work.ts';

const plugin = (
  name: string,
  entries: PluginManifest['entries'],
  more: Partial<PluginManifest> = {},
): ResolvedPlugin => ({
  manifest: { manifestVersion: 1, name, apiVersion: 1, entries, ...more },
});
const green = { kind: 'scorer', name: 'greenest', doc: 'Green.' } as const;

/** The packages that the examples of the codes name. */
const packages: { readonly [name: string]: ResolvedPlugin } = {
  '@acme/signalbox-carbon': { manifest: carbonManifest },
  'plugin-that-provides-a-signal-called-when': plugin('p', [
    { kind: 'signal', name: 'when', doc: 'When.', type: 'number' },
  ]),
  'some-package': { error: { reason: 'not_allowed', message: '"some-package" may not be loaded' } },
  'plugin-with-a-broken-manifest': plugin('p', [{ kind: 'scorer' } as never]),
  'plugin-of-the-future': plugin('p', [green], { apiVersion: 7 }),
  '@acme/plugin-that-needs-a-key': plugin('p', [green], {
    options: {
      type: 'object',
      properties: { key: { type: 'object', additionalProperties: { type: 'string' } } },
      required: ['key'],
      additionalProperties: false,
    },
  }),
  'plugin-a': plugin('a', [green]),
  'plugin-b': plugin('b', [green]),
};

const files: { readonly [path: string]: string } = {
  'a.route': 'let x = 5',
  'b.route': 'let y = 5',
  'tenants.route': 'let gold = ["acme"]',
  'shared.route': 'let x = 5',
  'shared/other.route': 'let x = 5',
  'self.route': 'import "./self.route"',
  'broken.route': 'route when to any',
};

const folder = new URL('../../fixtures/check/', import.meta.url);

const findings = (text: string): readonly Diagnostic[] =>
  compilePolicy({
    path: 'main.route',
    text,
    manifests: fixtureManifests,
    readFile: (path) => files[path],
    resolvePlugin: (name) => packages[name] ?? { error: `${name} was not found` },
    nowEpochMs: Date.UTC(2026, 11, 1),
    unprovided: [
      'with.hedge',
      ...(text.includes('kv_cache_used < 90%') && !text.includes('min(') ? ['candidate.kv_cache_used'] : []),
    ],
  }).diagnostics;

/** Findings of the analysis of conditions and of `ensure`, which is not part of checking; and what needs a broken plugin in use. */
const elsewhere: ReadonlySet<DiagnosticCode> = new Set<DiagnosticCode>([
  'E0420',
  'W0502',
  'W0503',
  'W0504',
  'W0505',
  'W0519',
  'W0520',
]);

describe('each code of the checker is given by its bad example and not by its good one', () => {
  const codes = (Object.keys(diagnosticCodes) as DiagnosticCode[]).filter(
    (code) => !code.startsWith('E01') && code !== 'E0510' && !elsewhere.has(code),
  );
  test.each(codes)('%s', (code) => {
    const { bad, good } = diagnosticCodes[code];
    const found = findings(bad);
    expect(found.map((diagnostic) => diagnostic.code)).toContain(code);
    // One mistake, one error; an import whose file has errors says so beside them.
    const others = found.filter(
      ({ severity, code: other }) => severity === 'error' && other !== code && !['E0124', 'E0231'].includes(other),
    );
    expect(others).toEqual([]);
    const fine = findings(good);
    expect(fine.map((diagnostic) => diagnostic.code)).not.toContain(code);
    expect(fine.filter(({ severity }) => severity === 'error')).toEqual([]);
  });
});

describe('a fix takes its finding away', () => {
  const sources = (Object.keys(diagnosticCodes) as DiagnosticCode[])
    .filter((code) => !code.startsWith('E01'))
    .map((code) => diagnosticCodes[code].bad);
  const fixtures = readdirSync(folder)
    .filter((name) => name.endsWith('.txt'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8').split('\n---\n')[0] ?? '');
  const cases = [...sources, ...fixtures].flatMap((text) =>
    findings(text).flatMap(({ code, message, fix, span }) =>
      fix === undefined || span.file !== 'main.route' ? [] : [{ text, code, message, fix }],
    ),
  );

  test.each(cases)('$code $message', ({ text, code, message, fix }) => {
    const [edit, ...more] = fix.edits;
    expect(more).toEqual([]);
    const fixed = text.slice(0, edit?.span.start) + (edit?.text ?? '') + text.slice(edit?.span.end);
    const count = (policy: string): number =>
      findings(policy).filter((found) => found.code === code && found.message === message).length;
    expect(count(fixed)).toBe(count(text) - 1);
  });

  test('there are many of them', () => {
    expect(cases.length).toBeGreaterThan(60);
  });
});

test('E0510: an expression of a plugin that does not compile is reported at its use, with the text quoted', () => {
  const broken: PluginManifest = {
    manifestVersion: 1,
    name: 'broken',
    apiVersion: 1,
    entries: [
      { kind: 'scorer', name: 'typo', doc: 'x', expression: 'queue_dept + 1' },
      { kind: 'filter', name: 'no_bool', doc: 'x', expression: 'queue_depth' },
      { kind: 'scorer', name: 'syntax', doc: 'x', expression: 'queue_depth +' },
      { kind: 'scorer', name: 'own_let', doc: 'x', expression: 'secret_let' },
      { kind: 'property', name: 'loops', doc: 'x', type: 'number', expression: 'loops + 1' },
    ],
  };
  const check = (text: string): readonly string[] =>
    compilePolicy({ path: 'main.route', text, resolvePlugin: () => ({ manifest: broken }) })
      .diagnostics.filter(({ severity }) => severity === 'error')
      .map(({ code, span }) => `${code} ${text.slice(span.start, span.end)}`);
  expect(check('use "b"\ndefault to any by typo')).toEqual(['E0510 typo']);
  expect(check('use "b"\ndefault to any where no_bool')).toEqual(['E0510 no_bool']);
  expect(check('use "b"\ndefault to any by syntax')).toEqual(['E0510 syntax']);
  expect(check('use "b"\nlet secret_let = 5\ndefault to any by own_let')).toEqual(['E0510 own_let']);
  expect(check('use "b"\ndefault to any by lowest(loops)')).toEqual(['E0510 loops']);
});
