import type { Expression } from '../ir.ts';
import { operandsOf } from '../operands-of.ts';
import type { Session } from './session.ts';

/**
 * The first part of a condition that the caller can leave unknown without a `??` to stand in for it, or undefined where there is none.
 * Values of the gateway itself (cluster, limits, objectives) do not count: no caller can leave them out.
 */
export const findOpenUnknown = (session: Session, expression: Expression): Expression | undefined => {
  switch (expression.kind) {
    case 'constant':
    case 'property':
    case 'exists':
    case 'aggregate':
      return undefined;
    case 'signal': {
      const ref = session.signals[expression.index];
      if (ref === undefined || ref.known === 'always') return undefined;
      const entry = session.catalogue.values.get(ref.key);
      if (/^(alarm|param|cluster)\./.test(ref.key)) return undefined;
      return entry?.kind === 'signal' && entry.origin === 'gateway' ? undefined : expression;
    }
    case 'coalesce':
      return findOpenUnknown(session, expression.right);
    default:
      for (const operand of operandsOf(expression)) {
        const found = findOpenUnknown(session, operand);
        if (found !== undefined) return found;
      }
      return undefined;
  }
};
