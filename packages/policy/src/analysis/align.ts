/** How far two lists are lined up before what is between their common ends is taken as changed throughout. */
const MAX_CELLS = 4_000_000;

/**
 * Places of two lists that hold the same key, in the order of both and as many as there can be: a longest common subsequence. Pairs of
 * places, ascending.
 */
export function alignKeys(before: readonly string[], after: readonly string[]): readonly (readonly [number, number])[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let endBefore = before.length;
  let endAfter = after.length;
  while (endBefore > start && endAfter > start && before[endBefore - 1] === after[endAfter - 1]) {
    endBefore--;
    endAfter--;
  }
  const head = Array.from({ length: start }, (_, at) => [at, at] as const);
  const tail = Array.from({ length: before.length - endBefore }, (_, at) => [endBefore + at, endAfter + at] as const);
  const middle = alignMiddle(before.slice(start, endBefore), after.slice(start, endAfter));
  return [...head, ...middle.map(([i, j]) => [i + start, j + start] as const), ...tail];
}

function alignMiddle(before: readonly string[], after: readonly string[]): readonly (readonly [number, number])[] {
  const width = after.length + 1;
  if (before.length === 0 || after.length === 0 || (before.length + 1) * width > MAX_CELLS) return [];
  // Cell (i, j): how many can be paired of what begins at i and j.
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const pairs: (readonly [number, number])[] = [];
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    if (before[i] === after[j]) pairs.push([i++, j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return pairs;
}
