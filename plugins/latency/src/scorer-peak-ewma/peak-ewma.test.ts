import type { ScorerInstance } from '@signalbox/plugin-api';
import { attemptOutcome, candidates, fakeClock, requestView, setupContext } from '@signalbox/testkit';
import type { FakeClock } from '@signalbox/testkit';
import { expect, test } from 'vitest';
import { peakEwma } from './index.ts';

function rig(): {
  readonly scorer: ScorerInstance;
  readonly clock: FakeClock;
  costs(...inflight: readonly number[]): readonly number[];
} {
  if (!('setup' in peakEwma)) throw new Error('expected a function');
  const clock = fakeClock();
  const scorer = peakEwma.setup(setupContext(peakEwma.options, { clock }));
  return {
    scorer,
    clock,
    costs(...inflight) {
      const out = new Float64Array(inflight.length);
      scorer.score(requestView(), candidates(inflight.map((inflight_requests) => ({ inflight_requests }))), out);
      return [...out];
    },
  };
}

const perToken = (msPerToken: number): ReturnType<typeof attemptOutcome> =>
  attemptOutcome({ promptTokens: 200, cachedTokens: 100, ttftMs: 100 * msPerToken });

test('the cost is the time per uncached token times the requests in flight plus one', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(2));
  scorer.ended?.(1, perToken(3));
  expect(costs(0, 0)).toEqual([2, 3]);
  expect(costs(3, 1)).toEqual([8, 6]);
});

test('a peak counts at once, and what follows pulls it down by age only', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(1));
  scorer.ended?.(0, perToken(9));
  expect(costs(0)).toEqual([9]);
  clock.advance(10_000);
  scorer.ended?.(0, perToken(1));
  expect(costs(0)[0]).toBeCloseTo(9 / Math.E + (1 - 1 / Math.E), 12);
});

test('a peak fades without traffic, so that the endpoint is tried again', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(50));
  scorer.ended?.(1, perToken(1));
  clock.advance(60_000);
  expect(costs(0)[0]).toBeCloseTo(50 * Math.exp(-6), 12);
});

test('an endpoint never measured is tried while idle, and not piled upon before it has answered', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(1));
  const [known = 0, fresh = 0] = costs(0, 0);
  expect(fresh).toBeLessThan(known);
  const [busyKnown = 0, pending = 0] = costs(40, 1);
  expect(pending).toBeGreaterThan(busyKnown);
});

test('failures and unknown times teach nothing', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(1));
  scorer.ended?.(0, { ...perToken(9), ok: false });
  scorer.ended?.(0, attemptOutcome({ ttftMs: Number.NaN }));
  expect(costs(0)).toEqual([1]);
});
