import type { Span } from '../syntax/span.ts';
import { severityOf, type DiagnosticCode } from './codes.ts';

export type Severity = 'error' | 'warning' | 'note';

/** A second place that matters, with a few words on why: "first matched here". */
export interface DiagnosticLabel {
  readonly span: Span;
  readonly message: string;
}

/** Replace the text of `span` by `text`; an empty span inserts, an empty text deletes. */
export interface TextEdit {
  readonly span: Span;
  readonly text: string;
}

/** A change that is safe to make by machine. The edits do not overlap and are all to be made. */
export interface DiagnosticFix {
  readonly message: string;
  readonly edits: readonly TextEdit[];
}

/** One finding. `message` is the headline: one line, no full stop, the user's words in backquotes. */
export interface Diagnostic {
  readonly code: DiagnosticCode;
  readonly severity: Severity;
  readonly message: string;
  readonly span: Span;
  readonly labels: readonly DiagnosticLabel[];
  readonly help?: string;
  readonly fix?: DiagnosticFix;
}

export interface DiagnosticDetails {
  readonly labels?: readonly DiagnosticLabel[];
  readonly help?: string;
  readonly fix?: DiagnosticFix;
  /** In place of the code's own severity. */
  readonly severity?: Severity;
}

export const createDiagnostic = (
  code: DiagnosticCode,
  span: Span,
  message: string,
  details: DiagnosticDetails = {},
): Diagnostic => ({
  code,
  severity: details.severity ?? severityOf(code),
  message,
  span,
  labels: details.labels ?? [],
  ...(details.help === undefined ? {} : { help: details.help }),
  ...(details.fix === undefined ? {} : { fix: details.fix }),
});

export const hasErrors = (diagnostics: readonly Diagnostic[]): boolean =>
  diagnostics.some((diagnostic) => diagnostic.severity === 'error');

/** File by file in the order in which the files first appear, then by place; stable. */
export const sortDiagnostics = (diagnostics: readonly Diagnostic[]): readonly Diagnostic[] => {
  const order = new Map<string, number>();
  for (const { span } of diagnostics) if (!order.has(span.file)) order.set(span.file, order.size);
  const rank = (diagnostic: Diagnostic): number => order.get(diagnostic.span.file) ?? 0;
  return diagnostics.toSorted((a, b) => rank(a) - rank(b) || a.span.start - b.span.start || a.span.end - b.span.end);
};
