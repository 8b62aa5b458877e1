import { describe, expect, test } from 'vitest';
import type { Expression, PolicyProgram } from '../ir.ts';
import type { TraceLeaf } from './evaluate.ts';
import { interpret } from './interpret.ts';
import { constant, hostOf, programOf, SPAN } from './program.fixture.ts';
import { poolTargets, readsOf } from './reads.ts';
import { expressionRoles } from './roles.ts';
import { referenceName } from './trace-expression.ts';

const complexity: Expression = {
  kind: 'signal',
  index: 0,
  type: 'number',
  scope: 'request',
  span: { file: 'a.route', start: 11, end: 21 },
};
const tenant: Expression = { kind: 'signal', index: 1, type: 'string', scope: 'request', span: SPAN };
const load: Expression = { kind: 'property', index: 0, type: 'percent', scope: 'candidate', span: SPAN };
const hard: Expression = {
  kind: 'compare',
  op: '>',
  left: complexity,
  right: constant(50),
  type: 'bool',
  scope: 'request',
  span: { file: 'a.route', start: 11, end: 26 },
};
const european: Expression = {
  kind: 'compare',
  op: '==',
  left: tenant,
  right: constant('eu'),
  type: 'bool',
  scope: 'request',
  span: SPAN,
};
const both: Expression = { kind: 'and', operands: [hard, european], type: 'bool', scope: 'request', span: SPAN };
const least: Expression = {
  kind: 'aggregate',
  function: 'min',
  body: load,
  target: { kind: 'tier', name: '70B' },
  type: 'percent',
  scope: 'request',
  span: SPAN,
};
const idle: Expression = {
  kind: 'compare',
  op: '<=',
  left: load,
  right: least,
  type: 'bool',
  scope: 'candidate',
  span: SPAN,
};

const program: PolicyProgram = programOf(
  { signals: ['number', 'string'], properties: ['percent'] },
  { predicates: [both], filters: [idle] },
);
const data = { signals: [72, undefined], properties: [[0.5, undefined, 0.25]], pools: { '70B': [2, 0, 1] } };

describe('traceExpression', () => {
  test('tells the result, the span and what was read of each node', () => {
    const interpreter = interpret(program);
    const trace = interpreter.traceExpression(both, hostOf(program, interpreter.targets, data));
    expect(trace.result).toBeUndefined();
    expect(trace.reads).toEqual([
      { kind: 'signal', index: 0, name: 'signal_0', value: 72 },
      { kind: 'signal', index: 1, name: 'signal_1', value: undefined },
    ]);
    expect(trace.operands.map((operand) => operand.result)).toEqual([true, undefined]);
    expect(trace.operands[0]).toMatchObject({ kind: 'compare', span: { file: 'a.route', start: 11, end: 26 } });
  });

  test('tells what an aggregate ranged over', () => {
    const interpreter = interpret(program);
    const trace = interpreter.traceExpression(idle, hostOf(program, interpreter.targets, data), 2);
    expect(trace.result).toBe(true);
    expect(trace.operands[1]).toMatchObject({
      result: 0.25,
      pool: {
        target: { kind: 'tier', name: '70B' },
        members: [
          { slot: 2, value: 0.25 },
          { slot: 0, value: 0.5 },
          { slot: 1, value: undefined },
        ],
      },
    });
  });

  test('asks for an endpoint where one is needed', () => {
    const interpreter = interpret(program);
    expect(() => interpreter.traceExpression(idle, hostOf(program, interpreter.targets, data))).toThrow('say of which');
  });
});

describe('a trace sink', () => {
  test('is told of each leaf with its operands, also after the result is decided', () => {
    const leaves: TraceLeaf[] = [];
    const interpreter = interpret(program, { trace: (leaf) => leaves.push(leaf) });
    const host = hostOf(program, interpreter.targets, { ...data, signals: [10, 'eu'] });
    expect(interpreter.predicate(both)(host)).toBe(false);
    expect(leaves.map((leaf) => [leaf.expression, leaf.value, leaf.operands.map((operand) => operand.value)])).toEqual([
      [hard, false, [10, 50]],
      [european, true, ['eu', 'eu']],
    ]);
  });

  test('is told of which endpoint', () => {
    const leaves: TraceLeaf[] = [];
    const interpreter = interpret(program, { trace: (leaf) => leaves.push(leaf) });
    const host = hostOf(program, interpreter.targets, data);
    expect(interpreter.filter(idle)(host, Int32Array.of(0, 1, 2), 3, new Int32Array(3))).toBe(1);
    expect(leaves.map((leaf) => [leaf.slot, leaf.value])).toEqual([
      [0, false],
      [1, undefined],
      [2, true],
    ]);
  });
});

describe('what a program uses', () => {
  const among: PolicyProgram = {
    ...program,
    properties: [
      {
        key: 'among',
        type: 'bool',
        provider: { kind: 'builtin' },
        arguments: [
          { kind: 'expression', expression: tenant },
          { kind: 'value', value: 3 },
        ],
      },
    ],
    signals: [
      {
        key: 'header',
        type: 'string',
        known: 'maybe',
        provider: { kind: 'builtin' },
        arguments: [{ kind: 'value', value: 'x-slo' }],
      },
      {
        key: 'sla',
        type: 'bool',
        known: 'maybe',
        provider: { kind: 'builtin' },
        arguments: [
          { kind: 'definition', definition: 'slo', of: 'interactive' },
          { kind: 'target', name: 'at', target: { kind: 'tier', name: '70B' } },
        ],
      },
    ],
  };

  test('reads are followed into arguments and aggregates', () => {
    expect(readsOf(program, idle)).toEqual({ signals: [], properties: [0], pools: [{ kind: 'tier', name: '70B' }] });
    const allowed: Expression = { kind: 'property', index: 0, type: 'bool', scope: 'candidate', span: SPAN };
    expect(readsOf(among, allowed)).toEqual({ signals: [1], properties: [0], pools: [] });
  });

  test('roles come in a fixed order, arguments before rules, the parts of a conjunction after the whole', () => {
    expect(expressionRoles(among).map(({ expression, role }) => [role, expression])).toEqual([
      ['value', tenant],
      ['predicate', both],
      ...(both.kind === 'and' ? both.operands.map((part) => ['predicate', part]) : []),
      ['filter', idle],
    ]);
    expect(poolTargets(among)).toEqual([{ kind: 'tier', name: '70B' }]);
  });

  test('references are named as they are written', () => {
    expect(among.signals.map(referenceName)).toEqual(['header("x-slo")', 'sla("interactive", at: tier "70B")']);
    expect(among.properties.map(referenceName)).toEqual(['among(…, 3)']);
  });
});
