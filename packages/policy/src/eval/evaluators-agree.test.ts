import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Expression } from '../ir.ts';
import { candidates, hostData, KINDS, partsWithRoot, programParts, TABLE } from './arbitrary-program.fixture.ts';
import { evaluateAll } from './evaluate-all.fixture.ts';
import { generate } from './generate.ts';
import { instantiateGenerated } from './instantiate-generated.ts';
import { interpret } from './interpret.ts';
import type { HostData, ProgramParts } from './program.fixture.ts';
import { hostOf, programOf } from './program.fixture.ts';
import { expressionRoles } from './roles.ts';

function bothResults(
  parts: ProgramParts,
  data: HostData,
  slots: readonly number[],
): readonly [generated: unknown, interpreted: unknown] {
  const program = programOf(TABLE, parts);
  const generated = instantiateGenerated(program, generate(program));
  return [evaluateAll(program, generated, data, slots), evaluateAll(program, interpret(program), data, slots)];
}

describe('generated code and the interpreter agree', () => {
  test('on whole programs', () => {
    fc.assert(
      fc.property(programParts(4), hostData, candidates, (parts, data, slots) => {
        const [generated, interpreted] = bothResults(parts, data, slots);
        expect(generated).toEqual(interpreted);
      }),
      { numRuns: 1500 },
    );
  });

  test.each(KINDS)('on expressions with %s at the root', (kind) => {
    fc.assert(
      fc.property(partsWithRoot(kind, 2), hostData, candidates, (parts, data, slots) => {
        const [generated, interpreted] = bothResults(parts, data, slots);
        expect(generated).toEqual(interpreted);
      }),
      { numRuns: 400 },
    );
  });

  test('in another thread: artefact and program survive a structured clone', () => {
    fc.assert(
      fc.property(programParts(3), hostData, candidates, (parts, data, slots) => {
        const program = programOf(TABLE, parts);
        const copy = structuredClone(program);
        const artefact = structuredClone(generate(program));
        expect(generate(copy)).toEqual(artefact);
        const here = evaluateAll(program, interpret(program), data, slots);
        expect(evaluateAll(copy, instantiateGenerated(copy, artefact), data, slots)).toEqual(here);
      }),
      { numRuns: 200 },
    );
  });

  test('a trace changes no result, and every leaf tells what was read', () => {
    fc.assert(
      fc.property(programParts(3), hostData, candidates, (parts, data, slots) => {
        const program = programOf(TABLE, parts);
        const leaves: Expression[] = [];
        const traced = interpret(program, {
          trace: (leaf) => leaves.push(leaf.expression),
        });
        expect(evaluateAll(program, traced, data, slots)).toEqual(
          evaluateAll(program, interpret(program), data, slots),
        );
        expect(leaves.filter((leaf) => leaf.type !== 'bool' || ['and', 'or', 'not'].includes(leaf.kind))).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test('an explanation ends in the result of the evaluator', () => {
    fc.assert(
      fc.property(programParts(3), hostData, (parts, data) => {
        const program = programOf(TABLE, parts);
        const interpreter = interpret(program);
        const host = hostOf(program, interpreter.targets, data);
        const roles = expressionRoles(program).filter(({ role }) => role === 'predicate' || role === 'filter');
        const explained = roles.map(
          ({ expression }) => interpreter.traceExpression(expression, host, 1).result === true,
        );
        const evaluated = roles.map(({ expression, role }) =>
          role === 'predicate'
            ? interpreter.predicate(expression)(host)
            : interpreter.filter(expression)(host, Int32Array.of(1), 1, new Int32Array(1)) === 1,
        );
        expect(explained).toEqual(evaluated);
      }),
      { numRuns: 300 },
    );
  });
});
