import type { Value } from '@signalbox/plugin-api';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import { arbitraryTypedPolicyText } from '../eval/arbitrary-policy-text.fixture.ts';
import { createEvaluators } from '../eval/create-evaluators.ts';
import { hostOf } from '../eval/program.fixture.ts';
import type { PolicyProgram } from '../ir.ts';
import { arbitrarySensiblePolicyText } from '../syntax/arbitrary.fixture.ts';
import { analysePolicy } from './analyse-policy.ts';
import type { Analysis } from './analyse-policy.ts';
import { arbitraryDecidablePolicy, combinationsOf } from './arbitrary-decidable-policy.fixture.ts';
import type { DecidablePolicy } from './arbitrary-decidable-policy.fixture.ts';
import { wayOf } from './first-match.fixture.ts';
import { referenceKey } from './meaning-key.ts';
import { createRequests } from './requests.fixture.ts';
import { signalShape } from './variable.ts';
import { pickValue } from './witness.ts';
import type { Witness } from './witness.ts';

function compile(text: string): PolicyProgram | undefined {
  return compilePolicy({ path: 'main.route', text, manifests: fixtureManifests }).program;
}

/** The request of a witness; what it does not name is unknown, or plain where it cannot be. */
function requestOf(program: PolicyProgram, witness: Witness): readonly (Value | undefined)[] {
  const given = new Map(witness.facts.map((fact) => [`${fact.key} ${JSON.stringify(fact.arguments)}`, fact.value]));
  return program.signals.map((signal) => {
    const shape = signalShape(signal, referenceKey(program, signal));
    return (
      given.get(`${signal.key} ${JSON.stringify(signal.arguments)}`) ??
      (signal.known === 'maybe' ? undefined : pickValue(shape, shape.domain))
    );
  });
}

/** Rules that a request comes to, by generated code. */
function createTrial(program: PolicyProgram): (signals: readonly (Value | undefined)[]) => ReadonlySet<string> {
  const evaluators = createEvaluators(program, { mode: 'generated' });
  return (signals) => {
    const way = wayOf(program, evaluators, hostOf(program, evaluators.targets, { signals, properties: [], pools: {} }));
    return new Set([...way.admission, ...(way.routes ?? [])]);
  };
}

const DEAD: ReadonlySet<string> = new Set(['unreachable', 'shadowed', 'contradiction']);

function expectRealWitnesses(program: PolicyProgram, analysis: Analysis): number {
  const comesTo = createTrial(program);
  let witnesses = 0;
  for (const { label, verdict, witness } of analysis.rules) {
    if (verdict !== 'reachable' && verdict !== 'constant') continue;
    if (witness === undefined) throw new Error(`"${label}" is ${verdict} without a witness`);
    expect(comesTo(requestOf(program, witness)), `${label}: ${witness.text}`).toContain(label);
    witnesses++;
  }
  expect(analysis.unconfirmed).toBe(0);
  return witnesses;
}

describe('on random policies', () => {
  const REQUESTS = 10_000;
  test('a rule called unreachable is hit by none of 10,000 requests at and between the borders, and every witness is real', () => {
    let dead = 0;
    let witnesses = 0;
    let notProved = 0;
    fc.assert(
      fc.property(fc.oneof(arbitrarySensiblePolicyText, arbitraryTypedPolicyText), fc.nat(), (text, seed) => {
        const program = compile(text);
        if (program === undefined) return;
        const analysis = analysePolicy(program);
        witnesses += expectRealWitnesses(program, analysis);
        notProved += analysis.rules.filter(({ verdict }) => verdict === 'not_proved').length;
        const unreachable = analysis.rules.filter(({ verdict }) => DEAD.has(verdict)).map(({ label }) => label);
        const constant = analysis.rules.filter(({ verdict }) => verdict === 'constant').map(({ label }) => label);
        if (unreachable.length + constant.length === 0) return;
        dead += unreachable.length;
        const evaluators = createEvaluators(program, { mode: 'generated' });
        const next = createRequests(program, seed);
        const rules = [...program.admission, ...program.routes].filter(({ label }) => constant.includes(label));
        for (let n = 0; n < REQUESTS; n++) {
          const host = hostOf(program, evaluators.targets, next());
          const way = wayOf(program, evaluators, host);
          const hit = unreachable.find((label) => way.admission.includes(label) || way.routes?.includes(label));
          if (hit !== undefined) throw new Error(`"${hit}" is hit`);
          for (const { label, when } of rules)
            if (when !== undefined && !evaluators.predicate(when)(host)) throw new Error(`"${label}" is not constant`);
        }
      }),
      { numRuns: 30 },
    );
    console.info(
      `analysis of random policies: ${dead} rules proved dead, ${witnesses} witnesses real, ${notProved} rules not proved`,
    );
    expect(dead).toBeGreaterThan(10);
    expect(witnesses).toBeGreaterThan(60);
  }, 240_000);

  test('within the decidable part every verdict is that of trying all cases', () => {
    const counts: { [verdict: string]: number } = {};
    fc.assert(
      fc.property(arbitraryDecidablePolicy, (policy) => {
        const program = compile(policy.text);
        if (program === undefined) throw new Error('the policy has an error');
        const analysis = analysePolicy(program);
        expectRealWitnesses(program, analysis);
        const { hit, fired, unmatched } = bruteForce(program, policy);
        for (const { label, verdict } of analysis.rules) {
          counts[verdict] = (counts[verdict] ?? 0) + 1;
          const expected = hit.has(label)
            ? ['reachable', 'constant']
            : fired.has(label)
              ? ['unreachable', 'shadowed']
              : ['contradiction'];
          expect(expected, `${label}\n${policy.text}`).toContain(verdict);
        }
        const isMissing = analysis.diagnostics.some(({ code }) => code === 'W0506');
        expect(isMissing, policy.text).toBe(unmatched);
      }),
      { numRuns: 400 },
    );
    console.info(`analysis against all cases: ${JSON.stringify(counts)}`);
    for (const verdict of ['reachable', 'unreachable', 'shadowed', 'contradiction', 'constant'])
      expect(counts[verdict], verdict).toBeGreaterThan(10);
  }, 240_000);
});

interface AllCases {
  /** Rules that some request comes to. */
  readonly hit: ReadonlySet<string>;
  /** Rules whose condition holds for some request. */
  readonly fired: ReadonlySet<string>;
  /** Whether some request that is let in comes to no route. */
  readonly unmatched: boolean;
}

function bruteForce(program: PolicyProgram, policy: DecidablePolicy): AllCases {
  const evaluators = createEvaluators(program, { mode: 'generated' });
  const hit = new Set<string>();
  const fired = new Set<string>();
  let unmatched = false;
  const rules = [...program.admission, ...program.routes];
  for (const values of combinationsOf(policy)) {
    const signals = program.signals.map(({ key }) => values.get(key));
    const host = hostOf(program, evaluators.targets, { signals, properties: [], pools: {} });
    const way = wayOf(program, evaluators, host);
    for (const label of [...way.admission, ...(way.routes ?? [])]) hit.add(label);
    if (way.routes?.length === 0) unmatched = true;
    for (const { label, when } of rules)
      if (when === undefined || (when.kind === 'constant' ? when.value === true : evaluators.predicate(when)(host)))
        fired.add(label);
  }
  return { hit, fired, unmatched };
}
