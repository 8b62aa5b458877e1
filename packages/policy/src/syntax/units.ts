/*
 * Units of literals and what people write in their place. Factors are to the canonical unit: seconds, items, bytes, per
 * second. Units below the canonical one divide, so that `40ms` is exactly the double nearest to 0.04.
 */

export interface Unit {
  readonly kind: 'duration' | 'count' | 'bytes';
  readonly factor: number;
  readonly divides?: true;
}

export const units: ReadonlyMap<string, Unit> = new Map<string, Unit>([
  ['us', { kind: 'duration', factor: 1e6, divides: true }],
  ['ms', { kind: 'duration', factor: 1e3, divides: true }],
  ['s', { kind: 'duration', factor: 1 }],
  ['m', { kind: 'duration', factor: 60 }],
  ['h', { kind: 'duration', factor: 3600 }],
  ['d', { kind: 'duration', factor: 86_400 }],
  ['k', { kind: 'count', factor: 1e3 }],
  ['Ki', { kind: 'count', factor: 1024 }],
  ['M', { kind: 'count', factor: 1e6 }],
  ['Mi', { kind: 'count', factor: 1024 ** 2 }],
  ['B', { kind: 'count', factor: 1e9 }],
  ['KB', { kind: 'bytes', factor: 1e3 }],
  ['MB', { kind: 'bytes', factor: 1e6 }],
  ['GB', { kind: 'bytes', factor: 1e9 }],
  ['KiB', { kind: 'bytes', factor: 1024 }],
  ['MiB', { kind: 'bytes', factor: 1024 ** 2 }],
  ['GiB', { kind: 'bytes', factor: 1024 ** 3 }],
]);

/** Seconds in the unit below the bar of a rate. */
export const ratePeriods: ReadonlyMap<string, number> = new Map([
  ['s', 1],
  ['min', 60],
  ['h', 3600],
  ['d', 86_400],
]);

const spellings = (unit: string, ...words: readonly string[]): readonly (readonly [string, string])[] =>
  words.map((word) => [word, unit] as const);

/** What is meant by common misspellings of a unit, in lower case; `%` stands for percent. */
export const misspelledUnits: ReadonlyMap<string, string> = new Map([
  ...spellings('us', 'usec', 'usecs', 'micros', 'microsecond', 'microseconds'),
  ...spellings('ms', 'msec', 'msecs', 'milli', 'millis', 'millisecond', 'milliseconds'),
  ...spellings('s', 'sec', 'secs', 'second', 'seconds'),
  ...spellings('m', 'min', 'mins', 'minute', 'minutes'),
  ...spellings('h', 'hr', 'hrs', 'hour', 'hours'),
  ...spellings('d', 'day', 'days'),
  ...spellings('k', 'thousand'),
  ...spellings('M', 'mil', 'mio', 'million', 'millions'),
  ...spellings('B', 'g', 'bn', 'billion', 'billions'),
  ...spellings('KB', 'kb'),
  ...spellings('MB', 'mb'),
  ...spellings('GB', 'gb'),
  ...spellings('KiB', 'kib'),
  ...spellings('MiB', 'mib'),
  ...spellings('GiB', 'gib'),
  ...spellings('%', 'pct', 'percent'),
]);

/** What is meant by common misspellings of the unit of a rate, in lower case. */
export const misspelledPeriods: ReadonlyMap<string, string> = new Map([
  ...spellings('s', 'sec', 'secs', 'second', 'seconds'),
  ...spellings('min', 'm', 'mins', 'minute', 'minutes'),
  ...spellings('h', 'hr', 'hrs', 'hour', 'hours'),
  ...spellings('d', 'day', 'days'),
]);

/** The unit that a wrong suffix stands for, if that is clear: another word or case for it, a letter doubled, two exchanged. */
export const unitMeant = (suffix: string): string | undefined => {
  const lower = suffix.toLowerCase();
  const misspelled = misspelledUnits.get(lower);
  if (misspelled !== undefined) return misspelled;
  const same = [...units.keys()].find((unit) => unit.toLowerCase() === lower);
  if (same !== undefined) return same;
  const slips = [suffix.replaceAll(/(.)\1+/g, '$1'), [...suffix].toReversed().join('')];
  return slips.find((slip) => units.has(slip));
};
