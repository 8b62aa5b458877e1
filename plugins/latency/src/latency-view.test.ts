import { predictRequest } from '@signalbox/hardware-profiles';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { predict } from './latency-view.ts';
import type { Held, Prediction, Rates, Shape } from './latency-view.ts';

const model = { prefill: { fixedMs: 10, perTokenMs: 0.05 }, decode: { aMs: 12, bMs: 0.1, kMs: 0.02, pMs: 0.04 } };
const profile: Rates = { kind: 'profile', model };
const idle: Held = {
  requests: 0,
  queuedTokens: 0,
  waitingRequests: 0,
  decodeTokens: 0,
  promptTokens: 0,
  beyondBatch: 0,
};
const shape: Shape = { promptTokens: 1000, uncachedTokens: 1000, outputTokens: 200 };

function predicted(rates: Rates, held: Held, of: Shape = shape): Prediction {
  const out = { wait: Number.NaN, prefill: Number.NaN, tpot: Number.NaN };
  predict(rates, held, of, out);
  return out;
}

describe('by profile', () => {
  test('an idle endpoint is what hardware-profiles predicts for a single request', () => {
    const { wait, prefill, tpot } = predicted(profile, idle);
    const expected = predictRequest(model, { promptTokens: 1000, outputTokens: 200 });
    expect(wait).toBe(0);
    expect(1000 * prefill).toBeCloseTo(expected.prefillMs, 9);
    expect(1000 * 199 * tpot).toBeCloseTo(expected.decodeMs, 9);
  });

  test('prompts ahead are prefilled first: fixed time for each, and their tokens', () => {
    expect(predicted(profile, { ...idle, requests: 3, queuedTokens: 2000, waitingRequests: 2 }).wait).toBeCloseTo(
      (2 * 10 + 2000 * 0.05) / 1000,
      12,
    );
  });

  test('a step takes a + b·batch + k·context/1000 + p·newcomers', () => {
    const held = { ...idle, requests: 4, decodeTokens: 800, promptTokens: 4000 };
    const context = 4000 + 400 + 1000 + 100;
    const newcomers = (4 * 4000) / 800;
    expect(1000 * predicted(profile, held).tpot).toBeCloseTo(
      12 + 0.1 * 5 + (0.02 * context) / 1000 + 0.04 * newcomers,
      9,
    );
  });

  test('with a full batch the wait is what those ahead need to end, one after another', () => {
    const held = { ...idle, requests: 32, decodeTokens: 3200, promptTokens: 32_000, beyondBatch: 1 };
    const { wait, tpot } = predicted(profile, held);
    expect(wait).toBeCloseTo((1 * 100 * tpot) / 31, 12);
  });

  test('cached tokens need no prefill', () => {
    expect(predicted(profile, idle, { ...shape, uncachedTokens: 100 }).prefill).toBeCloseTo((10 + 5) / 1000, 12);
    expect(predicted(profile, idle, { ...shape, uncachedTokens: 0 }).prefill).toBe(0);
  });
});

describe('by throughput alone', () => {
  const rates: Rates = { kind: 'throughput', tokensPerSecond: 100 };

  test('an idle endpoint gives its rate', () => {
    expect(predicted(rates, idle, { promptTokens: 0, uncachedTokens: 0, outputTokens: 100 })).toEqual({
      wait: 0,
      prefill: 0,
      tpot: 0.01,
    });
  });

  test('prompt tokens weigh a tenth, and equal requests share the rate', () => {
    const held = { ...idle, requests: 3, queuedTokens: 500, decodeTokens: 600 };
    const { wait, prefill, tpot } = predicted(rates, held);
    expect(wait).toBeCloseTo(0.5, 12);
    expect(prefill).toBeCloseTo(1, 12);
    expect(tpot).toBeCloseTo(4 / 100, 12);
  });
});

test('without profile or throughput everything is unknown', () => {
  expect(predicted({ kind: 'unknown' }, idle)).toEqual({ wait: NaN, prefill: NaN, tpot: NaN });
});

test('more load never makes a prediction shorter', () => {
  const amount = fc.integer({ min: 0, max: 50_000 });
  const loads = fc.record({
    requests: fc.integer({ min: 1, max: 200 }),
    queuedTokens: amount,
    waitingRequests: fc.integer({ min: 0, max: 50 }),
    decodeTokens: amount,
    promptTokens: amount,
    beyondBatch: fc.constant(0),
  });
  fc.assert(
    fc.property(loads, amount, (held, more) => {
      for (const rates of [profile, { kind: 'throughput', tokensPerSecond: 500 } as const]) {
        const less = predicted(rates, held);
        const most = predicted(rates, { ...held, queuedTokens: held.queuedTokens + more, requests: held.requests + 1 });
        expect(most.wait).toBeGreaterThanOrEqual(less.wait);
        expect(most.tpot).toBeGreaterThanOrEqual(less.tpot);
      }
    }),
  );
});
