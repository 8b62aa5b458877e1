import { intersect, isEmpty, isWithin, subtract, unite } from './region.ts';
import type { Region } from './region.ts';
import type { Variable } from './variable.ts';

/** A two-valued statement in negation normal form over "this variable lies in that region". */
export type Formula = { readonly kind: 'true' } | { readonly kind: 'false' } | Literal | Junction;

/** All of several statements, or some of them. */
export interface Junction {
  readonly kind: 'and' | 'or';
  readonly parts: readonly Formula[];
}

export interface Literal {
  readonly kind: 'in';
  readonly variable: Variable;
  readonly region: Region;
}

export const TRUE: Formula = Object.freeze({ kind: 'true' });
export const FALSE: Formula = Object.freeze({ kind: 'false' });

/** `region` is taken as part of the variable's domain. */
export function isIn(variable: Variable, region: Region): Formula {
  if (isEmpty(region)) return FALSE;
  return isWithin(variable.domain, region) ? TRUE : { kind: 'in', variable, region };
}

export const allOf = (parts: Iterable<Formula>): Formula => join(parts, 'and', TRUE, FALSE);
export const someOf = (parts: Iterable<Formula>): Formula => join(parts, 'or', FALSE, TRUE);

function join(parts: Iterable<Formula>, kind: 'and' | 'or', neutral: Formula, decisive: Formula): Formula {
  const literals = new Map<Variable, Region>();
  const others: Formula[] = [];
  const add = (part: Formula): boolean => {
    if (part.kind === decisive.kind) return false;
    if (part.kind === neutral.kind) return true;
    if (part.kind === kind) return part.parts.every(add);
    if (part.kind !== 'in') {
      others.push(part);
      return true;
    }
    const { variable, region } = part;
    const before = literals.get(variable);
    const merged =
      before === undefined ? region : kind === 'and' ? intersect(before, region) : unite(before, region, variable.grid);
    literals.set(variable, merged);
    return kind === 'and' ? !isEmpty(merged) : !isWithin(variable.domain, merged);
  };
  for (const part of parts) if (!add(part)) return decisive;
  const all = [...Array.from(literals, ([variable, region]): Formula => ({ kind: 'in', variable, region })), ...others];
  const [first] = all;
  if (first === undefined) return neutral;
  return all.length === 1 ? first : { kind, parts: all };
}

/** The statement that the other does not hold. Parts that stand in several places are worked out once. */
export function negate(formula: Formula, done: Map<Formula, Formula> = new Map<Formula, Formula>()): Formula {
  const before = done.get(formula);
  if (before !== undefined) return before;
  const opposite = (part: Formula): Formula => negate(part, done);
  let result: Formula;
  switch (formula.kind) {
    case 'true':
      return FALSE;
    case 'false':
      return TRUE;
    case 'in':
      return isIn(formula.variable, subtract(formula.variable.domain, formula.region, formula.variable.grid));
    case 'and':
      result = someOf(formula.parts.map(opposite));
      break;
    case 'or':
      result = allOf(formula.parts.map(opposite));
  }
  done.set(formula, result);
  return result;
}
