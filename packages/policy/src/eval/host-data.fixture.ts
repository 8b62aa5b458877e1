import type { Value, ValueType } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
import type { Expression, PolicyProgram } from '../ir.ts';
import { operandsOf } from '../operands-of.ts';
import type { HostData } from './program.fixture.ts';
import { poolTargets } from './reads.ts';
import { expressionRoles } from './roles.ts';

/** The endpoints of a test host. */
export const SLOTS: readonly number[] = [0, 1, 2, 3, 4];

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
export function hostDataFor(program: PolicyProgram, seed: number): HostData {
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
