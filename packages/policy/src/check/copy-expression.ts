import { operandsOf } from '../operands-of.ts';
import type { Expression } from '../ir.ts';
import type { Span } from '../syntax/span.ts';

/** A copy of an expression with an identity of its own throughout, because evaluators tell expressions apart by identity. */
export const copyExpression = (expression: Expression, span?: Span): Expression => {
  const copy = (inner: Expression): Expression => copyExpression(inner, span);
  const at = span === undefined ? expression : { ...expression, span };
  switch (at.kind) {
    case 'constant':
    case 'signal':
    case 'property':
      return { ...at };
    case 'negate':
    case 'not':
    case 'exists':
      return { ...at, operand: copy(at.operand) };
    case 'arithmetic':
    case 'compare':
    case 'coalesce':
      return { ...at, left: copy(at.left), right: copy(at.right) };
    case 'and':
    case 'or':
      return { ...at, operands: at.operands.map(copy) };
    case 'between':
      return { ...at, value: copy(at.value), low: copy(at.low), high: copy(at.high) };
    case 'in':
      return { ...at, value: copy(at.value), list: copy(at.list) };
    case 'list':
      return { ...at, members: at.members.map(copy) };
    case 'matches':
      return { ...at, value: copy(at.value) };
    case 'contains':
      return { ...at, value: copy(at.value), part: copy(at.part) };
    case 'call':
      return { ...at, arguments: at.arguments.map(copy) };
    case 'aggregate':
      return { ...at, body: copy(at.body) };
  }
};

/** How many nodes an expression has, and how many stand inside each other at most. */
export const measureExpression = (expression: Expression): { readonly size: number; readonly depth: number } => {
  let size = 1;
  let depth = 0;
  for (const operand of operandsOf(expression)) {
    const inner = measureExpression(operand);
    size += inner.size;
    depth = Math.max(depth, inner.depth);
  }
  return { size, depth: depth + 1 };
};
