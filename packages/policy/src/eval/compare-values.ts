import type { Value } from '@signalbox/plugin-api';
import type { CompareOperator } from '../syntax/ast.ts';
import { sameValue } from './runtime.ts';

/** The comparison that holds of known values exactly where the other does not. */
export const OPPOSITE: { readonly [operator in CompareOperator]: CompareOperator } = {
  '==': '!=',
  '!=': '==',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

/** Whether a comparison holds of two known values of one type. Lists are equal member by member. */
export function compareValues(operator: CompareOperator, left: Value, right: Value): boolean {
  switch (operator) {
    case '==':
      return sameValue(left, right);
    case '!=':
      return !sameValue(left, right);
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
  }
}
