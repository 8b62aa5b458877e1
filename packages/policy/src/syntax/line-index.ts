import type { Position } from './span.ts';

const LF = 10;
const CR = 13;
const BOM = 0xfeff;

/**
 * Offsets of one text turned into lines and columns. Lines end at LF, CRLF or a lone CR; the line break belongs to the line
 * that it ends. Offsets are UTF-16 code units, clamped into the text.
 */
export interface LineIndex {
  readonly text: string;
  /** How many lines there are: 1 for the empty text. */
  readonly lineCount: number;
  /** Line and column from 1, the column in code points. */
  positionAt(offset: number): Position;
  /** Offset of the first character of a line (from 1); past the last line, the end of the text. */
  lineStart(line: number): number;
  /** The text of a line (from 1) without its line break and without a byte order mark. */
  lineText(line: number): string;
  /** Offset of a position; the inverse of `positionAt`, clamped to the line. */
  offsetAt(position: Position): number;
}

const lineStartsOf = (text: string): readonly number[] => {
  const starts = [0];
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit === LF || (unit === CR && text.charCodeAt(index + 1) !== LF)) starts.push(index + 1);
  }
  return starts;
};

/** Offsets of the characters that take two code units. */
const surrogatePairsOf = (text: string): readonly number[] =>
  [...text.matchAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)].map(({ index }) => index);

export const createLineIndex = (text: string): LineIndex => {
  const starts = lineStartsOf(text);
  let pairs: readonly number[] | undefined;
  const lineStart = (line: number): number => starts[line - 1] ?? text.length;

  const firstVisible = (line: number): number => (line === 1 && text.charCodeAt(0) === BOM ? 1 : lineStart(line));

  const lineEnd = (line: number): number => {
    let end = lineStart(line + 1);
    if (end > lineStart(line) && text.charCodeAt(end - 1) === LF) end -= 1;
    if (end > lineStart(line) && text.charCodeAt(end - 1) === CR) end -= 1;
    return end;
  };

  /** How many characters of two code units begin below an offset. */
  const pairsBefore = (offset: number): number => {
    pairs ??= surrogatePairsOf(text);
    let low = 0;
    let high = pairs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((pairs[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const lineOf = (offset: number): number => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };

  return {
    text,
    lineCount: starts.length,
    lineStart,
    lineText: (line) => text.slice(firstVisible(line), lineEnd(line)),
    positionAt: (offset) => {
      const clamped = Math.min(Math.max(offset, 0), text.length);
      const line = lineOf(clamped);
      const start = firstVisible(line);
      const units = Math.max(0, clamped - start);
      return { line, column: 1 + units - (pairsBefore(clamped - 1) - pairsBefore(start)) };
    },
    offsetAt: ({ line, column }) => {
      const end = lineEnd(line);
      let index = firstVisible(line);
      for (let passed = 1; passed < column && index < end; passed += 1) {
        index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
      }
      return index;
    },
  };
};
