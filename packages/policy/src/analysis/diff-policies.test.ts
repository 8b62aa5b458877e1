import type { Value } from '@signalbox/plugin-api';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import { createEvaluators } from '../eval/create-evaluators.ts';
import { hostOf } from '../eval/program.fixture.ts';
import { formatPolicy } from '../format/format-policy.ts';
import type { AdmissionRule, PolicyProgram, RouteRule } from '../ir.ts';
import { arbitrarySensiblePolicyText } from '../syntax/arbitrary.fixture.ts';
import { arbitraryDecidablePair, combinationsOf } from './arbitrary-decidable-policy.fixture.ts';
import { diffPolicies, findMoves } from './diff-policies.ts';
import type { FoundMoves, Move } from './diff-policies.ts';
import { renderDiff } from './diff-text.ts';
import { isWithin, onlyTexts, UNKNOWN_BIT } from './region.ts';
import type { Region } from './region.ts';
import { placesText } from './rule-outcome.ts';
import { choiceBit } from './variable.ts';
import type { Variable } from './variable.ts';

function compile(text: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'main.route', text, manifests: fixtureManifests });
  if (program === undefined) throw new Error(`${diagnostics[0]?.message ?? ''}\n${text}`);
  return program;
}

const TIERS = ['8B', '34B', '70B']
  .map((name, index) => `define tier "${name}" { model: "m", endpoints: ["http://10.0.0.${index}:8000"] }`)
  .join('\n');
const diff = (before: string, after: string): ReturnType<typeof diffPolicies> =>
  diffPolicies(compile(`${TIERS}\n${before}`), compile(`${TIERS}\n${after}`));
const text = (before: string, after: string): string => renderDiff(diff(before, after));

describe('requests that move', () => {
  test('are told as conditions, with where they went and go, and an example', () => {
    const old = 'route "hard" when complexity > 50 to tier "34B"\ndefault to tier "8B"';
    expect(text(old, 'route "hard" when complexity > 60 to tier "34B"\ndefault to tier "8B"')).toBe(
      [
        'requests move',
        '  complexity in (50, 60]',
        '    route "hard" to tier "34B" → default to tier "8B"',
        '    for example complexity = 51',
        '',
        'rules',
        '  route "hard": when: complexity > 50 → complexity > 60',
        '',
      ].join('\n'),
    );
    expect(text(old, 'route "hard" when complexity > 50 to tier "70B"\ndefault to tier "8B"')).toBe(
      [
        'requests move',
        '  complexity > 50',
        '    route "hard" to tier "34B" → route "hard" to tier "70B"',
        '    for example complexity = 51',
        '',
        'rules',
        '  route "hard": to tier "34B" → to tier "70B"',
        '',
      ].join('\n'),
    );
  });

  test('to a rule that is new, whole numbers and enumerations among the conditions', () => {
    const old = 'route "hard" when complexity > 50 to tier "70B"\ndefault to tier "8B"';
    const now = `route "tools" when tools > 2 and priority in ["high", "critical"] to tier "34B"\n${old}`;
    expect(diff(old, now).moves.map(({ region, from, to }) => [region, from.outcome, to.outcome])).toEqual([
      ['complexity > 50 and tools >= 3 and priority in ["critical", "high"]', 'to tier "70B"', 'to tier "34B"'],
      ['complexity <= 50 and tools >= 3 and priority in ["critical", "high"]', 'to tier "8B"', 'to tier "34B"'],
    ]);
  });

  test('by admission, and where no rule is left', () => {
    expect(diff('default to tier "8B"', 'reject "night" when hour in 0..5\ndefault to tier "8B"').moves).toMatchObject([
      {
        phase: 'admission',
        region: 'hour(zone: "UTC") <= 5',
        from: { outcome: 'admitted' },
        to: { outcome: 'reject' },
      },
    ]);
    expect(
      diff('route "s" when stream to tier "8B"\ndefault to tier "8B"', 'route "s" when stream to tier "8B"').moves,
    ).toMatchObject([{ phase: 'routing', region: 'all others', to: { outcome: '503 no_route' } }]);
  });

  test('where that cannot be decided, say so with the reason', () => {
    const { moves } = diff(
      'default to tier "8B"',
      'route "code" when prompt matches r"\\bTypeError\\b" to tier "70B"\ndefault to tier "8B"',
    );
    expect(moves).toMatchObject([
      {
        verdict: 'not_proved',
        region: 'prompt matches r"\\bTypeError\\b"',
        reason: 'depends on `prompt matches r"\\bTypeError\\b"`, which cannot be decided',
      },
    ]);
  });
});

describe('no change', () => {
  test('where only layout, comments, lets and words differ', () => {
    const old = 'route "hard" when complexity > 50 and not stream to tier "70B"\ndefault to tier "8B"';
    const now = [
      '# a comment',
      'let heavy = complexity > 50',
      'route "hard"',
      '  when heavy and',
      '    not stream to tier "70B" by least_tokens',
      'default to tier "8B"',
    ].join('\n');
    expect(text(old, now)).toBe('no change\n');
  });

  test('where a condition is written in another way that holds for the same requests', () => {
    const old = 'route "hard" when complexity > 50 and tools > 2 to tier "70B"\ndefault to tier "8B"';
    const now = 'route "hard" when not (complexity <= 50 or tools < 3) to tier "70B"\ndefault to tier "8B"';
    expect(text(old, now)).toBe('no change\n');
  });

  test('a policy and its formatted text', () => {
    fc.assert(
      fc.property(arbitrarySensiblePolicyText, (policy) => {
        const formatted = formatPolicy(policy, { file: 'main.route' }).text;
        expect(renderDiff(diffPolicies(compile(policy), compile(formatted)))).toBe('no change\n');
      }),
      { numRuns: 100 },
    );
  });
});

describe('what is told of rules and definitions', () => {
  test('filters, scores and modifiers of a rule that takes the same requests', () => {
    const old = 'route "hard" when complexity > 50 to tier "70B" where load < 90% by least_tokens with timeout 90s';
    const now =
      'route "hard" when complexity > 50 to tier "70B" where load < 80% by least_latency then least_tokens with timeout 30s, retry 1';
    expect(diff(`${old}\ndefault to tier "8B"`, `${now}\ndefault to tier "8B"`)).toMatchObject({
      isSame: false,
      moves: [],
      rules: [
        {
          change: 'changed',
          details: [
            'where: load < 90% → load < 80%',
            'by: least_tokens → least_latency then least_tokens',
            'timeout: 90s → 30s',
            'retry: none → attempts: 1',
          ],
        },
      ],
    });
  });

  test('rules that come, go, change places or names; a number in place of a label is no name', () => {
    const rules = [
      'route "a" when stream to tier "8B"',
      'route "b" when tools > 1 to tier "70B"',
      'default to tier "34B"',
    ];
    const [a = '', b = '', last = ''] = rules;
    expect(
      diff(rules.join('\n'), [b, a, last].join('\n')).rules.map(({ label, change }) => `${label} ${change}`),
    ).toEqual(['a moved']);
    expect(diff(rules.join('\n'), [a, last].join('\n')).rules).toMatchObject([{ label: 'b', change: 'removed' }]);
    const unnamed = 'route when stream to tier "8B"';
    expect(diff(`${unnamed}\n${last}`, `${b}\n${unnamed}\n${last}`).rules).toMatchObject([
      { label: 'b', change: 'added' },
    ]);
  });

  test('definitions, what an endpoint has from its tier at the tier alone', () => {
    const define = (gpus: number, more = ''): PolicyProgram =>
      compile(
        `define tier "70B" { model: "m", gpu: "H100", gpu_count: ${gpus}, endpoints: ["http://10.0.0.1:1"] }\n${more}\ndefault to tier "70B"`,
      );
    const limit = 'define limit "free" { key: tenant.id, requests: 60/min }';
    expect(diffPolicies(define(4), define(2, limit)).definitions).toEqual([
      { kind: 'tier', name: '70B', change: 'changed', details: ['gpu_count: 4 → 2'] },
      { kind: 'limit', name: 'free', change: 'added', details: [] },
    ]);
  });
});

/** The rule that takes a request first in each phase; undefined for none. */
interface First {
  readonly admission: AdmissionRule | undefined;
  readonly route: RouteRule | undefined;
  readonly isRefused: boolean;
}

function createFirst(program: PolicyProgram): (values: ReadonlyMap<string, Value | undefined>) => First {
  const evaluators = createEvaluators(program, { mode: 'generated' });
  return (values) => {
    const signals = program.signals.map(({ key }) => values.get(key));
    const host = hostOf(program, evaluators.targets, { signals, properties: [], pools: {} });
    const holds = ({ when }: AdmissionRule | RouteRule): boolean =>
      when === undefined || (when.kind === 'constant' ? when.value === true : evaluators.predicate(when)(host));
    const ending = program.admission.find((rule) => rule.verb !== 'queue' && holds(rule));
    return {
      admission: program.admission.find(holds),
      route: program.routes.find(holds),
      isRefused: ending?.verb === 'reject',
    };
  };
}

const outcomeOf = (rule: AdmissionRule | RouteRule | undefined): string =>
  rule === undefined || ('verb' in rule && rule.verb === 'admit') ? 'none' : placesText(rule);

function regionOf(variable: Variable, value: Value | undefined): Region {
  if (variable.domain.kind === 'number')
    return { kind: 'number', ends: typeof value === 'number' ? [value, value] : [], unknown: value === undefined };
  if (variable.domain.kind === 'choice')
    return { kind: 'choice', mask: value === undefined ? UNKNOWN_BIT : choiceBit(variable, value) };
  return value === undefined
    ? { kind: 'text', members: new Set(), others: false, unknown: true }
    : onlyTexts([String(value)]);
}

const isInBoxes = ({ boxes }: FoundMoves['moves'][number], values: ReadonlyMap<string, Value | undefined>): boolean =>
  boxes.some((box) =>
    Array.from(box).every(([variable, region]) =>
      isWithin(regionOf(variable, values.get(variable.signal?.key ?? '')), region),
    ),
  );

test('on random pairs, what is said to move is what moves, by trying all cases', () => {
  let moved = 0;
  let moves = 0;
  fc.assert(
    fc.property(arbitraryDecidablePair, (pair) => {
      const [before, after] = [compile(pair.before), compile(pair.after)];
      const [firstBefore, firstAfter] = [createFirst(before), createFirst(after)];
      const found = findMoves(before, after);
      expect(found.questions.unconfirmed).toBe(0);
      moves += found.moves.length;
      const hit = new Set<unknown>();
      for (const values of combinationsOf(pair)) {
        const [old, now] = [firstBefore(values), firstAfter(values)];
        const phases = [
          { phase: 'admission', from: old.admission, to: now.admission },
          ...(old.isRefused || now.isRefused ? [] : [{ phase: 'routing', from: old.route, to: now.route }]),
        ];
        for (const { phase, from, to } of phases) {
          const between = (move: Move): boolean =>
            move.phase === phase && move.from.label === from?.label && move.to.label === to?.label;
          const own = found.moves.find(({ move }) => between(move));
          if (own?.move.kind === 'places') hit.add(own);
          if (outcomeOf(from) === outcomeOf(to)) {
            expect(own?.move.kind).not.toBe('places');
            continue;
          }
          moved++;
          if (own === undefined) throw new Error(`a request moves and no one says so\n${pair.before}\n\n${pair.after}`);
          if (own.isWhole) expect(isInBoxes(own, values), own.move.region).toBe(true);
        }
      }
      for (const one of found.moves) {
        expect(one.move.verdict).toBe('proved');
        if (one.move.kind === 'places') expect(hit.has(one), one.move.region).toBe(true);
      }
    }),
    { numRuns: 300 },
  );
  console.info(`differences against all cases: ${moves} kinds of move, ${moved} cases moved`);
  expect(moves).toBeGreaterThan(200);
}, 180_000);
