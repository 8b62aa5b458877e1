import { createLineIndex } from '@signalbox/policy';
import type { LineIndex, Span } from '@signalbox/policy';
import type { Position, Range, TextDocumentContentChangeEvent } from 'vscode-languageserver';

/** One version of a text, with its lines. Positions count lines from 0 and characters in UTF-16 units, as the protocol does. */
export interface TextLines {
  readonly text: string;
  readonly index: LineIndex;
}

export const createTextLines = (text: string): TextLines => ({ text, index: createLineIndex(text) });

/** End of a line (from 1) before its line break. */
const lineEnd = ({ text, index }: TextLines, line: number): number => {
  let end = index.lineStart(line + 1);
  const start = index.lineStart(line);
  while (end > start && (text[end - 1] === '\n' || text[end - 1] === '\r')) end -= 1;
  return end;
};

export const positionAt = ({ text, index }: TextLines, offset: number): Position => {
  const clamped = Math.min(Math.max(offset, 0), text.length);
  const { line } = index.positionAt(clamped);
  return { line: line - 1, character: clamped - index.lineStart(line) };
};

/** Offset of a position; past the end of a line, its end; past the last line, the end of the text. */
export const offsetAt = (lines: TextLines, { line, character }: Position): number => {
  if (line >= lines.index.lineCount) return lines.text.length;
  const start = lines.index.lineStart(line + 1);
  return Math.min(start + Math.max(character, 0), Math.max(start, lineEnd(lines, line + 1)));
};

export const rangeOf = (lines: TextLines, span: Pick<Span, 'start' | 'end'>): Range => ({
  start: positionAt(lines, span.start),
  end: positionAt(lines, span.end),
});

/** The text after the changes of one notification, made in order. */
export const applyChanges = (text: string, changes: readonly TextDocumentContentChangeEvent[]): string => {
  let result = text;
  for (const change of changes) {
    if (!('range' in change)) {
      result = change.text;
      continue;
    }
    const lines = createTextLines(result);
    const start = offsetAt(lines, change.range.start);
    const end = Math.max(start, offsetAt(lines, change.range.end));
    result = result.slice(0, start) + change.text + result.slice(end);
  }
  return result;
};
