import type { Diagnostic, TextEdit } from './diagnostic.ts';

export interface AppliedFixes {
  readonly text: string;
  /** The findings whose fixes were made. */
  readonly applied: readonly Diagnostic[];
}

/**
 * Makes the fixes of the findings of one file. A fix of which an edit touches one already made is left out whole; run again
 * for what remains. Edits to other files are not made.
 */
export const applyFixes = (text: string, file: string, diagnostics: readonly Diagnostic[]): AppliedFixes => {
  const edits: TextEdit[] = [];
  const applied: Diagnostic[] = [];
  const collides = (edit: TextEdit): boolean =>
    edits.some((made) => edit.span.start <= made.span.end && made.span.start <= edit.span.end);
  for (const diagnostic of diagnostics) {
    const wanted = diagnostic.fix?.edits ?? [];
    if (wanted.length === 0 || wanted.some((edit) => edit.span.file !== file || collides(edit))) continue;
    edits.push(...wanted);
    applied.push(diagnostic);
  }
  let result = text;
  for (const { span, text: replacement } of edits.toSorted((a, b) => b.span.start - a.span.start)) {
    result = result.slice(0, span.start) + replacement + result.slice(span.end);
  }
  return { text: result, applied };
};
