import type { Clock } from '@signalbox/plugin-api';

/** A clock that stands still until it is told to move. */
export interface FakeClock extends Clock {
  /** Moves both times on by so many milliseconds, at least 0. */
  advance(ms: number): void;
}

/** A FakeClock. `now()` starts at 0, `epochMs()` at the given wall-clock time. */
export function fakeClock(startEpochMs: number = Date.UTC(2026, 0, 1)): FakeClock {
  let elapsedMs = 0;
  return {
    now: () => elapsedMs,
    epochMs: () => startEpochMs + elapsedMs,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`a clock cannot move by ${ms} ms; expected a number of at least 0`);
      elapsedMs += ms;
    },
  };
}
