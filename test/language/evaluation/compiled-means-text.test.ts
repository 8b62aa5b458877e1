import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { fixtureManifests } from '../../../packages/policy/fixtures/catalogue.fixture.ts';
import { arbitraryTypedPolicyText } from '../../../packages/policy/src/eval/arbitrary-policy-text.fixture.ts';
import { hostOf } from '../../../packages/policy/src/eval/program.fixture.ts';
import type { Evaluators, Expression, PolicyProgram, RouteNode } from '../../../packages/policy/src/index.ts';
import {
  compilePolicy,
  generate,
  instantiateGenerated,
  interpret,
  parsePolicy,
} from '../../../packages/policy/src/index.ts';
import { ENDPOINTS, factsOf, hostDataOf } from './facts.ts';
import { interpretTree } from './interpret-tree.ts';
import type { Facts, TreeValue } from './interpret-tree.ts';

/** What the expressions of a route give: whether it fires, which endpoints it keeps, the score of each, the value of a header. */
interface Meaning {
  readonly fires: boolean;
  readonly kept: readonly number[];
  readonly scores: readonly (number | undefined)[];
  readonly header: TreeValue;
}

/** Twelve digits: constants may be folded in another order than they are written. */
const digits = (value: TreeValue): number | undefined =>
  typeof value === 'number' ? Number(value.toPrecision(12)) + 0 : undefined;

function meaningOfText(route: RouteNode, facts: Facts): Meaning {
  const { where, by, with: modifiers } = route.destination;
  const [score] = by?.tiers ?? [];
  const cost = score?.kind === 'call' ? score.args.items[0]?.value : undefined;
  const header = modifiers?.modifiers[0]?.parts[0]?.args?.items[0]?.value;
  if (route.when === undefined || where === undefined || cost === undefined || header === undefined)
    throw new Error('the generator writes routes of another form');
  return {
    fires: interpretTree(route.when, facts) === true,
    kept: ENDPOINTS.filter((endpoint) => interpretTree(where, facts, endpoint) === true),
    scores: ENDPOINTS.map((endpoint) => digits(interpretTree(cost, facts, endpoint))),
    header: interpretTree(header, facts),
  };
}

function meaningOfProgram(program: PolicyProgram, evaluators: Evaluators, label: string, facts: Facts): Meaning {
  const route = program.routes.find((rule) => rule.label === label);
  const step = route?.steps[0];
  if (route === undefined || step?.kind !== 'destination') throw new Error(`the program has no route ${label}`);
  const host = hostOf(program, evaluators.targets, hostDataOf(program, facts));
  const slots = Int32Array.from(ENDPOINTS);
  const kept = new Int32Array(ENDPOINTS.length);
  const scores = new Float64Array(ENDPOINTS.length);
  const scorer = step.by[0]?.terms[0]?.scorer;
  const cost: Expression | undefined = scorer?.kind === 'expression' ? scorer.expression : undefined;
  const header = step.with.headers?.[0]?.value;
  if (cost === undefined || header === undefined) throw new Error('the plan has another form');
  const count =
    step.where === undefined ? ENDPOINTS.length : evaluators.filter(step.where)(host, slots, slots.length, kept);
  if (step.where === undefined) kept.set(slots);
  evaluators.score(cost)(host, slots, slots.length, scores);
  const value = evaluators.value(header)(host);
  return {
    fires: route.when === undefined || evaluators.predicate(route.when)(host),
    kept: [...kept.subarray(0, count)],
    scores: Array.from(scores, (score) => (Number.isNaN(score) ? undefined : digits(score))),
    header: typeof value === 'number' && Number.isNaN(value) ? undefined : value,
  };
}

/**
 * Policies whose conditions are also lists of parts, which the plan holds beside the whole, and whose first names nothing uses, so that what
 * the plan reads is numbered anew.
 */
const arbitraryPolicy: fc.Arbitrary<string> = fc
  .tuple(
    arbitraryTypedPolicyText,
    fc.constantFrom('', ' and user != "nobody" and stream', ' and words >= 1'),
    fc.constantFrom('', 'let unused = words > 1 or user == "a" or header["x-slo"] == "b"\n'),
  )
  .map(([text, parts, unused]) => unused + text.replaceAll(/ when (.*)$/gm, ` when $1${parts}`));

test('a compiled policy, generated and interpreted, means what its text means', () => {
  let tried = 0;
  let compiled = 0;
  const reached = { fires: 0, kept: 0, scored: 0, headers: 0 };
  fc.assert(
    fc.property(arbitraryPolicy, fc.nat({ max: 1_000_000 }), (text, seed) => {
      tried += 1;
      const { program } = compilePolicy({ path: 'main.route', text, manifests: fixtureManifests });
      if (program === undefined) return;
      compiled += 1;
      const routes = parsePolicy(text, { file: 'main.route' }).file.statements.filter((node) => node.kind === 'route');
      const both = [instantiateGenerated(program, generate(program)), interpret(program)];
      for (const facts of [factsOf(seed), factsOf(seed + 1), factsOf(seed + 2)]) {
        for (const route of routes) {
          const meant = meaningOfText(route, facts);
          reached.fires += Number(meant.fires);
          reached.kept += meant.kept.length;
          reached.scored += meant.scores.filter((score) => score !== undefined).length;
          reached.headers += Number(meant.header !== undefined);
          for (const evaluators of both)
            expect(meaningOfProgram(program, evaluators, route.label?.value ?? '', facts)).toEqual(meant);
        }
      }
    }),
    { numRuns: Number(process.env['SIGNALBOX_MEANINGS'] ?? 400) },
  );
  process.stdout.write(`meanings: ${compiled} of ${tried} policies compiled; ${JSON.stringify(reached)}\n`);
  expect(compiled).toBeGreaterThan(0.8 * tried);
  for (const count of Object.values(reached)) expect(count).toBeGreaterThan(50);
});
