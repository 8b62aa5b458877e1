import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { definitions, tier, toTier } from '../program.fixture.ts';
import { Fleet } from './fleet.ts';
import { FLAG } from './fleet-table.ts';

const fleetOf = (count: number): Fleet => {
  const fleet = new Fleet({ capacity: 16, allocate: (bytes) => new ArrayBuffer(bytes), random: { next: () => 0.5 } });
  fleet.apply(definitions([tier('A', count)]));
  return fleet;
};

const fail = (fleet: Fleet, slot: number, times: number, nowMs: number): void => {
  for (let i = 0; i < times; i++) fleet.health.failed(slot, nowMs, fleet.table.ejections[slot] ?? 0);
};
const healthy = (fleet: Fleet): number[] => {
  const pool = fleet.pool([toTier('A')]);
  pool.refresh();
  return [...pool.healthy];
};

test('five failures in a row eject for 10 s and half the jitter, a success between them does not', () => {
  const fleet = fleetOf(4);
  fail(fleet, 0, 4, 0);
  fleet.health.succeeded(0, 0, 0);
  for (let i = 0; i < 40; i++) fleet.health.succeeded(0, 0, 0);
  fail(fleet, 0, 4, 0);
  expect(healthy(fleet)).toEqual([0, 1, 2, 3]);
  fail(fleet, 0, 1, 0);
  expect(healthy(fleet)).toEqual([1, 2, 3]);
  fleet.health.expire(10_999);
  expect(healthy(fleet)).toEqual([1, 2, 3]);
  fleet.health.expire(11_000);
  expect(healthy(fleet)).toEqual([0, 1, 2, 3]);
  expect((fleet.table.flags[0] ?? 0) & FLAG.halfOpen).toBe(FLAG.halfOpen);
});

test('in half-open one failure ejects again, for longer; a success of a request from before the ejection does not count', () => {
  const fleet = fleetOf(4);
  fail(fleet, 0, 5, 0);
  fleet.health.expire(20_000);
  fleet.health.succeeded(0, 20_000, 0);
  expect((fleet.table.flags[0] ?? 0) & FLAG.halfOpen).toBe(FLAG.halfOpen);
  fail(fleet, 0, 1, 20_000);
  expect(fleet.table.ejectedUntil[0]).toBe(20_000 + 22_000);
  fleet.health.expire(42_000);
  fleet.health.succeeded(0, 42_000, 2);
  expect((fleet.table.flags[0] ?? 0) & (FLAG.halfOpen | FLAG.ejected)).toBe(0);
});

test('under 80 % success over ten attempts or more ejects', () => {
  const fleet = fleetOf(4);
  for (let i = 0; i < 9; i++) {
    if (i % 3 === 0) fail(fleet, 0, 1, i);
    else fleet.health.succeeded(0, i, 0);
  }
  expect(healthy(fleet)).toEqual([0, 1, 2, 3]);
  fail(fleet, 0, 2, 9);
  expect(healthy(fleet)).toEqual([1, 2, 3]);
});

test.each([10, 20, 35, 50])('80 %% success of %i attempts is enough, less is not', (attempts) => {
  const fleet = fleetOf(4);
  for (let i = 0; i < attempts; i++) {
    if (i % 5 === 4) fail(fleet, 0, 1, 7);
    else fleet.health.succeeded(0, 7, 0);
  }
  expect(healthy(fleet)).toEqual([0, 1, 2, 3]);
  fail(fleet, 0, 1, 7);
  expect(healthy(fleet)).toEqual([1, 2, 3]);
});

test('whatever fails, at most half of the tier is ejected', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.array(fc.record({ slot: fc.nat(8), times: fc.integer({ min: 1, max: 6 }), wait: fc.nat(20_000) }), {
        maxLength: 60,
      }),
      (count, steps) => {
        const fleet = fleetOf(count);
        let nowMs = 0;
        for (const { slot, times, wait } of steps) {
          nowMs += wait;
          fleet.health.expire(nowMs);
          if (slot < count) fail(fleet, slot, times, nowMs);
          expect(healthy(fleet).length).toBeGreaterThanOrEqual(count / 2);
        }
      },
    ),
  );
});

test('the error rate is that of the last half minute or so, and unknown without attempts', () => {
  const fleet = fleetOf(2);
  expect(fleet.health.errorRate(0, 0)).toBeNaN();
  fail(fleet, 0, 1, 0);
  fleet.health.succeeded(0, 0, 0);
  expect(fleet.health.errorRate(0, 0)).toBe(0.5);
  for (let i = 0; i < 20; i++) fleet.health.succeeded(0, 60_000, 0);
  expect(fleet.health.errorRate(0, 60_000)).toBeLessThan(0.02);
  expect(fleet.health.errorRate(0, 600_000)).toBeNaN();
});

test('a tier may set its own figures, or turn ejection off', () => {
  const fleet = fleetOf(0);
  fleet.apply(
    definitions([
      tier('A', 2, { ejection: { failures: 2, duration: 1, max_share: 1 } }),
      tier('B', 4, { ejection: false }),
    ]),
  );
  fail(fleet, 0, 2, 0);
  fail(fleet, 1, 2, 0);
  fail(fleet, 2, 50, 0);
  expect([0, 1, 2].map((slot) => (fleet.table.flags[slot] ?? 0) & FLAG.ejected)).toEqual([
    FLAG.ejected,
    FLAG.ejected,
    0,
  ]);
  expect(fleet.table.ejectedUntil[0]).toBe(1100);
  expect(() => fleet.check(definitions([tier('C', 1, { ejection: { failure: 2 } })]))).toThrow(
    /"C\/1": ejection has no key "failure"/,
  );
  expect(() => fleet.check(definitions([tier('C', 1, { ejection: { failures: 0 } })]))).toThrow(
    /ejection.failures is 0; expected a number from 1/,
  );
});

test('an endpoint that is back after an ejection has a tenth of its weight, and all of it after 30 s', () => {
  const fleet = fleetOf(4);
  const { weight } = fleet.table;
  expect([...weight.subarray(0, 4)]).toEqual([1, 1, 1, 1]);
  fail(fleet, 0, 5, 0);
  fleet.health.expire(11_000);
  expect(weight[0]).toBe(1);
  fleet.health.succeeded(0, 12_000, 1);
  expect(weight[0]).toBeCloseTo(0.1);
  let before = 0;
  for (let atMs = 12_000; atMs < 42_000; atMs += 100) {
    fleet.health.expire(atMs);
    expect(weight[0]).toBeGreaterThanOrEqual(before);
    // In steps of half a second.
    expect(Math.abs((weight[0] ?? 0) - Math.max(0.1, (atMs - 12_000) / 30_000))).toBeLessThan(0.018);
    before = weight[0] ?? 0;
  }
  fleet.health.expire(42_500);
  expect([...weight.subarray(0, 4)]).toEqual([1, 1, 1, 1]);
  // A reload on the way does not end it.
  fail(fleet, 1, 5, 50_000);
  fleet.health.expire(70_000);
  fleet.health.succeeded(1, 70_000, 1);
  fleet.apply(definitions([tier('A', 4)]), 73_000);
  expect(weight[1]).toBeCloseTo(0.1);
  fleet.apply(definitions([tier('A', 4)]), 85_000);
  expect(weight[1]).toBeCloseTo(0.5);
});

test('one that joins or becomes ready starts slowly, the first fleet does not; pools are not made anew for it', () => {
  const fleet = fleetOf(2);
  const { weight, control } = fleet.table;
  expect([...weight.subarray(0, 2)]).toEqual([1, 1]);
  fleet.apply(definitions([tier('A', 3)]), 100_000);
  expect([...weight.subarray(0, 2)]).toEqual([1, 1]);
  expect(weight[2]).toBeCloseTo(0.1);
  const epoch = control[0];
  fleet.health.expire(115_000);
  expect(weight[2]).toBeCloseTo(0.5);
  expect(control[0]).toBe(epoch);
  fleet.health.expire(130_000);
  expect(weight[2]).toBe(1);
  fleet.feed(1, { state: 'loading' }, 140_000);
  fleet.feed(1, { state: 'ready' }, 150_000);
  expect(weight[1]).toBeCloseTo(0.1);
  fleet.feed(1, { state: 'ready' }, 159_000);
  fleet.health.expire(159_000);
  expect(weight[1]).toBeCloseTo(0.3);
});

test('attempts fade by the e-th part in 30 s, also where they are counted up to the ten that are wanted', () => {
  const fleet = fleetOf(4);
  const attempts = (pattern: string, nowMs: number): void => {
    for (const one of pattern) {
      if (one === 'F') fail(fleet, 0, 1, nowMs);
      else fleet.health.succeeded(0, nowMs, 0);
    }
  };
  attempts('FSFSFSFSF', 0);
  // 9 ÷ e and six more are 9.3.
  attempts('SFSFSF', 30_000);
  expect(healthy(fleet)).toEqual([0, 1, 2, 3]);
  attempts('F', 30_000);
  expect(healthy(fleet)).toEqual([1, 2, 3]);
});

test('an ejection is as long as its number says, up to 300 s, and counts anew once none has been for as long', () => {
  const fleet = fleetOf(4);
  const { ejectedUntil } = fleet.table;
  let nowMs = 0;
  const lengths = Array.from({ length: 33 }, () => {
    fail(fleet, 0, 5, nowMs);
    const ms = (ejectedUntil[0] ?? Number.NaN) - nowMs;
    nowMs += ms;
    fleet.health.expire(nowMs);
    return ms;
  });
  // Half of the jitter of 20 %.
  expect(lengths).toEqual(Array.from({ length: 33 }, (_, i) => Math.min(i + 1, 30) * 11_000));
  nowMs += 300_001;
  fail(fleet, 0, 1, nowMs);
  expect((ejectedUntil[0] ?? Number.NaN) - nowMs).toBe(11_000);
});

test('where all fail at once half of the tier is ejected, rounded down', () => {
  const ejected = Array.from({ length: 9 }, (_, i) => {
    const fleet = fleetOf(i + 1);
    for (let slot = 0; slot <= i; slot++) fail(fleet, slot, 5, 0);
    return i + 1 - healthy(fleet).length;
  });
  expect(ejected).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 4]);
});

test('a failure of a request from before the ejection does not end the trial', () => {
  const fleet = fleetOf(4);
  fail(fleet, 0, 5, 0);
  fleet.health.expire(20_000);
  fleet.health.failed(0, 20_000, 0);
  expect((fleet.table.flags[0] ?? 0) & (FLAG.halfOpen | FLAG.ejected)).toBe(FLAG.halfOpen);
});

test('of two times that a server asked to be left alone the later holds', () => {
  const fleet = fleetOf(1);
  fleet.health.askedToWait(0, 20_000);
  fleet.health.askedToWait(0, 5_000);
  fleet.health.expire(19_999);
  expect(fleet.table.busyUntil[0]).toBe(20_000);
  fleet.health.expire(20_000);
  expect(fleet.table.busyUntil[0]).toBe(0);
});

test('panic begins where less than half of the tier is healthy', () => {
  const panicsWith = (ejected: number): boolean => {
    const fleet = fleetOf(0);
    fleet.apply(definitions([tier('A', 5, { ejection: { max_share: 1 } })]));
    for (let slot = 0; slot < ejected; slot++) fail(fleet, slot, 5, 0);
    const pool = fleet.pool([toTier('A')]);
    pool.refresh();
    return pool.panic;
  };
  expect([0, 1, 2, 3, 4, 5].map((ejected) => panicsWith(ejected))).toEqual([false, false, false, true, true, true]);
});
