import { completionsAt } from '@signalbox/policy';
import type { CompletionKind } from '@signalbox/policy';
import { CompletionItemKind, InsertTextFormat, MarkupKind } from 'vscode-languageserver';
import type { CompletionItem } from 'vscode-languageserver';
import { folderOf } from '../document-paths.ts';
import type { LanguageHost } from '../language-host.ts';
import { rangeOf } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

const KINDS: { readonly [kind in CompletionKind]: CompletionItemKind } = {
  keyword: CompletionItemKind.Keyword,
  snippet: CompletionItemKind.Snippet,
  signal: CompletionItemKind.Variable,
  property: CompletionItemKind.Property,
  scorer: CompletionItemKind.Function,
  picker: CompletionItemKind.Function,
  order: CompletionItemKind.Function,
  function: CompletionItemKind.Function,
  let: CompletionItemKind.Constant,
  modifier: CompletionItemKind.Keyword,
  key: CompletionItemKind.Field,
  value: CompletionItemKind.EnumMember,
  unit: CompletionItemKind.Unit,
  name: CompletionItemKind.Value,
  type: CompletionItemKind.TypeParameter,
  file: CompletionItemKind.File,
  module: CompletionItemKind.Module,
};

/** A snippet without its places to fill, for clients that have none. */
const plain = (snippet: string): string =>
  snippet
    .replaceAll(/\$\{\d+\|([^,|]*)[^}]*\}/g, '$1')
    .replaceAll(/\$\{\d+:([^}]*)\}/g, '$1')
    .replaceAll(/(?<!\\)\$\d/g, '')
    .replaceAll(/\\(.)/g, '$1');

/** The other policies as an import in `path` would name them; those under its folder only, for imports do not leave it. */
const importable = (workspace: Workspace, path: string): readonly string[] => {
  const folder = `${folderOf(path)}/`;
  return workspace
    .policies()
    .filter((other) => other !== path && other.startsWith(folder))
    .map((other) => `./${other.slice(folder.length)}`)
    .toSorted();
};

export const completionAt = (
  host: LanguageHost,
  workspace: Workspace,
  path: string,
  offset: number,
  hasSnippets: boolean,
): CompletionItem[] => {
  const lines = workspace.lines(path);
  const found = completionsAt(workspace.contextOf(path), path, offset, {
    files: importable(workspace, path),
    packages: host.pluginPackages(folderOf(path)),
  });
  return found.map(({ label, kind, detail, doc, insert, isSnippet, replace }, index) => ({
    label,
    kind: KINDS[kind],
    sortText: String(index).padStart(4, '0'),
    filterText: label,
    insertTextFormat: isSnippet && hasSnippets ? InsertTextFormat.Snippet : InsertTextFormat.PlainText,
    textEdit: { range: rangeOf(lines, replace), newText: isSnippet && !hasSnippets ? plain(insert) : insert },
    ...(detail === undefined ? {} : { detail }),
    ...(doc === undefined || doc === '' ? {} : { documentation: { kind: MarkupKind.Markdown, value: doc } }),
  }));
};
