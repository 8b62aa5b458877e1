import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createLineIndex } from './line-index.ts';
import { parsePolicy } from './parse-policy.ts';

/*
 * Each file under fixtures/errors holds a policy, a line of dashes, and what the parser makes of it: its findings (severity, code, place,
 * the text under the caret, headline, labels, help, fix) and then the statements, broken ones marked. UPDATE_FIXTURES=1 writes what is
 * found, to be read before it is committed.
 */

const folder = new URL('../../fixtures/errors/', import.meta.url);
const mark = '\n---\n';

const describePolicy = (text: string): string => {
  const { file, diagnostics } = parsePolicy(text, { file: 'main.route' });
  const lines = createLineIndex(text);
  const place = (offset: number): string => {
    const { line, column } = lines.positionAt(offset);
    return `${line}:${column}`;
  };
  const quote = (start: number, end: number): string => JSON.stringify(text.slice(start, end));
  const findings = diagnostics.map(({ severity, code, span, message, help, fix, labels }) =>
    [
      `${severity}[${code}] ${place(span.start)}-${place(span.end)} ${quote(span.start, span.end)}`,
      `  ${message}`,
      ...labels.map(
        (label) => `  at ${place(label.span.start)} ${quote(label.span.start, label.span.end)}: ${label.message}`,
      ),
      ...(help === undefined ? [] : [`  help: ${help}`]),
      ...(fix === undefined
        ? []
        : [
            `  fix: ${fix.edits.map((edit) => `${quote(edit.span.start, edit.span.end)} -> ${JSON.stringify(edit.text)}`).join(', ')}`,
          ]),
    ].join('\n'),
  );
  const statements = file.statements.map((node) => {
    const { line } = lines.positionAt(node.head.start);
    if (node.kind !== 'broken') return `line ${line}: ${node.kind}`;
    const parts = [node.keyword, node.name?.text, node.label?.raw].filter((part) => part !== undefined);
    return `line ${line}: broken (${parts.join(' ')})`;
  });
  return [...findings, ...statements].join('\n');
};

describe('what the parser says of broken policies', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));

  test.each(names)('%s', (name) => {
    const at = new URL(name, folder);
    const content = readFileSync(at, 'utf8');
    const end = content.indexOf(mark);
    const policy = end < 0 ? content : content.slice(0, end + 1);
    const found = describePolicy(policy);
    const updating = process.env['UPDATE_FIXTURES'] === '1';
    if (updating) writeFileSync(at, `${policy.trimEnd()}${mark}${found}\n`);
    expect(found).toBe(updating ? found : content.slice(end + mark.length).trimEnd());
  });

  test('the fixtures are there', () => {
    expect(names.length).toBeGreaterThan(10);
  });
});
