/**
 * Damerau–Levenshtein distance (optimal string alignment: insert, delete, replace, swap of neighbours, each 1) between two
 * words, counted in code points; `limit + 1` as soon as it is certain to exceed `limit`.
 */
export const editDistance = (left: string, right: string, limit: number = Number.POSITIVE_INFINITY): number => {
  const a = [...left];
  const b = [...right];
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    let least = row;
    for (let column = 1; column <= b.length; column += 1) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1;
      let best = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + cost,
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, (beforePrevious[column - 2] ?? 0) + 1);
      }
      current.push(best);
      least = Math.min(least, best);
    }
    if (least > limit) return limit + 1;
    beforePrevious = previous;
    previous = current;
  }
  return Math.min(previous[b.length] ?? 0, limit + 1);
};

/** The most edits at which two words still count as near: a third of the longer one, rounded down, at least 1. */
export const nearLimit = (left: string, right: string): number =>
  Math.max(1, Math.floor(Math.max([...left].length, [...right].length) / 3));

/**
 * The word that was probably meant, or undefined where none is near. Groups are scopes, nearest first: a near word of an
 * earlier group wins over any of a later one; within a group the fewest edits win, then the order given. Words that differ
 * only in case count as nearest. A one-letter word has no near words other than that.
 */
export const suggest = (word: string, ...groups: readonly Iterable<string>[]): string | undefined => {
  const lower = word.toLowerCase();
  for (const group of groups) {
    let best: string | undefined;
    let bestDistance = Number.POSITIVE_INFINITY;
    for (const candidate of group) {
      if (candidate === word) continue;
      const sameLetters = candidate.toLowerCase() === lower;
      const limit = Math.min(nearLimit(word, candidate), bestDistance);
      const distance = sameLetters ? 0 : editDistance(word, candidate, limit);
      const tooShort = !sameLetters && (word.length < 2 || candidate.length < 2);
      if (!tooShort && distance <= limit && distance < bestDistance) {
        best = candidate;
        bestDistance = distance;
      }
    }
    if (best !== undefined) return best;
  }
  return undefined;
};
