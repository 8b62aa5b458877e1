import { applyFixes, formatPolicy } from '@signalbox/policy';
import type { Diagnostic, TextEdit as PolicyEdit } from '@signalbox/policy';
import { CodeActionKind } from 'vscode-languageserver';
import type { CodeAction, TextEdit, WorkspaceEdit } from 'vscode-languageserver';
import { rangeOf } from '../text-document.ts';
import type { TextLines } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';
import { toProtocolDiagnostic } from './diagnostics.ts';

/** The one edit that turns a text into another: what differs between their common beginning and end. */
const differenceOf = (lines: TextLines, to: string): TextEdit[] => {
  const from = lines.text;
  if (from === to) return [];
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from[start] === to[start]) start += 1;
  let end = 0;
  while (end < most - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end += 1;
  // A line break of two characters, or a character of two units, is not cut in half.
  while (start > 0 && isHalf(from, start)) start -= 1;
  while (end > 0 && isHalf(from, from.length - end)) end -= 1;
  return [{ range: rangeOf(lines, { start, end: from.length - end }), newText: to.slice(start, to.length - end) }];
};

const isHalf = (text: string, offset: number): boolean =>
  (text[offset - 1] === '\r' && text[offset] === '\n') || /[\uD800-\uDBFF]/.test(text[offset - 1] ?? '');

/** The edits that lay a file out. A file whose braces do not pair up is left as it is. */
export const formatting = (workspace: Workspace, path: string): TextEdit[] =>
  differenceOf(workspace.lines(path), formatPolicy(workspace.text(path) ?? '', { file: path }).text);

const editsOf = (workspace: Workspace, edits: readonly PolicyEdit[]): WorkspaceEdit => {
  const changes: { [uri: string]: TextEdit[] } = {};
  for (const { span, text } of edits)
    (changes[workspace.uri(span.file)] ??= []).push({
      range: rangeOf(workspace.lines(span.file), span),
      newText: text,
    });
  return { changes };
};

/** An annotation on the statement that lets a warning stand. */
const allowAction = (workspace: Workspace, path: string, diagnostic: Diagnostic): CodeAction | undefined => {
  if (diagnostic.severity !== 'warning') return undefined;
  const holds = (span: { readonly start: number; readonly end: number }): boolean =>
    span.start <= diagnostic.span.start && diagnostic.span.end <= span.end;
  let statement = workspace.tree(path)?.statements.find(({ span }) => holds(span));
  while (statement?.kind === 'group') {
    const inner = statement.statements.find(({ span }) => holds(span));
    if (inner === undefined) break;
    statement = inner;
  }
  if (statement === undefined || statement.kind === 'broken') return undefined;
  const lines = workspace.lines(path);
  const { start } = rangeOf(lines, statement.span);
  const indent = /^[ \t]*/.exec(lines.text.slice(lines.index.lineStart(start.line + 1)))?.[0] ?? '';
  return {
    title: `Allow ${diagnostic.code} here`,
    kind: CodeActionKind.QuickFix,
    edit: {
      changes: {
        [workspace.uri(path)]: [
          {
            range: { start, end: start },
            newText: `@allow(${diagnostic.code}, "say why")\n${start.character === 0 ? '' : indent}`,
          },
        ],
      },
    },
  };
};

export interface ActionRequest {
  readonly range: { readonly start: number; readonly end: number };
  /** Kinds that are wanted; absent: all. */
  readonly only?: readonly string[];
  readonly docsUrl: string | undefined;
}

const FIX_ALL = `${CodeActionKind.SourceFixAll}.signalbox`;

const isWanted = (kind: string, only: readonly string[] | undefined): boolean =>
  only === undefined || only.some((wanted) => kind === wanted || kind.startsWith(`${wanted}.`));

/** Fixes of the findings in a range, all fixes of the file, and allowances of warnings. */
export const codeActions = (
  workspace: Workspace,
  path: string,
  diagnostics: readonly Diagnostic[],
  { range, only, docsUrl }: ActionRequest,
): CodeAction[] => {
  const actions: CodeAction[] = [];
  if (isWanted(CodeActionKind.QuickFix, only)) {
    for (const diagnostic of diagnostics) {
      if (diagnostic.span.end < range.start || range.end < diagnostic.span.start) continue;
      const reported = [toProtocolDiagnostic(workspace, diagnostic, docsUrl)];
      if (diagnostic.fix !== undefined) {
        const { message, edits } = diagnostic.fix;
        const title = message.charAt(0).toUpperCase() + message.slice(1);
        actions.push({
          title,
          kind: CodeActionKind.QuickFix,
          diagnostics: reported,
          isPreferred: true,
          edit: editsOf(workspace, edits),
        });
      }
      const allow = allowAction(workspace, path, diagnostic);
      if (allow !== undefined) actions.push({ ...allow, diagnostics: reported });
    }
  }
  if (isWanted(FIX_ALL, only)) {
    const { applied } = applyFixes(workspace.text(path) ?? '', path, diagnostics);
    const edits = applied.flatMap(({ fix }) => fix?.edits ?? []);
    if (edits.length > 0)
      actions.push({ title: 'Make all safe fixes', kind: FIX_ALL, edit: editsOf(workspace, edits) });
  }
  return actions;
};

export const codeActionKinds: readonly string[] = [CodeActionKind.QuickFix, FIX_ALL];
