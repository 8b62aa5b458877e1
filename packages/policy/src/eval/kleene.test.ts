import type { Value, ValueType } from '@signalbox/plugin-api';
import { describe, expect, test } from 'vitest';
import type { Expression, TargetRef } from '../ir.ts';
import { createEvaluators } from './create-evaluators.ts';
import type { RefTable } from './program.fixture.ts';
import { constant, hostOf, programOf, SPAN } from './program.fixture.ts';
import { PROMPT_SEARCH_LIMIT } from './runtime.ts';

type Truth = boolean | undefined;
const T = true;
const F = false;
const U = undefined;

const signalTypes: readonly ValueType[] = ['bool', 'bool', 'number', 'number', 'string', 'string', { list: 'string' }];
const table: RefTable = { signals: signalTypes, properties: ['number', 'bool'] };
const bool = { type: 'bool', scope: 'request', span: SPAN } as const;
const number = { type: 'number', scope: 'request', span: SPAN } as const;
const signal = (index: number): Expression => ({
  kind: 'signal',
  index,
  type: signalTypes[index] ?? 'bool',
  scope: 'request',
  span: SPAN,
});
const property = (index: number): Expression => ({
  kind: 'property',
  index,
  type: table.properties[index] ?? 'bool',
  scope: 'candidate',
  span: SPAN,
});

const a = signal(0);
const b = signal(1);
const x = signal(2);
const y = signal(3);
const s = signal(4);
const t = signal(5);
const words = signal(6);
const not = (operand: Expression): Expression => ({ ...bool, kind: 'not', operand });
const and = (...operands: Expression[]): Expression => ({ ...bool, kind: 'and', operands });
const or = (...operands: Expression[]): Expression => ({ ...bool, kind: 'or', operands });
const exists = (operand: Expression): Expression => ({ ...bool, kind: 'exists', operand });
const compare = (left: Expression, op: '==' | '!=' | '<' | '<=' | '>' | '>=', right: Expression): Expression => ({
  ...bool,
  kind: 'compare',
  op,
  left,
  right,
});
const within = (value: Expression, low: Expression, high: Expression): Expression => ({
  ...bool,
  kind: 'between',
  value,
  low,
  high,
});
const isIn = (value: Expression, list: Expression): Expression => ({ ...bool, kind: 'in', value, list });
const contains = (value: Expression, part: Expression): Expression => ({ ...bool, kind: 'contains', value, part });
const matches = (value: Expression, pattern: string, prompt = false): Expression => ({
  ...bool,
  kind: 'matches',
  value,
  pattern,
  flags: '',
  prompt,
});
const list = (...members: Expression[]): Expression => ({
  type: { list: 'string' },
  scope: 'request',
  span: SPAN,
  kind: 'list',
  members,
});
const coalesce = (left: Expression, right: Expression): Expression => ({
  type: left.type,
  scope: 'request',
  span: SPAN,
  kind: 'coalesce',
  left,
  right,
});
const arithmetic = (left: Expression, op: '+' | '-' | '*' | '/', right: Expression): Expression => ({
  ...number,
  kind: 'arithmetic',
  op,
  left,
  right,
});
const call = (name: 'min' | 'max' | 'clamp' | 'number', ...operands: Expression[]): Expression => ({
  ...number,
  kind: 'call',
  function: name,
  arguments: operands,
});
const aggregate = (
  name: 'min' | 'max' | 'avg' | 'sum' | 'count' | 'any' | 'all',
  body: Expression,
  target?: TargetRef,
): Expression => ({
  ...(name === 'any' || name === 'all' ? bool : number),
  kind: 'aggregate',
  function: name,
  body,
  ...(target === undefined ? {} : { target }),
});

interface Given {
  readonly signals?: { readonly [index: number]: Value | undefined };
  readonly numbers?: readonly (number | undefined)[];
  readonly bools?: readonly Truth[];
}

/** The value of an expression under both evaluators, which must agree; unknown is `undefined`. */
function valueOf(expression: Expression, given: Given = {}): Value | undefined {
  const program = programOf(table, {
    values: [expression],
    predicates: expression.type === 'bool' ? [expression, not(expression)] : [],
  });
  const members = [...(given.numbers ?? given.bools ?? []).keys()];
  const [interpreted, generated] = (['interpreted', 'generated'] as const).map((mode) => {
    const evaluators = createEvaluators(program, { mode });
    const host = hostOf(program, evaluators.targets, {
      signals: signalTypes.map((_, index) => given.signals?.[index]),
      properties: [given.numbers ?? [], given.bools ?? []],
      pools: { any: members, '70B': members },
    });
    const result = evaluators.value(expression)(host);
    const [fires, firesNot] = program.routes.flatMap((route) =>
      route.when === undefined ? [] : [evaluators.predicate(route.when)(host)],
    );
    return { result: Number.isNaN(result) ? undefined : result, fires, firesNot };
  });
  expect(generated).toEqual(interpreted);
  expect(generated?.fires ?? false).toBe(generated?.result === true);
  expect(generated?.firesNot ?? false).toBe(generated?.result === false);
  return generated?.result;
}

describe("Kleene's logic", () => {
  test.each<[Truth, Truth, Truth, Truth]>([
    [T, T, T, T],
    [T, F, F, T],
    [T, U, U, T],
    [F, T, F, T],
    [F, F, F, F],
    [F, U, F, U],
    [U, T, U, T],
    [U, F, F, U],
    [U, U, U, U],
  ])('%s and, or %s', (left, right, conjunction, disjunction) => {
    const given = { signals: { 0: left, 1: right } };
    expect(valueOf(and(a, b), given)).toBe(conjunction);
    expect(valueOf(or(a, b), given)).toBe(disjunction);
    expect(valueOf(not(and(a, b)), given)).toBe(conjunction === undefined ? undefined : !conjunction);
    expect(valueOf(not(or(a, b)), given)).toBe(disjunction === undefined ? undefined : !disjunction);
    expect(valueOf(or(not(a), not(b)), given)).toBe(conjunction === undefined ? undefined : !conjunction);
  });

  test('and, or of nothing are true and false', () => {
    expect(valueOf(and())).toBe(true);
    expect(valueOf(or())).toBe(false);
  });
});

describe('unknown operands', () => {
  test.each(['==', '!=', '<', '<=', '>', '>='] as const)(
    '%s with an unknown number is unknown, and so is its negation',
    (op) => {
      expect(valueOf(compare(x, op, constant(50)))).toBeUndefined();
      expect(valueOf(compare(constant(50), op, x))).toBeUndefined();
      expect(valueOf(not(compare(x, op, constant(50))))).toBeUndefined();
      expect(valueOf(compare(x, op, y), { signals: { 2: 1 } })).toBeUndefined();
      expect(valueOf(compare(x, op, x))).toBeUndefined();
    },
  );

  test('`not (complexity > 50)` fires on 50, not on 51 and not on an unknown', () => {
    const rule = not(compare(x, '>', constant(50)));
    expect(valueOf(rule, { signals: { 2: 50 } })).toBe(true);
    expect(valueOf(rule, { signals: { 2: 51 } })).toBe(false);
    expect(valueOf(rule)).toBeUndefined();
  });

  test('texts and bools compare unknown when one is', () => {
    expect(valueOf(compare(s, '!=', constant('eu')))).toBeUndefined();
    expect(valueOf(compare(s, '==', t))).toBeUndefined();
    expect(valueOf(not(compare(s, '==', t)))).toBeUndefined();
    expect(valueOf(compare(s, '!=', t), { signals: { 4: 'eu' } })).toBeUndefined();
    expect(valueOf(compare(s, '!=', t), { signals: { 4: 'eu', 5: 'us' } })).toBe(true);
    expect(valueOf(compare(a, '==', b), { signals: { 0: false } })).toBeUndefined();
    expect(valueOf(compare(a, '==', not(b)), { signals: { 0: false, 1: true } })).toBe(true);
  });

  test('a range is false where one known bound says so', () => {
    expect(valueOf(within(x, constant(1), constant(3)), { signals: { 2: 1 } })).toBe(true);
    expect(valueOf(within(x, constant(1), constant(3)), { signals: { 2: 3 } })).toBe(true);
    expect(valueOf(within(x, constant(1), constant(3)))).toBeUndefined();
    expect(valueOf(within(x, y, constant(3)), { signals: { 2: 4 } })).toBe(false);
    expect(valueOf(within(x, y, constant(3)), { signals: { 2: 2 } })).toBeUndefined();
  });

  test('membership: true on a match, unknown without one if the value or a member is unknown', () => {
    const listed = isIn(s, list(constant('a'), t));
    expect(valueOf(listed, { signals: { 4: 'a' } })).toBe(true);
    expect(valueOf(listed, { signals: { 4: 'b' } })).toBeUndefined();
    expect(valueOf(listed, { signals: { 4: 'b', 5: 'b' } })).toBe(true);
    expect(valueOf(listed, { signals: { 4: 'b', 5: 'c' } })).toBe(false);
    expect(valueOf(listed, { signals: { 5: 'b' } })).toBeUndefined();
    expect(valueOf(listed)).toBeUndefined();
    expect(valueOf(isIn(s, constant([], { list: 'string' })), { signals: { 4: 'a' } })).toBe(false);
    expect(valueOf(isIn(s, constant([], { list: 'string' })))).toBeUndefined();
    expect(valueOf(isIn(s, words), { signals: { 4: 'a' } })).toBeUndefined();
    expect(valueOf(isIn(s, words), { signals: { 4: 'a', 6: ['a'] } })).toBe(true);
    expect(valueOf(contains(words, s), { signals: { 4: 'b', 6: ['a'] } })).toBe(false);
  });

  test('a long list is found in by hash with the same results', () => {
    const long = constant(Array.from({ length: 5000 }, (_, index) => `tenant-${index}`));
    expect(valueOf(isIn(s, long), { signals: { 4: 'tenant-4999' } })).toBe(true);
    expect(valueOf(isIn(s, long), { signals: { 4: 'tenant-5000' } })).toBe(false);
    expect(valueOf(isIn(s, long))).toBeUndefined();
  });

  test('`contains` and `matches` need their text', () => {
    expect(valueOf(contains(s, constant('b')), { signals: { 4: 'abc' } })).toBe(true);
    expect(valueOf(contains(s, constant('B')), { signals: { 4: 'abc' } })).toBe(false);
    expect(valueOf(contains(s, constant('b')))).toBeUndefined();
    expect(valueOf(matches(s, '^a+$'), { signals: { 4: 'aa' } })).toBe(true);
    expect(valueOf(matches(s, '^.$'), { signals: { 4: '😀' } })).toBe(true);
    expect(valueOf(matches(s, '^a+$'))).toBeUndefined();
  });

  test('`exists` is never unknown', () => {
    expect(valueOf(exists(x))).toBe(false);
    expect(valueOf(exists(x), { signals: { 2: 0 } })).toBe(true);
    expect(valueOf(exists(a), { signals: { 0: false } })).toBe(true);
    expect(valueOf(not(exists(and(a, b))), { signals: { 0: false } })).toBe(false);
    expect(valueOf(exists(and(a, b)), { signals: { 0: true } })).toBe(false);
  });

  test('`??` takes the first that is known', () => {
    const chain = coalesce(coalesce(x, y), constant(7));
    expect(valueOf(chain)).toBe(7);
    expect(valueOf(chain, { signals: { 3: 0 } })).toBe(0);
    expect(valueOf(chain, { signals: { 2: 5, 3: 0 } })).toBe(5);
    expect(valueOf(coalesce(a, constant(true)), { signals: { 0: false } })).toBe(false);
    expect(valueOf(coalesce(and(a, b), constant(true)), { signals: { 0: false } })).toBe(false);
    expect(valueOf(not(coalesce(compare(x, '>', constant(50)), constant(false))))).toBe(true);
    expect(valueOf(coalesce(s, coalesce(t, constant('none'))), { signals: { 4: '' } })).toBe('');
  });
});

describe('numbers', () => {
  test('arithmetic that leaves the finite numbers is unknown', () => {
    expect(valueOf(arithmetic(x, '/', y), { signals: { 2: 1, 3: 0 } })).toBeUndefined();
    expect(valueOf(arithmetic(x, '/', y), { signals: { 2: 0, 3: 0 } })).toBeUndefined();
    expect(valueOf(arithmetic(x, '*', y), { signals: { 2: 1e200, 3: 1e200 } })).toBeUndefined();
    expect(valueOf(arithmetic(constant(1), '/', constant(0)))).toBeUndefined();
    expect(
      valueOf(arithmetic(constant(1), '/', arithmetic(x, '*', y)), { signals: { 2: 1e200, 3: 1e200 } }),
    ).toBeUndefined();
    expect(
      valueOf(compare(arithmetic(x, '*', y), '>', constant(0)), { signals: { 2: 1e200, 3: 1e200 } }),
    ).toBeUndefined();
    expect(valueOf(coalesce(arithmetic(x, '/', y), constant(9)), { signals: { 2: 1, 3: 0 } })).toBe(9);
    expect(valueOf(arithmetic(x, '/', y), { signals: { 2: 1, 3: 4 } })).toBe(0.25);
  });

  test('min, max and clamp are unknown if an argument is', () => {
    expect(valueOf(call('min', x, y), { signals: { 2: 1 } })).toBeUndefined();
    expect(valueOf(call('max', x, y, constant(3)), { signals: { 2: 1, 3: 2 } })).toBe(3);
    expect(valueOf(call('clamp', x, constant(0), constant(10)), { signals: { 2: 11 } })).toBe(10);
    expect(valueOf(call('clamp', x, constant(0), y), { signals: { 2: 11 } })).toBeUndefined();
  });
});

describe('a long prompt', () => {
  const filler = 'x'.repeat(PROMPT_SEARCH_LIMIT);
  test.each([
    ['a match within the limit is true', `needle${filler}`, true],
    ['no match is unknown, since more is not seen', `${filler}needle`, undefined],
    ['a match across the limit is not seen', `${filler.slice(0, -3)}needle`, undefined],
    ['no match in a prompt of the limit is false', filler, false],
  ])('%s', (_, prompt, expected) => {
    expect(valueOf(matches(s, 'needle', true), { signals: { 4: prompt } })).toBe(expected);
    expect(valueOf(matches(s, 'needle'), { signals: { 4: prompt } })).toBe(prompt.includes('needle'));
  });
});

describe('aggregates', () => {
  const n = property(0);
  const p = property(1);
  test.each([
    ['min', [3, undefined, 1], 1],
    ['max', [3, undefined, 1], 3],
    ['sum', [3, undefined, 1], 4],
    ['avg', [3, undefined, 1], 2],
    ['min', [], undefined],
    ['max', [], undefined],
    ['avg', [], undefined],
    ['sum', [], 0],
    ['min', [undefined, undefined], undefined],
    ['max', [undefined], undefined],
    ['avg', [undefined], undefined],
    ['sum', [undefined], undefined],
    ['sum', [1e308, 1e308], undefined],
  ] as const)('%s of %j is %s', (name, numbers, expected) => {
    expect(valueOf(aggregate(name, n), { numbers })).toBe(expected);
    expect(valueOf(aggregate(name, n, { kind: 'tier', name: '70B' }), { numbers })).toBe(expected);
    expect(valueOf(aggregate(name, n, { kind: 'tier', name: 'no such tier' }), { numbers })).toBe(
      name === 'sum' ? 0 : undefined,
    );
  });

  test.each<[readonly Truth[], Truth, Truth, number]>([
    [[], U, U, 0],
    [[T], T, T, 1],
    [[F], F, F, 0],
    [[U], U, U, 0],
    [[T, F], T, F, 1],
    [[T, U], T, U, 1],
    [[F, U], U, F, 0],
    [[T, T, U, F], T, F, 2],
  ])('of %j: any, all, count', (bools, any, all, count) => {
    expect(valueOf(aggregate('any', p), { bools })).toBe(any);
    expect(valueOf(aggregate('all', p), { bools })).toBe(all);
    expect(valueOf(aggregate('count', p), { bools })).toBe(count);
    expect(valueOf(not(aggregate('any', p)), { bools })).toBe(any === undefined ? undefined : !any);
    expect(valueOf(aggregate('all', not(p)), { bools })).toBe(any === undefined ? undefined : !any);
  });

  test('an aggregate inside an aggregate ranges over its whole pool each time', () => {
    const aboveMean = aggregate('count', compare(n, '>', aggregate('avg', n)));
    expect(valueOf(aboveMean, { numbers: [1, 2, 3, 10] })).toBe(1);
  });
});
