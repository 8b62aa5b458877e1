// perf: reports are a few array writes each.
import type { RandomSource } from '@signalbox/plugin-api';
import type { EjectionRules } from './ejection-rules.ts';
import { FLAG, UNAVAILABLE } from './fleet-table.ts';
import type { FleetTable } from './fleet-table.ts';

const MIN_ATTEMPTS = 10;
const WINDOW_MS = 30_000;
/** Counts that decay are never whole: success of just the least share is enough. */
const ROUNDING = 1e-9;
const JITTER = 0.2;
/** After this long without an ejection the next one is as short as the first. */
const FORGET_AFTER_MS = 300_000;
const SLOW_START_MS = 30_000;
const SLOW_START_LEAST = 0.1;
/** Weights rise in steps: each is a look at the whole fleet. */
const SLOW_START_STEP_MS = 500;

/** What health needs to know of the fleet around an endpoint. */
export interface HealthNeighbours {
  readonly table: FleetTable;
  /** Slots of the endpoint's tier. */
  tierSlotsOf(slot: number): readonly number[];
  rulesOf(slot: number): EjectionRules;
  changed(): void;
}

/**
 * Passive health: five failures in a row, or under 80 % success over some thirty seconds with ten attempts or more, eject an endpoint for
 * min(10 s · n, 300 s) plus up to 20 %, n counting its ejections, but never more than half its tier. Then one request at a time decides.
 * A tier may set other figures (`EjectionRules`). One that is back, or joins later than the gateway started, starts slowly: its weight is
 * max(10 %, t ÷ 30 s) of the declared one.
 */
export interface Health {
  /** An attempt at `slot` succeeded. `ejections` is the slot's count when it was leased: one sent before an ejection does not end it. */
  succeeded(slot: number, nowMs: number, ejections: number): void;
  /** An attempt failed in a way that speaks against the endpoint: no connection, a 5xx other than 503, no first token in time. */
  failed(slot: number, nowMs: number, ejections: number): void;
  /** The server asked to be left alone until then (429 or 503 with Retry-After). */
  askedToWait(slot: number, untilMs: number): void;
  /** An endpoint that has just come, or come back, is to be given its share of the load little by little. */
  startSlowly(slot: number, nowMs: number): void;
  /** Until when, in milliseconds of the clock, some endpoint may be in a slow start; -Infinity before the first. */
  readonly slowUntilMs: number;
  /** Share of the declared weight that is due at `nowMs`: from 0.1 up in a slow start, else 1. */
  slowStartShare(slot: number, nowMs: number): number;
  /** Brings `weight` to what is due of `declaredWeight`. To be called when that was written. */
  weigh(slot: number, nowMs: number): void;
  /** Ends ejections and waits that are over, and raises weights. To be called before each decision; cheap when none is due. */
  expire(nowMs: number): void;
  /** Share of failed attempts, weighted by e^(−age/30 s); NaN without any of late. */
  errorRate(slot: number, nowMs: number): number;
}

/** Health over this fleet; `random` gives the jitter of ejections. */
export function createHealth(neighbours: HealthNeighbours, random: RandomSource): Health {
  const { table } = neighbours;
  let nextDueMs = Infinity;

  const decay = (slot: number, nowMs: number): void => {
    const factor = Math.exp(-Math.max(0, nowMs - table.decayedAt[slot]!) / WINDOW_MS);
    table.attemptsDecayed[slot] = table.attemptsDecayed[slot]! * factor;
    table.failuresDecayed[slot] = table.failuresDecayed[slot]! * factor;
    table.decayedAt[slot] = nowMs;
  };

  const mayEject = (slot: number): boolean => {
    let available = 0;
    let ejected = 0;
    for (const peer of neighbours.tierSlotsOf(slot)) {
      const flags = table.flags[peer]!;
      if ((flags & UNAVAILABLE) !== 0) continue;
      available++;
      if ((flags & FLAG.ejected) !== 0) ejected++;
    }
    return ejected + 1 <= available * neighbours.rulesOf(slot).maxShare;
  };

  const eject = (slot: number, nowMs: number): void => {
    if (!mayEject(slot)) return;
    const last = table.ejectedUntil[slot]!;
    const n = last > 0 && nowMs - last > FORGET_AFTER_MS ? 1 : table.ejections[slot]! + 1;
    table.ejections[slot] = n;
    const { durationMs, maxDurationMs } = neighbours.rulesOf(slot);
    const length = Math.min(durationMs * n, maxDurationMs) * (1 + JITTER * random.next());
    table.ejectedUntil[slot] = Math.max(last, nowMs + length);
    table.flags[slot] = (table.flags[slot]! | FLAG.ejected) & ~FLAG.halfOpen;
    table.failuresInRow[slot] = 0;
    nextDueMs = Math.min(nextDueMs, table.ejectedUntil[slot]);
    neighbours.changed();
  };

  const slowStartShare = (slot: number, nowMs: number): number => {
    const from = table.slowStartAt[slot]!;
    return from === from ? Math.min(1, Math.max(SLOW_START_LEAST, (nowMs - from) / SLOW_START_MS)) : 1;
  };

  const weigh = (slot: number, nowMs: number): void => {
    const share = slowStartShare(slot, nowMs);
    if (share < 1) {
      table.weight[slot] = table.declaredWeight[slot]! * share;
      nextDueMs = Math.min(nextDueMs, nowMs + SLOW_START_STEP_MS);
      return;
    }
    table.slowStartAt[slot] = Number.NaN;
    table.weight[slot] = table.declaredWeight[slot]!;
  };

  const startSlowly = (slot: number, nowMs: number): void => {
    health.slowUntilMs = Math.max(health.slowUntilMs, nowMs + SLOW_START_MS);
    table.slowStartAt[slot] = nowMs;
    weigh(slot, nowMs);
  };

  const expireDue = (nowMs: number): void => {
    nextDueMs = Infinity;
    let changed = false;
    for (let slot = 0; slot < table.capacity; slot++) {
      const flags = table.flags[slot]!;
      if ((flags & FLAG.used) === 0) continue;
      if (!Number.isNaN(table.slowStartAt[slot]!)) weigh(slot, nowMs);
      if ((flags & FLAG.ejected) !== 0) {
        const until = table.ejectedUntil[slot]!;
        if (until <= nowMs) {
          table.flags[slot] = (flags & ~FLAG.ejected) | FLAG.halfOpen;
          changed = true;
        } else nextDueMs = Math.min(nextDueMs, until);
      }
      const busy = table.busyUntil[slot]!;
      if (busy > nowMs) nextDueMs = Math.min(nextDueMs, busy);
      else if (busy > 0) {
        table.busyUntil[slot] = 0;
        changed = true;
      }
    }
    // Weights are read where they stand; only lists of endpoints are kept.
    if (changed) neighbours.changed();
  };

  // perf: `slowUntilMs` is a field, for an object literal with a getter is a hash table, in which every call of a method is a look-up.
  const health = {
    startSlowly,
    slowStartShare,
    weigh,
    slowUntilMs: -Infinity,

    succeeded(slot: number, nowMs: number, ejections: number): void {
      if (ejections !== table.ejections[slot]) return;
      decay(slot, nowMs);
      table.attemptsDecayed[slot]!++;
      table.failuresInRow[slot] = 0;
      if ((table.flags[slot]! & FLAG.halfOpen) !== 0) {
        table.flags[slot] = table.flags[slot]! & ~FLAG.halfOpen;
        table.attemptsDecayed[slot] = 1;
        table.failuresDecayed[slot] = 0;
        startSlowly(slot, nowMs);
        neighbours.changed();
      }
    },

    failed(slot: number, nowMs: number, ejections: number): void {
      if (ejections !== table.ejections[slot]) return;
      decay(slot, nowMs);
      table.attemptsDecayed[slot]!++;
      table.failuresDecayed[slot]!++;
      table.failuresInRow[slot]!++;
      const flags = table.flags[slot]!;
      if ((flags & FLAG.ejected) !== 0) return;
      const attempts = table.attemptsDecayed[slot]!;
      const { failures, minSuccess } = neighbours.rulesOf(slot);
      const failuresAllowed = attempts * (1 - minSuccess) + ROUNDING;
      const unreliable = attempts >= MIN_ATTEMPTS - ROUNDING && table.failuresDecayed[slot]! > failuresAllowed;
      if ((flags & FLAG.halfOpen) !== 0 || table.failuresInRow[slot]! >= failures || unreliable) eject(slot, nowMs);
    },

    askedToWait(slot: number, untilMs: number): void {
      if (!(untilMs > table.busyUntil[slot]!)) return;
      table.busyUntil[slot] = untilMs;
      nextDueMs = Math.min(nextDueMs, untilMs);
      neighbours.changed();
    },

    expire(nowMs: number): void {
      if (nowMs >= nextDueMs) expireDue(nowMs);
    },

    errorRate(slot: number, nowMs: number): number {
      const attempts =
        table.attemptsDecayed[slot]! * Math.exp(-Math.max(0, nowMs - table.decayedAt[slot]!) / WINDOW_MS);
      // Less than a hundredth of one attempt is no evidence: some 140 s after a single one.
      return attempts < 0.01 ? Number.NaN : table.failuresDecayed[slot]! / table.attemptsDecayed[slot]!;
    },
  };
  return health;
}
