import type { Expression, PolicyProgram, PropertyRef, RefArgument, SignalRef } from '../ir.ts';
import { expressionRoles } from '../eval/roles.ts';
import { operandsOf } from '../operands-of.ts';

/**
 * The program with only those signals and properties in its tables that it reads, in the order of their first sight: what was folded
 * away, or stands in a `let` that nothing uses, is not to be computed. Rewrites the indices inside `program`, which nobody else holds yet;
 * an expression that is listed more than once, as a part of another too, is rewritten once.
 */
export const compactTables = (program: PolicyProgram): PolicyProgram => {
  const signals = new Map<number, number>();
  const properties = new Map<number, number>();
  const signalRefs: SignalRef[] = [];
  const propertyRefs: PropertyRef[] = [];
  const rewritten = new Set<Expression>();

  const visitArguments = (refArguments: readonly RefArgument[]): void => {
    for (const argument of refArguments) if (argument.kind === 'expression') visit(argument.expression);
  };
  const visit = (expression: Expression): void => {
    if (rewritten.has(expression)) return;
    rewritten.add(expression);
    if (expression.kind === 'signal' || expression.kind === 'property') {
      const isSignal = expression.kind === 'signal';
      const indices = isSignal ? signals : properties;
      let index = indices.get(expression.index);
      if (index === undefined) {
        const old = expression.index;
        index = indices.size;
        indices.set(old, index);
        const ref = isSignal ? program.signals[old] : program.properties[old];
        if (isSignal) signalRefs.push(ref as SignalRef);
        else propertyRefs.push(ref as PropertyRef);
        if (ref !== undefined) visitArguments(ref.arguments);
      }
      (expression as { index: number }).index = index;
      return;
    }
    for (const operand of operandsOf(expression)) visit(operand);
  };
  for (const { expression } of expressionRoles({ ...program, signals: [], properties: [] })) visit(expression);
  return { ...program, signals: signalRefs, properties: propertyRefs };
};
