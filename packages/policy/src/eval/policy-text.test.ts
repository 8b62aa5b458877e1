import { readdirSync, readFileSync } from 'node:fs';
import type { Value, ValueType } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
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
import type { HostData } from './program.fixture.ts';
import { poolTargets } from './reads.ts';
import { operandsOf } from '../operands-of.ts';
import { expressionRoles } from './roles.ts';

const SLOTS = [0, 1, 2, 3, 4] as const;

function compile(text: string): PolicyProgram | undefined {
  return compilePolicy({ path: 'main.route', text, manifests: fixtureManifests }).program;
}

/** The constants of a program, near which its conditions change their minds. */
function constantsOf(program: PolicyProgram): {
  readonly numbers: readonly number[];
  readonly texts: readonly string[];
} {
  const numbers = new Set<number>([0, 1, 50]);
  const texts = new Set<string>(['', 'eu', 'true', '12']);
  const add = (value: Value): void => {
    if (typeof value === 'number') numbers.add(value);
    if (typeof value === 'string') texts.add(value);
    if (typeof value === 'object') value.forEach(add);
  };
  const visit = (e: Expression): void => {
    if (e.kind === 'constant') add(e.value);
    operandsOf(e).forEach(visit);
  };
  for (const { expression } of expressionRoles(program)) visit(expression);
  return { numbers: [...numbers], texts: [...texts] };
}

/** Contents for the signals and properties of a program, at and about its constants; a quarter is unknown. */
function hostDataFor(program: PolicyProgram, seed: number): HostData {
  const { numbers, texts } = constantsOf(program);
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const valueOf = (type: ValueType): Value => {
    if (type === 'bool') return random(2) === 0;
    if (type === 'string') return texts[random(texts.length)] ?? '';
    if (isNumericType(type)) return (numbers[random(numbers.length)] ?? 0) + random(5) / 2 - 1;
    if (typeof type === 'object' && 'enum' in type) return type.enum[random(type.enum.length)] ?? '';
    const member: ValueType = typeof type === 'object' ? type.list : 'string';
    return Array.from({ length: random(4) }, () => valueOf(member));
  };
  const maybe = (type: ValueType): Value | undefined => (random(4) === 0 ? undefined : valueOf(type));
  const pool = (): readonly number[] => SLOTS.filter(() => random(3) > 0);
  const names = poolTargets(program).map((target) => (target.kind === 'any' ? 'any' : target.name));
  return {
    signals: program.signals.map(({ type }) => maybe(type)),
    properties: program.properties.map(({ type }) => SLOTS.map(() => maybe(type))),
    pools: Object.fromEntries(names.map((name) => [name, pool()])),
  };
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
