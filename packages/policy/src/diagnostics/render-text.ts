import type { Span } from '../syntax/span.ts';
import type { Diagnostic, DiagnosticLabel, Severity } from './diagnostic.ts';
import { displayWidth, tabWidth, withoutControls } from './display-width.ts';
import { createLocator, type Locator, type Sources } from './sources.ts';

export interface TextOptions {
  /** Colour by ANSI escapes. */
  readonly color?: boolean;
}

type Style = 'bold' | 'red' | 'yellow' | 'cyan' | 'blue' | 'green';
type Paint = (style: Style, text: string) => string;

const ansi: Readonly<Record<Style, string>> = {
  bold: '1',
  red: '1;31',
  yellow: '1;33',
  cyan: '1;36',
  blue: '34',
  green: '32',
};
const severityStyle: Readonly<Record<Severity, Style>> = { error: 'red', warning: 'yellow', note: 'cyan' };

interface Mark {
  readonly line: number;
  /** Columns of the terminal left of the mark. */
  readonly left: number;
  readonly width: number;
  readonly primary: boolean;
  readonly message: string;
}

const expandTabs = (text: string): string => text.replaceAll('\t', ' '.repeat(tabWidth));

/** What is shown of a line: all of it, or of a very long one the part about a place, with a sign where it was cut. */
interface ShownLine {
  readonly text: string;
  /** Offset in the line of what is shown, less the sign in front. */
  readonly offset: number;
}

/** Lines up to here are shown whole, in UTF-16 code units; of longer ones a part that is shorter. */
const longestLine = 400;
const before = 100;
const behind = 200;

const isLowSurrogate = (text: string, at: number): boolean => /[\uDC00-\uDFFF]/.test(text.charAt(at));

const shownLine = (text: string, at: number): ShownLine => {
  if (text.length <= longestLine) return { text, offset: 0 };
  let from = Math.max(0, Math.min(at, text.length) - before);
  let to = Math.min(text.length, from + before + behind);
  if (isLowSurrogate(text, from)) from -= 1;
  if (isLowSurrogate(text, to)) to += 1;
  const [cutBefore, cutBehind] = [from > 0 ? '…' : '', to < text.length ? '…' : ''];
  return { text: cutBefore + text.slice(from, to) + cutBehind, offset: from - cutBefore.length };
};

/** The part of the line of a span that is shown for it. */
const shownFor = (span: Span, locator: Locator): ShownLine => {
  const index = locator.indexOf(span.file);
  const { line } = index.positionAt(span.start);
  return shownLine(index.lineText(line), span.start - index.offsetAt({ line, column: 1 }));
};

const toMark = (span: Span, primary: boolean, message: string, locator: Locator, shown: ShownLine): Mark => {
  const index = locator.indexOf(span.file);
  const { line } = index.positionAt(span.start);
  const { text } = shown;
  const lineOffset = index.offsetAt({ line, column: 1 }) + shown.offset;
  const inside = (offset: number): number => Math.min(Math.max(offset - lineOffset, 0), text.length);
  const from = inside(span.start);
  const to = Math.max(inside(span.end), from);
  const goesOn = span.end - lineOffset > text.length + 2;
  return {
    line,
    left: displayWidth(withoutControls(text.slice(0, from))),
    width: Math.max(1, displayWidth(withoutControls(text.slice(from, to)))),
    primary,
    message: goesOn ? `${message}${message === '' ? '' : ' '}…` : message,
  };
};

/** Marks in one file with what is shown of their lines; of a line the first mark decides. */
const toMarks = (
  places: readonly { readonly span: Span; readonly primary: boolean; readonly message: string }[],
  locator: Locator,
): { readonly marks: readonly Mark[]; readonly lines: ReadonlyMap<number, ShownLine> } => {
  const lines = new Map<number, ShownLine>();
  const marks = places.map(({ span, primary, message }) => {
    const { line } = locator.locate(span).start;
    const shown = lines.get(line) ?? shownFor(span, locator);
    lines.set(line, shown);
    return toMark(span, primary, message, locator, shown);
  });
  return { marks, lines };
};

const renderExcerpt = (
  { marks, lines: shown }: ReturnType<typeof toMarks>,
  gutter: number,
  paint: Paint,
  style: Style,
): readonly string[] => {
  const lines: string[] = [];
  const byLine = Map.groupBy(marks, (mark) => mark.line);
  const empty = `${' '.repeat(gutter)} ${paint('blue', '|')}`;
  let last: number | undefined;
  for (const [line, onLine] of [...byLine].toSorted(([a], [b]) => a - b)) {
    if (last !== undefined && line > last + 1) lines.push(paint('blue', '...'));
    last = line;
    const source = expandTabs(withoutControls(shown.get(line)?.text ?? ''));
    lines.push(`${paint('blue', `${String(line).padStart(gutter)} |`)} ${source}`.trimEnd());
    for (const mark of onLine.toSorted((a, b) => Number(b.primary) - Number(a.primary) || b.left - a.left)) {
      const sign = (mark.primary ? '^' : '-').repeat(mark.width);
      const text = mark.message === '' ? sign : `${sign} ${mark.message}`;
      lines.push(`${empty} ${' '.repeat(mark.left)}${paint(mark.primary ? style : 'blue', withoutControls(text))}`);
    }
  }
  return lines;
};

const renderOne = (diagnostic: Diagnostic, locator: Locator, known: Sources, paint: Paint): string => {
  const { code, severity, message, span, labels, help, fix } = diagnostic;
  const style = severityStyle[severity];
  const { start } = locator.locate(span);
  const here = labels.filter((label) => label.span.file === span.file);
  const elsewhere = labels.filter((label) => label.span.file !== span.file);
  const allLines = [span, ...labels.map((label) => label.span)].map((place) => locator.locate(place).start.line);
  const gutter = String(Math.max(...allLines)).length;
  const margin = ' '.repeat(gutter);
  const bar = `${margin} ${paint('blue', '|')}`;

  const lines = [
    `${paint(style, `${severity}[${code}]`)}${paint('bold', `: ${withoutControls(message)}`)}`,
    `${margin}${paint('blue', '-->')} ${withoutControls(span.file)}:${start.line}:${start.column}`,
  ];
  if (known.has(span.file)) {
    const places = [
      { span, primary: true, message: '' },
      ...here.map((label) => ({ span: label.span, primary: false, message: label.message })),
    ];
    lines.push(bar, ...renderExcerpt(toMarks(places, locator), gutter, paint, style));
  }
  for (const label of elsewhere) {
    const at = locator.locate(label.span).start;
    lines.push(`${margin}${paint('blue', ':::')} ${withoutControls(label.span.file)}:${at.line}:${at.column}`);
    if (known.has(label.span.file)) {
      const places = [{ span: label.span, primary: false, message: label.message }];
      lines.push(bar, ...renderExcerpt(toMarks(places, locator), gutter, paint, style));
    } else lines.push(`${margin}     ${withoutControls(label.message)}`);
  }
  if (help !== undefined || fix !== undefined) lines.push(bar);
  if (help !== undefined)
    lines.push(`${margin} ${paint('blue', '=')} ${paint('bold', 'help')}: ${withoutControls(help)}`);
  if (fix !== undefined)
    lines.push(`${margin} ${paint('blue', '=')} ${paint('green', 'fix')}: ${withoutControls(fix.message)}`);
  return lines.join('\n');
};

/** The sources with every text that a finding calls a secret replaced by as many asterisks, on whatever line it is shown. */
const withoutSecrets = (diagnostics: readonly Diagnostic[], sources: Sources): Sources => {
  const masked = new Map(sources);
  for (const { code, span } of diagnostics) {
    const text = masked.get(span.file);
    if (code !== 'E0513' || text === undefined) continue;
    const secret = text.slice(span.start, span.end);
    const hidden = secret.includes('"')
      ? secret.replaceAll(
          /"((?:\\.|[^"\\\r\n])*)("|$)/g,
          (_all, inner: string, end: string) => `"${'*'.repeat(inner.length)}${end}`,
        )
      : secret.replaceAll(/\S/g, '*');
    masked.set(span.file, text.slice(0, span.start) + hidden + text.slice(span.end));
  }
  return masked;
};

const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

/**
 * The findings for people: headline, place, the line with carets under it, secondary labels, help, fix; a count at the end.
 * Carets are right under tabs, wide characters and emoji. Control characters of the source are shown as U+FFFD, so that a
 * policy cannot drive the terminal; secrets that were written into it are not repeated. Empty for no findings; ends with a line break otherwise.
 */
export const renderText = (
  diagnostics: readonly Diagnostic[],
  sources: Sources,
  { color = false }: TextOptions = {},
): string => {
  if (diagnostics.length === 0) return '';
  const paint: Paint = (style, text) => (color ? `\u001B[${ansi[style]}m${text}\u001B[0m` : text);
  const locator = createLocator(withoutSecrets(diagnostics, sources));
  const blocks = diagnostics.map((diagnostic) => renderOne(diagnostic, locator, sources, paint));
  const errors = diagnostics.filter(({ severity }) => severity === 'error').length;
  const warnings = diagnostics.filter(({ severity }) => severity === 'warning').length;
  const counts = [
    ...(errors > 0 ? [counted(errors, 'error')] : []),
    ...(warnings > 0 ? [counted(warnings, 'warning')] : []),
  ];
  const summary = counts.length === 0 ? '' : `\n${paint('bold', counts.join(', '))}\n`;
  return `${blocks.join('\n\n')}\n${summary}`;
};

/**
 * Places of a policy with the lines that they are in and a message under each, as findings show them: ` --> file:line:column`, then the
 * excerpt; one block for each file, in the order given. Ends with a line break, unless there are no places.
 */
export const renderPlaces = (
  places: readonly DiagnosticLabel[],
  sources: Sources,
  { color = false }: TextOptions = {},
): string => {
  const paint: Paint = (style, text) => (color ? `\u001B[${ansi[style]}m${text}\u001B[0m` : text);
  const locator = createLocator(sources);
  const blocks = [...Map.groupBy(places, ({ span }) => span.file)].map(([file, inFile]) => {
    const located = inFile.map(({ span }) => locator.locate(span).start);
    const [first] = located;
    const gutter = String(Math.max(...located.map(({ line }) => line))).length;
    const margin = ' '.repeat(gutter);
    const head = `${margin}${paint('blue', '-->')} ${withoutControls(file)}:${first?.line ?? 1}:${first?.column ?? 1}`;
    if (!sources.has(file)) return head;
    const marks = toMarks(
      inFile.map(({ span, message }) => ({ span, primary: true, message })),
      locator,
    );
    return [head, `${margin} ${paint('blue', '|')}`, ...renderExcerpt(marks, gutter, paint, 'red')].join('\n');
  });
  return blocks.map((block) => `${block}\n`).join('');
};
