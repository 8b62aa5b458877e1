import type { Value } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
import { compareValues } from '../eval/compare-values.ts';
import type { Expression } from '../ir.ts';
import { nextDown, nextUp } from './doubles.ts';
import { allOf, FALSE, isIn, TRUE } from './formula.ts';
import type { Formula } from './formula.ts';
import { preimage } from './monotone.ts';
import type { MonotoneStep } from './monotone.ts';
import { intersect, knownPart, onlyTexts, subtract } from './region.ts';
import type { Region } from './region.ts';
import { choiceBit } from './variable.ts';
import type { Variable, Vocabulary } from './variable.ts';

/** A value that is no logic, as far as it can be followed. */
export type Term =
  | { readonly kind: 'constant'; readonly value: Value }
  /** Known for no request. */
  | { readonly kind: 'unknown' }
  /** A number that is computed from one variable by monotone steps, or the variable itself. */
  | { readonly kind: 'number'; readonly variable: Variable; readonly steps: readonly MonotoneStep[] }
  /** A variable that is no number. */
  | { readonly kind: 'other'; readonly variable: Variable };

/** What an expression is where the guard holds. The guards of an expression's cases cover all requests and never meet. */
export interface Case {
  readonly guard: Formula;
  readonly term: Term;
}

export type Comparison = Extract<Expression, { kind: 'compare' }>['op'];

export const termOf = (variable: Variable): Term =>
  isNumericType(variable.type) ? { kind: 'number', variable, steps: [] } : { kind: 'other', variable };

/** The statement that a term is known. */
export function isKnownTerm(term: Term): Formula {
  switch (term.kind) {
    case 'constant':
      return TRUE;
    case 'unknown':
      return FALSE;
    case 'number':
      return isIn(term.variable, knownPart(preimage(term.variable, term.steps, -Infinity, Infinity)));
    case 'other':
      return isIn(term.variable, knownPart(term.variable.domain));
  }
}

const MIRRORED: { readonly [op in Comparison]: Comparison } = {
  '==': '==',
  '!=': '!=',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};

/** The statement that a comparison of two terms is known true. */
export function compareTerms(vocabulary: Vocabulary, op: Comparison, left: Term, right: Term): Formula {
  if (left.kind === 'unknown' || right.kind === 'unknown') return FALSE;
  if (left.kind === 'constant') {
    if (right.kind === 'constant') return compareValues(op, left.value, right.value) ? TRUE : FALSE;
    return compareTerms(vocabulary, MIRRORED[op], right, left);
  }
  if (right.kind === 'constant')
    return isIn(
      left.variable,
      left.kind === 'number'
        ? numbersThat(op, left.variable, left.steps, right.value)
        : othersThat(op, left.variable, right.value),
    );
  return compareVariables(vocabulary, op, left, right);
}

function numbersThat(op: Comparison, variable: Variable, steps: readonly MonotoneStep[], value: Value): Region {
  const bound = Number(value);
  switch (op) {
    case '<':
      return knownPart(preimage(variable, steps, -Infinity, nextDown(bound)));
    case '<=':
      return knownPart(preimage(variable, steps, -Infinity, bound));
    case '>':
      return knownPart(preimage(variable, steps, nextUp(bound), Infinity));
    case '>=':
      return knownPart(preimage(variable, steps, bound, Infinity));
    case '==':
      return knownPart(preimage(variable, steps, bound, bound));
    case '!=': {
      const known = knownPart(preimage(variable, steps, -Infinity, Infinity));
      return subtract(known, preimage(variable, steps, bound, bound), variable.grid);
    }
  }
}

/** The values of a variable that is no number that equal a constant, or are known not to. */
function othersThat(op: Comparison, variable: Variable, value: Value): Region {
  const known = knownPart(variable.domain);
  const equal: Region =
    known.kind === 'choice'
      ? { kind: 'choice', mask: choiceBit(variable, value) & known.mask }
      : intersect(known, onlyTexts(typeof value === 'string' ? [value] : []));
  return op === '==' ? equal : subtract(known, equal, variable.grid);
}

const keyOfTerm = (term: Extract<Term, { kind: 'number' | 'other' }>): string =>
  term.kind === 'number' && term.steps.length > 0
    ? `${term.variable.key} ${JSON.stringify(term.steps)}`
    : term.variable.key;

const ORDERS = ['<', '==', '>'] as const;
const ORDERS_THAT: { readonly [op in Comparison]: number } = {
  '<': 0b001,
  '==': 0b010,
  '>': 0b100,
  '<=': 0b011,
  '>=': 0b110,
  '!=': 0b101,
};

/**
 * Two things that both vary: how they compare is a variable of its own, opaque because it is not tied to the values of the two, but for
 * the order of a thing and itself.
 */
function compareVariables(
  vocabulary: Vocabulary,
  op: Comparison,
  left: Extract<Term, { kind: 'number' | 'other' }>,
  right: Extract<Term, { kind: 'number' | 'other' }>,
): Formula {
  const known = allOf([isKnownTerm(left), isKnownTerm(right)]);
  const leftKey = keyOfTerm(left);
  const rightKey = keyOfTerm(right);
  if (leftKey === rightKey) return (ORDERS_THAT[op] & 0b010) === 0 ? FALSE : known;
  const swapped = leftKey > rightKey;
  const [first, second] = swapped ? [right, left] : [left, right];
  const mask = left.kind === 'number' ? 0b111 : 0b011;
  const order = vocabulary.variable(`order of ${keyOfTerm(first)} and ${keyOfTerm(second)}`, () => ({
    key: `order of ${keyOfTerm(first)} and ${keyOfTerm(second)}`,
    text: `${first.variable.text} compared with ${second.variable.text}`,
    type: 'string',
    domain: { kind: 'choice', mask },
    grid: 'real',
    choices: ORDERS,
    opaque: true,
  }));
  const wanted = ORDERS_THAT[swapped ? MIRRORED[op] : op];
  // Things without an order are less or equal: `!=` is the bit of less alone.
  return allOf([known, isIn(order, { kind: 'choice', mask: wanted & mask })]);
}
