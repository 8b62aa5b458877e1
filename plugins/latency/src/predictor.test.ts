import type { AttemptOutcome } from '@signalbox/plugin-api';
import { attemptOutcome, candidates, fakeClock, requestView, setupContext } from '@signalbox/testkit';
import type { EndpointValues, FakeClock } from '@signalbox/testkit';
import { describe, expect, test } from 'vitest';
import { normalQuantile } from './corrections.ts';
import { createPredictor, predictionOptions } from './predictor.ts';
import type { PredictedTimes, Predictor } from './predictor.ts';

/** 1000 prompt tokens take 110 ms, an output token takes 20 ms whatever the batch. */
const endpoint: EndpointValues = {
  prefill_fixed: 10,
  prefill_per_token: 0.1,
  decode_a: 20,
  decode_b: 0,
  decode_k: 0,
  decode_p: 0,
};
const request = requestView({ prompt_tokens: 1000, output_tokens: 101 });
const before = { inflightRequests: 0, queuedTokens: 0, decodeTokens: 0 };

interface Rig {
  readonly predictor: Predictor;
  readonly clock: FakeClock;
  at(slot: number): PredictedTimes;
}

function rig(
  options: { readonly window?: number; readonly percentile?: number } = {},
  endpoints: readonly EndpointValues[] = [endpoint, endpoint],
): Rig {
  const clock = fakeClock();
  const context = setupContext(predictionOptions, {
    clock,
    options: options.window === undefined ? {} : { window: options.window },
  });
  const predictor = createPredictor({
    ...context,
    options: {
      window: options.window ?? 60,
      ...(options.percentile === undefined ? {} : { percentile: options.percentile }),
    },
  });
  const view = candidates(endpoints);
  return {
    predictor,
    clock,
    at(slot) {
      predictor.start(request, view);
      return { ...predictor.at(slot) };
    },
  };
}

/** An attempt of 1000 prompt and 101 output tokens at an idle endpoint that is `slowness` times as slow as its profile. */
function measured(slowness: number, more: Partial<AttemptOutcome> = {}): AttemptOutcome {
  const ttftMs = 110 * slowness;
  return attemptOutcome({
    promptTokens: 1000,
    outputTokens: 101,
    ttftMs,
    durationMs: ttftMs + 2000 * slowness,
    before,
    ...more,
  });
}

test('before anything is measured the profile speaks', () => {
  const { ttft, tpot, latency, wait } = rig().at(0);
  expect(wait).toBe(0);
  expect(ttft).toBeCloseTo(0.11, 12);
  expect(tpot).toBeCloseTo(0.02, 12);
  expect(latency).toBeCloseTo(0.11 + 100 * 0.02, 12);
});

test('an endpoint that is slower than its profile is learned, and measured others are not blamed for it', () => {
  const { predictor, at } = rig();
  at(0);
  at(1);
  for (let i = 0; i < 50; i++) {
    predictor.ended(0, measured(2.5));
    predictor.ended(1, measured(1));
  }
  expect(at(0).latency).toBeCloseTo(2.5 * 2.11, 9);
  expect(at(1).latency).toBeCloseTo(2.11, 9);
});

test('a busy endpoint is not taken for a slow one: the load that an attempt met is part of what was predicted', () => {
  const { predictor, at } = rig();
  at(0);
  // 5000 prompt tokens ahead: 10 ms and 500 ms more before the first token.
  for (let i = 0; i < 20; i++) {
    predictor.ended(
      0,
      measured(1, {
        ttftMs: 110 + 510,
        durationMs: 110 + 510 + 2000,
        before: { inflightRequests: 1, queuedTokens: 5000, decodeTokens: 100 },
      }),
    );
  }
  expect(at(0).ttft).toBeCloseTo(0.11, 9);
});

test('the prompts in flight and a full batch that an attempt met are part of what was predicted', () => {
  const busy: EndpointValues = {
    ...endpoint,
    decode_k: 0.5,
    max_batch: 8,
    inflight_requests: 9,
    inflight_tokens: 9 * 1100,
    decode_tokens: 9 * 100,
  };
  const { predictor, at } = rig({}, [busy]);
  const { wait, ttft, tpot } = at(0);
  expect(wait).toBeGreaterThan(0);
  const met = { inflightRequests: 9, inflightTokens: 9 * 1100, queuedTokens: 0, decodeTokens: 9 * 100 };
  for (let i = 0; i < 20; i++) {
    const ttftMs = 1000 * ttft;
    predictor.ended(0, measured(1, { ttftMs, durationMs: ttftMs + 1000 * 100 * tpot, before: met }));
  }
  expect(at(0).ttft).toBeCloseTo(ttft, 9);
  expect(at(0).tpot).toBeCloseTo(tpot, 9);
});

test('of queued tokens it is told that they belong to as many requests as they would at the mean prompt in flight', () => {
  const { predictor, at } = rig();
  at(0);
  // Three prompts of 1000 tokens ahead: 3 · 110 ms.
  const met = { inflightRequests: 4, inflightTokens: 4 * 1000 + 400, queuedTokens: 3000, decodeTokens: 400 };
  predictor.ended(0, measured(1, { ttftMs: 440, durationMs: 2440, before: met }));
  expect(at(0).ttft).toBeCloseTo(0.11, 9);
});

test('prefill and decoding are learned apart', () => {
  const { predictor, at } = rig();
  at(0);
  predictor.ended(0, measured(1, { ttftMs: 330, durationMs: 330 + 2000 }));
  expect(at(0).ttft).toBeCloseTo(0.33, 9);
  expect(at(0).tpot).toBeCloseTo(0.02, 9);
});

test('cached prompt tokens do not make prefill look fast', () => {
  const { predictor, at } = rig();
  at(0);
  predictor.ended(0, measured(1, { cachedTokens: 900, ttftMs: 20, durationMs: 2020 }));
  expect(at(0).ttft).toBeCloseTo(0.11, 9);
});

test('what was learned of an endpoint fades with the window towards what the fleet shows', () => {
  const { predictor, at, clock } = rig({ window: 30 });
  at(0);
  at(1);
  predictor.ended(0, measured(8));
  for (let i = 0; i < 200; i++) predictor.ended(1, measured(2));
  expect(at(0).ttft).toBeCloseTo(0.11 * 8, 6);
  clock.advance(30_000);
  predictor.ended(1, measured(2));
  expect(at(0).ttft).toBeCloseTo(0.11 * (1.8 + 6.2 / Math.E), 6);
  clock.advance(600_000);
  predictor.ended(1, measured(2));
  expect(at(0).ttft).toBeCloseTo(0.11 * 1.8, 3);
});

test('without any answer the whole fleet fades towards its profiles', () => {
  const { predictor, at, clock } = rig({ window: 30 });
  at(0);
  predictor.ended(0, measured(3));
  expect(at(1).ttft).toBeCloseTo(0.9 * 0.33, 9);
  clock.advance(30_000);
  expect(at(1).ttft).toBeCloseTo(0.11 * (1 + 1.7 / Math.E), 9);
  clock.advance(600_000);
  expect([at(0).ttft, at(1).ttft]).toEqual([expect.closeTo(0.11, 6), expect.closeTo(0.11, 6)]);
});

test.each([1 / 12, 12])(
  'when all profiles are off by one factor (%d), an endpoint without fresh answers looks like its measured twins, and a little better',
  (slowness) => {
    const { predictor, at, clock } = rig({}, [endpoint, endpoint, endpoint]);
    at(0);
    at(1);
    predictor.ended(0, measured(slowness));
    predictor.ended(1, measured(slowness));
    for (let minute = 0; minute < 10; minute++) {
      clock.advance(60_000);
      predictor.ended(0, measured(slowness));
      for (const slot of [1, 2]) {
        for (const time of ['ttft', 'latency'] as const) {
          expect(at(slot)[time] / at(0)[time]).toBeLessThan(1);
          expect(at(slot)[time] / at(0)[time]).toBeGreaterThan(0.899);
        }
      }
    }
  },
);

test('an endpoint that was slow once becomes better than its peers in time, so that it is tried again', () => {
  const { predictor, at, clock } = rig();
  at(0);
  at(1);
  predictor.ended(1, measured(4));
  for (let i = 0; i < 60; i++) {
    clock.advance(10_000);
    predictor.ended(0, measured(1.3));
  }
  expect(at(1).latency).toBeLessThan(at(0).latency);
  expect(at(1).latency).toBeGreaterThan(0.89 * at(0).latency);
});

test('an endpoint that was never measured is not the best for want of a spread', () => {
  const { predictor, at } = rig({ percentile: 0.95 });
  at(0);
  for (let i = 0; i < 400; i++) predictor.ended(0, measured(i % 2 === 0 ? 1 : 2));
  expect(at(1).ttft).toBeGreaterThan(0.22);
});

test('a percentile above the middle adds what the measurements spread', () => {
  const steady = rig({ percentile: 0.95 });
  const erratic = rig({ percentile: 0.95 });
  steady.at(0);
  erratic.at(0);
  for (let i = 0; i < 400; i++) {
    steady.predictor.ended(0, measured(1.5));
    erratic.predictor.ended(0, measured(i % 2 === 0 ? 1 : 2));
  }
  expect(steady.at(0).ttft).toBeCloseTo(0.165, 3);
  expect(erratic.at(0).ttft).toBeGreaterThan(0.22);
});

describe('nothing is learned from', () => {
  test.each([
    ['a failure', measured(4, { ok: false })],
    [
      'an attempt without what it met',
      attemptOutcome({
        promptTokens: 1000,
        outputTokens: 101,
        ttftMs: 900,
        durationMs: 5000,
        before: undefined,
      } as never),
    ],
    ['unknown token counts', measured(4, { promptTokens: Number.NaN })],
    ['unknown times', measured(4, { ttftMs: Number.NaN, durationMs: Number.NaN })],
  ])('%s', (_what, outcome) => {
    const { predictor, at } = rig();
    at(0);
    predictor.ended(0, outcome);
    expect(at(0).latency).toBeCloseTo(2.11, 12);
  });
});

test('a plain answer, whose first token comes with the last, teaches the sum', () => {
  const { predictor, at } = rig();
  at(0);
  predictor.ended(0, measured(1, { ttftMs: 4220, durationMs: 4220 }));
  expect(at(0).latency).toBeCloseTo(4.22, 9);
});

test('the normal quantile is right to three places', () => {
  expect(normalQuantile(0.5)).toBe(0);
  expect(normalQuantile(0.95)).toBeCloseTo(1.6449, 3);
  expect(normalQuantile(0.05)).toBeCloseTo(-1.6449, 3);
  expect(normalQuantile(0.999)).toBeCloseTo(3.0902, 3);
});

test('the endpoint that takes the slot of one that left is predicted like one that was not measured', () => {
  const { predictor, at } = rig({}, [endpoint, endpoint, endpoint]);
  for (let i = 0; i < 50; i++) for (const slot of [0, 1]) predictor.ended(slot, measured(slot === 0 ? 8 : 2));
  for (const slot of [0, 1, 2]) at(slot);
  for (let i = 0; i < 50; i++) for (const slot of [0, 1]) predictor.ended(slot, measured(slot === 0 ? 8 : 2));
  expect(at(0).latency).toBeGreaterThan(3 * at(1).latency);
  predictor.forget(0);
  predictor.forget(900);
  expect(at(0)).toEqual(at(2));
});
