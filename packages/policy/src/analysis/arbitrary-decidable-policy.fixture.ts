import type { Value } from '@signalbox/plugin-api';
import * as fc from 'fast-check';
import { nextDown, nextUp } from './doubles.ts';

/*
 * Random policies inside the decidable part over a few signals, with values of each that stand for all: for every condition that the
 * generator can write, each value of the signal behaves as one of these. So trying them all is a complete decision of its own.
 */

interface FiniteSignal {
  readonly name: string;
  readonly representatives: readonly (Value | undefined)[];
  readonly conditions: readonly string[];
}

const around = (constants: readonly number[], low: number, high: number): readonly number[] => {
  const points = new Set<number>([low, high]);
  for (const constant of constants) for (const x of [nextDown(constant), constant, nextUp(constant)]) points.add(x);
  return [...points].filter((x) => x >= low && x <= high);
};

const ORDERED = ['<', '<=', '>', '>=', '==', '!='] as const;
const compare = (name: string, constants: readonly (number | string)[]): readonly string[] =>
  constants.flatMap((constant) => ORDERED.map((op) => `${name} ${op} ${constant}`));

const SIGNALS: readonly FiniteSignal[] = [
  {
    name: 'complexity',
    representatives: around([0, 20, 50, 80, 100], 0, 100),
    conditions: [
      ...compare('complexity', [0, 20, 50, 80, 100]),
      'complexity in 20..50',
      'complexity not in 20..80',
      'complexity in [20, 50]',
    ],
  },
  {
    name: 'tools',
    representatives: Array.from({ length: 40 }, (_, n) => n),
    conditions: [
      ...compare('tools', [0, 1, 2, 3]),
      'tools * 2 + 1 > 6',
      '10 - tools < 8',
      '-tools >= -2',
      'tools / 3 == 1',
      'clamp(tools, 1, 3) == 3',
      'min(tools, 2) > 1',
      'max(tools, 2) in 2..4',
      '(tools - 2) * 0.1 >= 0.3',
    ],
  },
  {
    name: 'max_tokens',
    representatives: [undefined, ...around([-1, 0, 5, 64], -Infinity, Infinity)],
    conditions: [
      ...compare('max_tokens', [0, 5, 64]),
      ...compare('(max_tokens ?? 5)', [5, 64]),
      'max_tokens exists',
      'max_tokens == max_tokens',
      'max_tokens < max_tokens',
      '(max_tokens ?? 5) - 5 < 0',
    ],
  },
  {
    name: 'stream',
    representatives: [true, false],
    conditions: ['stream', 'stream == true', 'stream == (not stream)'],
  },
  {
    name: 'json_schema',
    representatives: [true, false, undefined],
    conditions: ['json_schema', '(json_schema ?? true)', 'json_schema exists', 'json_schema == false'],
  },
  {
    name: 'priority',
    representatives: ['critical', 'high', 'normal', 'low'],
    conditions: ['priority == "low"', 'priority != "high"', 'priority in ["high", "critical"]'],
  },
  {
    name: 'user',
    representatives: ['a', 'b', 'c', undefined],
    conditions: [
      'user == "a"',
      'user != "b"',
      'user in ["a", "b"]',
      'user not in ["a"]',
      'user exists',
      '(user ?? "a") == "a"',
      'user in ["b", user]',
      'not (user == "a")',
    ],
  },
];

export interface DecidablePolicy {
  readonly text: string;
  /** Every combination that has to be tried: values by the name of the signal. */
  readonly signals: readonly { readonly name: string; readonly representatives: readonly (Value | undefined)[] }[];
}

function conditionOver(signals: readonly FiniteSignal[]): fc.Arbitrary<string> {
  const leaf = fc.constantFrom(...signals).chain(({ conditions }) => fc.constantFrom(...conditions));
  return fc.letrec<{ condition: string }>((tie) => ({
    condition: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc
        .tuple(tie('condition'), fc.constantFrom('and', 'or'), tie('condition'))
        .map(([left, op, right]) => `(${left} ${op} ${right})`),
      tie('condition').map((inner) => `not (${inner})`),
      fc.tuple(tie('condition'), tie('condition')).map(([left, right]) => `((${left}) == (${right}))`),
    ),
  })).condition;
}

/** Admission rules and routes over two or three signals, some with `else next`, some in groups, with and without a default. */
export const arbitraryDecidablePolicy: fc.Arbitrary<DecidablePolicy> = fc
  .shuffledSubarray([...SIGNALS], { minLength: 1, maxLength: 3 })
  .chain((signals) => {
    const condition = conditionOver(signals);
    const admission = fc.tuple(fc.constantFrom('admit', 'reject', 'queue'), condition);
    const route = fc.tuple(
      fc.oneof({ weight: 9, arbitrary: condition.map((when) => ` when ${when}`) }, fc.constant('')),
      fc.constantFrom('to any', 'to any else next', 'to any else reject', 'to any else queue'),
    );
    return fc
      .record({
        admissions: fc.array(admission, { maxLength: 3 }),
        routes: fc.array(route, { minLength: 1, maxLength: 7 }),
        group: fc.option(condition, { nil: undefined }),
        isClosed: fc.boolean(),
      })
      .map(({ admissions, routes, group, isClosed }) => {
        const lines = routes.map(([when, to], index) => `route "r${index}"${when} ${to}`);
        const grouped =
          group === undefined ? lines : [`group "g" when ${group} {`, ...lines.slice(0, 2), '}', ...lines.slice(2)];
        return {
          signals,
          text: [
            ...admissions.map(([verb, when], index) => `${verb} "a${index}" when ${when}`),
            ...grouped,
            ...(isClosed ? ['default to any'] : []),
          ].join('\n'),
        };
      });
  });

/** Every combination of the representatives, as values by name. */
export function* combinationsOf({
  signals,
}: Pick<DecidablePolicy, 'signals'>): Iterable<ReadonlyMap<string, Value | undefined>> {
  const total = signals.reduce((product, { representatives }) => product * representatives.length, 1);
  for (let n = 0; n < total; n++) {
    const values = new Map<string, Value | undefined>();
    let rest = n;
    for (const { name, representatives } of signals) {
      values.set(name, representatives[rest % representatives.length]);
      rest = Math.floor(rest / representatives.length);
    }
    yield values;
  }
}

export interface DecidablePair extends Pick<DecidablePolicy, 'signals'> {
  readonly before: string;
  readonly after: string;
}

const OUTCOMES = [
  'to tier "a"',
  'to tier "b"',
  'to tier "a" by lowest(queue_depth)',
  'to tier "a" else tier "b"',
  'to tier "b" else next',
] as const;
const VERDICTS = ['admit', 'reject', 'reject with status 503', 'queue'] as const;

const TIERS = [
  'define tier "a" { model: "a", endpoints: ["http://127.0.0.1:1"] }',
  'define tier "b" { model: "b", endpoints: ["http://127.0.0.1:2"] }',
];

/**
 * Two policies over the same two signals: rules drawn from one set, so that some are in both, in the same or another order, some with another
 * condition or another destination.
 */
export const arbitraryDecidablePair: fc.Arbitrary<DecidablePair> = fc
  .shuffledSubarray([...SIGNALS], { minLength: 1, maxLength: 2 })
  .chain((signals) => {
    const condition = conditionOver(signals);
    const conditions = fc.array(condition, { minLength: 2, maxLength: 4 });
    const policy = (drawn: readonly string[]): fc.Arbitrary<string> => {
      const when = fc.constantFrom(...drawn);
      const rule = fc.tuple(when, fc.constantFrom(...OUTCOMES), fc.nat({ max: 9 }));
      const verdict = fc.tuple(when, fc.constantFrom(...VERDICTS), fc.nat({ max: 9 }));
      const label = ([, , name]: readonly [string, string, number]): number => name;
      return fc
        .record({
          rules: fc.uniqueArray(rule, { minLength: 1, maxLength: 5, selector: label }),
          verdicts: fc.uniqueArray(verdict, { maxLength: 2, selector: label }),
          isClosed: fc.boolean(),
        })
        .map(({ rules, verdicts, isClosed }) =>
          [
            ...TIERS,
            ...verdicts.map(([on, verb, name]) => {
              const [word = '', ...more] = verb.split(' ');
              return `${word} "a${name}" when ${on} ${more.join(' ')}`;
            }),
            ...rules.map(([on, to, name]) => `route "r${name}" when ${on} ${to.replace('else tier', 'else to tier')}`),
            ...(isClosed ? ['default to tier "b"'] : []),
          ].join('\n'),
        );
    };
    return conditions.chain((drawn) =>
      fc.record({ before: policy(drawn), after: policy(drawn) }).map((pair) => ({ signals, ...pair })),
    );
  });

const ENSURED_OUTCOMES = [
  'to tier "a"',
  'to tier "b"',
  'to tier "a" else to tier "b"',
  'to tier "b" with fallback tier "a"',
  'to tier "a" else reject',
  'to tier "a" else reject with status 503',
  'to tier "b" else queue',
  'to tier "b" else next',
  'to any where tier == "b" and queue_depth < 5',
  'to 100% tier "a", 0% tier "b"',
] as const;

const ENSURED = [
  'to tier "a"',
  'to tier "b"',
  'to any',
  'to endpoint "b/1"',
  'route "r0"',
  'route "r1" to tier "a"',
  'default',
  'reject',
  'reject with status 503',
  'queue',
  'admit',
] as const;

/** Policies with an `ensure` of every kind of outcome, each `always` and `never`, about the requests that meet a random condition. */
export const arbitraryEnsuredPolicy: fc.Arbitrary<DecidablePolicy> = fc
  .shuffledSubarray([...SIGNALS], { minLength: 1, maxLength: 2 })
  .chain((signals) => {
    const condition = conditionOver(signals);
    const route = fc.tuple(condition, fc.constantFrom(...ENSURED_OUTCOMES));
    return fc
      .record({
        verdicts: fc.array(fc.tuple(condition, fc.constantFrom(...VERDICTS)), { maxLength: 3 }),
        routes: fc.array(route, { minLength: 2, maxLength: 4 }),
        last: fc.constantFrom(
          '',
          'default to tier "b"',
          'default reject',
          'default queue',
          'default reject with status 503',
        ),
        about: fc.array(fc.oneof(condition, fc.constant('')), { minLength: 1, maxLength: 2 }),
      })
      .map(({ verdicts, routes, last, about }) => ({
        signals,
        text: [
          ...TIERS,
          ...verdicts.map(([on, verb], index) => {
            const [word = '', ...more] = verb.split(' ');
            return `${word} "a${index}" when ${on} ${more.join(' ')}`;
          }),
          ...routes.map(([on, to], index) => `route "r${index}" when ${on} ${to}`),
          last,
          ...about.flatMap((when, index) =>
            ENSURED.flatMap((outcome) =>
              ['always', 'never'].map(
                (mode) =>
                  `ensure "${index} ${mode} ${outcome.replaceAll('"', "'")}" ${when === '' ? '' : `when ${when} `}${mode} ${outcome}`,
              ),
            ),
          ),
        ].join('\n'),
      }));
  });
