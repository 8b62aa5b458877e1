import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import { createEvaluators } from '../eval/create-evaluators.ts';
import { hostOf } from '../eval/program.fixture.ts';
import type { AdmissionRule, PolicyProgram, RouteRule } from '../ir.ts';
import type { Outcome, PolicyEnsure } from '../policy-checks.ts';
import { analysePolicy } from './analyse-policy.ts';
import { arbitraryEnsuredPolicy, combinationsOf } from './arbitrary-decidable-policy.fixture.ts';

/*
 * The meaning of `ensure` written down a second time, for one request: what may become of it for some state of the endpoints. The tiers of
 * these policies have one endpoint each.
 */

interface Possible {
  /** The first admission rule that holds is a queue. */
  readonly isQueuedFirst: boolean;
  readonly queues: number;
  /** The `reject` of the admission that refuses it. */
  readonly refusedBy: AdmissionRule | undefined;
  /** Rules that may take it: the first that holds and those after an `else next`. */
  readonly taking: readonly RouteRule[];
}

type Holds = (rule: AdmissionRule | RouteRule) => boolean;

function possible(program: PolicyProgram, holds: Holds): Possible {
  const met: AdmissionRule[] = [];
  for (const rule of program.admission) {
    if (!holds(rule)) continue;
    met.push(rule);
    if (rule.verb !== 'queue') break;
  }
  const last = met.at(-1);
  const refusedBy = last?.verb === 'reject' ? last : undefined;
  const taking: RouteRule[] = [];
  if (refusedBy === undefined)
    for (const route of program.routes) {
      if (!holds(route)) continue;
      taking.push(route);
      if (route.steps.at(-1)?.kind !== 'next') break;
    }
  return {
    isQueuedFirst: met[0]?.verb === 'queue',
    queues: met.filter(({ verb }) => verb === 'queue').length,
    refusedBy,
    taking,
  };
}

/** Tiers that a route may send to. */
const tiersOf = (route: RouteRule): readonly string[] =>
  route.steps.flatMap((step) => {
    if (step.kind !== 'destination') return [];
    // The only filter there is keeps tier "b".
    const targets = [
      ...step.targets.map(({ target }) => target),
      ...(step.with.fallbacks ?? []).map(({ target }) => target),
    ];
    return targets.map((target) => (target.kind === 'tier' ? target.name : 'b'));
  });

const verdictsOf = (route: RouteRule, verb: string): readonly number[] =>
  route.steps.flatMap((step) => (step.kind === 'verdict' && step.verb === verb ? [step.with.status ?? 429] : []));

const tierOf = (outcome: Outcome): string | undefined => {
  const target = outcome.kind === 'route' || outcome.kind === 'target' ? outcome.target : undefined;
  if (target === undefined || target.kind === 'any') return undefined;
  return target.kind === 'tier' ? target.name : 'b';
};

function may(outcome: Outcome, { taking, refusedBy, queues, isQueuedFirst }: Possible): boolean {
  const tier = tierOf(outcome);
  const goes = (route: RouteRule): boolean => tiersOf(route).some((name) => tier === undefined || name === tier);
  switch (outcome.kind) {
    case 'target':
      return taking.some(goes);
    case 'route': {
      const own = taking.filter(({ label }) => label === outcome.label);
      return own.some((route) => outcome.target === undefined || goes(route));
    }
    case 'default':
      return taking.some(({ kind }) => kind === 'default');
    case 'verdict': {
      const { verb, with: modifiers } = outcome.verdict;
      if (verb === 'admit') return refusedBy === undefined && !isQueuedFirst;
      const fits = (status: number): boolean => modifiers.status === undefined || modifiers.status === status;
      if (verb === 'queue') return queues > 0 || taking.some((route) => verdictsOf(route, 'queue').length > 0);
      if (refusedBy !== undefined) return fits(refusedBy.with.status ?? 429);
      return taking.some((route) => verdictsOf(route, 'reject').some(fits));
    }
  }
}

function must(outcome: Outcome, { taking, refusedBy, queues, isQueuedFirst }: Possible): boolean {
  const isTaken = refusedBy === undefined && taking.length > 0;
  const tier = tierOf(outcome);
  const stays = (route: RouteRule): boolean =>
    verdictsOf(route, 'reject').length === 0 && tiersOf(route).every((name) => tier === undefined || name === tier);
  switch (outcome.kind) {
    case 'target':
      return isTaken && taking.every(stays);
    case 'route':
      return (
        isTaken &&
        taking.every((route) => route.label === outcome.label && (outcome.target === undefined || stays(route)))
      );
    case 'default':
      return isTaken && taking.every(({ kind }) => kind === 'default');
    case 'verdict': {
      const { verb, with: modifiers } = outcome.verdict;
      if (verb === 'admit') return refusedBy === undefined && queues === 0;
      const fits = (status: number): boolean => modifiers.status === undefined || modifiers.status === status;
      if (verb === 'queue')
        return (
          isQueuedFirst ||
          (isTaken && taking.every(({ steps: [first] }) => first?.kind === 'verdict' && first.verb === 'queue'))
        );
      if (queues > 0) return false;
      if (refusedBy !== undefined) return fits(refusedBy.with.status ?? 429);
      return (
        isTaken &&
        taking.every(
          (route) =>
            tiersOf(route).length === 0 &&
            verdictsOf(route, 'queue').length === 0 &&
            verdictsOf(route, 'reject').every(fits),
        )
      );
    }
  }
}

test('every `ensure` is proved or refuted as trying all cases does', () => {
  const counts: { [verdict: string]: number } = {};
  fc.assert(
    fc.property(arbitraryEnsuredPolicy, (policy) => {
      const { program, checks, diagnostics } = compilePolicy({
        path: 'main.route',
        text: policy.text,
        manifests: fixtureManifests,
      });
      if (program === undefined || checks === undefined)
        throw new Error(`${diagnostics[0]?.message ?? ''}\n${policy.text}`);
      const analysis = analysePolicy(program, { checks });
      expect(analysis.unconfirmed).toBe(0);
      const evaluators = createEvaluators(program, { mode: 'generated' });
      const conditions = createEvaluators(checks.conditions, { mode: 'generated' });
      const broken = new Set<PolicyEnsure>();
      for (const values of combinationsOf(policy)) {
        const hostFor = (of: PolicyProgram): ReturnType<typeof hostOf> =>
          hostOf(of, [], { signals: of.signals.map(({ key }) => values.get(key)), properties: [], pools: {} });
        const host = hostFor(program);
        const about = hostFor(checks.conditions);
        const became = possible(
          program,
          ({ when }) =>
            when === undefined || (when.kind === 'constant' ? when.value === true : evaluators.predicate(when)(host)),
        );
        for (const ensure of checks.ensures) {
          const { when, mode, outcome } = ensure;
          const applies =
            when === undefined || (when.kind === 'constant' ? when.value === true : conditions.predicate(when)(about));
          if (applies && (mode === 'never' ? may(outcome, became) : !must(outcome, became))) broken.add(ensure);
        }
      }
      checks.ensures.forEach((ensure, index) => {
        const found = analysis.ensures[index];
        const expected = broken.has(ensure) ? 'refuted' : 'proved';
        counts[`${ensure.mode} ${expected}`] = (counts[`${ensure.mode} ${expected}`] ?? 0) + 1;
        expect(found?.verdict, `${ensure.label}: ${found?.reason ?? ''}\n${policy.text}`).toBe(expected);
        expect(found?.witness === undefined).toBe(expected === 'proved');
      });
    }),
    { numRuns: 150 },
  );
  console.info(`ensures against all cases: ${JSON.stringify(counts)}`);
  for (const verdict of ['always proved', 'always refuted', 'never proved', 'never refuted'])
    expect(counts[verdict], verdict).toBeGreaterThan(100);
}, 180_000);
