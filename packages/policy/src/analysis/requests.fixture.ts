import type { Value, ValueType } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram } from '../ir.ts';
import { expressionRoles } from '../eval/roles.ts';
import { poolTargets } from '../eval/reads.ts';
import type { HostData } from '../eval/program.fixture.ts';
import { operandsOf } from '../operands-of.ts';
import { nextDown, nextUp } from './doubles.ts';
import { signalShape } from './variable.ts';

/** The constants of programs, at which their conditions change their minds. */
export function constantsOf(programs: readonly PolicyProgram[]): {
  readonly numbers: readonly number[];
  readonly texts: readonly string[];
} {
  const numbers = new Set<number>([0, 1, 50, 100]);
  const texts = new Set<string>(['', 'eu', 'true', '12', 'elsewhere']);
  const add = (value: Value): void => {
    if (typeof value === 'number') numbers.add(value);
    if (typeof value === 'string') texts.add(value);
    if (typeof value === 'object') value.forEach(add);
  };
  const visit = (expression: Expression): void => {
    if (expression.kind === 'constant') add(expression.value);
    operandsOf(expression).forEach(visit);
  };
  for (const program of programs) for (const { expression } of expressionRoles(program)) visit(expression);
  return { numbers: [...numbers], texts: [...texts] };
}

const SLOTS = [0, 1, 2, 3, 4] as const;

/** A source of requests that the catalogue allows: at, about and between the constants of a program, a quarter unknown where they can be. */
export function createRequests(program: PolicyProgram, seed: number): () => HostData {
  const { numbers, texts } = constantsOf([program]);
  const pools = poolTargets(program).map((target) => (target.kind === 'any' ? 'any' : target.name));
  const shapes = program.signals.map((signal) => signalShape(signal, ''));
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pick = <T>(list: readonly T[], otherwise: T): T => list[random(list.length)] ?? otherwise;
  const numberOf = (low: number, high: number, whole: boolean): number => {
    const at = pick(numbers, 0);
    const near = [at, nextUp(at), nextDown(at), at + 1, at - 1, at + 0.5, (at + pick(numbers, 0)) / 2, random(120)];
    const value = pick(near, at);
    return Math.min(high, Math.max(low, whole ? Math.round(value) : value));
  };
  const valueOf = (type: ValueType, low = -Infinity, high = Infinity, whole = false): Value => {
    if (type === 'bool') return random(2) === 0;
    if (type === 'string') return pick(texts, '');
    if (isNumericType(type)) return numberOf(low, high, whole);
    if (typeof type === 'object' && 'enum' in type) return pick(type.enum, '');
    const member: ValueType = typeof type === 'object' ? type.list : 'string';
    return Array.from({ length: random(4) }, () => valueOf(member));
  };
  return () => ({
    signals: program.signals.map(({ type, known }, index) => {
      if (known === 'maybe' && random(4) === 0) return undefined;
      const { domain, grid } = shapes[index] ?? {};
      const [low, high] = domain?.kind === 'number' ? domain.ends : [];
      return valueOf(type, low, high, grid === 'whole');
    }),
    properties: program.properties.map(({ type }) =>
      SLOTS.map(() => (random(4) === 0 ? undefined : valueOf(type, type === 'number' ? -Infinity : 0))),
    ),
    pools: Object.fromEntries(pools.map((name) => [name, SLOTS.filter(() => random(3) > 0)])),
  });
}
