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

/** What limits hold for each key: use in sliding windows, and requests under way. Outlives policy versions. */
export interface LimitLedger {
  /** Whether this charge would take the key over the limit. */
  wouldExceed(limit: LimitDefinition, key: string, charge: Charge, nowMs: number): boolean;
  /** The used share: of the measure that is nearest to its end. */
  usage(limit: LimitDefinition, key: string, nowMs: number): number;
  /** Where the key stands in the limit's requests and in its tokens (of any kind, the tightest); undefined where it limits none. */
  standing(limit: LimitDefinition, key: string, of: 'requests' | 'tokens', nowMs: number): Standing | undefined;
  /** Seconds until there is room again for such a charge, at least 1. */
  retryAfterSeconds(limit: LimitDefinition, key: string, charge: Charge, nowMs: number): number;
  /** Counts the request and its place, and holds the estimate until `settle`; with `charge: after` no estimate. */
  charge(limit: LimitDefinition, key: string, charge: Charge, nowMs: number): void;
  /** Gives the place and the estimate back, and counts what was really used. */
  settle(limit: LimitDefinition, key: string, estimate: Charge, real: Charge, nowMs: number): void;
  /** Keys held. */
  size(): number;
  /** Requests that hold a place under some concurrency limit. */
  concurrent(): number;
}

type Measure = 'requests' | 'tokens' | 'inputTokens' | 'outputTokens' | 'cost';

const REQUEST_MEASURES: readonly Measure[] = ['requests'];
const TOKEN_MEASURES: readonly Measure[] = ['tokens', 'inputTokens', 'outputTokens'];
const MEASURES: readonly Measure[] = ['requests', 'tokens', 'inputTokens', 'outputTokens', 'cost'];

/** What was used before `endMs` and after the slice before it. */
interface Slice {
  readonly endMs: number;
  amount: number;
}

interface Meter {
  /** Oldest first. */
  readonly slices: Slice[];
  /** Held by requests under way. */
  reserved: number;
}

interface Entry {
  readonly meters: { [measure in Measure]?: Meter };
  concurrent: number;
  /** When nothing is used any more, if nothing comes. */
  idleFromMs: number;
}

/** Parts of a window: room comes back by one of them at a time, and late by at most one. */
const SLICES = 20;
const MOST_KEYS = 65_536;
/** Entries that one new key may look at to make room for itself. */
const LOOKS = 16;

/**
 * An empty ledger. A rate counts in twentieths of its window, and a twentieth counts whole until its last moment has left the window: never
 * is more than the amount used in any stretch of one window, however uneven the traffic, and room comes back at most a twentieth late.
 * Estimates of requests under way are held until these end, however long that takes. Beyond the most keys, the key that was charged the
 * longest ago and has no request under way is forgotten; `mostKeys` is 65,536 unless given.
 */
export function createLimitLedger({ mostKeys = MOST_KEYS }: { readonly mostKeys?: number } = {}): LimitLedger {
  const entries = new Map<string, Entry>();
  let concurrent = 0;

  const idOf = (limit: LimitDefinition, key: string): string => `${limit.name.length}:${limit.name}${key}`;

  const used = (entry: Entry | undefined, measure: Measure, rate: RateLimit, nowMs: number): number => {
    const meter = entry?.meters[measure];
    if (meter === undefined) return 0;
    const goneMs = nowMs - rate.windowSeconds * 1000;
    let sum = meter.reserved;
    for (const slice of meter.slices) if (slice.endMs > goneMs) sum += slice.amount;
    return sum;
  };

  const makeRoom = (nowMs: number): void => {
    let looked = 0;
    for (const [id, entry] of entries) {
      if (++looked > LOOKS) return;
      if (entry.concurrent === 0) {
        if (entries.size < mostKeys && entry.idleFromMs > nowMs) return;
        entries.delete(id);
      } else if (entries.size < mostKeys) {
        return;
      } else {
        // In use, so not the oldest.
        entries.delete(id);
        entries.set(id, entry);
      }
    }
  };

  const entryOf = (limit: LimitDefinition, key: string, nowMs: number): Entry => {
    const id = idOf(limit, key);
    let entry = entries.get(id);
    if (entry === undefined) {
      makeRoom(nowMs);
      entry = { meters: {}, concurrent: 0, idleFromMs: nowMs };
    } else {
      entries.delete(id);
    }
    entries.set(id, entry);
    return entry;
  };

  const meterOf = (entry: Entry, measure: Measure): Meter => (entry.meters[measure] ??= { slices: [], reserved: 0 });

  const count = (entry: Entry, measure: Measure, rate: RateLimit, amount: number, nowMs: number): void => {
    if (!(amount > 0)) return;
    const { slices } = meterOf(entry, measure);
    const last = slices.at(-1);
    if (last !== undefined && last.endMs > nowMs) last.amount += amount;
    else {
      const sliceMs = (rate.windowSeconds * 1000) / SLICES;
      slices.push({ endMs: (Math.floor(nowMs / sliceMs) + 1) * sliceMs, amount });
      // One more than a window has slices are never all within it.
      while (slices.length > SLICES + 1) slices.shift();
    }
    entry.idleFromMs = Math.max(entry.idleFromMs, (slices.at(-1)?.endMs ?? nowMs) + rate.windowSeconds * 1000);
  };

  /** Milliseconds until `over` less is used; a whole window where slices alone do not tell. */
  const waitMs = (entry: Entry | undefined, measure: Measure, rate: RateLimit, over: number, nowMs: number): number => {
    const windowMs = rate.windowSeconds * 1000;
    let freed = 0;
    for (const slice of entry?.meters[measure]?.slices ?? []) {
      const waitMs = slice.endMs + windowMs - nowMs;
      if (waitMs <= 0) continue;
      freed += slice.amount;
      if (freed >= over) return waitMs;
    }
    return windowMs;
  };

  return {
    // perf: functions, for an object literal with a getter is a hash table, in which every call of a method is a look-up.
    size: () => entries.size,
    concurrent: () => concurrent,

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
        const meter = entry?.meters[measure];
        const windowMs = rate.windowSeconds * 1000;
        const last = meter?.slices.at(-1);
        // What is held now is used when its request ends, not before now.
        const heldMs = meter !== undefined && meter.reserved > 0 ? windowMs + windowMs / SLICES : 0;
        const resetMs = Math.max(heldMs, last === undefined ? 0 : last.endMs + windowMs - nowMs);
        tightest = tighter(tightest, { limit: rate.amount, remaining, resetSeconds: Math.ceil(resetMs / 1000) });
      }
      return tightest;
    },

    retryAfterSeconds(limit, key, charge, nowMs) {
      const entry = entries.get(idOf(limit, key));
      let wait = 1000;
      for (const measure of MEASURES) {
        const rate = limit[measure];
        if (rate === undefined) continue;
        const over = used(entry, measure, rate, nowMs) + amountOf(measure, charge) - rate.amount;
        if (over > 0) wait = Math.max(wait, waitMs(entry, measure, rate, over, nowMs));
      }
      return Math.ceil(wait / 1000);
    },

    charge(limit, key, charge, nowMs) {
      const entry = entryOf(limit, key, nowMs);
      entry.concurrent++;
      concurrent++;
      if (limit.requests !== undefined) count(entry, 'requests', limit.requests, 1, nowMs);
      if (limit.charge === 'after') return;
      for (const measure of MEASURES) {
        if (measure !== 'requests' && limit[measure] !== undefined) {
          meterOf(entry, measure).reserved += amountOf(measure, charge);
        }
      }
    },

    settle(limit, key, estimate, real, nowMs) {
      const entry = entryOf(limit, key, nowMs);
      if (entry.concurrent > 0) {
        entry.concurrent--;
        concurrent--;
      }
      for (const measure of MEASURES) {
        const rate = limit[measure];
        if (measure === 'requests' || rate === undefined) continue;
        const meter = meterOf(entry, measure);
        if (limit.charge !== 'after') {
          const rest = meter.reserved - amountOf(measure, estimate);
          meter.reserved = entry.concurrent === 0 ? 0 : Math.max(0, rest);
        }
        count(entry, measure, rate, amountOf(measure, real), nowMs);
      }
    },
  };
}

function amountOf(measure: Measure, charge: Charge): number {
  if (measure === 'requests') return 1;
  if (measure === 'tokens') return charge.inputTokens + charge.outputTokens;
  return charge[measure];
}
