/**
 * What the host gives to a plugin from outside, so that a plugin never reaches for a global: time, randomness and a log.
 */

/** A monotonic clock. `now()` is in milliseconds from an arbitrary origin and never goes back; `epochMs()` is the wall clock. */
export interface Clock {
  now(): number;
  epochMs(): number;
}

/** A source of uniform random numbers in [0, 1), seeded by the host so that a run can be repeated. */
export interface RandomSource {
  next(): number;
}

/** A structured log. `fields` hold scalars only; prompts, bodies and credentials never go in. */
export interface Logger {
  trace(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

export interface LogFields {
  readonly [name: string]: string | number | boolean | null | undefined;
}

/** A logger that writes nothing. */
export const silentLogger: Logger = Object.freeze({
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  child(): Logger {
    return silentLogger;
  },
});
