import type { Value } from '@signalbox/plugin-api';
import type { PolicyProgram } from '../ir.ts';
import type { EvaluationHost, Evaluators } from './evaluators.ts';
import type { HostData } from './program.fixture.ts';
import { hostOf } from './program.fixture.ts';
import { expressionRoles } from './roles.ts';

/** Negative zero is zero to a policy. */
function plain(value: Value | undefined): Value | undefined {
  if (typeof value === 'object') return value.map((member) => plain(member) ?? member);
  return value === 0 ? 0 : value;
}

/**
 * The results of every expression of a program in its role, filters also in place. Two evaluators agree if these are equal.
 */
export function evaluateAll(
  program: PolicyProgram,
  evaluators: Evaluators,
  data: HostData,
  slots: readonly number[],
): readonly unknown[] {
  const host: EvaluationHost = hostOf(program, evaluators.targets, data);
  const positions = Int32Array.from(slots);
  return expressionRoles(program).map(({ expression, role }) => {
    switch (role) {
      case 'predicate':
        return evaluators.predicate(expression)(host);
      case 'value':
        return plain(evaluators.value(expression)(host));
      case 'filter': {
        const out = new Int32Array(slots.length);
        const count = evaluators.filter(expression)(host, positions, slots.length, out);
        const inPlace = positions.slice();
        const countInPlace = evaluators.filter(expression)(host, inPlace, slots.length, inPlace);
        return { kept: [...out.subarray(0, count)], inPlace: [...inPlace.subarray(0, countInPlace)] };
      }
      case 'score': {
        const out = new Float64Array(slots.length).fill(7);
        evaluators.score(expression)(host, positions, slots.length, out);
        return Array.from(out, (score) => plain(score));
      }
    }
  });
}
