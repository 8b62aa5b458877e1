import type { Value, ValueType } from '@signalbox/plugin-api';
import * as fc from 'fast-check';
import type { Expression, TargetRef } from '../ir.ts';
import type { HostData, ProgramParts, RefTable } from './program.fixture.ts';
import { constant, SPAN } from './program.fixture.ts';
import { PROMPT_SEARCH_LIMIT } from './runtime.ts';

const COLOUR: ValueType = { enum: ['red', 'green', 'blue'] };
const TEXTS: ValueType = { list: 'string' };
const NUMBERS: ValueType = { list: 'number' };

/** The kinds of value that random expressions have; `colour` is an enum. */
export type Sort = 'number' | 'bool' | 'string' | 'colour' | 'texts' | 'numbers';

const SORTS: readonly Sort[] = ['number', 'bool', 'string', 'colour', 'texts', 'numbers'];
const TYPES: { readonly [name in Sort]: ValueType } = {
  number: 'number',
  bool: 'bool',
  string: 'string',
  colour: COLOUR,
  texts: TEXTS,
  numbers: NUMBERS,
};

/** Three signals and three properties of each sort. */
export const TABLE: RefTable = {
  signals: SORTS.flatMap((sort) => [TYPES[sort], TYPES[sort], TYPES[sort]]),
  properties: SORTS.flatMap((sort) => [TYPES[sort], TYPES[sort], TYPES[sort]]),
};

const SLOTS = 6;

const numberValue = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -3, max: 5 }) },
  { weight: 2, arbitrary: fc.constantFrom(0.5, 0.95, 50, 1e308, -1e308, 5e-324, -0, Infinity, -Infinity) },
  { weight: 1, arbitrary: fc.double({ noNaN: true }) },
);
const textValue = fc.oneof(
  fc.constantFrom('', 'a', 'b', 'ab', 'AB', 'true', '0', '5', ' -3.5 ', '1e400', 'a, b,,c', '😀', "';\n`${1}`\\"),
  fc.string({ maxLength: 4 }),
);
const longText = fc
  .tuple(fc.constantFrom('a', 'b', 'x'), fc.integer({ min: PROMPT_SEARCH_LIMIT - 2, max: PROMPT_SEARCH_LIMIT + 2 }))
  .map(([letter, length]) => `${letter.repeat(length)}ab`);
const VALUES: { readonly [name in Sort]: fc.Arbitrary<Value> } = {
  number: numberValue,
  bool: fc.boolean(),
  string: textValue,
  colour: fc.constantFrom('red', 'green', 'blue'),
  texts: fc.array(textValue, { maxLength: 12 }),
  numbers: fc.array(numberValue, { maxLength: 12 }),
};

const maybe = (sort: Sort): fc.Arbitrary<Value | undefined> => fc.option(VALUES[sort], { nil: undefined, freq: 3 });

const slotSet = fc.shuffledSubarray([...Array(SLOTS).keys()]);

/** Random contents of a host for `TABLE`, unknowns and empty pools among them. */
export const hostData: fc.Arbitrary<HostData> = fc.record({
  signals: fc.tuple(
    ...SORTS.flatMap((sort) => [
      maybe(sort),
      maybe(sort),
      sort === 'string'
        ? fc.oneof({ weight: 3, arbitrary: maybe(sort) }, { weight: 1, arbitrary: longText })
        : maybe(sort),
    ]),
  ),
  properties: fc.tuple(
    ...SORTS.flatMap((sort) => {
      const column = fc.array(maybe(sort), { minLength: SLOTS, maxLength: SLOTS });
      const unknown = fc.constant(Array.from({ length: SLOTS }, () => undefined));
      return [column, column, fc.oneof({ weight: 3, arbitrary: column }, { weight: 1, arbitrary: unknown })];
    }),
  ),
  pools: fc.record({ any: slotSet, '8B': slotSet, '70B': slotSet, 'gpu-a': fc.constantFrom([], [2]) }),
});

export const candidates: fc.Arbitrary<readonly number[]> = slotSet;

const target: fc.Arbitrary<TargetRef | undefined> = fc.constantFrom<(TargetRef | undefined)[]>(
  undefined,
  { kind: 'any' },
  { kind: 'tier', name: '8B' },
  { kind: 'tier', name: '70B' },
  { kind: 'endpoint', name: 'gpu-a' },
);

type Kind = Expression['kind'];
type Place = 'request' | 'candidate';

interface Context {
  readonly place: Place;
  readonly depth: number;
}

const PATTERNS: readonly (readonly [string, string])[] = [
  ['a', ''],
  ['^a+$', ''],
  ['AB', 'i'],
  ['^.$', 's'],
  ['\\bb', 'm'],
  ['[😀-😎]', ''],
];

const memo = new Map<string, fc.Arbitrary<Expression>>();

/** Random well-typed expressions of a sort, that may read properties where the place is `candidate`. */
export function expressionOf(sort: Sort, place: Place, depth: number): fc.Arbitrary<Expression> {
  const key = `${sort} ${place} ${depth}`;
  let arbitrary = memo.get(key);
  if (arbitrary === undefined) {
    const context = { place, depth };
    const leaves = [
      ...kindOf('constant', sort, context),
      ...kindOf('signal', sort, context),
      ...kindOf('property', sort, context),
    ];
    const inner = depth === 0 ? [] : INNER_KINDS.flatMap((kind) => kindOf(kind, sort, context));
    arbitrary = fc.oneof(...leaves, ...inner);
    memo.set(key, arbitrary);
  }
  return arbitrary;
}

const INNER_KINDS: readonly Kind[] = [
  'negate',
  'arithmetic',
  'compare',
  'and',
  'or',
  'not',
  'between',
  'in',
  'list',
  'matches',
  'contains',
  'exists',
  'coalesce',
  'call',
  'aggregate',
];

/** Every node kind. */
export const KINDS: readonly Kind[] = ['constant', 'signal', 'property', ...INNER_KINDS];

/** Random expressions with this kind at the root: none, one or more generators, by sort. */
export function kindOf(kind: Kind, sort: Sort, context: Context): readonly fc.Arbitrary<Expression>[] {
  const { place, depth } = context;
  const type = TYPES[sort];
  const scope = place;
  const sub = (of: Sort, where: Place = place): fc.Arbitrary<Expression> =>
    expressionOf(of, where, Math.max(0, depth - 1));
  const base = { type, scope, span: SPAN } as const;
  const when = <T>(condition: boolean, make: () => T): readonly T[] => (condition ? [make()] : []);
  const isBool = sort === 'bool';
  const isNumber = sort === 'number';
  switch (kind) {
    case 'constant':
      return [VALUES[sort].map((value) => constant(value, type))];
    case 'signal':
      return [fc.nat({ max: 2 }).map((offset) => ({ ...base, kind, index: SORTS.indexOf(sort) * 3 + offset }))];
    case 'property':
      return when(place === 'candidate', () =>
        fc.nat({ max: 2 }).map((offset): Expression => ({ ...base, kind, index: SORTS.indexOf(sort) * 3 + offset })),
      );
    case 'negate':
      return when(isNumber, () => sub('number').map((operand): Expression => ({ ...base, kind, operand })));
    case 'arithmetic':
      return when(isNumber, () =>
        fc
          .tuple(fc.constantFrom('+', '-', '*', '/'), sub('number'), sub('number'))
          .map(([op, left, right]): Expression => ({ ...base, kind, op, left, right })),
      );
    case 'compare': {
      const ordered = fc.constantFrom('==', '!=', '<', '<=', '>', '>=');
      const equality = fc.constantFrom('==', '!=');
      return when(isBool, () =>
        fc.oneof(
          ...SORTS.map((of) =>
            fc
              .tuple(of === 'number' ? ordered : equality, sub(of), sub(of))
              .map(([op, left, right]): Expression => ({ ...base, kind, op, left, right })),
          ),
        ),
      );
    }
    case 'and':
    case 'or':
      return when(isBool, () =>
        fc
          .array(sub('bool'), { minLength: 1, maxLength: 4 })
          .map((operands): Expression => ({ ...base, kind, operands })),
      );
    case 'not':
      return when(isBool, () => sub('bool').map((operand): Expression => ({ ...base, kind, operand })));
    case 'between':
      return when(isBool, () =>
        fc
          .tuple(sub('number'), sub('number'), sub('number'))
          .map(([value, low, high]): Expression => ({ ...base, kind, value, low, high })),
      );
    case 'in':
      return when(isBool, () =>
        fc.oneof(
          ...(['string', 'number'] as const).map((of) =>
            fc
              .tuple(sub(of), sub(of === 'string' ? 'texts' : 'numbers'))
              .map(([value, list]): Expression => ({ ...base, kind, value, list })),
          ),
        ),
      );
    case 'list':
      return when(sort === 'texts' || sort === 'numbers', () =>
        fc
          .array(sub(sort === 'texts' ? 'string' : 'number'), { minLength: 1, maxLength: 11 })
          .map((members): Expression => ({ ...base, kind, members })),
      );
    case 'matches':
      return when(isBool, () =>
        fc
          .tuple(fc.constantFrom(...PATTERNS), sub('string'), fc.boolean())
          .map(([[pattern, flags], value, prompt]): Expression => ({ ...base, kind, value, pattern, flags, prompt })),
      );
    case 'contains':
      return when(isBool, () =>
        fc.oneof(
          ...(
            [
              ['string', 'string'],
              ['texts', 'string'],
              ['numbers', 'number'],
            ] as const
          ).map(([whole, piece]) =>
            fc.tuple(sub(whole), sub(piece)).map(([value, part]): Expression => ({ ...base, kind, value, part })),
          ),
        ),
      );
    case 'exists':
      return when(isBool, () =>
        fc.oneof(...SORTS.map((of) => sub(of))).map((operand): Expression => ({ ...base, kind, operand })),
      );
    case 'coalesce':
      return [fc.tuple(sub(sort), sub(sort)).map(([left, right]) => ({ ...base, kind, left, right }))];
    case 'call':
      return calls(sort, sub).map((call) => call.map((made): Expression => ({ ...base, kind, ...made })));
    case 'aggregate': {
      const functions = isNumber ? (['min', 'max', 'avg', 'sum', 'count'] as const) : (['any', 'all'] as const);
      return when(isNumber || isBool, () =>
        fc.constantFrom(...functions).chain((name) =>
          fc
            .tuple(sub(isBool || name === 'count' ? 'bool' : 'number', 'candidate'), target)
            .map(([body, of]): Expression => ({
              ...base,
              scope: 'request',
              kind,
              function: name,
              body,
              ...(of === undefined ? {} : { target: of }),
            })),
        ),
      );
    }
  }
}

type Call = Pick<Extract<Expression, { kind: 'call' }>, 'function' | 'arguments'>;

function calls(sort: Sort, sub: (of: Sort) => fc.Arbitrary<Expression>): readonly fc.Arbitrary<Call>[] {
  switch (sort) {
    case 'number':
      return [
        fc
          .tuple(fc.constantFrom('min', 'max'), fc.array(sub('number'), { minLength: 2, maxLength: 3 }))
          .map(([name, list]): Call => ({ function: name, arguments: list })),
        fc
          .tuple(sub('number'), sub('number'), sub('number'))
          .map((list): Call => ({ function: 'clamp', arguments: list })),
        sub('string').map((text): Call => ({ function: 'number', arguments: [text] })),
        fc
          .tuple(sub('string'), fc.constantFrom(0.001, 1, 60, 3600))
          .map(([text, unit]): Call => ({ function: 'duration', arguments: [text, constant(unit, 'duration')] })),
      ];
    case 'bool':
      return [sub('string').map((text): Call => ({ function: 'bool', arguments: [text] }))];
    case 'string':
      return [sub('string').map((text): Call => ({ function: 'lower', arguments: [text] }))];
    case 'texts':
      return [
        fc
          .tuple(sub('string'), fc.constantFrom(',', ' '))
          .map(([text, separator]): Call => ({ function: 'list', arguments: [text, constant(separator)] })),
      ];
    default:
      return [];
  }
}

/** Random expressions with this kind at the root, of every sort that has it, for the roles of a program. */
export function partsWithRoot(kind: Kind, depth: number): fc.Arbitrary<ProgramParts> {
  const rooted = (sort: Sort, place: Place): readonly fc.Arbitrary<Expression>[] =>
    kindOf(kind, sort, { place, depth });
  const list = (generators: readonly fc.Arbitrary<Expression>[]): fc.Arbitrary<readonly Expression[]> =>
    generators.length === 0 ? fc.constant([]) : fc.oneof(...generators).map((expression) => [expression]);
  return fc.record({
    predicates: list(rooted('bool', 'request')),
    values: list(SORTS.flatMap((sort) => rooted(sort, 'request'))),
    filters: list(rooted('bool', 'candidate')),
    scores: list([...rooted('number', 'candidate'), ...rooted('bool', 'candidate')]),
  });
}

/** Random expressions of every role. */
export function programParts(depth: number): fc.Arbitrary<ProgramParts> {
  const list = (sorts: readonly Sort[], place: Place): fc.Arbitrary<readonly Expression[]> =>
    fc.array(fc.oneof(...sorts.map((sort) => expressionOf(sort, place, depth))), { minLength: 1, maxLength: 3 });
  return fc.record({
    predicates: list(['bool'], 'request'),
    values: list(SORTS, 'request'),
    filters: list(['bool'], 'candidate'),
    scores: list(['number', 'number', 'bool'], 'candidate'),
  });
}
