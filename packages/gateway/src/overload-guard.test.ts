import { expect, test } from 'vitest';
import { createOverloadGuard, watchEventLoop } from './overload-guard.ts';
import type { LoopSample } from './overload-guard.ts';

const idle: LoopSample = { utilisation: 0.4, delayMs: 3 };
const busy: LoopSample = { utilisation: 0.99, delayMs: 20 };
const late: LoopSample = { utilisation: 0.7, delayMs: 210 };
const drowning: LoopSample = { utilisation: 1, delayMs: 1500 };

const levels = (samples: readonly LoopSample[]): number[] => {
  const guard = createOverloadGuard();
  return samples.map((sample) => guard.sample(sample));
};

test('two samples in a row above either threshold shed the lowest class, one does not', () => {
  expect(levels([busy, idle, late, idle, busy])).toEqual([0, 0, 0, 0, 0]);
  expect(levels([busy, busy])).toEqual([0, 1]);
  expect(levels([late, late])).toEqual([0, 1]);
  expect(levels([busy, late])).toEqual([0, 1]);
  expect(
    levels([
      { utilisation: 0.98, delayMs: 200 },
      { utilisation: 0.98, delayMs: 200 },
    ]),
  ).toEqual([0, 0]);
});

test('it ends with two good samples in a row', () => {
  expect(levels([busy, busy, idle, busy, idle, idle, idle])).toEqual([0, 1, 1, 1, 1, 0, 0]);
});

test('where timers are late by more than a second the lowest two classes are shed, and given back one by one', () => {
  expect(levels([drowning, drowning, drowning])).toEqual([0, 2, 2]);
  expect(levels([drowning, busy, drowning])).toEqual([0, 1, 1]);
  expect(levels([drowning, drowning, busy, busy, idle, idle])).toEqual([0, 2, 2, 1, 1, 0]);
});

test('a thread that does nothing else than compute is noticed and told, and so is its end', async () => {
  const told: number[] = [];
  let tell: () => void = () => {};
  const stop = watchEventLoop((level) => {
    told.push(level);
    tell();
  });
  try {
    let working = true;
    const work = (): void => {
      const until = performance.now() + 250;
      while (performance.now() < until);
      if (working) setImmediate(work);
    };
    const first = new Promise<void>((resolve) => (tell = resolve));
    work();
    await first;
    expect(told[0]).toBeGreaterThan(0);
    working = false;
    while (told.at(-1) !== 0) await new Promise<void>((resolve) => (tell = resolve));
    expect(told.at(-1)).toBe(0);
  } finally {
    stop();
  }
}, 30_000);
