import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CodeActionRequest,
  CodeLensRequest,
  CompletionRequest,
  DefinitionRequest,
  DocumentFormattingRequest,
  DocumentHighlightRequest,
  DocumentRangeFormattingRequest,
  DocumentSymbolRequest,
  FoldingRangeRequest,
  HoverRequest,
  InlayHintRequest,
  LSPErrorCodes,
  PrepareRenameRequest,
  ReferencesRequest,
  RenameRequest,
  ResponseError,
  SemanticTokensRangeRequest,
  SemanticTokensRequest,
  SignatureHelpRequest,
  WorkspaceSymbolRequest,
} from 'vscode-languageserver-protocol/node';
import type {
  CompletionItem,
  DocumentSymbol,
  Hover,
  Location,
  SemanticTokens,
} from 'vscode-languageserver-protocol/node';
import { applyEdits, applyWorkspaceEdit, positionIn, startEditor, textOf } from './editor-client.ts';
import type { Editor } from './editor-client.ts';

const TIERS = `define tier "8B" { model: "llama-3.1-8b", endpoints: ["http://10.0.0.11:8000"] }
define tier "70B" { model: "llama-3.1-70b", endpoints: ["http://10.0.0.21:8000"] }
`;
const SHARED = `## Callers that pay.
let gold = ["acme", "globex"]
define limit "free" { key: user ?? "none", requests: 60/min }
`;
const MAIN = `import "./shared.route" as shared

${TIERS}
## Prompts that are hard.
let hard = complexity > 50

reject "over" when over_limit("shared.free") with status 429

# a note
# of two lines
group "paying" when user in shared.gold {
  route "hard" when hard to tier "70B" by least_tokens with affinity session
}
route when prompt_tokens > 32Ki to tier "70B"
default to tier "8B" by least_tokens

test "hard goes up" {
  given complexity = 72
  expect route "hard" to tier "70B"
}
`;

let editor: Editor;
beforeAll(async () => {
  editor = await startEditor({ 'shared.route': SHARED, 'main.route': MAIN }, { docsUrl: 'file:///docs-of-signalbox' });
  editor.open('main.route', MAIN);
});
afterAll(() => editor.close());

const labelsOf = async (path: string, find: string, plus = 0): Promise<readonly string[]> =>
  ((await editor.connection.sendRequest(CompletionRequest.type, editor.at(path, find, plus))) as CompletionItem[]).map(
    ({ label }) => label,
  );

/** Opens a text of its own and gives the path. */
let scratch = 0;
const openText = (text: string): string => {
  scratch += 1;
  const path = `scratch-${scratch}.route`;
  editor.open(path, text);
  return path;
};

describe('findings', () => {
  test('a policy that is in order has none but notes', async () => {
    const { diagnostics, version } = await editor.findings('main.route');
    expect(diagnostics.filter(({ severity }) => severity === 1)).toEqual([]);
    expect(version).toBe(1);
  });

  test('a finding has its code, place, help, related places and a link to its page', async () => {
    const text = `${TIERS}route "a" to tier "8B"\nroute "a" to tier "70C"\n`;
    const { diagnostics } = await editor.findings(openText(text));
    const twice = diagnostics.find(({ code }) => code === 'E0212');
    expect(twice).toMatchObject({
      severity: 1,
      source: 'signalbox',
      codeDescription: { href: 'file:///docs-of-signalbox/docs/reference/diagnostics/E0212.md' },
    });
    expect(twice?.relatedInformation?.[0]).toMatchObject({ message: 'first used here' });
    expect(
      textOf(
        text,
        twice?.relatedInformation?.[0]?.location.range ?? { start: positionIn(text, 0), end: positionIn(text, 0) },
      ),
    ).toBe('"a"');
    const unknown = diagnostics.find(({ code }) => code === 'E0202');
    expect(unknown?.message).toBe('unknown tier "70C"\nhelp: did you mean "70B"?');
    expect(textOf(text, unknown?.range ?? { start: positionIn(text, 0), end: positionIn(text, 0) })).toBe('"70C"');
  });

  test('what no request reaches and what nothing uses is marked as unnecessary', async () => {
    const { diagnostics } = await editor.findings(
      openText(`${TIERS}let idle = 1\ndefault to tier "8B"\nroute "late" to tier "70B"\n`),
    );
    expect(diagnostics.filter(({ tags }) => tags?.includes(1)).map(({ code }) => code)).toEqual(['W0507', 'W0501']);
  });

  test('after a pause the conditions are analysed: a rule that an earlier one takes', async () => {
    const path = openText(
      `${TIERS}route "a" when complexity > 50 to tier "70B"\nroute "b" when complexity > 60 to tier "70B"\ndefault to tier "8B"\n`,
    );
    const { diagnostics } = await editor.findingsWhere(path, ({ diagnostics: found }) => found.length > 0);
    expect(diagnostics.map(({ code, tags }) => [code, tags])).toEqual([['W0502', [1]]]);
  });

  test('findings follow incremental changes', async () => {
    const path = openText(`${TIERS}default to tier "8B"\n`);
    expect((await editor.findings(path)).diagnostics).toEqual([]);
    const { position } = editor.at(path, 'tier "8B"\n', 6);
    editor.edit(path, { start: position, end: { ...position, character: position.character + 1 } }, '9');
    expect((await editor.findings(path)).diagnostics.map(({ code }) => code)).toEqual(['E0202']);
    editor.edit(path, { start: position, end: { ...position, character: position.character + 1 } }, '8');
    expect((await editor.findings(path)).diagnostics).toEqual([]);
  });

  test('closing a document takes its findings away', async () => {
    const path = openText('route');
    expect((await editor.findings(path)).diagnostics).not.toEqual([]);
    void editor.connection.sendNotification('textDocument/didClose', { textDocument: { uri: editor.uri(path) } });
    expect((await editor.findingsWhere(path, ({ diagnostics }) => diagnostics.length === 0)).diagnostics).toEqual([]);
  });
});

describe('imports', () => {
  test('a text that is open comes before the file, and its importers are checked again', async () => {
    editor.open('uses.route', 'import "./lib.route" as lib\nroute when user in lib.vip to any\ndefault to any\n');
    expect((await editor.findings('uses.route')).diagnostics.map(({ code }) => code)).toContain('E0216');
    editor.open('lib.route', 'let vip = ["a"]\n');
    const found = await editor.findingsWhere(
      'uses.route',
      ({ diagnostics }) => !diagnostics.some(({ code }) => code === 'E0216'),
    );
    expect(found.diagnostics.filter(({ severity }) => severity === 1)).toEqual([]);
    editor.replace('lib.route', 'let gone = ["a"]\n');
    const again = await editor.findingsWhere('uses.route', ({ diagnostics }) =>
      diagnostics.some(({ code }) => code === 'E0225'),
    );
    expect(again.diagnostics[0]?.message).toContain('has no `vip`');
  });

  test('a file that changes on disk counts when the editor says so', async () => {
    editor.open('reads.route', 'import "./disk.route" as disk\nroute when user in disk.vip to any\ndefault to any\n');
    expect((await editor.findings('reads.route')).diagnostics.map(({ code }) => code)).toContain('E0216');
    writeFileSync(join(editor.folder, 'disk.route'), 'let vip = ["a"]\n');
    void editor.connection.sendNotification('workspace/didChangeWatchedFiles', {
      changes: [{ uri: editor.uri('disk.route'), type: 1 }],
    });
    await editor.findingsWhere('reads.route', ({ diagnostics }) => !diagnostics.some(({ code }) => code === 'E0216'));
    expect(editor.registrations.map(({ method }) => method)).toEqual(['workspace/didChangeWatchedFiles']);
  });

  test('imports stay below the folder of the policy', async () => {
    const { diagnostics } = await editor.findings(openText('import "../secret.route"\ndefault to any\n'));
    expect(diagnostics.map(({ code }) => code)).toContain('E0217');
  });

  test('a fragment is checked in the policy that splices it', async () => {
    editor.open('rules.route', 'route "vip" when is_vip to any\n');
    expect((await editor.findings('rules.route')).diagnostics.map(({ code }) => code)).toContain('E0201');
    editor.open('whole.route', 'let is_vip = user == "a"\nimport "./rules.route"\ndefault to any\n');
    await editor.findingsWhere('rules.route', ({ diagnostics }) => !diagnostics.some(({ code }) => code === 'E0201'));
  });
});

describe('completion', () => {
  test('offers what the scope allows, with type, doc and snippet', async () => {
    const path = openText(`${TIERS}route when `);
    const items = (await editor.connection.sendRequest(
      CompletionRequest.type,
      editor.at(path, 'when ', 5),
    )) as CompletionItem[];
    const complexity = items.find(({ label }) => label === 'complexity');
    expect(complexity).toMatchObject({ detail: 'number, of the request' });
    expect(complexity?.documentation).toMatchObject({ kind: 'markdown' });
    expect(items.map(({ label }) => label)).not.toContain('kv_cache_used');
    expect(items.find(({ label }) => label === 'header')?.textEdit?.newText).toBe('header["$1"]');
    // The editor sorts by `sortText`, which keeps the order given.
    expect(items.map(({ sortText }) => sortText)).toEqual(items.map(({ sortText }) => sortText).toSorted());
  });

  test('names of tiers in quotes, units behind numbers, files of the folder', async () => {
    expect(await labelsOf('main.route', 'to tier "70B" by', 9)).toEqual(['70B', '8B']);
    const path = openText('route to any with timeout 90');
    expect((await labelsOf(path, '90', 2)).slice(0, 2)).toEqual(['90ms', '90s']);
    expect(await labelsOf(openText('import "'), 'import "', 8)).toEqual(
      expect.arrayContaining(['./main.route', './shared.route']),
    );
  });

  test('what is accepted replaces what was typed', async () => {
    const text = 'route when cluster.sat';
    const path = openText(text);
    const items = (await editor.connection.sendRequest(
      CompletionRequest.type,
      editor.at(path, 'sat', 3),
    )) as CompletionItem[];
    const edit = items.find(({ label }) => label === 'cluster.saturation')?.textEdit;
    expect(edit !== undefined && 'range' in edit ? applyEdits(text, [edit]) : undefined).toBe(
      'route when cluster.saturation',
    );
  });
});

const hoverText = async (path: string, find: string, plus = 1): Promise<string> => {
  const found: Hover | null = await editor.connection.sendRequest(HoverRequest.type, editor.at(path, find, plus));
  const contents = found?.contents;
  return contents !== undefined && typeof contents === 'object' && 'value' in contents ? contents.value : '';
};

describe('hover and signatures', () => {
  test('a let has its inferred type and its doc comment', async () => {
    const text = await hoverText('main.route', 'hard to tier');
    expect(text).toContain('let hard: bool');
    expect(text).toContain('Prompts that are hard.');
  });

  test('names of the catalogue say type, scope, when they are known, and who provides them', async () => {
    expect(await hoverText('main.route', 'complexity > ')).toMatch(/signal complexity: number[\s\S]*always known/);
    expect(await hoverText('main.route', 'prompt_tokens')).toMatch(/count[\s\S]*32k/);
    expect(await hoverText('main.route', 'least_tokens')).toMatch(
      /scorer least_tokens[\s\S]*lower is better[\s\S]*Provided by/,
    );
    expect(await hoverText('main.route', 'affinity')).toContain('Requests of one key go to one endpoint');
    expect(await hoverText('main.route', 'user in')).toContain('can be unknown');
  });

  test('names behind an alias, keys, and values of units', async () => {
    expect(await hoverText('main.route', 'gold {')).toContain('Callers that pay.');
    expect(await hoverText('main.route', 'model: "llama-3.1-8b"')).toContain('The name that is sent to the endpoint.');
    expect(await hoverText('main.route', '32Ki')).toContain('32768');
    expect(await hoverText('main.route', 'when hard')).toBe('');
  });

  test('help with arguments, in a call that is not closed too', async () => {
    const path = openText('route to any by least_latency(');
    const help = await editor.connection.sendRequest(SignatureHelpRequest.type, editor.at(path, 'latency(', 8));
    expect(help?.signatures[0]?.label).toMatch(/^least_latency\(/);
    const pool = openText('route when min(');
    expect(
      (await editor.connection.sendRequest(SignatureHelpRequest.type, editor.at(pool, 'min(', 4)))?.signatures[0]
        ?.label,
    ).toBe('min(queue_depth, tier "70B")');
  });
});

const placesOf = (found: Location | readonly Location[] | null): readonly string[] =>
  (found === null ? [] : Array.isArray(found) ? (found as readonly Location[]) : [found as Location]).map(
    ({ uri, range }) => `${uri.split('/').pop() ?? ''}:${range.start.line}:${range.start.character}`,
  );

describe('definition, references, highlights', () => {
  test('a let, a tier, a name of another file, and the file itself', async () => {
    const go = async (find: string, plus = 1): Promise<readonly string[]> =>
      placesOf(
        (await editor.connection.sendRequest(
          DefinitionRequest.type,
          editor.at('main.route', find, plus),
        )) as Location | null,
      );
    expect(await go('hard to tier')).toEqual(['main.route:6:4']);
    expect(await go('to tier "70B" by', 9)).toEqual(['main.route:3:13']);
    expect(await go('gold {')).toEqual(['shared.route:1:4']);
    expect(await go('shared.free', 8)).toEqual(['shared.route:2:14']);
    expect(await go('"./shared.route"', 4)).toEqual(['shared.route:0:0']);
    expect(await go('route "hard" to', 8)).toEqual(['main.route:13:9']);
    expect(await go('complexity')).toEqual([]);
  });

  test('references are found in all policies of the folder', async () => {
    const all = await editor.connection.sendRequest(ReferencesRequest.type, {
      ...editor.at('main.route', 'gold {', 1),
      context: { includeDeclaration: true },
    });
    expect(placesOf(all)).toEqual(['main.route:12:35', 'shared.route:1:4']);
    const uses = await editor.connection.sendRequest(ReferencesRequest.type, {
      ...editor.at('main.route', 'tier "70B" {', 6),
      context: { includeDeclaration: false },
    });
    expect(placesOf(uses)).toEqual(['main.route:13:34', 'main.route:15:41', 'main.route:20:31']);
  });

  test('highlights tell the declaration from the uses', async () => {
    const found = await editor.connection.sendRequest(
      DocumentHighlightRequest.type,
      editor.at('main.route', 'hard = ', 1),
    );
    expect(found?.map(({ kind }) => kind)).toEqual([3, 2]);
  });
});

const refusal = async (request: Promise<unknown>): Promise<string> =>
  request.then(
    () => '',
    (error: unknown) => (error instanceof ResponseError ? error.message : String(error)),
  );

describe('rename', () => {
  test('changes every file that names the symbol', async () => {
    const edit = await editor.connection.sendRequest(RenameRequest.type, {
      ...editor.at('main.route', 'gold {', 1),
      newName: 'platinum',
    });
    const texts = applyWorkspaceEdit(editor, edit, { 'main.route': MAIN, 'shared.route': SHARED });
    expect(texts['main.route']).toBe(MAIN.replace('shared.gold', 'shared.platinum'));
    expect(texts['shared.route']).toBe(SHARED.replace('let gold', 'let platinum'));
  });

  test('an alias, a tier with quotes in its new name, and a definition behind an alias', async () => {
    const renamed = async (find: string, plus: number, newName: string): Promise<{ readonly [path: string]: string }> =>
      applyWorkspaceEdit(
        editor,
        await editor.connection.sendRequest(RenameRequest.type, { ...editor.at('main.route', find, plus), newName }),
        { 'main.route': MAIN, 'shared.route': SHARED },
      );
    // The alias stands in texts too: in the names of definitions behind it.
    expect((await renamed('as shared', 4, 'ours'))['main.route']).toBe(
      MAIN.replace('as shared', 'as ours').replace('shared.gold', 'ours.gold').replace('shared.free', 'ours.free'),
    );
    expect((await renamed('tier "8B" {', 6, 'small "one"'))['main.route']).toBe(
      MAIN.replaceAll('"8B"', String.raw`"small \"one\""`),
    );
    const limit = await renamed('shared.free', 8, 'basic');
    expect(limit['main.route']).toBe(MAIN.replace('shared.free', 'shared.basic'));
    expect(limit['shared.route']).toBe(SHARED.replace('"free"', '"basic"'));
  });

  test('prepares the range of the name alone', async () => {
    const prepared = await editor.connection.sendRequest(
      PrepareRenameRequest.type,
      editor.at('main.route', 'gold {', 1),
    );
    expect(prepared).toMatchObject({ placeholder: 'gold' });
  });

  test('refuses words of the language, names of the catalogue, and names that are taken', async () => {
    const prepare = (find: string, plus = 1): Promise<string> =>
      refusal(editor.connection.sendRequest(PrepareRenameRequest.type, editor.at('main.route', find, plus)));
    expect(await prepare('group')).toContain('`group` is a word of the language');
    expect(await prepare('complexity')).toContain('`complexity` is a signal');
    expect(await prepare('affinity')).toContain('`affinity` is a modifier of the language');
    expect(await prepare('# a note', 4)).toContain('only names that the policy declares');
    const to = (newName: string): Promise<string> =>
      refusal(editor.connection.sendRequest(RenameRequest.type, { ...editor.at('main.route', 'hard = ', 1), newName }));
    expect(await to('when')).toContain('is a word of the language');
    expect(await to('complexity')).toContain('is already the name of a signal');
    expect(await to('shared')).toContain('is already the name of an import');
    expect(await to('two words')).toContain('is no name');
    expect(await to('')).toContain('empty');
    const tier = refusal(
      editor.connection.sendRequest(RenameRequest.type, {
        ...editor.at('main.route', 'tier "8B" {', 6),
        newName: '70B',
      }),
    );
    expect(await tier).toContain('already a tier "70B"');
  });
});

/** Semantic tokens as `text type modifiers`. */
const decode = (text: string, { data }: SemanticTokens): readonly string[] => {
  const { legend } = editor.initialized.capabilities.semanticTokensProvider as {
    readonly legend: { readonly tokenTypes: readonly string[]; readonly tokenModifiers: readonly string[] };
  };
  let line = 0;
  let character = 0;
  const found: string[] = [];
  for (let index = 0; index < data.length; index += 5) {
    const [lines = 0, characters = 0, length = 0, type = 0, bits = 0] = data.slice(index, index + 5);
    line += lines;
    character = lines === 0 ? character + characters : characters;
    const at = textOf(text, { start: { line, character }, end: { line, character: character + length } });
    const modifiers = legend.tokenModifiers.filter((_, bit) => (bits & (1 << bit)) !== 0);
    found.push([at, legend.tokenTypes[type], ...modifiers].join(' '));
  }
  return found;
};

describe('the look of a file', () => {
  test('semantic tokens say what names stand for', async () => {
    const tokens = await editor.connection.sendRequest(SemanticTokensRequest.type, {
      textDocument: { uri: editor.uri('main.route') },
    });
    const found = decode(MAIN, tokens ?? { data: [] });
    for (const one of [
      'import keyword',
      'shared namespace declaration',
      'tier type',
      'model property',
      '## Prompts that are hard. comment documentation',
      'hard variable declaration readonly',
      'complexity parameter defaultLibrary',
      '> operator',
      '50 number',
      'over_limit parameter defaultLibrary',
      'status macro defaultLibrary',
      'gold variable readonly',
      'least_tokens function defaultLibrary',
      '"hard goes up" string',
    ])
      expect(found).toContain(one);
  });

  test('a range has those of the whole that lie in it', async () => {
    const whole = decode(
      MAIN,
      (await editor.connection.sendRequest(SemanticTokensRequest.type, {
        textDocument: { uri: editor.uri('main.route') },
      })) ?? { data: [] },
    );
    const start = MAIN.indexOf('group');
    const end = MAIN.indexOf('default to');
    const range = { start: positionIn(MAIN, start), end: positionIn(MAIN, end) };
    const part = decode(
      MAIN,
      (await editor.connection.sendRequest(SemanticTokensRangeRequest.type, {
        textDocument: { uri: editor.uri('main.route') },
        range,
      })) ?? { data: [] },
    );
    expect(part[0]).toBe('group keyword');
    expect(whole.join('\n')).toContain(part.join('\n'));
  });

  test('folding, symbols of the document and of the folder', async () => {
    const folding = await editor.connection.sendRequest(FoldingRangeRequest.type, {
      textDocument: { uri: editor.uri('main.route') },
    });
    expect(folding).toContainEqual({ startLine: 12, endLine: 13 });
    expect(folding).toContainEqual({ startLine: 10, endLine: 11, kind: 'comment' });
    expect(folding).toContainEqual({ startLine: 18, endLine: 20 });
    const symbols = (await editor.connection.sendRequest(DocumentSymbolRequest.type, {
      textDocument: { uri: editor.uri('main.route') },
    })) as DocumentSymbol[];
    expect(symbols.map(({ name, detail }) => `${detail ?? ''} ${name}`)).toEqual([
      'import ./shared.route',
      'tier 8B',
      'tier 70B',
      'let hard',
      'reject over',
      'group paying',
      'route route',
      'default default',
      'test hard goes up',
    ]);
    expect(symbols.find(({ name }) => name === 'paying')?.children?.map(({ name }) => name)).toEqual(['hard']);
    const found = await editor.connection.sendRequest(WorkspaceSymbolRequest.type, { query: 'gld' });
    expect(found?.map(({ name }) => name)).toContain('gold');
  });

  test('inlay hints say types, labels, the default scorer and values', async () => {
    const hints = await editor.connection.sendRequest(InlayHintRequest.type, {
      textDocument: { uri: editor.uri('main.route') },
      range: { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } },
    });
    expect(
      hints?.map(
        ({ label, position }) => `${position.line}:${position.character} ${typeof label === 'string' ? label : ''}`,
      ),
    ).toEqual(['6:8 : bool', '15:5 "route 2"', '15:31 = 32768', '15:45 by least_tokens']);
  });
});

describe('edits', () => {
  test('formatting lays the file out, by range too', async () => {
    const text = 'route   "a"  to any   by least_tokens\r\ndefault   to any\r\n';
    const path = openText(text);
    const options = { tabSize: 2, insertSpaces: true };
    const edits = await editor.connection.sendRequest(DocumentFormattingRequest.type, {
      textDocument: { uri: editor.uri(path) },
      options,
    });
    const laidOut = applyEdits(text, edits ?? []);
    expect(laidOut.replaceAll('\r\n', '\n')).toBe('route "a" to any by least_tokens\ndefault to any\n');
    const range = { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } };
    const byRange = await editor.connection.sendRequest(DocumentRangeFormattingRequest.type, {
      textDocument: { uri: editor.uri(path) },
      range,
      options,
    });
    expect(applyEdits(text, byRange ?? [])).toBe(laidOut);
    expect(
      await editor.connection.sendRequest(DocumentFormattingRequest.type, {
        textDocument: { uri: editor.uri('main.route') },
        options,
      }),
    ).toEqual([]);
  });

  test('a quick fix, all fixes, and the allowance of a warning', async () => {
    const text = `${TIERS}route "a" when complexty > 50 to tier "70C"\nroute to any where load > 0.9\ndefault to tier "8B"\n`;
    const path = openText(text);
    const actions = async (find: string, only?: readonly string[]) => {
      const { textDocument, position } = editor.at(path, find, 1);
      const found = await editor.connection.sendRequest(CodeActionRequest.type, {
        textDocument,
        range: { start: position, end: position },
        context: { diagnostics: [], ...(only === undefined ? {} : { only: [...only] }) },
      });
      return (found ?? []).flatMap((action) => ('kind' in action ? [action] : []));
    };
    const quick = await actions('complexty', ['quickfix']);
    expect(quick.map(({ title }) => title)).toEqual(['Write `complexity`']);
    expect(quick[0]?.diagnostics?.[0]?.code).toBe('E0201');
    expect(applyEdits(text, quick[0]?.edit?.changes?.[editor.uri(path)] ?? [])).toContain('when complexity > 50');
    const all = await actions('define', ['source.fixAll']);
    const fixed = applyEdits(text, all[0]?.edit?.changes?.[editor.uri(path)] ?? []);
    expect(fixed).toContain('complexity > 50 to tier "70B"');
    expect(fixed).toContain('load > 90%');
    const late = openText(`${TIERS}default to tier "8B"\nroute "late" to tier "70B"\n`);
    const allowances = await editor.connection.sendRequest(CodeActionRequest.type, {
      textDocument: { uri: editor.uri(late) },
      range: { start: { line: 3, character: 0 }, end: { line: 3, character: 5 } },
      context: { diagnostics: [] },
    });
    const allow = (allowances ?? []).find(({ title }) => title === 'Allow W0501 here');
    const allowed = applyEdits(
      editor.text(late),
      (allow !== undefined && 'edit' in allow ? allow.edit?.changes?.[editor.uri(late)] : undefined) ?? [],
    );
    editor.replace(late, allowed);
    expect((await editor.findings(late)).diagnostics.map(({ code }) => code)).not.toContain('W0501');
  });

  test('code lenses name the commands of the extension', async () => {
    const lenses = await editor.connection.sendRequest(CodeLensRequest.type, {
      textDocument: { uri: editor.uri('main.route') },
    });
    const commands = lenses?.map(({ command }) => [command?.command, command?.arguments?.[1]]);
    expect(commands).toContainEqual(['signalbox.runTest', 'hard goes up']);
    expect(commands).toContainEqual(['signalbox.runTest', null]);
    expect(commands).toContainEqual(['signalbox.explain', 'hard']);
  });
});

describe('stale requests', () => {
  test('a request that is cancelled before it is worked on is refused as such', async () => {
    const [answer] = await editor.sendTogether([
      { method: 'textDocument/completion', params: editor.at('main.route', 'group', 0), isRequest: true },
      { method: '$/cancelRequest', params: 'first', isRequest: false },
    ]);
    expect(answer?.error?.code).toBe(LSPErrorCodes.RequestCancelled);
  });

  test('a request about a text that has changed since is refused, and the next is answered', async () => {
    const path = openText('route to any where ');
    const [answer] = await editor.sendTogether([
      { method: 'textDocument/completion', params: editor.at(path, 'where ', 6), isRequest: true },
      {
        method: 'textDocument/didChange',
        params: {
          textDocument: { uri: editor.uri(path), version: 2 },
          contentChanges: [{ text: 'route to any pick ' }],
        },
        isRequest: false,
      },
    ]);
    expect(answer?.error?.code).toBe(LSPErrorCodes.ContentModified);
    const found = await editor.connection.sendRequest(CompletionRequest.type, {
      textDocument: { uri: editor.uri(path) },
      position: { line: 0, character: 18 },
    });
    expect((found as CompletionItem[]).map(({ label }) => label)).toContain('best');
  });
});

describe('positions in UTF-16', () => {
  const prefix = '# 🙂 e\u0301 路线\n';
  test.each([
    ['LF', `${prefix}\tlet 	x = header["路🙂"] == "🙂🙂" and complexty > 1\ndefault to any\n`],
    [
      'CRLF',
      `${prefix}let y = 1\n\tlet x = header["路🙂"] == "🙂🙂" and complexty > y\ndefault to any\n`.replaceAll(
        '\n',
        '\r\n',
      ),
    ],
    ['a byte order mark', `\uFEFFlet x = header["路🙂"] == "🙂🙂" and complexty > 1\ndefault to any\n`],
    [
      'CR alone',
      `${prefix}let x = header["路🙂"] == "🙂🙂" and complexty > 1\ndefault to any\n`.replaceAll('\n', '\r'),
    ],
  ])('are right with emoji, wide characters, tabs and %s', async (_, text) => {
    const path = openText(text);
    const { diagnostics } = await editor.findings(path);
    const unknown = diagnostics.find(({ code }) => code === 'E0201');
    expect(textOf(text, unknown?.range ?? { start: positionIn(text, 0), end: positionIn(text, 0) })).toBe('complexty');
    expect(await hoverText(path, 'header')).toContain('signal header');
    const { position } = editor.at(path, 'complexty');
    editor.edit(path, { start: position, end: { ...position, character: position.character + 9 } }, 'complexity');
    expect((await editor.findings(path)).diagnostics.map(({ code }) => code)).not.toContain('E0201');
  });
});
