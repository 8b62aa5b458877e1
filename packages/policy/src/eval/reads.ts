import { operandsOf } from '../operands-of.ts';
import type { Expression, PolicyProgram, RefArgument, TargetRef } from '../ir.ts';
import { expressionRoles } from './roles.ts';

/** What an expression reads. Indices are into `PolicyProgram.signals` and `.properties`, ascending. */
export interface Reads {
  readonly signals: readonly number[];
  readonly properties: readonly number[];
  /** The pools that its aggregates range over, in order of first sight. */
  readonly pools: readonly TargetRef[];
}

/** A name for a target that no two different targets share. */
export const targetKey = (target: TargetRef): string =>
  target.kind === 'any' ? 'any' : `${target.kind}:${target.name}`;

/** The target an aggregate without one ranges over. */
export const EVERY_ENDPOINT: TargetRef = Object.freeze({ kind: 'any' });

/**
 * The signals, properties and pools that an expression reads, those inside aggregates and inside the arguments of what it reads (such as
 * the key of `among`) included.
 */
export function readsOf(program: PolicyProgram, expression: Expression): Reads {
  const signals = new Set<number>();
  const properties = new Set<number>();
  const pools = new Map<string, TargetRef>();
  const seen = new Set<Expression>();
  const visitArguments = (refArguments: readonly RefArgument[] | undefined): void => {
    for (const argument of refArguments ?? []) if (argument.kind === 'expression') visit(argument.expression);
  };
  const visit = (node: Expression): void => {
    if (seen.has(node)) return;
    seen.add(node);
    if (node.kind === 'signal' && !signals.has(node.index)) {
      signals.add(node.index);
      visitArguments(program.signals[node.index]?.arguments);
    }
    if (node.kind === 'property' && !properties.has(node.index)) {
      properties.add(node.index);
      visitArguments(program.properties[node.index]?.arguments);
    }
    if (node.kind === 'aggregate') {
      const target = node.target ?? EVERY_ENDPOINT;
      if (!pools.has(targetKey(target))) pools.set(targetKey(target), target);
    }
    for (const operand of operandsOf(node)) visit(operand);
  };
  visit(expression);
  const ascending = (indices: Set<number>): number[] => [...indices].sort((a, b) => a - b);
  return { signals: ascending(signals), properties: ascending(properties), pools: [...pools.values()] };
}

/** The properties that an expression reads of the candidate in hand, ascending: those inside aggregates are not among them. */
export function candidateProperties(expression: Expression): readonly number[] {
  const properties = new Set<number>();
  const seen = new Set<Expression>();
  const visit = (node: Expression): void => {
    if (node.kind === 'aggregate' || seen.has(node)) return;
    seen.add(node);
    if (node.kind === 'property') properties.add(node.index);
    for (const operand of operandsOf(node)) visit(operand);
  };
  visit(expression);
  return [...properties].sort((a, b) => a - b);
}

/**
 * The pools that the aggregates of a program range over, each once, in the order of `expressionRoles`. Evaluators number pools by
 * their place in this list.
 */
export function poolTargets(program: PolicyProgram): readonly TargetRef[] {
  const targets = new Map<string, TargetRef>();
  const seen = new Set<Expression>();
  const visit = (node: Expression): void => {
    if (seen.has(node)) return;
    seen.add(node);
    if (node.kind === 'aggregate') {
      const target = node.target ?? EVERY_ENDPOINT;
      if (!targets.has(targetKey(target))) targets.set(targetKey(target), target);
    }
    for (const operand of operandsOf(node)) visit(operand);
  };
  for (const { expression } of expressionRoles(program)) visit(expression);
  return [...targets.values()];
}
