import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { carbonManifest, fixtureManifests } from '../../fixtures/catalogue.fixture.ts';
import { compilePolicy } from '../compile.ts';
import type { Expression, PolicyProgram } from '../ir.ts';
import { arbitrarySensiblePolicyText } from '../syntax/arbitrary.fixture.ts';
import { arbitraryTypedPolicyText } from './arbitrary-policy-text.fixture.ts';
import { evaluateAll } from './evaluate-all.fixture.ts';
import { generate } from './generate.ts';
import { instantiateGenerated } from './instantiate-generated.ts';
import { interpret } from './interpret.ts';
import { hostDataFor, SLOTS } from './host-data.fixture.ts';
import { operandsOf } from '../operands-of.ts';
import { expressionRoles } from './roles.ts';

function compile(text: string): PolicyProgram | undefined {
  return compilePolicy({ path: 'main.route', text, manifests: fixtureManifests }).program;
}

function bothResults(
  program: PolicyProgram,
  seeds: readonly number[],
): readonly [generated: unknown, interpreted: unknown] {
  const generated = instantiateGenerated(program, generate(program));
  const interpreted = interpret(program);
  const data = seeds.map((seed) => hostDataFor(program, seed));
  return [
    data.map((one) => evaluateAll(program, generated, one, SLOTS)),
    data.map((one) => evaluateAll(program, interpreted, one, SLOTS)),
  ];
}

const seeds = fc.array(fc.nat(), { minLength: 3, maxLength: 3 });

describe('from text through the checker, generated code and the interpreter agree', () => {
  test('on policies of every kind of expression', () => {
    const kinds = new Set<string>();
    let tried = 0;
    let checked = 0;
    const visit = (e: Expression): void => {
      kinds.add(e.kind);
      operandsOf(e).forEach(visit);
    };
    fc.assert(
      fc.property(arbitraryTypedPolicyText, seeds, (text, given) => {
        const program = compile(text);
        tried++;
        if (program === undefined) return;
        checked++;
        for (const { expression } of expressionRoles(program)) visit(expression);
        const [generated, interpreted] = bothResults(program, given);
        expect(generated).toEqual(interpreted);
      }),
      { numRuns: 400 },
    );
    expect(checked).toBeGreaterThan(0.8 * tried);
    expect([...kinds].sort()).toEqual([
      'aggregate',
      'and',
      'arithmetic',
      'between',
      'call',
      'coalesce',
      'compare',
      'constant',
      'contains',
      'exists',
      'in',
      'list',
      'matches',
      'negate',
      'not',
      'or',
      'property',
      'signal',
    ]);
  });

  test('on sensible policies', () => {
    fc.assert(
      fc.property(arbitrarySensiblePolicyText, seeds, (text, given) => {
        const program = compile(text);
        if (program === undefined) throw new Error('a sensible policy has an error');
        const [generated, interpreted] = bothResults(program, given);
        expect(generated).toEqual(interpreted);
      }),
      { numRuns: 200 },
    );
  });

  const examples = new URL('../../fixtures/examples/', import.meta.url);
  test.each(readdirSync(examples).filter((file) => file.endsWith('.route')))('on the example %s', (file) => {
    const { program } = compilePolicy({
      path: file,
      text: readFileSync(new URL(file, examples), 'utf8'),
      readFile: (path) => readFileSync(new URL(path, examples), 'utf8'),
      manifests: fixtureManifests,
      resolvePlugin: () => ({ manifest: carbonManifest }),
    });
    if (program === undefined) throw new Error(`${file} does not compile`);
    const [generated, interpreted] = bothResults(program, [...Array(50).keys()]);
    expect(generated).toEqual(interpreted);
  });
});
