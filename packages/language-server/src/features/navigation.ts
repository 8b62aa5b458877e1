import { hoverAt, signatureAt } from '@signalbox/policy';
import type { PolicyReference, SemanticModel, Span } from '@signalbox/policy';
import { DocumentHighlightKind, MarkupKind } from 'vscode-languageserver';
import type { DocumentHighlight, Hover, Location, SignatureHelp } from 'vscode-languageserver';
import { rangeOf } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

export const hover = (workspace: Workspace, path: string, offset: number): Hover | null => {
  const found = hoverAt(workspace.contextOf(path), path, offset);
  if (found === undefined) return null;
  const code = `\`\`\`route\n${found.title}\n\`\`\``;
  return {
    contents: { kind: MarkupKind.Markdown, value: found.doc === '' ? code : `${code}\n\n${found.doc}` },
    range: rangeOf(workspace.lines(path), found.span),
  };
};

export const signatureHelp = (workspace: Workspace, path: string, offset: number): SignatureHelp | null => {
  const found = signatureAt(workspace.contextOf(path), path, offset);
  if (found === undefined) return null;
  return {
    signatures: [
      {
        label: found.label,
        documentation: { kind: MarkupKind.Markdown, value: found.doc },
        parameters: found.parameters.map(([start, end]) => ({ label: [start, end] })),
      },
    ],
    activeSignature: 0,
    ...(found.active === undefined ? {} : { activeParameter: found.active }),
  };
};

const locationOf = (workspace: Workspace, span: Span): Location => ({
  uri: workspace.uri(span.file),
  range: rangeOf(workspace.lines(span.file), span),
});

/** The file that an `import` at the place names. */
const importedFile = (
  workspace: Workspace,
  model: SemanticModel,
  path: string,
  offset: number,
): Location | undefined => {
  for (const statement of model.tree(path)?.statements ?? []) {
    if (statement.kind !== 'import' || offset < statement.path.span.start || statement.path.span.end < offset) continue;
    const target = model.importTarget(path, statement);
    if (target !== undefined)
      return {
        uri: workspace.uri(target),
        range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } },
      };
  }
  return undefined;
};

export const definition = (workspace: Workspace, path: string, offset: number): Location | null => {
  const model = workspace.contextOf(path);
  const reference = model.referenceAt(path, offset);
  if (reference?.symbol.declaration !== undefined) return locationOf(workspace, reference.symbol.declaration);
  return importedFile(workspace, model, path, offset) ?? null;
};

/**
 * The places of the symbol at a place in every policy of the workspace that can name it, each once. `isCancelled` is asked between policies;
 * undefined where there is no symbol, or where it says so.
 */
export const referencesEverywhere = (
  workspace: Workspace,
  path: string,
  offset: number,
  isCancelled: () => boolean,
): { readonly own: PolicyReference; readonly all: readonly PolicyReference[] } | undefined => {
  const model = workspace.contextOf(path);
  const own = model.referenceAt(path, offset);
  if (own === undefined) return undefined;
  const { symbol } = own;
  const places = new Map<string, PolicyReference>();
  const collect = (from: SemanticModel): void => {
    for (const reference of from.referencesTo(symbol.key)) {
      const key = `${reference.span.file}:${reference.span.start}`;
      if (!places.has(key)) places.set(key, reference);
    }
  };
  collect(model);
  const declared = symbol.declaration;
  const others = declared === undefined ? workspace.policies() : workspace.dependents(declared.file);
  for (const other of others) {
    if (isCancelled()) return undefined;
    collect(workspace.model(other));
  }
  const all = [...places.values()].toSorted((a, b) =>
    a.span.file === b.span.file ? a.span.start - b.span.start : a.span.file < b.span.file ? -1 : 1,
  );
  return { own, all };
};

export const references = (
  workspace: Workspace,
  path: string,
  offset: number,
  includeDeclaration: boolean,
  isCancelled: () => boolean,
): Location[] =>
  (referencesEverywhere(workspace, path, offset, isCancelled)?.all ?? [])
    .filter(({ isDeclaration }) => includeDeclaration || !isDeclaration)
    .map(({ span }) => locationOf(workspace, span));

export const highlights = (workspace: Workspace, path: string, offset: number): DocumentHighlight[] => {
  const model = workspace.contextOf(path);
  const own = model.referenceAt(path, offset);
  if (own === undefined) return [];
  return model
    .references(path)
    .filter(({ symbol }) => symbol.key === own.symbol.key)
    .map(({ span, isDeclaration }) => ({
      range: rangeOf(workspace.lines(path), span),
      kind: isDeclaration ? DocumentHighlightKind.Write : DocumentHighlightKind.Read,
    }));
};
