import type { Span } from '../syntax/span.ts';
import { codePage, diagnosticCodes, type DiagnosticCode } from './codes.ts';
import type { Diagnostic } from './diagnostic.ts';
import { createLocator, type Sources } from './sources.ts';

export interface SarifOptions {
  /** Version of the program that reports. */
  readonly toolVersion: string;
}

interface Region {
  readonly startLine: number;
  readonly startColumn: number;
  readonly endLine: number;
  readonly endColumn: number;
}

const toUri = (file: string): string =>
  /^[a-z][a-z0-9+.-]+:/i.test(file)
    ? file
    : encodeURI(file.replaceAll('\\', '/').replace(/^\.\//, '')).replaceAll('#', '%23').replaceAll('?', '%3F');

/**
 * The findings as SARIF 2.1.0 (OASIS standard), with one rule for each code that occurs, related locations for labels, and
 * fixes. Columns are in code points, as `columnKind` says.
 */
export const renderSarif = (
  diagnostics: readonly Diagnostic[],
  sources: Sources,
  { toolVersion }: SarifOptions,
): string => {
  const locator = createLocator(sources);
  const region = (span: Span): Region => {
    const { start, end } = locator.locate(span);
    return { startLine: start.line, startColumn: start.column, endLine: end.line, endColumn: end.column };
  };
  const physical = (span: Span): object => ({
    physicalLocation: { artifactLocation: { uri: toUri(span.file) }, region: region(span) },
  });
  const codes: readonly DiagnosticCode[] = [...new Set(diagnostics.map(({ code }) => code))].toSorted();

  const rules = codes.map((code) => {
    const { title, explanation, severity } = diagnosticCodes[code];
    return {
      id: code,
      shortDescription: { text: title },
      fullDescription: { text: explanation },
      help: { text: `See ${codePage(code)}.` },
      defaultConfiguration: { level: severity },
    };
  });

  const results = diagnostics.map(({ code, severity, message, span, labels, help, fix }) => ({
    ruleId: code,
    ruleIndex: codes.indexOf(code),
    level: severity,
    message: { text: help === undefined ? message : `${message} (${help})` },
    locations: [physical(span)],
    ...(labels.length === 0
      ? {}
      : {
          relatedLocations: labels.map((label, index) => ({
            id: index + 1,
            ...physical(label.span),
            message: { text: label.message },
          })),
        }),
    ...(fix === undefined
      ? {}
      : {
          fixes: [
            {
              description: { text: fix.message },
              artifactChanges: [...Map.groupBy(fix.edits, (edit) => edit.span.file)].map(([file, edits]) => ({
                artifactLocation: { uri: toUri(file) },
                replacements: edits.map((edit) => ({
                  deletedRegion: region(edit.span),
                  ...(edit.text === '' ? {} : { insertedContent: { text: edit.text } }),
                })),
              })),
            },
          ],
        }),
  }));

  const report = {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'signalbox', version: toolVersion, rules } },
        columnKind: 'unicodeCodePoints',
        results,
      },
    ],
  };
  return `${JSON.stringify(report, null, 2)}\n`;
};
