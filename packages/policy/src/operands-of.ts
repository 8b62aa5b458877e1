import type { Expression } from './ir.ts';

/** The direct operands of an expression, in the order they are written. */
export function operandsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'constant':
    case 'signal':
    case 'property':
      return [];
    case 'negate':
    case 'not':
    case 'exists':
      return [expression.operand];
    case 'arithmetic':
    case 'compare':
    case 'coalesce':
      return [expression.left, expression.right];
    case 'and':
    case 'or':
      return expression.operands;
    case 'between':
      return [expression.value, expression.low, expression.high];
    case 'in':
      return [expression.value, expression.list];
    case 'list':
      return expression.members;
    case 'matches':
      return [expression.value];
    case 'contains':
      return [expression.value, expression.part];
    case 'call':
      return expression.arguments;
    case 'aggregate':
      return [expression.body];
  }
}
