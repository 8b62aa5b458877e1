import type { DecisionRecord } from '@signalbox/telemetry';

export interface CanaryRules {
  /** Length of the window that both versions are compared over, and the time after which a canary that was not found wanting has passed. */
  readonly forMs: number;
  /** How much more of its requests the canary may fail, as a share: 0.01 is one request in a hundred. */
  readonly maxErrorIncrease: number;
  /** How many times as long the canary's first tokens may take. */
  readonly maxTtftRatio: number;
  /** Requests that each version must have ended in the window before the two are compared. */
  readonly minRequests: number;
}

export const DEFAULT_CANARY_RULES: CanaryRules = Object.freeze({
  forMs: 600_000,
  maxErrorIncrease: 0.01,
  maxTtftRatio: 1.2,
  minRequests: 20,
});

/** What was seen of one version in the window. Times in milliseconds; NaN where nothing was. */
export interface ArmFigures {
  readonly requests: number;
  readonly errors: number;
  readonly errorRate: number;
  /** Streams with a first token, and the geometric mean of its time. */
  readonly streams: number;
  readonly ttftMs: number;
}

/** One comparison: the estimate, the bound that it is held to, and what is known of it with confidence. */
export interface Comparison {
  /** Canary minus version in force for errors, canary over version in force for first tokens. */
  readonly estimate: number;
  /** The least that it may be by the margin; NaN while there are too few requests. */
  readonly atLeast: number;
  readonly allowed: number;
}

export interface CanaryFigures {
  readonly inForce: ArmFigures;
  readonly canary: ArmFigures;
  readonly errorIncrease: Comparison;
  readonly ttftRatio: Comparison;
}

export interface CanaryFault {
  readonly reason: 'error_rate' | 'ttft';
  /** A sentence with the figures. */
  readonly text: string;
}

/** Compares a canary with the version in force as their requests end. */
export interface CanaryJudge {
  /** Takes an ended request. Gives the fault that it makes certain, if any. */
  observe(arm: 'inForce' | 'canary', record: DecisionRecord): CanaryFault | undefined;
  figures(): CanaryFigures;
  /** The whole time is over, and both versions had requests enough. */
  passed(): boolean;
}

/**
 * One-sided confidence of 99.87 %. Higher than is usual for one test, because the two are compared at every request that ends, and since
 * requests of one session are not independent of each other.
 */
const Z = 3;
const SLICES = 20;

interface Counts {
  requests: number;
  errors: number;
  streams: number;
  /** Sums of the natural logarithm of milliseconds to the first token, and of its square. */
  logs: number;
  squares: number;
}

interface Slice {
  /** Which slice of time since the start it holds; -1 for none. */
  number: number;
  readonly inForce: Counts;
  readonly canary: Counts;
}

/**
 * A judge by these rules, on the clock `now` (milliseconds). The window slides in steps of a twentieth.
 *
 * Errors: with p₁ of n₁ requests of the canary and p₂ of n₂ of the version in force, the canary is at fault once
 * (p₁ − p₂) − √((p₁ − l₁)² + (u₂ − p₂)²) > `maxErrorIncrease`, where l₁ and u₂ are the lower bound of p₁ and the upper bound of p₂ by
 * Wilson's score interval (Newcombe 1998, method 10), which holds for few requests and for no errors at all.
 *
 * First tokens: with the means m and variances s² of the logarithms of the times to the first token of streams, the canary is at fault once
 * exp((m₁ − m₂) − z·√(s₁²/n₁ + s₂²/n₂)) > `maxTtftRatio`. Of logarithms, so that some very slow answers do not decide.
 */
export function createCanaryJudge(rules: CanaryRules, now: () => number): CanaryJudge {
  const startMs = now();
  const sliceMs = rules.forMs / SLICES;
  const slices: Slice[] = Array.from({ length: SLICES }, () => ({ number: -1, inForce: none(), canary: none() }));

  const current = (): number => Math.floor((now() - startMs) / sliceMs);
  const sliceNow = (): Slice => {
    const number = current();
    const slice = slices[number % SLICES];
    if (slice === undefined) throw new RangeError(`there is no slice ${number}`);
    if (slice.number !== number) {
      slice.number = number;
      Object.assign(slice.inForce, none());
      Object.assign(slice.canary, none());
    }
    return slice;
  };
  const sumOf = (arm: 'inForce' | 'canary'): Counts => {
    const oldest = current() - SLICES;
    const sum = none();
    for (const slice of slices) if (slice.number > oldest) add(sum, slice[arm]);
    return sum;
  };
  const figures = (): CanaryFigures => {
    const [inForce, canary] = [sumOf('inForce'), sumOf('canary')];
    return {
      inForce: figuresOf(inForce),
      canary: figuresOf(canary),
      errorIncrease: compareErrors(inForce, canary, rules),
      ttftRatio: compareTtft(inForce, canary, rules),
    };
  };
  return {
    observe(arm, record) {
      const failed = isFailure(record);
      if (failed === undefined) return undefined;
      const counts = sliceNow()[arm];
      counts.requests++;
      if (failed) counts.errors++;
      if (record.stream && record.ttftMs > 0) {
        const log = Math.log(record.ttftMs);
        counts.streams++;
        counts.logs += log;
        counts.squares += log * log;
      }
      return arm === 'canary' || failed ? faultIn(figures()) : undefined;
    },
    figures,
    passed() {
      const { inForce, canary } = figures();
      const enough = Math.min(inForce.requests, canary.requests) >= rules.minRequests;
      return enough && now() - startMs >= rules.forMs;
    },
  };
}

/** Undefined for a request whose client left: it says nothing of the version. An answer of 400 or more, or one that broke off, is a failure. */
function isFailure({ status, code }: DecisionRecord): boolean | undefined {
  if (status === 499 || code === 'client_abort') return undefined;
  return status >= 400 || code !== '';
}

function faultIn({ errorIncrease, ttftRatio, canary, inForce }: CanaryFigures): CanaryFault | undefined {
  if (errorIncrease.atLeast > errorIncrease.allowed) {
    return {
      reason: 'error_rate',
      text:
        `${percent(canary.errorRate)} of its ${canary.requests} requests failed, against ${percent(inForce.errorRate)} of ${inForce.requests} ` +
        `on the version in force: at least ${percent(errorIncrease.atLeast)} more, where ${percent(errorIncrease.allowed)} is allowed`,
    };
  }
  if (ttftRatio.atLeast > ttftRatio.allowed) {
    return {
      reason: 'ttft',
      text:
        `its first tokens took ${canary.ttftMs.toFixed(0)} ms (${canary.streams} streams), against ${inForce.ttftMs.toFixed(0)} ms ` +
        `(${inForce.streams}) on the version in force: at least ${ttftRatio.atLeast.toFixed(2)} times as long, where ${ttftRatio.allowed} is allowed`,
    };
  }
  return undefined;
}

function compareErrors(inForce: Counts, canary: Counts, rules: CanaryRules): Comparison {
  const [p1, p2] = [canary.errors / canary.requests, inForce.errors / inForce.requests];
  const enough = Math.min(inForce.requests, canary.requests) >= rules.minRequests;
  const below = p1 - wilson(canary, -1);
  const above = wilson(inForce, 1) - p2;
  return {
    estimate: p1 - p2,
    atLeast: enough ? p1 - p2 - Math.hypot(below, above) : Number.NaN,
    allowed: rules.maxErrorIncrease,
  };
}

/** One bound of Wilson's score interval for the share of errors: the lower by side -1, the upper by 1. */
function wilson({ requests: n, errors }: Counts, side: -1 | 1): number {
  const p = errors / n;
  const z2 = Z * Z;
  return (p + z2 / (2 * n) + side * Z * Math.sqrt((p * (1 - p)) / n + z2 / (4 * n * n))) / (1 + z2 / n);
}

function compareTtft(inForce: Counts, canary: Counts, rules: CanaryRules): Comparison {
  const [own, old] = [logMean(canary), logMean(inForce)];
  const enough = Math.min(inForce.streams, canary.streams) >= Math.max(2, rules.minRequests);
  const margin = Z * Math.sqrt(own.variance / canary.streams + old.variance / inForce.streams);
  return {
    estimate: Math.exp(own.mean - old.mean),
    atLeast: enough ? Math.exp(own.mean - old.mean - margin) : Number.NaN,
    allowed: rules.maxTtftRatio,
  };
}

function logMean({ streams: n, logs, squares }: Counts): { readonly mean: number; readonly variance: number } {
  const mean = logs / n;
  return { mean, variance: Math.max(0, (squares - n * mean * mean) / (n - 1)) };
}

function figuresOf(counts: Counts): ArmFigures {
  const { requests, errors, streams } = counts;
  return { requests, errors, errorRate: errors / requests, streams, ttftMs: Math.exp(logMean(counts).mean) };
}

function none(): Counts {
  return { requests: 0, errors: 0, streams: 0, logs: 0, squares: 0 };
}

function add(sum: Counts, { requests, errors, streams, logs, squares }: Counts): void {
  sum.requests += requests;
  sum.errors += errors;
  sum.streams += streams;
  sum.logs += logs;
  sum.squares += squares;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
