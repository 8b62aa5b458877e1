import type { Value } from '@signalbox/plugin-api';
import type { SignalRef } from '@signalbox/policy';
import { createZoneClock, WEEKDAYS } from '../signals/zone-clock.ts';
import { factId } from './facts.ts';
import type { Facts } from './facts.ts';

/** Signals that no fact can state, for they take arguments: worked out as ever, from what the test gives. */
const COMPUTED: ReadonlySet<string> = new Set(['over_limit', 'usage', 'sla', 'prefix', 'within']);
const TIMES: ReadonlySet<string> = new Set(['hour', 'weekday', 'within']);

/** What a test states that signals are worked out from. */
export interface GivenRequest {
  readonly facts: Facts;
  readonly tenant: string | undefined;
}

/**
 * The value of a signal in place of its producer: a fact, or unknown. Undefined where the producer stays, because the signal follows from
 * what is given: `prefix` from the prompt, fields of a tenant from its definition, `param.x` from its default, limits from an empty ledger,
 * `within` and the time in another zone from the hour and the day.
 */
export function givenSignal(
  signal: Pick<SignalRef, 'key' | 'arguments'>,
  current: () => GivenRequest,
  givesTime: boolean,
  givesTenant: boolean,
): (() => Value | undefined) | undefined {
  const { key } = signal;
  const id = factId(key, signal.arguments);
  const isStated = current().facts.has(id);
  if (!isStated) {
    if (TIMES.has(key) && signal.arguments.length > 0 && givesTime) return undefined;
    if (COMPUTED.has(key) && !TIMES.has(key)) return undefined;
    if (key.startsWith('param.') || (key.startsWith('tenant.') && givesTenant)) return undefined;
  }
  return () => current().facts.get(id);
}

/** Monday, 5 January 2026: the day that tests take place on unless they give another. */
const FIRST_DAY_MS = Date.UTC(2026, 0, 5);
const MINUTE_MS = 60_000;
const STEP_MS = 15 * MINUTE_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Whether facts say what time it is. */
export function givesTime(facts: Facts): boolean {
  return facts.has(factId('hour')) || facts.has(factId('weekday'));
}

/**
 * Epoch milliseconds of the hour and day that the facts give in this time zone; the first such moment from Monday, 5 January 2026, on.
 * Without an hour it is midnight, without a day Monday.
 */
export function epochOfFacts(facts: Facts, zone: string): number {
  if (!givesTime(facts)) return FIRST_DAY_MS;
  const hour = facts.get(factId('hour')) ?? 0;
  const weekday = WEEKDAYS.indexOf(String(facts.get(factId('weekday')) ?? 'mon'));
  const clock = createZoneClock(zone);
  // The zone's own Monday begins up to a day before that of UTC.
  for (let at = FIRST_DAY_MS - DAY_MS; at < FIRST_DAY_MS + 8 * DAY_MS; at += STEP_MS) {
    const time = clock(at);
    if (time.weekday === weekday && time.hour === hour && time.minuteOfDay === hour * 60) return at;
  }
  return FIRST_DAY_MS;
}
