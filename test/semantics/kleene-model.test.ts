import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { bench, compile, endpoints, MODES } from './support/bench.fixture.ts';
import type { TestRequest } from './support/bench.fixture.ts';

/*
 * Random conditions over a request of which each fact may be missing, decided by the product in both modes and by the language page's
 * rules written down here once more.
 */

type Truth = boolean | undefined;
type Facts = { readonly [name: string]: number | string | boolean | readonly string[] | undefined };
interface Value<T> {
  readonly text: string;
  readonly of: (facts: Facts) => T | undefined;
}

const and = (a: Truth, b: Truth): Truth =>
  a === false || b === false ? false : a === undefined || b === undefined ? undefined : true;
const not = (a: Truth): Truth => (a === undefined ? undefined : !a);
const or = (a: Truth, b: Truth): Truth => not(and(not(a), not(b)));

const fact = <T>(text: string, name: string = text): Value<T> => ({
  text,
  of: (facts) => facts[name] as T | undefined,
});
const literal = <T extends number | string>(value: T): Value<T> => ({ text: JSON.stringify(value), of: () => value });

const numbers = fc.letrec<{ number: Value<number> }>((tie) => ({
  number: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom(fact<number>('prompt_tokens'), fact<number>('max_tokens'), fact<number>('tools')),
    fc.integer({ min: 0, max: 4 }).map((value) => literal(value)),
    fc.constant<Value<number>>({
      text: 'number(header["n"])',
      of: ({ n }) => (typeof n === 'string' && /^-?\d+$/.test(n) ? Number(n) : undefined),
    }),
    fc
      .tuple(tie('number'), fc.constantFrom('+', '-', '*', '/'), tie('number'))
      .map(([a, operator, b]): Value<number> => ({
        text: `(${a.text} ${operator} ${b.text})`,
        of: (facts) => {
          const [x, y] = [a.of(facts), b.of(facts)];
          if (x === undefined || y === undefined) return undefined;
          const result = operator === '+' ? x + y : operator === '-' ? x - y : operator === '*' ? x * y : x / y;
          return Number.isFinite(result) ? result : undefined;
        },
      })),
    fc.tuple(tie('number'), tie('number')).map(([a, b]): Value<number> => ({
      text: `(${a.text} ?? ${b.text})`,
      of: (facts) => a.of(facts) ?? b.of(facts),
    })),
    fc.tuple(fc.constantFrom('min', 'max'), tie('number'), tie('number')).map(([name, a, b]): Value<number> => ({
      text: `${name}(${a.text}, ${b.text})`,
      of: (facts) => {
        const [x, y] = [a.of(facts), b.of(facts)];
        return x === undefined || y === undefined ? undefined : name === 'min' ? Math.min(x, y) : Math.max(x, y);
      },
    })),
  ),
})).number;

const texts: fc.Arbitrary<Value<string>> = fc.oneof(
  fc.constantFrom(fact<string>('user'), fact<string>('session'), fact<string>('header["n"]', 'n')),
  fc.constantFrom('a', 'b', '3').map((value) => literal(value)),
  fc.constant<Value<string>>({
    text: '(session ?? user)',
    of: ({ session, user }) => (session ?? user) as string | undefined,
  }),
);

const compare = (x: number | string, operator: string, y: number | string): boolean =>
  operator === '=='
    ? x === y
    : operator === '!='
      ? x !== y
      : operator === '<'
        ? x < y
        : operator === '<='
          ? x <= y
          : operator === '>'
            ? x > y
            : x >= y;

function comparison<T extends number | string>(a: Value<T>, operator: string, b: Value<T>): Value<boolean> {
  return {
    text: `${a.text} ${operator} ${b.text}`,
    of: (facts) => {
      const [x, y] = [a.of(facts), b.of(facts)];
      return x === undefined || y === undefined ? undefined : compare(x, operator, y);
    },
  };
}

const conditions = fc.letrec<{ condition: Value<boolean> }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4 },
    fc
      .tuple(numbers, fc.constantFrom('==', '!=', '<', '<=', '>', '>='), numbers)
      .map(([a, operator, b]) => comparison(a, operator, b)),
    fc.tuple(texts, fc.constantFrom('==', '!='), texts).map(([a, operator, b]) => comparison(a, operator, b)),
    fc.constantFrom(fact<boolean>('stream')),
    fc.tuple(numbers, fc.integer({ min: 0, max: 2 }), numbers).map(([value, low, high]): Value<boolean> => ({
      text: `${value.text} in ${low}..(${high.text} + 3)`,
      of: (facts) => {
        const [x, top] = [value.of(facts), high.of(facts)];
        return and(
          x === undefined ? undefined : low <= x,
          x === undefined || top === undefined ? undefined : x <= top + 3,
        );
      },
    })),
    fc
      .tuple(texts, fc.array(texts, { minLength: 1, maxLength: 3 }), fc.boolean())
      .map(([value, list, negated]): Value<boolean> => ({
        text: `${value.text} ${negated ? 'not ' : ''}in [${list.map(({ text }) => text).join(', ')}]`,
        of: (facts) => {
          const x = value.of(facts);
          const members = list.map((member) => member.of(facts));
          const found =
            x === undefined ? undefined : members.includes(x) ? true : members.includes(undefined) ? undefined : false;
          return negated ? not(found) : found;
        },
      })),
    fc.tuple(texts, texts).map(([value, part]): Value<boolean> => ({
      text: `${value.text} contains ${part.text}`,
      of: (facts) => {
        const [x, y] = [value.of(facts), part.of(facts)];
        return x === undefined || y === undefined ? undefined : x.includes(y);
      },
    })),
    texts.map((value): Value<boolean> => ({
      text: `${value.text} exists`,
      of: (facts) => value.of(facts) !== undefined,
    })),
    numbers.map((value): Value<boolean> => ({
      text: `${value.text} exists`,
      of: (facts) => value.of(facts) !== undefined,
    })),
    tie('condition').map((inner): Value<boolean> => ({
      text: `not (${inner.text})`,
      of: (facts) => not(inner.of(facts)),
    })),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]): Value<boolean> => ({
      text: `(${a.text}) and (${b.text})`,
      of: (facts) => and(a.of(facts), b.of(facts)),
    })),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]): Value<boolean> => ({
      text: `(${a.text}) or (${b.text})`,
      of: (facts) => or(a.of(facts), b.of(facts)),
    })),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]): Value<boolean> => ({
      text: `((${a.text}) ?? (${b.text}))`,
      of: (facts) => a.of(facts) ?? b.of(facts),
    })),
  ),
})).condition;

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const requests = fc.record({
  tokens: fc.integer({ min: 0, max: 5 }),
  maxTokens: maybe(fc.integer({ min: 0, max: 5 })),
  user: maybe(fc.constantFrom('a', 'b')),
  session: maybe(fc.constantFrom('a', 'ab')),
  n: maybe(fc.constantFrom('3', '-1', 'x')),
  tools: fc.integer({ min: 0, max: 2 }),
  stream: fc.boolean(),
});

test('conditions come out as the rules say, in both modes', () => {
  const seen = { true: 0, false: 0, unknown: 0 };
  fc.assert(
    fc.property(conditions, fc.array(requests, { minLength: 8, maxLength: 8 }), (condition, given) => {
      const policy = `${endpoints({ true: '', false: '', unknown: '' })}
route when ${condition.text} to endpoint "true"
route when not (${condition.text}) to endpoint "false"
default to endpoint "unknown"`;
      const result = compile(policy);
      if (result.program === undefined) {
        // A division by a written zero, and a written range that runs backwards, are errors and need no value.
        for (const { code, severity } of result.diagnostics)
          if (severity === 'error') expect(code).toMatch(/^E03(12|29)$/);
        return;
      }
      for (const mode of MODES) {
        const made = bench(policy, { mode, compiled: result.program });
        for (const { tokens, maxTokens, user, session, n, tools, stream } of given) {
          const request: TestRequest = {
            promptTokensExact: tokens,
            stream,
            toolNames: Array.from({ length: tools }, (_, i) => `f${i}`),
            headers: {
              ...(session === undefined ? {} : { 'x-session-id': session }),
              ...(n === undefined ? {} : { n }),
            },
            ...(maxTokens === undefined ? {} : { maxTokens }),
            ...(user === undefined ? {} : { user }),
          };
          const expected = condition.of({
            prompt_tokens: tokens,
            max_tokens: maxTokens,
            user,
            session,
            n,
            tools,
            stream,
          });
          const word = expected === undefined ? 'unknown' : expected ? 'true' : 'false';
          seen[word]++;
          expect(made.send(request), `${mode}: ${condition.text}\n${JSON.stringify(request)}`).toBe(word);
        }
        made.core.close();
      }
    }),
    { numRuns: 300 },
  );
  // Each outcome has been seen often, or the test says little.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(300);
});
