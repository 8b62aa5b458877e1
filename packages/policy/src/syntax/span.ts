/**
 * A stretch of one file: `start` inclusive, `end` exclusive, both offsets in UTF-16 code units into the file's text as it
 * was given (a byte order mark included). `file` is the id under which the text was parsed.
 */
export interface Span {
  readonly file: string;
  readonly start: number;
  readonly end: number;
}

/** A place as people count it: line and column from 1, the column in code points (a tab is one, a byte order mark none). */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** The smallest span that holds both; the file is that of the first. */
export const joinSpans = (first: Span, last: Span): Span => ({
  file: first.file,
  start: Math.min(first.start, last.start),
  end: Math.max(first.end, last.end),
});
