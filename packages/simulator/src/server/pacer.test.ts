import { expect, test } from 'vitest';
import { createEngine } from '../engine/engine.ts';
import { latencyFromRates } from '../engine/step-time.ts';
import { createPacer } from './pacer.ts';
import type { PacedDriver, Pacer } from './pacer.ts';

interface Bench {
  readonly pacer: Pacer;
  /** Timers set so far. */
  readonly timers: () => number;
  /** Runs timers in order of time until none is due by then. */
  readonly runUntil: (untilMs: number) => void;
}

/** A pacer on a clock that only the test moves. */
function bench(shortestIntervalMs: number): Bench {
  let nowMs = 0;
  let timers = 0;
  const pending = new Set<{ dueMs: number; run: () => void }>();
  const pacer = createPacer({
    now: () => nowMs,
    shortestIntervalMs,
    setTimer(run, delayMs) {
      timers++;
      const entry = { dueMs: nowMs + delayMs, run };
      pending.add(entry);
      return () => pending.delete(entry);
    },
  });
  return {
    pacer,
    timers: () => timers,
    runUntil(untilMs) {
      for (;;) {
        const next = [...pending].sort((x, y) => x.dueMs - y.dueMs)[0];
        if (next === undefined || next.dueMs > untilMs) break;
        pending.delete(next);
        nowMs = next.dueMs;
        next.run();
      }
      nowMs = untilMs;
    },
  };
}

/** A driver with an event every so often, and the times at which it was called. */
function ticker(everyMs: number): PacedDriver & { readonly calls: number[] } {
  const calls: number[] = [];
  let next = everyMs;
  return {
    calls,
    nextEventMs: () => next,
    advance(nowMs) {
      calls.push(nowMs);
      while (next <= nowMs) next += everyMs;
    },
  };
}

test('a driver is called when its event is due, and others are left alone', () => {
  const { pacer, runUntil } = bench(1);
  const fast = ticker(30);
  const slow = ticker(100);
  pacer.add(fast);
  pacer.add(slow);
  runUntil(200);
  expect(fast.calls).toEqual([30, 60, 90, 120, 150, 180]);
  expect(slow.calls).toEqual([100, 200]);
});

test('events closer together than the shortest interval are done in one round', () => {
  const { pacer, timers, runUntil } = bench(10);
  const drivers = [ticker(1), ticker(2), ticker(3)];
  for (const driver of drivers) pacer.add(driver);
  runUntil(1000);
  expect(timers()).toBeLessThan(110);
  expect(drivers.every(({ calls }) => calls.length > 90)).toBe(true);
});

test('an event that comes nearer is seen after a wake, and nothing fires when all are removed', () => {
  const { pacer, runUntil } = bench(1);
  let next = 500;
  const calls: number[] = [];
  const paced = pacer.add({
    nextEventMs: () => (calls.length > 0 ? undefined : next),
    advance: (nowMs) => void calls.push(nowMs),
  });
  next = 50;
  paced.wake();
  runUntil(100);
  expect(calls).toEqual([50]);
  const other = ticker(20);
  const removed = pacer.add(other);
  removed.remove();
  paced.remove();
  runUntil(1000);
  expect(other.calls).toEqual([]);
});

test('two hundred streams of four engines need one timer a step, not one a stream', () => {
  const { pacer, timers, runUntil } = bench(5);
  const latency = latencyFromRates({ tokensPerSecond: 30, prefillTokensPerSecond: 8000 });
  let tokens = 0;
  for (let e = 0; e < 4; e++) {
    const engine = createEngine({ latency });
    const paced = pacer.add(engine);
    for (let s = 0; s < 50; s++) {
      engine.submit(
        { promptTokens: [e, s], outputTokens: 1000, onTokens: (count) => void (tokens += count) },
        pacer.nowMs(),
      );
    }
    paced.wake();
  }
  runUntil(10_000);
  expect(tokens).toBeGreaterThan(200 * 290);
  expect(timers()).toBeLessThan(320);
});
