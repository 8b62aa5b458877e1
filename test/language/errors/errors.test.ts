import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  applyFixes,
  compilePolicy,
  createLineIndex,
  diagnosticCodes,
  withAnalysis,
} from '../../../packages/policy/src/index.ts';
import type { Diagnostic, DiagnosticCode, Span } from '../../../packages/policy/src/index.ts';
import { compileInput } from '../support/compile.fixture.ts';

/*
 * Each file holds a wrong policy as somebody may write it, with the files that it imports behind lines `=== path`, a line of dashes, and
 * the findings: severity, code, file where it is not the policy's own, place, the text under the caret, headline, labels, help, fix.
 * SIGNALBOX_UPDATE=1 writes what is found, to be read before it is committed.
 */

const folder = new URL('./', import.meta.url);
const MARK = '\n---\n';
const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => name.endsWith('.txt'))
  .toSorted();

/** Findings that are only made when they are asked for, or of a build that lacks something. */
const OPTIONS: {
  readonly [name: string]: {
    readonly overlap?: true;
    readonly unprovided?: readonly string[];
    readonly withoutPlugins?: true;
  };
} = {
  'lints/overlap.txt': { overlap: true },
  'lints/nothing-provides.txt': { unprovided: ['candidate.kv_cache_used'] },
  'names/not-in-this-build.txt': { withoutPlugins: true },
  'lints/without-effect.txt': { unprovided: ['with.hedge'] },
};

/** What no text of a bearable size raises; tests of the parser build them. */
const TOO_LARGE: readonly DiagnosticCode[] = ['E0140', 'E0141', 'E0143', 'E0144'];

interface Fixture {
  readonly text: string;
  readonly files: { readonly [path: string]: string };
}

function fixtureOf(content: string): Fixture {
  const [text = '', ...rest] = content.split(/^=== (.*)\n/m);
  const files: { [path: string]: string } = {};
  for (let index = 0; index < rest.length; index += 2) files[rest[index] ?? ''] = rest[index + 1] ?? '';
  return { text, files };
}

function findingsOf(name: string, { text, files }: Fixture): readonly Diagnostic[] {
  const { overlap = false, unprovided = [], withoutPlugins = false } = OPTIONS[name] ?? {};
  const more = { unprovided, ...(withoutPlugins ? { manifests: [] } : {}) };
  return withAnalysis(compilePolicy(compileInput(text, files, more)), { overlap }).diagnostics;
}

function describeFindings(findings: readonly Diagnostic[], { text, files }: Fixture): string {
  const textOf = (span: Span): string => files[span.file] ?? text;
  const place = (span: Span): string => {
    const { positionAt } = createLineIndex(textOf(span));
    const [from, to] = [positionAt(span.start), positionAt(span.end)];
    const own = files[span.file] === undefined ? '' : `${span.file} `;
    return `${own}${from.line}:${from.column}-${to.line}:${to.column} ${JSON.stringify(textOf(span).slice(span.start, span.end))}`;
  };
  return findings
    .map(({ severity, code, span, message, labels, help, fix }) =>
      [
        `${severity}[${code}] ${place(span)}`,
        `  ${message}`,
        ...labels.map((label) => `  at ${place(label.span)}: ${label.message}`),
        ...(help === undefined ? [] : [`  help: ${help}`]),
        ...(fix?.edits.map((edit) => `  fix: ${place(edit.span)} -> ${JSON.stringify(edit.text)}`) ?? []),
      ].join('\n'),
    )
    .join('\n');
}

const contents = new Map(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
const policyOf = (content: string): string => {
  const end = content.indexOf(MARK);
  return end < 0 ? content : content.slice(0, end + 1);
};
const found = new Map(
  names.map((name) => {
    const fixture = fixtureOf(policyOf(contents.get(name) ?? ''));
    return [name, { fixture, findings: findingsOf(name, fixture) }] as const;
  }),
);

describe('what is said of a wrong policy', () => {
  test.each(names)('%s', (name) => {
    const content = contents.get(name) ?? '';
    const one = found.get(name);
    if (one === undefined) throw new Error('the fixture was not read');
    const shown = describeFindings(one.findings, one.fixture);
    const isUpdate = process.env['SIGNALBOX_UPDATE'] === '1';
    if (isUpdate) writeFileSync(new URL(name, folder), `${policyOf(content).replace(/\n$/, '')}${MARK}${shown}\n`);
    expect(shown).toBe(isUpdate ? shown : content.slice(content.indexOf(MARK) + MARK.length).trimEnd());
  });
});

test('there are at least 120 wrong policies, and each has a finding', () => {
  expect(names.length).toBeGreaterThanOrEqual(120);
  expect([...found].filter(([, { findings }]) => findings.length === 0).map(([name]) => name)).toEqual([]);
});

test('every code that a text can raise is raised by one of them', () => {
  const raised = new Set([...found.values()].flatMap(({ findings }) => findings.map(({ code }) => code)));
  const missing = (Object.keys(diagnosticCodes) as DiagnosticCode[]).filter((code) => !raised.has(code));
  expect(missing).toEqual(TOO_LARGE);
});

test('an error that has a fix is gone once the fix is applied', () => {
  const kept = [...found].flatMap(([name, { fixture, findings }]) =>
    findings
      .filter(({ fix, span }) => fix !== undefined && fixture.files[span.file] === undefined)
      .filter((finding) => {
        const { text } = applyFixes(fixture.text, 'policy.route', [finding]);
        const same = ({ code, message }: Diagnostic): boolean => code === finding.code && message === finding.message;
        const left = findingsOf(name, { ...fixture, text }).filter(same).length;
        return left >= findings.filter(same).length;
      })
      .map(({ code, message }) => `${name}: ${code} ${message}`),
  );
  expect(kept).toEqual([]);
});

/** Policies of which the fix brings a second mistake to light. */
const DEEPER: ReadonlySet<string> = new Set([
  'nginx/proxy-pass.txt',
  'rego/allow-block.txt',
  'sql/upper-case-keywords.txt',
  'yaml/key-value-rules.txt',
]);

test('where each finding has a fix, the policy with all of them made has no error', () => {
  const fixable = [...found].filter(
    ([name, { findings, fixture }]) =>
      !DEEPER.has(name) &&
      findings.every(({ fix, span }) => fix !== undefined && fixture.files[span.file] === undefined),
  );
  const left = fixable.flatMap(([name, { fixture, findings }]) =>
    findingsOf(name, { ...fixture, text: applyFixes(fixture.text, 'policy.route', findings).text })
      .filter(({ severity }) => severity === 'error')
      .map(({ code, message }) => `${name}: ${code} ${message}`),
  );
  expect(fixable.length).toBeGreaterThan(40);
  expect(left).toEqual([]);
});
