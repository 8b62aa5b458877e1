/** Something that has a next moment at which it wants to be called. Times are milliseconds of the pacer's clock. */
export interface PacedDriver {
  /** When the next event is due; undefined when there is none. */
  nextEventMs(): number | undefined;
  /** Does all that is due by `nowMs`. */
  advance(nowMs: number): void;
}

/** The one timer of many engines: it fires when the earliest of their events is due, and no more often than the shortest interval. */
export interface Pacer {
  nowMs(): number;
  /** Adds a driver; call `wake` when its next event may have come nearer, `remove` when it ends. */
  add(driver: PacedDriver): { wake(): void; remove(): void };
}

/** How a pacer is built. */
export interface PacerOptions {
  /** A monotonic clock in milliseconds; default `performance.now`. */
  readonly now?: () => number;
  /** Least time between two rounds; events in between are done together. Default 5. */
  readonly shortestIntervalMs?: number;
  /** Runs something once after a delay in milliseconds, and returns how to call it off; default `setTimeout`. */
  readonly setTimer?: (run: () => void, delayMs: number) => () => void;
}

const nodeTimer = (run: () => void, delayMs: number): (() => void) => {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
};

/** A pacer without drivers: it holds no timer while nothing is due. */
export function createPacer(options: PacerOptions = {}): Pacer {
  const { now = () => performance.now(), shortestIntervalMs = 5, setTimer = nodeTimer } = options;
  const drivers = new Set<PacedDriver>();
  let callOff: (() => void) | undefined;
  let timerDueMs = Infinity;
  let lastRoundMs = -Infinity;

  function round(): void {
    callOff = undefined;
    timerDueMs = Infinity;
    const nowMs = now();
    lastRoundMs = nowMs;
    for (const driver of drivers) {
      const next = driver.nextEventMs();
      if (next !== undefined && next <= nowMs) driver.advance(nowMs);
    }
    schedule();
  }

  function schedule(): void {
    let dueMs = Infinity;
    for (const driver of drivers) dueMs = Math.min(dueMs, driver.nextEventMs() ?? Infinity);
    dueMs = Math.max(dueMs, lastRoundMs + shortestIntervalMs);
    if (dueMs >= timerDueMs) return;
    callOff?.();
    timerDueMs = dueMs;
    callOff = setTimer(round, Math.max(0, dueMs - now()));
  }

  return {
    nowMs: now,
    add(driver) {
      drivers.add(driver);
      schedule();
      return {
        wake: schedule,
        remove() {
          drivers.delete(driver);
          if (drivers.size > 0) return;
          callOff?.();
          callOff = undefined;
          timerDueMs = Infinity;
        },
      };
    },
  };
}
