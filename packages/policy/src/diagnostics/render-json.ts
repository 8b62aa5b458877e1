import type { Span } from '../syntax/span.ts';
import type { Diagnostic } from './diagnostic.ts';
import { createLocator, type Sources } from './sources.ts';

/** A place in the JSON form: lines and columns from 1, columns in code points, `end` exclusive; offsets in UTF-16 code units. */
export interface JsonPlace {
  readonly file: string;
  readonly start: { readonly line: number; readonly column: number; readonly offset: number };
  readonly end: { readonly line: number; readonly column: number; readonly offset: number };
}

export interface JsonDiagnostic extends JsonPlace {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly labels: readonly (JsonPlace & { readonly message: string })[];
  readonly help?: string;
  readonly fix?: { readonly message: string; readonly edits: readonly (JsonPlace & { readonly text: string })[] };
}

export interface JsonReport {
  readonly version: 1;
  readonly errors: number;
  readonly warnings: number;
  readonly diagnostics: readonly JsonDiagnostic[];
}

/** The findings as data for other programs. The form is part of the contract of the command line. */
export const toJsonReport = (diagnostics: readonly Diagnostic[], sources: Sources): JsonReport => {
  const locator = createLocator(sources);
  const place = (span: Span): JsonPlace => {
    const { file, start, end } = locator.locate(span);
    return { file, start: { ...start, offset: span.start }, end: { ...end, offset: span.end } };
  };
  return {
    version: 1,
    errors: diagnostics.filter(({ severity }) => severity === 'error').length,
    warnings: diagnostics.filter(({ severity }) => severity === 'warning').length,
    diagnostics: diagnostics.map(({ code, severity, message, span, labels, help, fix }) => ({
      code,
      severity,
      message,
      ...place(span),
      labels: labels.map((label) => ({ ...place(label.span), message: label.message })),
      ...(help === undefined ? {} : { help }),
      ...(fix === undefined
        ? {}
        : {
            fix: { message: fix.message, edits: fix.edits.map((edit) => ({ ...place(edit.span), text: edit.text })) },
          }),
    })),
  };
};

export const renderJson = (diagnostics: readonly Diagnostic[], sources: Sources): string =>
  `${JSON.stringify(toJsonReport(diagnostics, sources), null, 2)}\n`;
