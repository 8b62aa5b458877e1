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

/** An answer of 512 uncached tokens, whose first token came `sinceMs` before its end. */
const perToken = (msPerToken: number, sinceMs = 1e-9): ReturnType<typeof attemptOutcome> =>
  attemptOutcome({
    promptTokens: 612,
    cachedTokens: 100,
    ttftMs: 512 * msPerToken,
    durationMs: 512 * msPerToken + sinceMs,
  });

const close = (...values: readonly number[]): unknown => values.map((value) => expect.closeTo(value, 6) as unknown);

test('the cost is the time per uncached token times the requests in flight plus one', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(2));
  scorer.ended?.(1, perToken(3));
  expect(costs(0, 0)).toEqual(close(2, 3));
  expect(costs(3, 1)).toEqual(close(8, 6));
});

test('a peak counts at once, and what follows pulls it down by age only', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(1));
  scorer.ended?.(0, perToken(9));
  expect(costs(0)).toEqual(close(9));
  clock.advance(10_000);
  scorer.ended?.(0, perToken(1));
  expect(costs(0)).toEqual(close(9 / Math.E + (1 - 1 / Math.E)));
});

test('a peak fades without traffic towards what the fleet shows, so that the endpoint is tried again', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(50));
  for (let i = 0; i < 200; i++) scorer.ended?.(1, perToken(1));
  clock.advance(60_000);
  scorer.ended?.(1, perToken(1));
  expect(costs(0)).toEqual(close(0.9 + 49.1 * Math.exp(-6)));
});

test('an endpoint that was slow once becomes better than its peers in time, so that it is tried again', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(1));
  scorer.ended?.(1, perToken(5));
  for (let second = 0; second < 120; second++) {
    clock.advance(1000);
    scorer.ended?.(0, perToken(1));
  }
  const [steady = NaN, slowOnce = NaN] = costs(0, 0);
  expect(slowOnce).toBeLessThan(steady);
  expect(slowOnce).toBeGreaterThan(0.89 * steady);
});

test('of equal endpoints, the one whose last answer is oldest is hardly better for that', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(2));
  clock.advance(30_000);
  scorer.ended?.(1, perToken(2));
  expect(costs(0, 0)).toEqual(close(1.8 + 0.2 * Math.exp(-3), 2));
});

test('a measurement counts from its first token on, not from the end of a long answer that reports it', () => {
  const { scorer, clock, costs } = rig();
  scorer.ended?.(0, perToken(1));
  clock.advance(20_000);
  scorer.ended?.(0, perToken(1));
  // A peak of 10 s ago, told of at the end: it has faded for so long towards the fleet's mean, nine tenths of 1.8.
  scorer.ended?.(0, perToken(9, 10_000));
  expect(costs(0)).toEqual(close(1.62 + 7.38 / Math.E));
  // An old measurement that is no peak changes nothing but the fleet's mean.
  scorer.ended?.(0, perToken(0.1, 10_000));
  expect(costs(0)).toEqual(close(1.62 + 7.38 / Math.E));
});

test('a short prompt counts as the floor, so that its fixed part does not look like a slow endpoint', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(
    0,
    attemptOutcome({ promptTokens: 10, cachedTokens: 0, ttftMs: 256, durationMs: 256, outputTokens: 1 }),
  );
  scorer.ended?.(
    1,
    attemptOutcome({ promptTokens: 1024, cachedTokens: 0, ttftMs: 512, durationMs: 512, outputTokens: 1 }),
  );
  expect(costs(0, 0)).toEqual(close(0.5, 0.5));
});

test('an endpoint never measured is tried while idle, and not piled upon before it has answered', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(1));
  const [known = 0, fresh = 0] = costs(0, 0);
  expect(fresh).toBeLessThan(known);
  const [busyKnown = 0, pending = 0] = costs(40, 1);
  expect(pending).toBeGreaterThan(busyKnown);
});

test('failures, unknown times and plain answers, whose first token is not known, teach nothing', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(1));
  scorer.ended?.(0, { ...perToken(9), ok: false });
  scorer.ended?.(0, attemptOutcome({ ttftMs: Number.NaN }));
  scorer.ended?.(0, attemptOutcome({ promptTokens: 1000, ttftMs: 9000, durationMs: 9000, outputTokens: 60 }));
  expect(costs(0)).toEqual(close(1));
});

test('an answer of one token or none is all first token', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(
    0,
    attemptOutcome({ promptTokens: 1000, cachedTokens: 0, ttftMs: 3000, durationMs: 3000, outputTokens: 0 }),
  );
  expect(costs(0)).toEqual(close(3));
});

test('the endpoint that takes the slot of one that left was never measured', () => {
  const { scorer, costs } = rig();
  scorer.ended?.(0, perToken(9));
  scorer.ended?.(1, perToken(3));
  scorer.forget?.(0);
  scorer.forget?.(500);
  expect(costs(0, 0)).toEqual(close(0, 3));
});
