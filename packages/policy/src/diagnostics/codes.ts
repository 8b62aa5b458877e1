import { destinationCodes } from './codes/destination-codes.ts';
import { lintCodes } from './codes/lint-codes.ts';
import { nameCodes } from './codes/name-codes.ts';
import { pluginCodes } from './codes/plugin-codes.ts';
import { syntaxCodes } from './codes/syntax-codes.ts';
import { typeCodes } from './codes/type-codes.ts';

/**
 * What is said of a code on its page. `bad` is a policy that gives the code (or a comment that describes one), `good` the
 * same without it.
 */
export interface CodeEntry {
  readonly severity: 'error' | 'warning' | 'note';
  readonly title: string;
  readonly explanation: string;
  readonly bad: string;
  readonly good: string;
}

export type DiagnosticCode =
  | keyof typeof syntaxCodes
  | keyof typeof nameCodes
  | keyof typeof typeCodes
  | keyof typeof destinationCodes
  | keyof typeof pluginCodes
  | keyof typeof lintCodes;

/** Every code of the language, in order. A retired code is never given another meaning. */
export const diagnosticCodes: Readonly<Record<DiagnosticCode, CodeEntry>> = {
  ...syntaxCodes,
  ...nameCodes,
  ...typeCodes,
  ...destinationCodes,
  ...pluginCodes,
  ...lintCodes,
};

export const isDiagnosticCode = (code: string): code is DiagnosticCode => Object.hasOwn(diagnosticCodes, code);

export const severityOf = (code: DiagnosticCode): CodeEntry['severity'] => diagnosticCodes[code].severity;

/** The page of a code, below the root of the documentation. */
export const codePage = (code: DiagnosticCode): string => `docs/reference/diagnostics/${code}.md`;

const indent = (text: string): string => text.replaceAll(/^/gm, '    ');

/** What `explain-code` prints: title, explanation, an example that gives the code and one that does not. */
export const explainCode = (code: DiagnosticCode): string => {
  const { severity, title, explanation, bad, good } = diagnosticCodes[code];
  return `${severity}[${code}]: ${title}\n\n${explanation}\n\nGives ${code}:\n\n${indent(bad)}\n\nIs right:\n\n${indent(good)}\n`;
};
