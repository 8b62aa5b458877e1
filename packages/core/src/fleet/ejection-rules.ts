import { SignalboxError } from '@signalbox/plugin-api';
import type { Json } from '@signalbox/plugin-api';

/** When an endpoint is ejected and for how long: `ejection` of a tier or endpoint. Durations in milliseconds, shares as fractions. */
export interface EjectionRules {
  /** Failures in a row; Infinity where ejection is off. */
  readonly failures: number;
  /** Least share of successes over some thirty seconds with ten attempts or more; 0 where ejection is off. */
  readonly minSuccess: number;
  /** Length of the first ejection; the n-th is n times as long. */
  readonly durationMs: number;
  readonly maxDurationMs: number;
  /** Most of a tier that may be ejected at once. */
  readonly maxShare: number;
}

/** What holds where a policy says nothing. */
export const DEFAULT_EJECTION: EjectionRules = Object.freeze({
  failures: 5,
  minSuccess: 0.8,
  durationMs: 10_000,
  maxDurationMs: 300_000,
  maxShare: 0.5,
});

const OFF: EjectionRules = Object.freeze({ ...DEFAULT_EJECTION, failures: Infinity, minSuccess: 0 });

const KEYS: {
  readonly [key: string]: {
    readonly field: keyof EjectionRules;
    readonly scale: number;
    readonly least: number;
    readonly most: number;
  };
} = {
  failures: { field: 'failures', scale: 1, least: 1, most: 1e6 },
  min_success: { field: 'minSuccess', scale: 1, least: 0, most: 1 },
  duration: { field: 'durationMs', scale: 1000, least: 0.1, most: 86_400 },
  max_duration: { field: 'maxDurationMs', scale: 1000, least: 0.1, most: 86_400 },
  max_share: { field: 'maxShare', scale: 1, least: 0, most: 1 },
};

/**
 * Reads `ejection: false` (off) or `ejection: { failures: 5, min_success: 80%, duration: 10s, max_duration: 5m, max_share: 50% }`, any of
 * its keys. Throws SignalboxError `ejection_invalid`, naming the endpoint.
 */
export function readEjection(value: Json | undefined, endpoint: string): EjectionRules {
  if (value === undefined || value === true) return DEFAULT_EJECTION;
  if (value === false) return OFF;
  const invalid = (what: string): SignalboxError =>
    new SignalboxError(
      `endpoint ${JSON.stringify(endpoint)}: ${what}. Write \`ejection: false\` or { ${Object.keys(KEYS).join(', ')} }.`,
      {
        code: 'ejection_invalid',
        source: 'gateway',
      },
    );
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`ejection is ${JSON.stringify(value)}`);
  const rules: { -readonly [K in keyof EjectionRules]: EjectionRules[K] } = { ...DEFAULT_EJECTION };
  for (const [name, given] of Object.entries(value)) {
    const key = Object.hasOwn(KEYS, name) ? KEYS[name] : undefined;
    if (key === undefined) throw invalid(`ejection has no key "${name}"`);
    if (typeof given !== 'number' || !(given >= key.least && given <= key.most)) {
      throw invalid(`ejection.${name} is ${JSON.stringify(given)}; expected a number from ${key.least} to ${key.most}`);
    }
    rules[key.field] = given * key.scale;
  }
  return Object.freeze(rules);
}
