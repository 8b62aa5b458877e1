import { nextDown, nextUp } from './doubles.ts';
import { difference, haveNoneInCommon, intersection, isSubset, union } from './sets.ts';

/**
 * A set of values of one variable, unknown being one of them.
 * - `number`: closed intervals of float64s, `ends` holding low and high of each in turn, ascending, disjoint, and never adjacent. An open
 *   end is the neighbouring float64, so that sets are exact for what an evaluator can meet.
 * - `choice`: a bit for each of few values (see `Variable.choices`), and `UNKNOWN_BIT`.
 * - `text`: the members, or with `others` all texts but the members.
 */
export type Region =
  | { readonly kind: 'number'; readonly ends: readonly number[]; readonly unknown: boolean }
  | { readonly kind: 'choice'; readonly mask: number }
  | {
      readonly kind: 'text';
      readonly members: ReadonlySet<string>;
      readonly others: boolean;
      readonly unknown: boolean;
    };

/** The bit of unknown in the mask of a `choice`. */
export const UNKNOWN_BIT: number = 1 << 30;
/** How many values a `choice` can have at most. */
export const MAX_CHOICES = 30;

/** Whether numbers are whole, which settles what the neighbour of a number is. */
export type Grid = 'real' | 'whole';

const LARGEST_WHOLE = 2 ** 53;

export const above = (x: number, grid: Grid): number =>
  grid === 'whole' && Math.abs(x) < LARGEST_WHOLE ? Math.floor(x) + 1 : nextUp(x);
export const below = (x: number, grid: Grid): number =>
  grid === 'whole' && Math.abs(x) < LARGEST_WHOLE ? Math.ceil(x) - 1 : nextDown(x);

/** The numbers from `low` to `high`, both included, of a grid. */
export function interval(low: number, high: number, grid: Grid): Region {
  const first = grid === 'whole' ? Math.ceil(low) : low;
  const last = grid === 'whole' ? Math.floor(high) : high;
  return {
    kind: 'number',
    ends: first <= last ? [first === 0 ? 0 : first, last === 0 ? 0 : last] : [],
    unknown: false,
  };
}

export const onlyTexts = (members: Iterable<string>): Region => ({
  kind: 'text',
  members: new Set(members),
  others: false,
  unknown: false,
});

export function isEmpty(region: Region): boolean {
  switch (region.kind) {
    case 'number':
      return region.ends.length === 0 && !region.unknown;
    case 'choice':
      return region.mask === 0;
    case 'text':
      return !region.others && region.members.size === 0 && !region.unknown;
  }
}

export const holdsUnknown = (region: Region): boolean =>
  region.kind === 'choice' ? (region.mask & UNKNOWN_BIT) !== 0 : region.unknown;

/** The region without unknown. */
export const knownPart = (region: Region): Region =>
  region.kind === 'choice' ? { kind: 'choice', mask: region.mask & ~UNKNOWN_BIT } : { ...region, unknown: false };

export function intersect(a: Region, b: Region): Region {
  if (a.kind === 'choice' && b.kind === 'choice') return { kind: 'choice', mask: a.mask & b.mask };
  if (a.kind === 'number' && b.kind === 'number')
    return { kind: 'number', ends: intersectEnds(a.ends, b.ends), unknown: a.unknown && b.unknown };
  if (a.kind === 'text' && b.kind === 'text') {
    const unknown = a.unknown && b.unknown;
    if (a.others && b.others) return { kind: 'text', members: union(a.members, b.members), others: true, unknown };
    if (a.others) return { kind: 'text', members: difference(b.members, a.members), others: false, unknown };
    if (b.others) return { kind: 'text', members: difference(a.members, b.members), others: false, unknown };
    return { kind: 'text', members: intersection(a.members, b.members), others: false, unknown };
  }
  throw mixed();
}

export function unite(a: Region, b: Region, grid: Grid): Region {
  if (a.kind === 'choice' && b.kind === 'choice') return { kind: 'choice', mask: a.mask | b.mask };
  if (a.kind === 'number' && b.kind === 'number')
    return { kind: 'number', ends: uniteEnds(a.ends, b.ends, grid), unknown: a.unknown || b.unknown };
  if (a.kind === 'text' && b.kind === 'text') {
    const unknown = a.unknown || b.unknown;
    if (a.others && b.others)
      return { kind: 'text', members: intersection(a.members, b.members), others: true, unknown };
    if (a.others) return { kind: 'text', members: difference(a.members, b.members), others: true, unknown };
    if (b.others) return { kind: 'text', members: difference(b.members, a.members), others: true, unknown };
    return { kind: 'text', members: union(a.members, b.members), others: false, unknown };
  }
  throw mixed();
}

/** What of `domain` is not in `region`. */
export function subtract(domain: Region, region: Region, grid: Grid): Region {
  if (domain.kind === 'choice' && region.kind === 'choice') return { kind: 'choice', mask: domain.mask & ~region.mask };
  if (domain.kind === 'number' && region.kind === 'number')
    return {
      kind: 'number',
      ends: intersectEnds(domain.ends, gaps(region.ends, grid)),
      unknown: domain.unknown && !region.unknown,
    };
  if (domain.kind === 'text' && region.kind === 'text')
    return intersect(domain, {
      kind: 'text',
      members: region.members,
      others: !region.others,
      unknown: !region.unknown,
    });
  throw mixed();
}

/** Whether every value of `a` is in `b`. */
export function isWithin(a: Region, b: Region): boolean {
  if (a.kind === 'choice' && b.kind === 'choice') return (a.mask & ~b.mask) === 0;
  if (a.kind === 'number' && b.kind === 'number') {
    if (a.unknown && !b.unknown) return false;
    let j = 0;
    for (let i = 0; i < a.ends.length; i += 2) {
      while (j < b.ends.length && (b.ends[j + 1] ?? 0) < (a.ends[i] ?? 0)) j += 2;
      if (j >= b.ends.length || (b.ends[j] ?? 0) > (a.ends[i] ?? 0) || (b.ends[j + 1] ?? 0) < (a.ends[i + 1] ?? 0))
        return false;
    }
    return true;
  }
  if (a.kind === 'text' && b.kind === 'text') {
    if (a.unknown && !b.unknown) return false;
    if (a.others) return b.others && isSubset(b.members, a.members);
    return b.others ? haveNoneInCommon(a.members, b.members) : isSubset(a.members, b.members);
  }
  throw mixed();
}

/** Whether no value is in both. */
export function isDisjoint(a: Region, b: Region): boolean {
  if (a.kind === 'choice' && b.kind === 'choice') return (a.mask & b.mask) === 0;
  if (a.kind === 'number' && b.kind === 'number') {
    if (a.unknown && b.unknown) return false;
    let i = 0;
    let j = 0;
    while (i < a.ends.length && j < b.ends.length) {
      if ((a.ends[i + 1] ?? 0) < (b.ends[j] ?? 0)) i += 2;
      else if ((b.ends[j + 1] ?? 0) < (a.ends[i] ?? 0)) j += 2;
      else return false;
    }
    return true;
  }
  if (a.kind === 'text' && b.kind === 'text') {
    if (a.unknown && b.unknown) return false;
    if (a.others) return !b.others && isSubset(b.members, a.members);
    return b.others ? isSubset(a.members, b.members) : haveNoneInCommon(a.members, b.members);
  }
  throw mixed();
}

export const isSame = (a: Region, b: Region): boolean => isWithin(a, b) && isWithin(b, a);

const mixed = (): TypeError => new TypeError('Regions of different kinds of variable do not meet.');

function intersectEnds(a: readonly number[], b: readonly number[]): readonly number[] {
  const ends: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const low = Math.max(a[i] ?? 0, b[j] ?? 0);
    const highA = a[i + 1] ?? 0;
    const highB = b[j + 1] ?? 0;
    const high = Math.min(highA, highB);
    if (low <= high) ends.push(low, high);
    if (highA < highB) i += 2;
    else j += 2;
  }
  return ends;
}

function uniteEnds(a: readonly number[], b: readonly number[], grid: Grid): readonly number[] {
  const ends: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const fromA = j >= b.length || (i < a.length && (a[i] ?? 0) <= (b[j] ?? 0));
    const [list, at] = fromA ? [a, i] : [b, j];
    if (fromA) i += 2;
    else j += 2;
    const low = list[at] ?? 0;
    const high = list[at + 1] ?? 0;
    const last = ends.at(-1);
    if (last === undefined || low > above(last, grid)) ends.push(low, high);
    else if (high > last) ends[ends.length - 1] = high;
  }
  return ends;
}

/** The intervals between intervals, from minus infinity to infinity. */
function gaps(ends: readonly number[], grid: Grid): readonly number[] {
  const found: number[] = [];
  let from = -Infinity;
  for (let i = 0; i < ends.length; i += 2) {
    const low = ends[i] ?? 0;
    const high = ends[i + 1] ?? 0;
    const last = low === -Infinity ? undefined : below(low, grid);
    if (last !== undefined && from <= last) found.push(from, last);
    if (high === Infinity) return found;
    from = above(high, grid);
  }
  found.push(from, Infinity);
  return found;
}
