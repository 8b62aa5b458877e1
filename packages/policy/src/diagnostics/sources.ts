import { createLineIndex, type LineIndex } from '../syntax/line-index.ts';
import type { Position, Span } from '../syntax/span.ts';

/** The texts that spans point into, by the id under which each was parsed. */
export type Sources = ReadonlyMap<string, string>;

export interface Location {
  readonly file: string;
  readonly start: Position;
  /** Exclusive. */
  readonly end: Position;
}

/** Looks up places in a set of sources. A file that is not among them is treated as empty. */
export interface Locator {
  indexOf(file: string): LineIndex;
  locate(span: Span): Location;
}

export const createLocator = (sources: Sources): Locator => {
  const indexes = new Map<string, LineIndex>();
  const indexOf = (file: string): LineIndex => {
    const known = indexes.get(file);
    if (known !== undefined) return known;
    const index = createLineIndex(sources.get(file) ?? '');
    indexes.set(file, index);
    return index;
  };
  return {
    indexOf,
    locate: ({ file, start, end }) => {
      const index = indexOf(file);
      return { file, start: index.positionAt(start), end: index.positionAt(end) };
    },
  };
};
