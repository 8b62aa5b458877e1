import type { Value } from '@signalbox/plugin-api';
import { compareValues } from '../eval/compare-values.ts';
import type { Expression, Scope } from '../ir.ts';
import type { Span } from '../syntax/span.ts';

const RANK: { readonly [scope in Scope]: number } = { constant: 0, request: 1, candidate: 2 };

/** The widest scope of the operands. */
export const joinScopes = (...expressions: readonly Expression[]): Scope => {
  let widest: Scope = 'constant';
  for (const { scope } of expressions) if (RANK[scope] > RANK[widest]) widest = scope;
  return widest;
};

export const constantOf = (value: Value, type: Expression['type'], span: Span): Expression => ({
  kind: 'constant',
  value,
  type,
  scope: 'constant',
  span,
});

export const isConstant = (expression: Expression): expression is Extract<Expression, { kind: 'constant' }> =>
  expression.kind === 'constant';

const isBool = (expression: Expression, value: boolean): boolean =>
  isConstant(expression) && expression.value === value;

const arithmetic = (op: string, left: number, right: number): number => {
  switch (op) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    default:
      return left / right;
  }
};

const isFlat = (value: Value): value is string | number | boolean => typeof value !== 'object';

/**
 * The expression with what is constant at its root computed; operands are taken as folded already. Exact in Kleene's logic: `false and x`
 * is false and `true or x` true even where `x` is unknown. What would come out unknown or infinite is left as it is.
 */
export const fold = (expression: Expression): Expression => {
  const { span, type } = expression;
  switch (expression.kind) {
    case 'negate': {
      const { operand } = expression;
      return isConstant(operand) && typeof operand.value === 'number'
        ? constantOf(-operand.value, type, span)
        : expression;
    }
    case 'arithmetic': {
      const { left, right, op } = expression;
      if (!isConstant(left) || !isConstant(right)) return expression;
      if (typeof left.value !== 'number' || typeof right.value !== 'number') return expression;
      const result = arithmetic(op, left.value, right.value);
      return Number.isFinite(result) ? constantOf(result, type, span) : expression;
    }
    case 'compare': {
      const { left, right, op } = expression;
      if (!isConstant(left) || !isConstant(right) || !isFlat(left.value) || !isFlat(right.value)) return expression;
      return constantOf(compareValues(op, left.value, right.value), 'bool', span);
    }
    case 'between': {
      const { value, low, high } = expression;
      if (!isConstant(value) || !isConstant(low) || !isConstant(high)) return expression;
      return constantOf(low.value <= value.value && value.value <= high.value, 'bool', span);
    }
    case 'in': {
      const { value, list } = expression;
      if (!isConstant(list) || !Array.isArray(list.value)) return expression;
      return isConstant(value)
        ? constantOf((list.value as readonly Value[]).includes(value.value), 'bool', span)
        : expression;
    }
    case 'contains': {
      const { value, part } = expression;
      if (!isConstant(value) || !isConstant(part)) return expression;
      if (typeof value.value === 'string' && typeof part.value === 'string') {
        return constantOf(value.value.includes(part.value), 'bool', span);
      }
      return Array.isArray(value.value)
        ? constantOf((value.value as readonly Value[]).includes(part.value), 'bool', span)
        : expression;
    }
    case 'exists':
      return isConstant(expression.operand) ? constantOf(true, 'bool', span) : expression;
    case 'coalesce':
      return isConstant(expression.left) ? expression.left : expression;
    case 'not': {
      const { operand } = expression;
      if (isConstant(operand)) return constantOf(operand.value !== true, 'bool', span);
      return operand.kind === 'not' ? operand.operand : expression;
    }
    case 'and':
    case 'or': {
      const decides = expression.kind === 'or';
      const flat = expression.operands.flatMap((operand) =>
        operand.kind === expression.kind ? operand.operands : [operand],
      );
      if (flat.some((operand) => isBool(operand, decides))) return constantOf(decides, 'bool', span);
      const operands = flat.filter((operand) => !isConstant(operand));
      const [first] = operands;
      if (first === undefined) return constantOf(!decides, 'bool', span);
      if (operands.length === 1) return first;
      return { ...expression, operands, scope: joinScopes(...operands) };
    }
    case 'list': {
      if (!expression.members.every(isConstant)) return expression;
      return constantOf(
        Object.freeze(expression.members.map((member) => (isConstant(member) ? member.value : ''))),
        type,
        span,
      );
    }
    case 'call': {
      const { arguments: operands } = expression;
      if (!operands.every(isConstant)) return expression;
      const values = operands.map((operand) => (isConstant(operand) ? operand.value : 0));
      if (expression.function === 'lower' && typeof values[0] === 'string')
        return constantOf(values[0].toLowerCase(), type, span);
      if (!values.every((value) => typeof value === 'number')) return expression;
      if (expression.function === 'min') return constantOf(Math.min(...values), type, span);
      if (expression.function === 'max') return constantOf(Math.max(...values), type, span);
      const [x = 0, low = 0, high = 0] = values;
      return expression.function === 'clamp' ? constantOf(Math.min(Math.max(x, low), high), type, span) : expression;
    }
    default:
      return expression;
  }
};
