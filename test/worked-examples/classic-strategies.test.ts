import { expect, test } from 'vitest';
import { policyBench, tally, tier } from './support/policy-bench.fixture.ts';

const thousand = Array.from({ length: 1000 }, () => ({}));
const three = tier('t', ['', '', '']);

test('1. round robin spreads 1000 requests over 3 endpoints as 334 / 333 / 333', () => {
  const bench = policyBench(`${three} default to tier "t" by round_robin`);
  expect(tally(bench, thousand)).toEqual({ 'gpu-0': 334, 'gpu-1': 333, 'gpu-2': 333 });
});

test('2. least connections over static loads 30, 70, 50 sends all of 1000 requests to the first', () => {
  const bench = policyBench(`${three} default to tier "t" by least_connections`);
  bench.hold('gpu-0', { inflightRequests: 30 });
  bench.hold('gpu-1', { inflightRequests: 70 });
  bench.hold('gpu-2', { inflightRequests: 50 });
  expect(tally(bench, thousand)).toEqual({ 'gpu-0': 1000 });
});

test('3. weighted random by free capacity draws in the ratio 70 : 30 : 100', () => {
  const bench = policyBench(
    `${tier('t', ['max_requests: 100', 'max_requests: 100', 'max_requests: 150'])} default to tier "t" by weighted_random`,
  );
  bench.hold('gpu-0', { inflightRequests: 30 });
  bench.hold('gpu-1', { inflightRequests: 70 });
  bench.hold('gpu-2', { inflightRequests: 50 });
  const counts = tally(bench, thousand);
  for (const [endpoint, p] of [
    ['gpu-0', 0.35],
    ['gpu-1', 0.15],
    ['gpu-2', 0.5],
  ] as const) {
    // 99.9 % of a normal variable lies within 3.2905 standard deviations.
    const halfWidth = 3.2905 * Math.sqrt(1000 * p * (1 - p));
    expect(Math.abs((counts[endpoint] ?? 0) - 1000 * p)).toBeLessThan(halfWidth);
  }
});

test('4. least connections over 3, 7 and 2 active sends to the third', () => {
  const bench = policyBench(`${three} default to tier "t" by least_connections`);
  bench.hold('gpu-0', { inflightRequests: 3 });
  bench.hold('gpu-1', { inflightRequests: 7 });
  bench.hold('gpu-2', { inflightRequests: 2 });
  expect(bench.send()).toBe('gpu-2');
});

test('5. least loaded over queues of 5000, 2000 and 8000 tokens sends a request of 100 tokens to the second', () => {
  const bench = policyBench(`${three} default to tier "t" by least_loaded`);
  bench.hold('gpu-0', { queuedTokens: 5000 });
  bench.hold('gpu-1', { queuedTokens: 2000 });
  bench.hold('gpu-2', { queuedTokens: 8000 });
  expect(bench.send({ promptTokensExact: 100 })).toBe('gpu-1');
});

test('14. smallest batch sends to the endpoint with the smallest running batch', () => {
  const bench = policyBench(
    `${tier('t', ['max_batch: 32', 'max_batch: 32', 'max_batch: 32'])} default to tier "t" by smallest_batch`,
  );
  for (const [endpoint, running] of [
    ['gpu-0', 31],
    ['gpu-1', 12],
    ['gpu-2', 32],
  ] as const) {
    expect(bench.core.feed(endpoint, { running, queueDepth: 0 })).toBe(true);
  }
  expect(bench.send()).toBe('gpu-1');
});
