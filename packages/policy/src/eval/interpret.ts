import { isKnown, isNumericType } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram } from '../ir.ts';
import { evaluate, isTrue } from './evaluate.ts';
import type { Frame, TraceSink } from './evaluate.ts';
import type { Column, EvaluationHost, Evaluators } from './evaluators.ts';
import type { Pattern } from './linear-pattern.ts';
import { candidateProperties, poolTargets, targetKey } from './reads.ts';
import type { Role } from './roles.ts';
import { expressionRoles } from './roles.ts';
import { createExplainer } from './trace-expression.ts';
import type { TraceNode } from './trace-expression.ts';

/** Evaluators that walk the program, and tell how a result came about. */
export interface InterpretedEvaluators extends Evaluators {
  /**
   * The result of any expression of the program or part of one, with that of each of its operands; nothing is cut short. `slot` is
   * the endpoint in hand and is needed where the expression reads a property outside an aggregate.
   */
  traceExpression(expression: Expression, host: EvaluationHost, slot?: number): TraceNode;
}

export interface InterpretOptions {
  /** Told of each boolean leaf that is evaluated. With a sink, `and` and `or` evaluate all their operands. */
  readonly trace?: TraceSink;
}

/** Evaluators that walk the program's expressions: slower than generated code by far, and free of code made from strings. */
export function interpret(program: PolicyProgram, options: InterpretOptions = {}): InterpretedEvaluators {
  const targets = poolTargets(program);
  const pools = new Map(targets.map((target, index) => [targetKey(target), index]));
  const { trace } = options;
  const patterns = new WeakMap<Expression, Pattern>();
  const known: { readonly [name in Role]: Set<Expression> } = {
    predicate: new Set(),
    value: new Set(),
    filter: new Set(),
    score: new Set(),
  };
  for (const { expression, role } of expressionRoles(program)) known[role].add(expression);
  const check = (role: Role, expression: Expression): void => {
    if (!known[role].has(expression)) throw new TypeError('The expression is not part of the program in this role.');
  };
  const requestFrame = (host: EvaluationHost): Frame => ({
    host,
    pools,
    trace,
    patterns,
    slot: -1,
    columns: NO_COLUMNS,
  });

  return {
    targets,
    predicate: (expression) => {
      check('predicate', expression);
      return (host) => isTrue(expression, requestFrame(host));
    },
    value: (expression) => {
      check('value', expression);
      return (host) => evaluate(expression, requestFrame(host));
    },
    filter: (expression) => {
      check('filter', expression);
      const properties = candidateProperties(expression);
      return (host, slots, length, out) => {
        if (length === 0) return 0;
        const columns = fetchColumns(host, properties, slots, length);
        let kept = 0;
        for (let position = 0; position < length; position++) {
          const slot = slots[position] ?? -1;
          if (isTrue(expression, { host, pools, trace, patterns, slot, columns })) out[kept++] = slot;
        }
        return kept;
      };
    },
    score: (expression) => {
      check('score', expression);
      const properties = candidateProperties(expression);
      const isNumber = isNumericType(expression.type);
      return (host, slots, length, out) => {
        if (length === 0) return;
        const columns = fetchColumns(host, properties, slots, length);
        for (let position = 0; position < length; position++) {
          const result = evaluate(expression, { host, pools, trace, patterns, slot: slots[position] ?? -1, columns });
          out[position] = isNumber ? Number(result ?? Number.NaN) : scoreOfBool(result);
        }
      };
    },
    traceExpression: createExplainer(program, pools),
  };
}

const NO_COLUMNS: ReadonlyMap<number, Column> = new Map();

function fetchColumns(
  host: EvaluationHost,
  properties: readonly number[],
  slots: Int32Array,
  length: number,
): ReadonlyMap<number, Column> {
  return new Map(properties.map((property) => [property, host.column(property, slots, length)]));
}

function scoreOfBool(result: Value | undefined): number {
  if (!isKnown(result)) return Number.NaN;
  return result === true ? 1 : 0;
}
