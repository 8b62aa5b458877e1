import type { Diagnostic, Severity } from './diagnostic.ts';
import { createLocator, type Sources } from './sources.ts';

const commands: Readonly<Record<Severity, string>> = { error: 'error', warning: 'warning', note: 'notice' };

const escapeData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

const escapeProperty = (text: string): string => escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');

/** The findings as workflow commands, one to a line, that a CI run shows beside the changed lines (GitHub Actions). */
export const renderAnnotations = (diagnostics: readonly Diagnostic[], sources: Sources): string => {
  const locator = createLocator(sources);
  return diagnostics
    .map(({ code, severity, message, span, help }) => {
      const { file, start, end } = locator.locate(span);
      // The end column of an annotation is inclusive.
      const place =
        start.line === end.line
          ? `,col=${start.column},endColumn=${Math.max(start.column, end.column - 1)}`
          : `,col=${start.column}`;
      const properties = `file=${escapeProperty(file)},line=${start.line},endLine=${end.line}${place},title=${code}`;
      return `::${commands[severity]} ${properties}::${escapeData(help === undefined ? message : `${message} (${help})`)}\n`;
    })
    .join('');
};
