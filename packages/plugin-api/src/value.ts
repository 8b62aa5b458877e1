/**
 * The type of a catalogue name, as data. Units are canonical: `duration` seconds, `bytes` bytes, `percent` a fraction (95% is 0.95),
 * `rate` per second, `money` US dollars, `count` a plain number (tokens, requests). An enum is written and compared as strings.
 */
export type ValueType =
  | 'bool'
  | 'number'
  | 'count'
  | 'string'
  | 'duration'
  | 'bytes'
  | 'percent'
  | 'rate'
  | 'money'
  | { readonly enum: readonly string[] }
  | { readonly list: ValueType };

/** A known value of a signal or property. Numbers of every dimension are canonical float64s; a list or set is a frozen array. */
export type Value = number | string | boolean | readonly Value[];

/** Whether values of this type are numbers, for which unknown is NaN; for every other type unknown is `undefined`. */
export function isNumericType(type: ValueType): boolean {
  return typeof type === 'string' && type !== 'bool' && type !== 'string';
}

/** Whether `value` is known: not `undefined` and not NaN. */
export function isKnown(value: Value | undefined): value is Value {
  return value !== undefined && value === value;
}
