import { FALSE, negate, TRUE } from './formula.ts';
import type { Formula, Junction, Literal } from './formula.ts';
import { intersect, isDisjoint, isEmpty, isWithin } from './region.ts';
import type { Region } from './region.ts';
import type { Variable } from './variable.ts';

/** Steps that are left for one question: a step looks at one "this variable lies in that region". Written to by `solve`. */
export interface Budget {
  left: number;
}

/** How far each variable had to be narrowed; one that is not listed may take any value of its domain. */
export type Narrowed = ReadonlyMap<Variable, Region>;

/**
 * - `satisfiable`: every choice of values from `narrowed` meets all statements;
 * - `unsatisfiable`: none does, whatever the opaque variables are;
 * - `budget`: the steps ran out.
 */
export type Answer =
  | { readonly verdict: 'satisfiable'; readonly narrowed: Narrowed }
  | { readonly verdict: 'unsatisfiable' }
  | { readonly verdict: 'budget' };

export interface SolveOptions {
  readonly budget: Budget;
  /** Opaque variables may not be narrowed: a solution then holds for every value of theirs. Finding none is no proof. */
  readonly forEveryOpaque?: boolean;
}

const UNSATISFIABLE: Answer = Object.freeze({ verdict: 'unsatisfiable' });
const MAX_DEPTH = 2000;

class OutOfBudget extends Error {}

/**
 * Whether all statements can hold at once, by the method of Davis, Putnam, Logemann and Loveland over regions: what must hold narrows its
 * variable, alternatives that cannot hold any more fall away, and when nothing follows any more the shortest choice is tried in turn.
 */
export function solve(statements: readonly Formula[], options: SolveOptions): Answer {
  const search = new Search(options);
  try {
    return search.run(statements, 0) ? { verdict: 'satisfiable', narrowed: search.narrowed() } : UNSATISFIABLE;
  } catch (error) {
    if (error instanceof OutOfBudget) return { verdict: 'budget' };
    throw error;
  }
}

type Choice = Junction & { readonly kind: 'or' };

class Search {
  readonly #budget: Budget;
  readonly #fixed: boolean;
  /** Regions by variable index, where narrowed. */
  readonly #regions: (Region | undefined)[] = [];
  readonly #variables: Variable[] = [];
  /** What to put back, latest last. */
  readonly #trail: { readonly index: number; readonly before: Region | undefined }[] = [];

  constructor({ budget, forEveryOpaque = false }: SolveOptions) {
    this.#budget = budget;
    this.#fixed = forEveryOpaque;
  }

  narrowed(): Narrowed {
    const found = new Map<Variable, Region>();
    this.#regions.forEach((region, index) => {
      const variable = this.#variables[index];
      if (region !== undefined && variable !== undefined) found.set(variable, region);
    });
    return found;
  }

  /** Whether the statements can hold with what is narrowed so far; leaves the narrowing in place if so, and undone if not. */
  run(statements: readonly Formula[], depth: number): boolean {
    if (depth > MAX_DEPTH) throw new OutOfBudget();
    const mark = this.#trail.length;
    const choices = this.#settle(statements);
    if (choices !== undefined && this.#choose(choices, depth)) return true;
    this.#undo(mark);
    return false;
  }

  #choose(choices: readonly Choice[], depth: number): boolean {
    let shortest: Choice | undefined;
    for (const choice of choices)
      if (shortest === undefined || choice.parts.length < shortest.parts.length) shortest = choice;
    if (shortest === undefined) return true;
    const rest = choices.filter((choice) => choice !== shortest);
    const refuted: Formula[] = [];
    for (const part of this.#mostHelpfulFirst(shortest.parts, rest)) {
      if (this.run([...refuted, part, ...rest], depth + 1)) return true;
      if (part.kind === 'in') refuted.push(negate(part));
    }
    return false;
  }

  /** Parts in the order of how many of the other choices they settle: what settles all of them ends the search. */
  #mostHelpfulFirst(parts: readonly Formula[], others: readonly Choice[]): readonly Formula[] {
    if (others.length === 0) return parts;
    const settled = new Map(parts.map((part) => [part, part.kind === 'in' ? this.#settledBy(part, others) : 0]));
    return parts.toSorted((a, b) => (settled.get(b) ?? 0) - (settled.get(a) ?? 0));
  }

  #settledBy({ variable, region }: Literal, choices: readonly Choice[]): number {
    const then = intersect(this.#regions[variable.index] ?? variable.domain, region);
    let count = 0;
    for (const { parts } of choices) {
      for (const part of parts) {
        if (part.kind !== 'in' || part.variable !== variable) continue;
        this.#spend();
        if (!isWithin(then, part.region)) continue;
        count += 1;
        break;
      }
    }
    return count;
  }

  #spend(): void {
    if (this.#budget.left-- <= 0) throw new OutOfBudget();
  }

  /** Narrows by all that must hold. The choices that are left open, or undefined on a contradiction. */
  #settle(statements: readonly Formula[]): readonly Choice[] | undefined {
    let pending = statements;
    for (;;) {
      const open: Choice[] = [];
      const narrowings = this.#trail.length;
      for (const statement of pending) {
        const left = this.#reduce(statement);
        if (left.kind === 'false' || !this.#assert(left, open)) return undefined;
      }
      if (this.#trail.length === narrowings || open.length === 0) return open;
      pending = open;
    }
  }

  /** Takes a reduced statement as holding; what is still a choice goes to `open`. */
  #assert(statement: Formula, open: Choice[]): boolean {
    switch (statement.kind) {
      case 'true':
        return true;
      case 'false':
        return false;
      case 'in':
        return this.#narrow(statement);
      case 'or':
        open.push({ kind: 'or', parts: statement.parts });
        return true;
      case 'and':
        return statement.parts.every((part) => this.#assert(this.#reduce(part), open));
    }
  }

  #narrow({ variable, region }: Literal): boolean {
    const before = this.#regions[variable.index];
    const after = intersect(before ?? variable.domain, region);
    if (isEmpty(after)) return false;
    this.#trail.push({ index: variable.index, before });
    this.#regions[variable.index] = after;
    this.#variables[variable.index] = variable;
    return true;
  }

  #undo(mark: number): void {
    while (this.#trail.length > mark) {
      const last = this.#trail.pop();
      if (last !== undefined) this.#regions[last.index] = last.before;
    }
  }

  /** The statement with what is settled by now left out. */
  #reduce(statement: Formula): Formula {
    switch (statement.kind) {
      case 'in':
        return this.#reduceLiteral(statement);
      case 'and':
      case 'or':
        return this.#reduceParts(statement.kind, statement, statement.parts);
      default:
        return statement;
    }
  }

  #reduceLiteral(literal: Literal): Formula {
    this.#spend();
    const { variable, region } = literal;
    const now = this.#regions[variable.index] ?? variable.domain;
    if (isWithin(now, region)) return TRUE;
    if (isDisjoint(now, region) || (this.#fixed && variable.opaque)) return FALSE;
    return literal;
  }

  #reduceParts(kind: 'and' | 'or', whole: Formula, parts: readonly Formula[]): Formula {
    const decisive = kind === 'and' ? 'false' : 'true';
    const neutral = kind === 'and' ? 'true' : 'false';
    const left: Formula[] = [];
    let changed = false;
    for (const part of parts) {
      const reduced = this.#reduce(part);
      if (reduced.kind === decisive) return reduced;
      if (reduced !== part) changed = true;
      if (reduced.kind !== neutral) left.push(reduced);
    }
    const [first] = left;
    if (first === undefined) return kind === 'and' ? TRUE : FALSE;
    if (left.length === 1) return first;
    return changed ? { kind, parts: left } : whole;
  }
}
