import { setsOverlap } from './regex-parser.ts';
import type { CharSet, RegexTree } from './regex-parser.ts';

export interface Ambiguity {
  readonly kind: 'ambiguous' | 'too_large';
  readonly start: number;
  readonly end: number;
}

/** Positions of one repetition beyond which it is refused unchecked; the check looks at their pairs. */
const MAX_POSITIONS = 300;
/** Steps of the search beyond which a repetition is refused; some tens of milliseconds. */
const MAX_STEPS = 5_000_000;

interface Fragment {
  readonly first: readonly number[];
  readonly last: readonly number[];
  /** In how many ways it matches the empty text: 0, 1, or 2 for more than one. */
  readonly empty: 0 | 1 | 2;
}

interface Automaton {
  readonly sets: CharSet[];
  readonly follow: Set<number>[];
  size: number;
}

class TooLarge extends Error {}

const link = (automaton: Automaton, from: readonly number[], to: readonly number[]): void => {
  for (const p of from) {
    const next = automaton.follow[p];
    for (const q of to) next?.add(q);
  }
};

/**
 * Glushkov's construction: one state for each place of a character in the pattern, repetitions with counts written out. `{2,}` and the
 * like are cut to three copies, which keeps every ambiguity of the loop.
 */
const build = (automaton: Automaton, tree: RegexTree): Fragment => {
  switch (tree.kind) {
    case 'empty':
      return { first: [], last: [], empty: 1 };
    case 'set': {
      if (automaton.size >= MAX_POSITIONS) throw new TooLarge();
      const position = automaton.size;
      automaton.size += 1;
      automaton.sets.push(tree.set);
      automaton.follow.push(new Set());
      return { first: [position], last: [position], empty: 0 };
    }
    case 'sequence': {
      let whole: Fragment = { first: [], last: [], empty: 1 };
      for (const part of tree.parts) whole = join(automaton, whole, build(automaton, part));
      return whole;
    }
    case 'choice': {
      const parts = tree.parts.map((part) => build(automaton, part));
      const empties = parts.reduce((sum, part) => sum + part.empty, 0);
      return {
        first: parts.flatMap((part) => part.first),
        last: parts.flatMap((part) => part.last),
        empty: empties > 1 ? 2 : empties === 1 ? 1 : 0,
      };
    }
    case 'repeat': {
      if (tree.maximum === 0) return { first: [], last: [], empty: 1 };
      const endless = tree.maximum === Infinity;
      const copies = endless ? Math.max(1, tree.minimum) : tree.maximum;
      if (copies > MAX_POSITIONS) throw new TooLarge();
      let whole: Fragment = { first: [], last: [], empty: 1 };
      for (let copy = 0; copy < copies; copy += 1) {
        const body = build(automaton, tree.body);
        const isLast = copy === copies - 1;
        if (isLast && endless) link(automaton, body.last, body.first);
        const optional = copy >= tree.minimum;
        whole = join(automaton, whole, optional ? { ...body, empty: 1 } : body);
      }
      return whole;
    }
  }
};

const join = (automaton: Automaton, left: Fragment, right: Fragment): Fragment => {
  link(automaton, left.last, right.first);
  return {
    first: left.empty > 0 ? [...left.first, ...right.first] : left.first,
    last: right.empty > 0 ? [...left.last, ...right.last] : right.last,
    empty: left.empty > 0 && right.empty > 0 ? 1 : 0,
  };
};

/**
 * Whether some state can come back to itself on one text along two different paths: then a failing match takes exponential time. The
 * decision is exact for the automaton: in its square, a diagonal pair and an off-diagonal one lie on a common cycle.
 */
const hasDoubleCycle = (automaton: Automaton): boolean => {
  const n = automaton.size;
  const overlap = (p: number, q: number): boolean => {
    const a = automaton.sets[p];
    const b = automaton.sets[q];
    return a !== undefined && b !== undefined && setsOverlap(a, b);
  };
  const overlaps: boolean[] = Array.from({ length: n * n }, () => false);
  for (let p = 0; p < n; p += 1) {
    for (let q = p; q < n; q += 1) {
      const both = p === q || overlap(p, q);
      overlaps[p * n + q] = both;
      overlaps[q * n + p] = both;
    }
  }
  const backward: number[][] = Array.from({ length: n }, () => []);
  for (const [p, next] of automaton.follow.entries()) for (const q of next) backward[q]?.push(p);
  // Walked from each state apart, because a cycle comes back to the diagonal pair that it left.
  const forward = automaton.follow.map((next) => [...next]);
  const budget = { steps: MAX_STEPS };
  const ahead = createWalk(n, forward, overlaps, budget);
  const behind = createWalk(n, backward, overlaps, budget);
  for (let start = 0; start < n; start += 1) {
    const reached = ahead(start);
    if (reached.size === 0) continue;
    const reaching = behind(start);
    for (const pair of reached) if (reaching.has(pair) && Math.floor(pair / n) !== pair % n) return true;
  }
  return false;
};

/** Gives the pairs that the pair (start, start) reaches in one step or more, both sides reading the same text. */
const createWalk = (
  n: number,
  next: readonly (readonly number[])[],
  overlaps: readonly boolean[],
  budget: { steps: number },
): ((start: number) => ReadonlySet<number>) => {
  const known = new Map<number, readonly number[]>();
  const spend = (steps: number): void => {
    budget.steps -= steps;
    if (budget.steps < 0) throw new TooLarge();
  };
  const stepsFrom = (pair: number): readonly number[] => {
    const found = known.get(pair);
    if (found !== undefined) return found;
    const left = next[Math.floor(pair / n)] ?? [];
    const right = next[pair % n] ?? [];
    spend(left.length * right.length);
    const steps: number[] = [];
    for (const p of left) for (const q of right) if (overlaps[p * n + q] === true) steps.push(p * n + q);
    known.set(pair, steps);
    return steps;
  };
  return (start) => {
    const seen = new Set<number>();
    const open = [start * n + start];
    for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
      const steps = stepsFrom(pair);
      spend(steps.length);
      for (const reached of steps) {
        if (seen.has(reached)) continue;
        seen.add(reached);
        open.push(reached);
      }
    }
    return seen;
  };
};

const nullable = (tree: RegexTree): boolean => {
  switch (tree.kind) {
    case 'empty':
      return true;
    case 'set':
      return false;
    case 'sequence':
      return tree.parts.every(nullable);
    case 'choice':
      return tree.parts.some(nullable);
    case 'repeat':
      return tree.minimum === 0 || nullable(tree.body);
  }
};

/** Repetitions without a limit, or with a high one, outermost first. */
const longRepeats = function* (tree: RegexTree): Iterable<Extract<RegexTree, { kind: 'repeat' }>> {
  if (tree.kind === 'repeat') {
    if (tree.maximum === Infinity || tree.maximum > 16) yield tree;
    yield* longRepeats(tree.body);
  } else if (tree.kind === 'sequence' || tree.kind === 'choice') {
    for (const part of tree.parts) yield* longRepeats(part);
  }
};

/**
 * The outermost repetition of a pattern that can match one text in several ways, or undefined where there is none. A repetition of
 * something that can be empty, as in `(a*)*` and `(a?b?)*`, counts as one.
 */
export const findAmbiguity = (root: RegexTree): Ambiguity | undefined => {
  for (const repeat of longRepeats(root)) {
    const { start, end, body } = repeat;
    const automaton: Automaton = { sets: [], follow: [], size: 0 };
    try {
      // A loop with a high or a lower limit is checked as one without: what is ambiguous then is slow enough with them.
      build(automaton, { ...repeat, minimum: 1, maximum: Infinity });
      // The set of followers hides that a loop can be left and entered again in place: `(a+)+` has one arc where it has two ways.
      if (nullable(body) || hasParallelLoop(body) || hasDoubleCycle(automaton))
        return { kind: 'ambiguous', start, end };
    } catch (error) {
      if (error instanceof TooLarge) return { kind: 'too_large', start, end };
      throw error;
    }
  }
  return undefined;
};

/** Whether the body, repeated, ends in an endless repetition whose start it can begin with: the way back exists inside and outside. */
const hasParallelLoop = (body: RegexTree): boolean => {
  const heads: RegexTree[] = [];
  const tails: RegexTree[] = [];
  collect(body, heads, 'first');
  collect(body, tails, 'last');
  return tails.some((tail) => tail.kind === 'repeat' && heads.includes(tail));
};

/** Endless repetitions that can stand first, or last, in a match of the tree. */
const collect = (tree: RegexTree, found: RegexTree[], end: 'first' | 'last'): void => {
  switch (tree.kind) {
    case 'empty':
    case 'set':
      return;
    case 'choice':
      for (const part of tree.parts) collect(part, found, end);
      return;
    case 'repeat':
      if (tree.maximum === Infinity) found.push(tree);
      collect(tree.body, found, end);
      return;
    case 'sequence':
      for (const part of end === 'first' ? tree.parts : tree.parts.toReversed()) {
        collect(part, found, end);
        if (!nullable(part)) return;
      }
  }
};
