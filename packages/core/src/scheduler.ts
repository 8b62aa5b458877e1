/** Timers, passed in so that tests and the simulator own time. `setTimer` returns the function that cancels it. */
export interface Scheduler {
  setTimer(delayMs: number, run: () => void): () => void;
}
