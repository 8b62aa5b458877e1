import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PrepareRenameRequest, RenameRequest } from 'vscode-languageserver-protocol/node';
import { parsePolicy } from '../../packages/policy/src/index.ts';
import { applyEdits, positionIn, startEditor } from './editor-client.ts';
import type { Editor } from './editor-client.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const folder = join(root, 'packages/policy/fixtures/examples');
const names = readdirSync(folder).filter((name) => name.endsWith('.route'));
const files = Object.fromEntries(
  [...names, 'shared/tenants.route'].map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
);

let editor: Editor;
beforeAll(async () => {
  editor = await startEditor(files);
});
afterAll(() => editor.close());

/** Codes of the findings of a text as the file `name`, in order. */
const codesOf = async (name: string, text: string): Promise<readonly unknown[]> => {
  editor.replace(name, text);
  return (await editor.findings(name)).diagnostics.map(({ code }) => code);
};

describe('a name that is new everywhere', () => {
  test.each(names)('changes no finding of %s, whichever symbol gets it', async (name) => {
    const text = files[name] ?? '';
    editor.open(name, text);
    const before = (await editor.findings(name)).diagnostics.map(({ code }) => code);
    const seen = new Set<string>();
    let renamed = 0;
    for (const { kind, start } of parsePolicy(text, { file: name }).tokens) {
      if (kind !== 'name' && kind !== 'string') continue;
      const at = { textDocument: { uri: editor.uri(name) }, position: positionIn(text, start + 1) };
      const prepared = await editor.connection.sendRequest(PrepareRenameRequest.type, at).catch(() => null);
      if (prepared === null || !('placeholder' in prepared)) continue;
      const edit = await editor.connection.sendRequest(RenameRequest.type, { ...at, newName: 'brand_new' });
      const changes = edit?.changes ?? {};
      const key = JSON.stringify(changes);
      // What stands in another file too is renamed there as well, which is tested elsewhere; here one file is open.
      if (seen.has(key) || Object.keys(changes).some((uri) => uri !== editor.uri(name))) continue;
      seen.add(key);
      renamed += 1;
      const after = applyEdits(text, changes[editor.uri(name)] ?? []);
      expect(after).not.toBe(text);
      expect(await codesOf(name, after), `${prepared.placeholder} renamed`).toEqual(before);
      expect(await codesOf(name, text)).toEqual(before);
    }
    // The first line of the language and a file of tests name nothing that is declared in them.
    if (text.includes('define tier') || text.includes('let ')) expect(renamed).toBeGreaterThan(0);
  });
});
