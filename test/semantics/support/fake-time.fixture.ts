import type { Clock } from '../../../packages/plugin-api/src/index.ts';
import type { Scheduler } from '../../../packages/core/src/index.ts';

/** A clock and timers that move only when told. */
export interface FakeTime extends Clock, Scheduler {
  /** Moves on by so many milliseconds; timers that fall due on the way run in order, each at its own time. */
  advance(ms: number): void;
}

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** `now()` starts at 0, `epochMs()` at the given wall-clock time. */
export function fakeTime(startEpochMs: number = Date.UTC(2026, 0, 1)): FakeTime {
  let nowMs = 0;
  const timers = new Set<Timer>();
  const nextDue = (untilMs: number): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers)
      if (timer.atMs <= untilMs && !(first !== undefined && first.atMs <= timer.atMs)) first = timer;
    return first;
  };
  return {
    now: () => nowMs,
    epochMs: () => startEpochMs + nowMs,
    setTimer(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance(ms) {
      const untilMs = nowMs + ms;
      for (let timer = nextDue(untilMs); timer !== undefined; timer = nextDue(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.atMs);
        timer.run();
      }
      nowMs = untilMs;
    },
  };
}
