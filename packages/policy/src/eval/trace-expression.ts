import { isKnown } from '@signalbox/plugin-api';
import type { Value, ValueType } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram, RefArgument, TargetRef } from '../ir.ts';
import type { Span } from '../syntax/span.ts';
import { evaluate, poolMembers } from './evaluate.ts';
import type { Frame, PoolMember } from './evaluate.ts';
import type { EvaluationHost } from './evaluators.ts';
import type { Pattern } from './linear-pattern.ts';
import { candidateProperties, EVERY_ENDPOINT } from './reads.ts';
import { operandsOf } from '../operands-of.ts';

/** A signal or property as it was read. */
export interface TraceRead {
  readonly kind: 'signal' | 'property';
  /** Index into the program's signals or properties. */
  readonly index: number;
  /** As it is written in a policy: `complexity`, `header("x-tier")`. */
  readonly name: string;
  /** `undefined` is unknown, for numbers too. */
  readonly value: Value | undefined;
}

/** One node of an expression with its result and those of its operands. Plain data. */
export interface TraceNode {
  readonly kind: Expression['kind'];
  readonly type: ValueType;
  readonly span: Span;
  /** `undefined` is unknown, for numbers too. */
  readonly result: Value | undefined;
  /** Everything read in this node and below it, each once; what aggregates read is in `members`. */
  readonly reads: readonly TraceRead[];
  readonly operands: readonly TraceNode[];
  /** Of an aggregate: what it ranged over. */
  readonly pool?: { readonly target: TargetRef; readonly members: readonly PoolMember[] };
}

/** A function that evaluates expressions of a program node by node; `pools` gives pool indices by `targetKey`. */
export function createExplainer(
  program: PolicyProgram,
  pools: ReadonlyMap<string, number>,
): (expression: Expression, host: EvaluationHost, slot?: number) => TraceNode {
  const patterns = new WeakMap<Expression, Pattern>();
  return (expression, host, slot) => {
    const properties = candidateProperties(expression);
    if (properties.length > 0 && slot === undefined) {
      throw new TypeError('The expression reads a property of one endpoint: say of which.');
    }
    const slots = Int32Array.of(slot ?? -1);
    const columns = new Map(properties.map((property) => [property, host.column(property, slots, 1)]));
    return explain(program, expression, { host, pools, trace: undefined, patterns, slot: slot ?? -1, columns });
  };
}

function explain(program: PolicyProgram, expression: Expression, frame: Frame): TraceNode {
  const value = evaluate(expression, frame);
  const result = isKnown(value) ? value : undefined;
  const base = { kind: expression.kind, type: expression.type, span: expression.span, result };
  switch (expression.kind) {
    case 'signal':
    case 'property': {
      const ref = (expression.kind === 'signal' ? program.signals : program.properties)[expression.index];
      const name = ref === undefined ? '' : referenceName(ref);
      return {
        ...base,
        reads: [{ kind: expression.kind, index: expression.index, name, value: result }],
        operands: [],
      };
    }
    case 'aggregate': {
      const target = expression.target ?? EVERY_ENDPOINT;
      return { ...base, reads: [], operands: [], pool: { target, members: poolMembers(expression, frame) } };
    }
    default: {
      const operands = operandsOf(expression).map((operand) => explain(program, operand, frame));
      return { ...base, reads: distinctReads(operands), operands };
    }
  }
}

function distinctReads(operands: readonly TraceNode[]): readonly TraceRead[] {
  const reads = new Map<string, TraceRead>();
  for (const operand of operands) for (const read of operand.reads) reads.set(`${read.kind} ${read.index}`, read);
  return [...reads.values()];
}

/** A signal or property with its arguments, much as it is written in a policy. */
export function referenceName(ref: { readonly key: string; readonly arguments: readonly RefArgument[] }): string {
  if (ref.arguments.length === 0) return ref.key;
  const shown = ref.arguments.map((argument) => {
    const name = argument.name === undefined ? '' : `${argument.name}: `;
    return `${name}${argumentText(argument)}`;
  });
  return `${ref.key}(${shown.join(', ')})`;
}

function argumentText(argument: RefArgument): string {
  switch (argument.kind) {
    case 'value':
      return JSON.stringify(argument.value);
    case 'definition':
      return JSON.stringify(argument.of);
    case 'target':
      return argument.target.kind === 'any' ? 'any' : `${argument.target.kind} ${JSON.stringify(argument.target.name)}`;
    case 'expression':
      return '…';
  }
}
