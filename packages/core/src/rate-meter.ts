// perf: one array write per request.

/** Counts arrivals. */
export interface RateMeter {
  count(nowMs: number): void;
  /** Arrivals per second over the last ten whole seconds; NaN in the first second. */
  perSecond(nowMs: number): number;
}

const SECONDS = 10;

export function createRateMeter(): RateMeter {
  const counts = new Int32Array(SECONDS + 1);
  let current = Number.NaN;
  let first = Number.NaN;
  /** The second in hand, in milliseconds, and its place among the counts. */
  let sinceMs = Number.NaN;
  let untilMs = Number.NaN;
  let place = 0;

  const toSecondOf = (nowMs: number): void => {
    const second = Math.floor(nowMs / 1000);
    if (current !== current) first = second;
    const gone = Math.min(counts.length, second - current);
    for (let i = 1; i <= gone; i++) counts[(current + i) % counts.length] = 0;
    current = second;
    sinceMs = second * 1000;
    untilMs = sinceMs + 1000;
    place = second % counts.length;
  };

  const advance = (nowMs: number): void => {
    if (!(nowMs >= sinceMs && nowMs < untilMs)) toSecondOf(nowMs);
  };

  return {
    count(nowMs) {
      advance(nowMs);
      counts[place]!++;
    },
    perSecond(nowMs) {
      advance(nowMs);
      const whole = Math.min(SECONDS, current - first);
      if (whole <= 0) return Number.NaN;
      let sum = 0;
      for (let i = 1; i <= whole; i++) sum += counts[(current - i + counts.length * 2) % counts.length]!;
      return sum / whole;
    },
  };
}
