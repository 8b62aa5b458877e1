import { describe, expect, test } from 'vitest';
import { createAdaptiveLimits, LATENCY } from './adaptive-limit.ts';
import type { AdaptiveLimits } from './adaptive-limit.ts';
import { createFleetTable } from './fleet-table.ts';
import type { FleetTable } from './fleet-table.ts';

interface Bench {
  readonly table: FleetTable;
  readonly adaptive: AdaptiveLimits;
  /** A round of answers of this latency, to requests that found so many in flight. */
  round(latency: number, heldBefore: number): number;
}

function bench(declared: number = Number.NaN): Bench {
  const table = createFleetTable(2, (bytes) => new ArrayBuffer(bytes));
  const adaptive = createAdaptiveLimits(table);
  adaptive.clear(0);
  adaptive.configure(0, true, declared);
  let nowMs = 0;
  return {
    table,
    adaptive,
    round(latency, heldBefore) {
      const before = adaptive.limitOf(0);
      const answers = Math.ceil(Math.max(4, Math.min(10, before / 2)));
      const sentMs = nowMs++;
      for (let i = 0; i < answers; i++) adaptive.answered(0, LATENCY.firstToken, latency, heldBefore, sentMs, nowMs);
      return adaptive.limitOf(0);
    },
  };
}

/** The formula of the page, by hand. */
const next = (limit: number, long: number, short: number): number =>
  0.8 * limit + 0.2 * (limit * Math.min(1, Math.max(0.5, (1.5 * long) / short)) + 4);

describe('the limit after a round is what the formula says', () => {
  test('it starts at 20 and grows by four fifths of a request while latency is within 1.5 × of the long mean', () => {
    const { round, table } = bench();
    expect(table.maxRequests[0]).toBe(20);
    expect(round(1, 0)).toBe(20);
    expect(round(1, 19)).toBeCloseTo(20.8, 12);
    expect(round(1.49, 20)).toBeCloseTo(21.6, 12);
    expect(table.maxRequests[0]).toBe(21);
  });

  test('it shrinks in proportion to latency beyond that, by a tenth a round at most', () => {
    const { round } = bench();
    let limit = round(1, 0);
    // Requests that found half the limit in flight or more do not move the long mean.
    for (const short of [2, 2.5, 3, 30]) {
      const expected = next(limit, 1, short);
      limit = round(short, 19);
      expect(limit).toBeCloseTo(expected, 12);
    }
    expect(next(20, 1, 30)).toBeCloseTo(18.8, 12);
  });

  test('it does not grow while less than half of it was in flight, and may shrink', () => {
    const { round } = bench();
    round(1, 0);
    expect(round(1, 8)).toBe(20);
    expect(round(1, 9)).toBeCloseTo(20.8, 12);
    expect(round(10, 0)).toBeLessThan(20);
  });

  test('one terrible answer in ten takes no more than a fifth of a round’s worst off it', () => {
    const { adaptive, round } = bench();
    round(1, 0);
    for (let i = 0; i < 9; i++) adaptive.answered(0, LATENCY.firstToken, 1, 19, 9, 10);
    adaptive.answered(0, LATENCY.firstToken, 1e9, 19, 9, 10);
    expect(adaptive.limitOf(0)).toBeCloseTo(next(20, 1, 1.2), 12);
  });
});

test('an answer to a request that was sent before the limit changed does not count again', () => {
  const { adaptive, round } = bench();
  round(1, 0);
  round(3, 19);
  const limit = adaptive.limitOf(0);
  for (let i = 0; i < 100; i++) adaptive.answered(0, LATENCY.firstToken, 3, 19, 0, 50);
  expect(adaptive.limitOf(0)).toBe(limit);
});

test('refusals and first tokens that never came count as the worst latency', () => {
  const { adaptive, round } = bench();
  round(1, 0);
  for (let i = 0; i < 10; i++) adaptive.overloaded(0, 19, 5, 6);
  expect(adaptive.limitOf(0)).toBeCloseTo(next(20, 1, 3), 12);
});

test('under an overload that lasts the long mean does not follow, so the limit does not either', () => {
  const { round } = bench();
  round(1, 0);
  let limit = 20;
  for (let i = 0; i < 5000; i++) limit = round(1.9, Math.floor(limit) - 1);
  // 1.5 ÷ 1.9 · L + 4 = L
  expect(limit).toBeCloseTo(4 / (1 - 1.5 / 1.9), 6);
});

test('at its least the limit takes the endpoint as it is: one that has become slower for good is given more again', () => {
  const { round } = bench();
  round(1, 0);
  let limit = 20;
  let least = limit;
  for (let i = 0; i < 40; i++) least = Math.min(least, (limit = round(4, Math.floor(limit) - 1)));
  expect(least).toBeLessThan(10);
  for (let i = 0; i < 600; i++) limit = round(4, Math.floor(limit) - 1);
  expect(limit).toBeGreaterThan(least + 1);
});

test('a long mean of worse times comes down by a twentieth a round', () => {
  const { round } = bench();
  round(10, 0);
  // 30 rounds: 10 · 0.95^n is 3 after 24 of them.
  for (let i = 0; i < 30; i++) round(1, 19);
  const before = round(1, 19);
  // What was three tenths of the old mean is more than 1.5 × of the new one.
  expect(round(3.5, 19)).toBeLessThan(before);
});

test('first tokens and whole answers are each held against their own kind', () => {
  const { adaptive } = bench();
  for (let i = 0; i < 10; i++) adaptive.answered(0, LATENCY.firstToken, 1, 0, 0, 1);
  for (let i = 0; i < 10; i++) adaptive.answered(0, LATENCY.wholeAnswer, 100, 19, 1, 2);
  expect(adaptive.limitOf(0)).toBeCloseTo(20.8, 12);
});

test('the declared limit is the most it becomes; switched off, that limit holds alone', () => {
  const { adaptive, table, round } = bench(21);
  for (let i = 0; i < 9; i++) round(1, 20);
  expect([adaptive.limitOf(0), table.maxRequests[0]]).toEqual([21, 21]);
  adaptive.configure(0, true, 6);
  expect(table.maxRequests[0]).toBe(6);
  adaptive.configure(0, false, 6);
  expect([adaptive.limitOf(0), table.maxRequests[0]]).toEqual([Number.NaN, 6]);
  adaptive.configure(0, false, Number.NaN);
  expect(table.maxRequests[0]).toBeNaN();
});

/**
 * An endpoint that works on `places` requests at a time, a second each, and answers the first token of one a tenth of a second after it
 * found a place; as many callers as the limit lets in. Gives the limit after each of these stretches of `seconds`.
 */
function saturate(stretches: readonly { readonly places: number; readonly seconds: number }[]): readonly number[] {
  const { adaptive, table } = bench();
  const ends: number[] = [];
  const queue: { sentMs: number; held: number }[] = [];
  const reached: number[] = [];
  let nowMs = 0;
  let untilMs = 0;
  for (const { places, seconds } of stretches) {
    untilMs += seconds * 1000;
    for (; nowMs < untilMs; nowMs += 10) {
      while (ends.length > 0 && ends[0]! <= nowMs) ends.shift();
      // Callers come one at a time.
      if (ends.length + queue.length < table.maxRequests[0]!)
        queue.push({ sentMs: nowMs, held: ends.length + queue.length });
      while (queue.length > 0 && ends.length < places) {
        const one = queue.shift();
        if (one === undefined) break;
        ends.push(nowMs + 1000);
        const waitedMs = nowMs + 100 - one.sentMs;
        adaptive.answered(0, LATENCY.firstToken, waitedMs, one.held, one.sentMs, nowMs + 100);
      }
    }
    reached.push(adaptive.limitOf(0));
  }
  return reached;
}

test('where latency explodes past so many at once, the limit settles near that, and follows when it changes', () => {
  const reached = saturate([
    { places: 16, seconds: 120 },
    { places: 30, seconds: 120 },
    { places: 12, seconds: 120 },
    { places: 30, seconds: 240 },
  ]);
  const near = [16, 30, 12, 30];
  reached.forEach((limit, i) => {
    expect(limit).toBeGreaterThan(0.8 * near[i]!);
    expect(limit).toBeLessThan(1.35 * near[i]! + 2);
  });
});
