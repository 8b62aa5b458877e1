import type { Value } from '@signalbox/plugin-api';
import type { SignalRef } from '@signalbox/policy';
import { createZoneClock, WEEKDAYS } from '../signals/zone-clock.ts';
import { factId } from './facts.ts';
import type { Facts } from './facts.ts';

/** Signals that follow from what a test gives: most take arguments, so that no fact can state them. */
const COMPUTED: ReadonlySet<string> = new Set([
  'over_limit',
  'usage',
  'sla',
  'prefix',
  'within',
  'hour',
  'weekday',
  'priority',
]);

/** What every request has, where a test does not give it: those of a request that says and asks for nothing. */
const PLAIN: { readonly [key: string]: Value } = {
  model: '',
  path: '/v1/chat/completions',
  stream: false,
  prompt_tokens: 0,
  prompt_chars: 0,
  questions: 0,
  words: 0,
  turns: 0,
  tools: 0,
  images: 0,
  complexity: 0,
};

/** What a test states that signals are worked out from. */
export interface GivenRequest {
  readonly facts: Facts;
  readonly tenant: string | undefined;
}

/** A signal as far as it is known where it is bound: of one that only a plugin reads, its key. */
export type AskedSignal = Pick<SignalRef, 'key' | 'arguments'> & Partial<Pick<SignalRef, 'known' | 'type'>>;

/**
 * The value of a signal in place of its producer: the fact; else, for a signal that every request has, that of an empty request; else
 * unknown. Undefined where the producer stays, because the signal follows from what is given: `prefix` from the prompt, fields of a tenant
 * from its definition, `param.x` from its default, limits from an empty ledger, the time from the clock of the test.
 */
export function givenSignal(
  signal: AskedSignal,
  current: () => GivenRequest,
  givesTenant: boolean,
): (() => Value | undefined) | undefined {
  const { key } = signal;
  const id = factId(key, signal.arguments);
  if (isComputed(key, givesTenant) && !current().facts.has(id)) return undefined;
  const plain = plainValue(signal);
  return () => current().facts.get(id) ?? plain;
}

function isComputed(key: string, givesTenant: boolean): boolean {
  return COMPUTED.has(key) || key.startsWith('param.') || (key.startsWith('tenant.') && givesTenant);
}

/** A text that is equal for requests with which `givenSignal` takes the place of the same producers. */
export function givenKey({ facts, tenant }: GivenRequest): string {
  const givesTenant = tenant !== undefined;
  const stated = [...facts.keys()].filter((id) => isComputed((JSON.parse(id) as readonly [string])[0], givesTenant));
  return JSON.stringify([givesTenant, ...stated.toSorted()]);
}

function plainValue({ key, known, type }: AskedSignal): Value | undefined {
  if (Object.hasOwn(PLAIN, key)) return PLAIN[key];
  if (known !== 'always' || type === undefined) return undefined;
  if (type === 'bool') return false;
  if (typeof type === 'object') return 'enum' in type ? type.enum[0] : [];
  return type === 'string' ? '' : 0;
}

/** Monday, 5 January 2026: the day that tests take place on unless they give another. */
const FIRST_DAY_MS = Date.UTC(2026, 0, 5);
const MINUTE_MS = 60_000;
const STEP_MS = 15 * MINUTE_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

/**
 * Epoch milliseconds of the hour and day that the facts give in this time zone; the first such moment from Monday, 5 January 2026, on.
 * Without an hour it is midnight, without a day Monday.
 */
export function epochOfFacts(facts: Facts, zone: string): number {
  const hour = Number(clockFact(facts, 'hour', zone) ?? 0);
  const weekday = WEEKDAYS.indexOf(String(clockFact(facts, 'weekday', zone) ?? 'mon'));
  const clock = createZoneClock(zone);
  // The zone's own Monday begins up to a day before that of UTC.
  for (let at = FIRST_DAY_MS - DAY_MS; at < FIRST_DAY_MS + 8 * DAY_MS; at += STEP_MS) {
    const time = clock(at);
    if (time.weekday === weekday && time.hour === hour && time.minuteOfDay === hour * 60) return at;
  }
  return FIRST_DAY_MS;
}

/** What facts say of the time; a time that is given is one in the zone of the gateway, which the compiler writes into it. */
export function clockFact(facts: Facts, key: 'hour' | 'weekday', zone: string): Value | undefined {
  return facts.get(factId(key, [{ kind: 'value', value: zone }])) ?? facts.get(factId(key));
}
