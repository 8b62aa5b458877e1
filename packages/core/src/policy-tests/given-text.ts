import type { Value, ValueType } from '@signalbox/plugin-api';
import type { PolicyProgram, SignalRef } from '@signalbox/policy';
import type { GivenRequest } from './given-signals.ts';
import { writtenValue } from './written-value.ts';

/** A request as the `given` of a test states it: `complexity = 51, header["x-tier"] = "gold"`. `any request` for none. */
export function givenText({ facts, tenant }: GivenRequest, programs: readonly PolicyProgram[]): string {
  const types = new Map(programs.flatMap(({ signals }) => signals.map((signal) => [signal.key, signal.type] as const)));
  const stated = [
    ...(tenant === undefined ? [] : [`tenant = ${JSON.stringify(tenant)}`]),
    ...[...facts].map(([id, value]) => factText(id, value, types)),
  ];
  return stated.length === 0 ? 'any request' : stated.join(', ');
}

function factText(id: string, value: Value, types: ReadonlyMap<string, ValueType>): string {
  const [key, index] = JSON.parse(id) as readonly [string, string?];
  const name = key === 'header' || key === 'metadata' ? `${key}[${JSON.stringify(index)}]` : key;
  return `${name} = ${writtenValue(value, types.get(key) ?? typeOf(value))}`;
}

function typeOf(value: Value): ValueType {
  if (typeof value === 'number') return 'number';
  return typeof value === 'boolean' ? 'bool' : 'string';
}

/** Whether a fact can state this signal: one without arguments, a header, a field of the metadata, the time in the zone of the gateway. */
export function canBeGiven({ key, arguments: given }: Pick<SignalRef, 'key' | 'arguments'>, timezone: string): boolean {
  if (given.length === 0 || key === 'header' || key === 'metadata') return true;
  return (key === 'hour' || key === 'weekday') && given.every((one) => one.kind === 'value' && one.value === timezone);
}
