import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CompletionRequest, HoverRequest, SemanticTokensRequest } from 'vscode-languageserver-protocol/node';
import type { CompletionItem, Range } from 'vscode-languageserver-protocol/node';
import { offsetIn, positionIn, startEditor } from './editor-client.ts';
import type { Editor } from './editor-client.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const examples = readdirSync(join(root, 'examples/policies'))
  .filter((name) => name.endsWith('.route'))
  .map((name) => [name, readFileSync(join(root, 'examples/policies', name), 'utf8')] as const);

let editor: Editor;
beforeAll(async () => {
  editor = await startEditor();
});
afterAll(() => editor.close());

/** Pieces of text that an edit puts in: words of the language, signs, odd characters, line breaks. */
const piece = fc.oneof(
  fc.constantFrom(
    'route ',
    'when ',
    'to tier "8B"',
    ' by ',
    '{',
    '}',
    '(',
    '"',
    '"🙂"',
    '路',
    '\r\n',
    '\n',
    '\r',
    '\t',
    '#',
    '##',
    '@',
    '??',
    '..',
    '5m',
    '95%',
    '\uFEFF',
    '\uD83D',
    ' with ',
  ),
  fc.string({ maxLength: 4, unit: 'binary' }),
);

const edit = fc.record({ from: fc.nat({ max: 2_000 }), length: fc.nat({ max: 12 }), text: piece });

let serial = 0;

describe('any edits', () => {
  test('leave the findings that a fresh check of the same text gives, and the server alive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...examples),
        fc.array(edit, { minLength: 1, maxLength: 12 }),
        async ([, text], edits) => {
          serial += 1;
          const [path, fresh] = [`edited-${serial}.route`, `fresh-${serial}.route`];
          editor.open(path, text);
          for (const { from, length, text: put } of edits) {
            const current = editor.text(path);
            const range: Range = {
              start: positionIn(current, Math.min(from, current.length)),
              end: positionIn(current, Math.min(from + length, current.length)),
            };
            // A place inside a line break is the end of its line in the protocol, so that it is made one before.
            const start = Math.min(offsetIn(current, range.start), current.length);
            const end = Math.min(offsetIn(current, range.end), current.length);
            const isInBreak = (offset: number): boolean => current[offset - 1] === '\r' && current[offset] === '\n';
            if (isInBreak(start) || isInBreak(end)) continue;
            editor.edit(path, range, put);
          }
          editor.open(fresh, editor.text(path));
          const [after, anew] = await Promise.all([editor.findings(path), editor.findings(fresh)]);
          const plain = (found: unknown): unknown =>
            JSON.parse(JSON.stringify(found).replaceAll(editor.uri(path), '').replaceAll(editor.uri(fresh), ''));
          expect(plain(after.diagnostics)).toEqual(plain(anew.diagnostics));
          const at = {
            textDocument: { uri: editor.uri(path) },
            position: positionIn(editor.text(path), Math.floor(editor.text(path).length / 2)),
          };
          await editor.connection.sendRequest(HoverRequest.type, at);
          await editor.connection.sendRequest(SemanticTokensRequest.type, { textDocument: at.textDocument });
          for (const one of [path, fresh])
            void editor.connection.sendNotification('textDocument/didClose', {
              textDocument: { uri: editor.uri(one) },
            });
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('every prefix', () => {
  test.each(examples)('of %s gives completions without error', async (name, text) => {
    editor.open(name, '');
    const ends = Array.from({ length: text.length + 1 }, (_, end) => end);
    for (const end of ends) {
      editor.replace(name, text.slice(0, end));
      const items = (await editor.connection.sendRequest(CompletionRequest.type, {
        textDocument: { uri: editor.uri(name) },
        position: positionIn(text, end),
      })) as CompletionItem[];
      for (const { textEdit } of items) {
        expect(
          textEdit !== undefined && 'range' in textEdit && textEdit.range.start.line === textEdit.range.end.line,
        ).toBe(true);
      }
    }
  });
});
