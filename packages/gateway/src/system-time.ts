import { performance } from 'node:perf_hooks';
import type { Scheduler } from '@signalbox/core';
import type { Clock } from '@signalbox/plugin-api';

/** The process's clocks. `performance` is imported because the global of that name is a getter, and this is read for every request. */
export const systemClock: Clock = Object.freeze({ now: () => performance.now(), epochMs: () => Date.now() });

/** The process's timers, none of which keeps it alive. */
export const systemScheduler: Scheduler = Object.freeze({
  setTimer(delayMs: number, run: () => void): () => void {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
});
