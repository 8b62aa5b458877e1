import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { EventLoopUtilization } from 'node:perf_hooks';

/** How this thread fared in one sample. */
export interface LoopSample {
  /** Share of the time in which the event loop was busy, 0 to 1. */
  readonly utilisation: number;
  /** 99th percentile of how late timers were, in milliseconds. */
  readonly delayMs: number;
}

/** Turns samples of the event loop into a level of shedding: 0 none, 1 the lowest class, 2 the lowest two. */
export interface OverloadGuard {
  /** Takes a sample, and gives the level from here on. */
  sample(sample: LoopSample): number;
}

const BUSY_UTILISATION = 0.98;
const BUSY_DELAY_MS = 200;
/** Here whoever is admitted waits for seconds all the same. */
const DROWNING_DELAY_MS = 1000;

/**
 * Two bad samples in a row raise the level to the lesser of what they ask for, two better ones in a row lower it: one stall, such as a
 * collection or a machine that slept, sheds nobody.
 */
export function createOverloadGuard(): OverloadGuard {
  let level = 0;
  let before = 0;
  return {
    sample({ utilisation, delayMs }) {
      const asked = delayMs > DROWNING_DELAY_MS ? 2 : delayMs > BUSY_DELAY_MS || utilisation > BUSY_UTILISATION ? 1 : 0;
      level = Math.min(Math.max(level, Math.min(asked, before)), Math.max(asked, before));
      before = asked;
      return level;
    },
  };
}

const SAMPLE_MS = 1000;
const RESOLUTION_MS = 10;

/** Watches this thread's event loop, one sample a second, and tells each change of the level. Returns how to stop. */
export function watchEventLoop(changed: (level: number, sample: LoopSample) => void): () => void {
  const guard = createOverloadGuard();
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  let level = 0;
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const current = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(current, last);
    last = current;
    const delayMs = delays.count === 0 ? 0 : Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS);
    delays.reset();
    const sample = { utilisation: utilization, delayMs };
    const next = guard.sample(sample);
    if (next === level) return;
    level = next;
    changed(level, sample);
  }, SAMPLE_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    delays.disable();
  };
}
