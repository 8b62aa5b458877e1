import { codePage } from '@signalbox/policy';
import type { Diagnostic } from '@signalbox/policy';
import { DiagnosticSeverity, DiagnosticTag } from 'vscode-languageserver';
import type { Diagnostic as ProtocolDiagnostic } from 'vscode-languageserver';
import { rangeOf } from '../text-document.ts';
import type { Workspace } from '../workspace.ts';

const SEVERITIES: { readonly [severity in Diagnostic['severity']]: DiagnosticSeverity } = {
  error: DiagnosticSeverity.Error,
  warning: DiagnosticSeverity.Warning,
  note: DiagnosticSeverity.Information,
};

/** Findings about text that could be taken out: what no request reaches, what nothing uses. */
const UNNECESSARY: ReadonlySet<string> = new Set([
  'W0501',
  'W0502',
  'W0507',
  'W0508',
  'W0509',
  'W0517',
  'W0520',
  'E0412',
]);

/** A finding as the protocol has it. `docsUrl` is the address below which the pages of the codes lie; without it they are not linked. */
export const toProtocolDiagnostic = (
  workspace: Workspace,
  diagnostic: Diagnostic,
  docsUrl: string | undefined,
): ProtocolDiagnostic => {
  const { span, code, severity, message, help, labels } = diagnostic;
  return {
    range: rangeOf(workspace.lines(span.file), span),
    severity: SEVERITIES[severity],
    code,
    source: 'signalbox',
    message: help === undefined ? message : `${message}\nhelp: ${help}`,
    ...(docsUrl === undefined ? {} : { codeDescription: { href: `${docsUrl.replace(/\/$/, '')}/${codePage(code)}` } }),
    ...(UNNECESSARY.has(code) ? { tags: [DiagnosticTag.Unnecessary] } : {}),
    ...(labels.length === 0
      ? {}
      : {
          relatedInformation: labels.map((label) => ({
            message: label.message,
            location: {
              uri: workspace.uri(label.span.file),
              range: rangeOf(workspace.lines(label.span.file), label.span),
            },
          })),
        }),
  };
};
