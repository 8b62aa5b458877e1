import { createLineIndex } from '@signalbox/policy';
import type { Diagnostic, Span } from '@signalbox/policy';
import { POLICY_PATH } from './fleet-source.ts';

/** UTF-16 offsets in the policy, the end exclusive. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface TextChange extends Range {
  readonly text: string;
}

/** A diagnostic of the policy, in the words of `signalbox check`. */
export interface Finding extends Range {
  readonly code: string;
  readonly severity: 'error' | 'warning' | 'note';
  readonly message: string;
  readonly help?: string;
  /** From 1, the column in code points. */
  readonly line: number;
  readonly column: number;
  readonly labels: readonly (Range & { readonly message: string; readonly line: number })[];
  /** A change that is safe to make by machine. */
  readonly fix?: { readonly message: string; readonly changes: readonly TextChange[] };
}

/** What diagnostics say of the policy's one file, in the order given. */
export function findingsOf(diagnostics: readonly Diagnostic[], policy: string): readonly Finding[] {
  const lines = createLineIndex(policy);
  const isOwn = ({ file }: Span): boolean => file === POLICY_PATH;
  return diagnostics
    .filter(({ span }) => isOwn(span))
    .map(({ code, severity, message, help, span, labels, fix }) => {
      const place = lines.positionAt(span.start);
      return {
        code,
        severity,
        message,
        ...(help === undefined ? {} : { help }),
        ...offsetsOf(span),
        line: place.line,
        column: place.column,
        labels: labels
          .filter((label) => isOwn(label.span))
          .map((label) => ({
            message: label.message,
            ...offsetsOf(label.span),
            line: lines.positionAt(label.span.start).line,
          })),
        ...(fix === undefined || !fix.edits.every((edit) => isOwn(edit.span))
          ? {}
          : {
              fix: {
                message: fix.message,
                changes: fix.edits.map((edit) => ({ ...offsetsOf(edit.span), text: edit.text })),
              },
            }),
      };
    });
}

export function offsetsOf({ start, end }: Pick<Span, 'start' | 'end'>): Range {
  return { from: start, to: end };
}
