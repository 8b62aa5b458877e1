import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import { createLineIndex } from '../syntax/line-index.ts';

/*
 * Each file under fixtures/check holds a policy, a line of dashes, and the findings it must give: severity, code, place, the text under
 * the caret, headline, help and fix. UPDATE_FIXTURES=1 writes what is found, to be read before it is committed.
 */

const folder = new URL('../../fixtures/check/', import.meta.url);
const MARK = '\n---\n';

const findings = (text: string): string => {
  const { diagnostics } = compilePolicy({
    path: 'main.route',
    text,
    manifests: fixtureManifests,
    resolvePlugin: (name) =>
      name === '@acme/signalbox-carbon'
        ? { manifest: carbonManifest }
        : { error: { reason: 'not_found', message: `the package \`${name}\` was not found` } },
    nowEpochMs: Date.UTC(2026, 11, 1),
  });
  const lines = createLineIndex(text);
  const place = (offset: number): string => {
    const { line, column } = lines.positionAt(offset);
    return `${line}:${column}`;
  };
  return diagnostics
    .map(({ severity, code, span, message, help, fix, labels }) =>
      [
        `${severity}[${code}] ${place(span.start)}-${place(span.end)} ${JSON.stringify(text.slice(span.start, span.end))}`,
        `  ${message}`,
        ...labels.map(
          (label) =>
            `  at ${place(label.span.start)} ${JSON.stringify(text.slice(label.span.start, label.span.end))}: ${label.message}`,
        ),
        ...(help === undefined ? [] : [`  help: ${help}`]),
        ...(fix === undefined
          ? []
          : [
              `  fix: ${fix.edits.map((edit) => `${JSON.stringify(text.slice(edit.span.start, edit.span.end))} -> ${JSON.stringify(edit.text)}`).join(', ')}`,
            ]),
      ].join('\n'),
    )
    .join('\n');
};

describe('findings of the fixtures', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  test.each(names)('%s', (name) => {
    const file = new URL(name, folder);
    const content = readFileSync(file, 'utf8');
    const end = content.indexOf(MARK);
    const policy = end < 0 ? content : content.slice(0, end + 1);
    const found = findings(policy);
    const isUpdate = process.env['UPDATE_FIXTURES'] === '1';
    if (isUpdate) writeFileSync(file, `${policy.trimEnd()}${MARK}${found}\n`);
    expect(found).toBe(isUpdate ? found : content.slice(end + MARK.length).trimEnd());
  });

  test('are there', () => {
    expect(names.length).toBeGreaterThan(8);
  });
});
