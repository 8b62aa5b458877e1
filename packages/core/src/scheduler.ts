/** Timers, passed in so that tests and the simulator own time. `setTimer` returns the function that cancels it. */
export interface Scheduler {
  setTimer(delayMs: number, run: () => void): () => void;
}

/** What timers of Node.js and browsers can be set for, some 25 days; one that is set for longer goes off at once. */
export const MOST_DELAY_MS: number = 2 ** 31 - 1;

/** The same timers, of which a longer one goes off after the most that they can be set for. */
export function withinReach(scheduler: Scheduler): Scheduler {
  return { setTimer: (delayMs, run) => scheduler.setTimer(Math.min(delayMs, MOST_DELAY_MS), run) };
}
