import type { LimitDefinition, RateLimit } from '@signalbox/policy';

/** What one request takes from a limit. Before its end these are estimates. */
export interface Charge {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Dollars. */
  readonly cost: number;
}

/** What is left of a rate. */
export interface Standing {
  readonly limit: number;
  /** Whole, at least 0. */
  readonly remaining: number;
  /** Seconds until nothing is used any more, if nothing comes. */
  readonly resetSeconds: number;
}

/** The tighter of two standings. */
export function tighter(one: Standing | undefined, other: Standing | undefined): Standing | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.remaining / other.limit < one.remaining / one.limit ? other : one;
}

export const NOTHING: Charge = Object.freeze({ inputTokens: 0, outputTokens: 0, cost: 0 });

/** What a limit holds for one key: use in sliding windows, and requests under way. Outlives policy versions. */
export interface LimitLedger {
  /** Whether this charge would take the key over the limit. */
  wouldExceed(limit: LimitDefinition, key: string, charge: Charge, nowMs: number): boolean;
  /** The used share: of the measure that is nearest to its end. */
  usage(limit: LimitDefinition, key: string, nowMs: number): number;
  /** Where the key stands in the limit's requests and in its tokens (of any kind, the tightest); undefined where it limits none. */
  standing(limit: LimitDefinition, key: string, of: 'requests' | 'tokens', nowMs: number): Standing | undefined;
  /** Seconds until there is room again for such a charge, at least 1. */
  retryAfterSeconds(limit: LimitDefinition, key: string, charge: Charge, nowMs: number): number;
  /** Takes the charge, once for a request. With `charge: after` only the request and its place are counted. */
  charge(limit: LimitDefinition, key: string, charge: Charge, nowMs: number): void;
  /** Gives the place back and replaces the estimate by what was really used. */
  settle(limit: LimitDefinition, key: string, estimate: Charge, real: Charge, nowMs: number): void;
  /** Keys held. */
  readonly size: number;
  /** Requests that hold a place under some concurrency limit. */
  readonly concurrent: number;
}

type Measure = 'requests' | 'tokens' | 'inputTokens' | 'outputTokens' | 'cost';

const REQUEST_MEASURES: readonly Measure[] = ['requests'];
const TOKEN_MEASURES: readonly Measure[] = ['tokens', 'inputTokens', 'outputTokens'];
const MEASURES: readonly Measure[] = ['requests', 'tokens', 'inputTokens', 'outputTokens', 'cost'];

interface Window {
  start: number;
  current: number;
  previous: number;
}

interface Entry {
  readonly windows: { [measure in Measure]?: Window };
  concurrent: number;
  touchedMs: number;
}

const SWEEP_ABOVE = 50_000;

/**
 * An empty ledger. A rate is held in two adjoining windows of its unit, the earlier weighted by the share of it that still lies within
 * one unit of now: exact at constant rates, and never more than the limit's amount above it in any unit.
 */
export function createLimitLedger(): LimitLedger {
  const entries = new Map<string, Entry>();
  let concurrent = 0;
  let sweepAt = SWEEP_ABOVE;

  const idOf = (limit: LimitDefinition, key: string): string => `${limit.name.length}:${limit.name}${key}`;

  const windowOf = (entry: Entry, measure: Measure, rate: RateLimit, nowMs: number): Window => {
    const length = rate.windowSeconds * 1000;
    const start = Math.floor(nowMs / length) * length;
    const window = (entry.windows[measure] ??= { start, current: 0, previous: 0 });
    if (start > window.start) {
      window.previous = start - window.start === length ? window.current : 0;
      window.current = 0;
      window.start = start;
    }
    return window;
  };

  const used = (entry: Entry | undefined, measure: Measure, rate: RateLimit, nowMs: number): number => {
    if (entry === undefined) return 0;
    const window = windowOf(entry, measure, rate, nowMs);
    const elapsed = (nowMs - window.start) / (rate.windowSeconds * 1000);
    return Math.max(0, window.current + window.previous * (1 - elapsed));
  };

  const sweep = (nowMs: number): void => {
    for (const [id, entry] of entries) {
      if (entry.concurrent === 0 && nowMs - entry.touchedMs > 2 * longestWindowMs(entry)) entries.delete(id);
    }
    sweepAt = Math.max(SWEEP_ABOVE, entries.size * 2);
  };

  const entryOf = (limit: LimitDefinition, key: string, nowMs: number): Entry => {
    const id = idOf(limit, key);
    let entry = entries.get(id);
    if (entry === undefined) {
      if (entries.size >= sweepAt) sweep(nowMs);
      entries.set(id, (entry = { windows: {}, concurrent: 0, touchedMs: nowMs }));
    }
    entry.touchedMs = nowMs;
    return entry;
  };

  const add = (
    entry: Entry,
    limit: LimitDefinition,
    amounts: { readonly [measure in Measure]: number },
    nowMs: number,
  ): void => {
    for (const measure of MEASURES) {
      const rate = limit[measure];
      if (rate === undefined || amounts[measure] === 0) continue;
      windowOf(entry, measure, rate, nowMs).current += amounts[measure];
    }
  };

  return {
    get size() {
      return entries.size;
    },
    get concurrent() {
      return concurrent;
    },

    wouldExceed(limit, key, charge, nowMs) {
      const entry = entries.get(idOf(limit, key));
      if (limit.concurrency !== undefined && (entry?.concurrent ?? 0) + 1 > limit.concurrency) return true;
      return MEASURES.some((measure) => {
        const rate = limit[measure];
        return rate !== undefined && used(entry, measure, rate, nowMs) + amountOf(measure, charge) > rate.amount;
      });
    },

    usage(limit, key, nowMs) {
      const entry = entries.get(idOf(limit, key));
      let most = limit.concurrency === undefined ? 0 : (entry?.concurrent ?? 0) / limit.concurrency;
      for (const measure of MEASURES) {
        const rate = limit[measure];
        if (rate !== undefined) most = Math.max(most, used(entry, measure, rate, nowMs) / rate.amount);
      }
      return most;
    },

    standing(limit, key, of, nowMs) {
      const entry = entries.get(idOf(limit, key));
      let tightest: Standing | undefined;
      for (const measure of of === 'requests' ? REQUEST_MEASURES : TOKEN_MEASURES) {
        const rate = limit[measure];
        if (rate === undefined) continue;
        const remaining = Math.max(0, Math.floor(rate.amount - used(entry, measure, rate, nowMs)));
        const window = entry?.windows[measure];
        const leftMs = window === undefined ? 0 : window.start + rate.windowSeconds * 1000 - nowMs;
        const resetMs =
          window === undefined
            ? 0
            : window.current > 0
              ? leftMs + rate.windowSeconds * 1000
              : window.previous > 0
                ? leftMs
                : 0;
        tightest = tighter(tightest, { limit: rate.amount, remaining, resetSeconds: Math.ceil(resetMs / 1000) });
      }
      return tightest;
    },

    retryAfterSeconds(limit, key, charge, nowMs) {
      const entry = entries.get(idOf(limit, key));
      let wait = 1;
      for (const measure of MEASURES) {
        const rate = limit[measure];
        if (rate === undefined) continue;
        const over = used(entry, measure, rate, nowMs) + amountOf(measure, charge) - rate.amount;
        if (over > 0) wait = Math.max(wait, Math.min(rate.windowSeconds, (over / rate.amount) * rate.windowSeconds));
      }
      return Math.ceil(wait);
    },

    charge(limit, key, charge, nowMs) {
      const entry = entryOf(limit, key, nowMs);
      entry.concurrent++;
      concurrent++;
      add(entry, limit, amountsOf(1, limit.charge === 'after' ? NOTHING : charge), nowMs);
    },

    settle(limit, key, estimate, real, nowMs) {
      const entry = entryOf(limit, key, nowMs);
      if (entry.concurrent > 0) {
        entry.concurrent--;
        concurrent--;
      }
      const before = limit.charge === 'after' ? NOTHING : estimate;
      add(
        entry,
        limit,
        amountsOf(0, {
          inputTokens: real.inputTokens - before.inputTokens,
          outputTokens: real.outputTokens - before.outputTokens,
          cost: real.cost - before.cost,
        }),
        nowMs,
      );
    },
  };

  function longestWindowMs(entry: Entry): number {
    // Windows are never longer than a day.
    return Object.keys(entry.windows).length === 0 ? 0 : 86_400_000;
  }
}

function amountOf(measure: Measure, charge: Charge): number {
  if (measure === 'requests') return 1;
  if (measure === 'tokens') return charge.inputTokens + charge.outputTokens;
  return charge[measure];
}

function amountsOf(requests: number, charge: Charge): { readonly [measure in Measure]: number } {
  return {
    requests,
    tokens: charge.inputTokens + charge.outputTokens,
    inputTokens: charge.inputTokens,
    outputTokens: charge.outputTokens,
    cost: charge.cost,
  };
}
