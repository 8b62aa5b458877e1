import type { Scheduler } from '@signalbox/core';
import type { Clock } from '@signalbox/plugin-api';

/** The process's clocks. */
export const systemClock: Clock = Object.freeze({ now: () => performance.now(), epochMs: () => Date.now() });

/** The process's timers, none of which keeps it alive. */
export const systemScheduler: Scheduler = Object.freeze({
  setTimer(delayMs: number, run: () => void): () => void {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
});
