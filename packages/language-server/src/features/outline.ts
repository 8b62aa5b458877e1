import type { CommentNode, FileNode, Span, StatementNode } from '@signalbox/policy';
import { FoldingRangeKind, SymbolKind } from 'vscode-languageserver';
import type { DocumentSymbol, FoldingRange, WorkspaceSymbol } from 'vscode-languageserver';
import { rangeOf } from '../text-document.ts';
import type { TextLines } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

interface Entry {
  readonly name: string;
  readonly detail: string;
  readonly kind: SymbolKind;
  readonly selection: Span;
}

const entryOf = (statement: StatementNode): Entry => {
  switch (statement.kind) {
    case 'import':
      return { name: statement.path.value, detail: 'import', kind: SymbolKind.Module, selection: statement.path.span };
    case 'use':
      return {
        name: statement.package.value,
        detail: 'use',
        kind: SymbolKind.Package,
        selection: statement.package.span,
      };
    case 'define':
      return {
        name: statement.name?.value ?? statement.definedKind.text,
        detail: statement.definedKind.text,
        kind: SymbolKind.Object,
        selection: statement.name?.span ?? statement.definedKind.span,
      };
    case 'let':
      return { name: statement.name.text, detail: 'let', kind: SymbolKind.Constant, selection: statement.name.span };
    case 'group':
      return {
        name: statement.label.value,
        detail: 'group',
        kind: SymbolKind.Namespace,
        selection: statement.label.span,
      };
    case 'route':
      return {
        name: statement.label?.value ?? 'route',
        detail: 'route',
        kind: SymbolKind.Function,
        selection: statement.label?.span ?? statement.head,
      };
    case 'default':
      return { name: 'default', detail: 'default', kind: SymbolKind.Function, selection: statement.head };
    case 'admission':
      return {
        name: statement.label?.value ?? statement.verb,
        detail: statement.verb,
        kind: SymbolKind.Event,
        selection: statement.label?.span ?? statement.head,
      };
    case 'test':
      return { name: statement.label.value, detail: 'test', kind: SymbolKind.Method, selection: statement.label.span };
    case 'ensure':
      return {
        name: statement.label.value,
        detail: 'ensure',
        kind: SymbolKind.Interface,
        selection: statement.label.span,
      };
    case 'broken':
      return {
        name: statement.label?.value ?? statement.keyword ?? '…',
        detail: 'not readable',
        kind: SymbolKind.Null,
        selection: statement.head,
      };
  }
};

const shownName = (name: string): string => (name.trim() === '' ? '""' : name);

const childrenOf = (statement: StatementNode): readonly StatementNode[] =>
  statement.kind === 'group' || statement.kind === 'broken' ? statement.statements : [];

const within = (outer: Span, inner: Span): Span => ({
  ...inner,
  start: Math.max(outer.start, inner.start),
  end: Math.min(outer.end, inner.end),
});

export const documentSymbols = (lines: TextLines, statements: readonly StatementNode[]): DocumentSymbol[] =>
  statements.map((statement) => {
    const { name, detail, kind, selection } = entryOf(statement);
    return {
      name: shownName(name),
      detail,
      kind,
      range: rangeOf(lines, statement.span),
      selectionRange: rangeOf(lines, within(statement.span, selection)),
      children: documentSymbols(lines, childrenOf(statement)),
    };
  });

/** Whether the letters of a query stand in a name in this order. */
const matchesQuery = (name: string, query: string): boolean => {
  let at = 0;
  const lower = name.toLowerCase();
  for (const sign of query.toLowerCase()) {
    at = lower.indexOf(sign, at) + 1;
    if (at === 0) return false;
  }
  return true;
};

const SEARCHED: ReadonlySet<StatementNode['kind']> = new Set<StatementNode['kind']>([
  'define',
  'let',
  'group',
  'route',
  'admission',
  'test',
  'ensure',
]);
const MAX_SYMBOLS = 500;

/** Named statements of all policies whose name holds the letters of the query. */
export const workspaceSymbols = (
  workspace: Workspace,
  query: string,
  isCancelled: () => boolean,
): WorkspaceSymbol[] => {
  const found: WorkspaceSymbol[] = [];
  for (const path of workspace.policies()) {
    if (isCancelled() || found.length >= MAX_SYMBOLS) break;
    const visit = (statements: readonly StatementNode[]): void => {
      for (const statement of statements) {
        visit(childrenOf(statement));
        const { name, detail, kind, selection } = entryOf(statement);
        if (!SEARCHED.has(statement.kind) || !matchesQuery(name, query)) continue;
        found.push({
          name: shownName(name),
          kind,
          containerName: detail,
          location: { uri: workspace.uri(path), range: rangeOf(workspace.lines(path), selection) },
        });
      }
    };
    visit(workspace.tree(path)?.statements ?? []);
  }
  return found.slice(0, MAX_SYMBOLS);
};

/** Comments that stand on lines directly below one another. */
const commentBlocks = (lines: TextLines, comments: readonly CommentNode[]): readonly FoldingRange[] => {
  const blocks: { start: number; end: number }[] = [];
  for (const { span } of comments) {
    const { start } = rangeOf(lines, span);
    const isAlone = lines.text.slice(lines.index.lineStart(start.line + 1), span.start).trim() === '';
    if (!isAlone) continue;
    const last = blocks.at(-1);
    if (last !== undefined && last.end + 1 === start.line) last.end = start.line;
    else blocks.push({ start: start.line, end: start.line });
  }
  return blocks
    .filter(({ start, end }) => end > start)
    .map(({ start, end }) => ({ startLine: start, endLine: end, kind: FoldingRangeKind.Comment }));
};

const importBlocks = (lines: TextLines, statements: readonly StatementNode[]): readonly FoldingRange[] => {
  const imports = statements.filter(({ kind }) => kind === 'import' || kind === 'use');
  const [first] = imports;
  const last = imports.at(-1);
  if (first === undefined || last === undefined || imports.length < 2) return [];
  const start = rangeOf(lines, first.span).start.line;
  const end = rangeOf(lines, last.span).end.line;
  return end > start ? [{ startLine: start, endLine: end, kind: FoldingRangeKind.Imports }] : [];
};

export const foldingRanges = (lines: TextLines, file: FileNode): FoldingRange[] => {
  const ranges: FoldingRange[] = [];
  const visit = (statements: readonly StatementNode[]): void => {
    for (const statement of statements) {
      const { start, end } = rangeOf(lines, statement.span);
      // The closing brace of a block stays in sight.
      const endLine = lines.text[statement.span.end - 1] === '}' ? end.line - 1 : end.line;
      if (endLine > start.line) ranges.push({ startLine: start.line, endLine });
      visit(childrenOf(statement));
    }
  };
  visit(file.statements);
  return [...ranges, ...commentBlocks(lines, file.comments), ...importBlocks(lines, file.statements)];
};
