import type { Value } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
import { formatNumber } from '../check/value-types.ts';
import type { Column, EvaluationHost } from '../eval/evaluators.ts';
import type { Expression, PolicyProgram, RefArgument } from '../ir.ts';
import { interpret } from '../eval/interpret.ts';
import { referenceKey } from './meaning-key.ts';
import { holdsUnknown } from './region.ts';
import type { Region } from './region.ts';
import type { Narrowed } from './solve.ts';
import { propertyKey } from './translate.ts';
import { signalShape } from './variable.ts';
import type { Variable } from './variable.ts';

/** A request that shows something: signals with values; of signals that are not named, those that can be unknown are. */
export interface Witness {
  readonly facts: readonly {
    readonly key: string;
    readonly arguments: readonly RefArgument[];
    readonly value: Value;
  }[];
  /** As in a `given` of a test: `complexity = 51, model = "x"`. */
  readonly text: string;
}

/** Values of variables by their keys; undefined is unknown. */
export type Assignment = ReadonlyMap<string, Value | undefined>;

/** A value for each variable that was narrowed. */
export const assign = (narrowed: Narrowed): Assignment =>
  new Map(Array.from(narrowed, ([variable, region]) => [variable.key, pickValue(variable, region)]));

/** The witness of a solution. */
export function witnessOf(narrowed: Narrowed): Witness {
  const facts: Witness['facts'][number][] = [];
  const shown: string[] = [];
  const missing: string[] = [];
  const values = assign(narrowed);
  for (const variable of narrowed.keys()) {
    if (variable.signal === undefined) continue;
    const value = values.get(variable.key);
    if (value === undefined) {
      missing.push(variable.text);
      continue;
    }
    facts.push({ key: variable.signal.key, arguments: variable.signal.arguments, value });
    shown.push(`${variable.text} = ${valueText(value, variable)}`);
  }
  const absent = missing.length === 0 ? '' : `${missing.join(', ')} unknown`;
  const text = [shown.join(', '), absent].filter((part) => part !== '').join('; ');
  return { facts, text: text === '' ? 'any request' : text };
}

/** A value as it is written in a policy. */
export const valueText = (value: Value, { type }: Pick<Variable, 'type'>): string =>
  typeof value === 'number' ? formatNumber(value, type) : JSON.stringify(value);

/** The plainest value of a region, a known one where there is one; undefined is unknown. */
export function pickValue(variable: Pick<Variable, 'type' | 'grid' | 'choices'>, region: Region): Value | undefined {
  switch (region.kind) {
    case 'number':
      return pickNumber(region.ends, variable);
    case 'choice': {
      const at = variable.choices.findIndex((_, index) => (region.mask & (1 << index)) !== 0);
      const value = variable.choices[at];
      return typeof variable.type === 'object' && 'list' in variable.type && at >= 0 ? [] : value;
    }
    case 'text': {
      const [first] = region.members;
      if (!region.others) return first;
      const names = ['x', 'other', 'another'];
      for (let n = 2; n <= region.members.size + 2; n++) names.push(`other-${n}`);
      return names.find((name) => !region.members.has(name));
    }
  }
}

function pickNumber(ends: readonly number[], { type, grid }: Pick<Variable, 'type' | 'grid'>): number | undefined {
  let best: number | undefined;
  for (let i = 0; i < ends.length; i += 2) {
    const low = ends[i] ?? 0;
    const high = ends[i + 1] ?? 0;
    const found = plainNumber(low, high, grid === 'whole' ? 0 : type === 'percent' ? 2 : 0);
    if (best === undefined || String(found).length < String(best).length) best = found;
  }
  return best;
}

/** The number from `low` to `high` with the fewest decimals, and of those the one nearest to the lower end, or to zero if that lies between. */
function plainNumber(low: number, high: number, decimals: number): number {
  if (low <= 0 && high >= 0) return 0;
  if (low < 0) return -plainNumber(-high, -low, decimals);
  if (low === Infinity) return low;
  for (let digits = decimals; digits <= 20; digits++) {
    const rounded = Number(`${Math.ceil(Number(`${low}e${digits}`))}e-${digits}`);
    if (rounded >= low && rounded <= high) return rounded;
  }
  return low;
}

/** Conditions of one program, tried by the interpreter for one assignment of variables. */
export interface Trial {
  /** Whether a condition of a rule is known true. Absent: it is. */
  holds(condition: Expression | undefined): boolean;
  /** Whether an endpoint with these settled properties passes a destination's filter. Absent: it does. */
  passes(filter: Expression | undefined, endpoint: TriedEndpoint): boolean;
}

export interface TriedEndpoint {
  readonly name: string;
  readonly facts: ReadonlyMap<string, Value | undefined>;
}

/**
 * Tries conditions of a program. What has no value in the assignment is unknown, or plain where it cannot be; pools are empty. Keys are
 * those of variables, so that one assignment serves several programs.
 */
export function createTrials(program: PolicyProgram): (assignment: Assignment) => Trial {
  const interpreter = interpret(program);
  const keys = program.signals.map((signal) => referenceKey(program, signal));
  const propertyKeys = program.properties.map((property) => referenceKey(program, property));
  const plain = program.signals.map((signal, index): Value | undefined => {
    const shape = signalShape(signal, keys[index] ?? '');
    return holdsUnknown(shape.domain) ? undefined : pickValue(shape, shape.domain);
  });
  return (assignment) => {
    const values = keys.map((key, index) => (assignment.has(key) ? assignment.get(key) : plain[index]));
    const valueOf = (property: number, endpoint: TriedEndpoint): Value | undefined => {
      const fact = program.properties[property]?.key ?? '';
      if (endpoint.facts.has(fact)) return endpoint.facts.get(fact);
      return assignment.get(propertyKey(propertyKeys[property] ?? '', endpoint.name));
    };
    return {
      holds(condition) {
        if (condition === undefined) return true;
        if (condition.kind === 'constant') return condition.value === true;
        return interpreter.predicate(condition)(hostOf(program, values, () => undefined));
      },
      passes(filter, endpoint) {
        if (filter === undefined) return true;
        const host = hostOf(program, values, (property) => valueOf(property, endpoint));
        return interpreter.filter(filter)(host, Int32Array.of(0), 1, new Int32Array(1)) === 1;
      },
    };
  };
}

function hostOf(
  program: PolicyProgram,
  values: readonly (Value | undefined)[],
  propertyOf: (property: number) => Value | undefined,
): EvaluationHost {
  const n = new Float64Array(program.signals.length).fill(Number.NaN);
  const v: (Value | undefined)[] = [];
  program.signals.forEach(({ type }, index) => {
    const value = values[index];
    v.push(isNumericType(type) ? undefined : value);
    if (isNumericType(type) && typeof value === 'number') n[index] = value;
  });
  return {
    n,
    v,
    // A column holds numbers or values of its own type, by slot; there is one endpoint, in slot 0.
    column: (property) => [propertyOf(property)] as unknown as Column,
    pool: () => ({ slots: new Int32Array(0), length: 0 }),
  };
}
