/** What the proxy needs of an event loop's timers; tests give one that they move by hand. */
export interface Timers {
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(handle: unknown): void;
  /** Calls back after the sockets that are ready have been read. */
  setImmediate(callback: () => void): void;
}

/** The process's own timers. None of them keeps the process alive. */
export const systemTimers: Timers = Object.freeze({
  setTimeout: (callback: () => void, delayMs: number): unknown => setTimeout(callback, delayMs).unref(),
  clearTimeout: (handle: unknown): void => clearTimeout(handle as NodeJS.Timeout),
  setImmediate: (callback: () => void): void => {
    setImmediate(callback);
  },
});
