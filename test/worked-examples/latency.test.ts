import { describe, expect, test } from 'vitest';
import { predictSecondsTextbook, tokensToMs } from '../../packages/hardware-profiles/src/index.ts';
import { policyBench, tier } from './support/policy-bench.fixture.ts';

/** 200 tokens: 150 of prompt and at most 50 of output. */
const request = { promptTokensExact: 150, maxTokens: 50 };
const fleet = tier('t', ['throughput: 20/s', 'throughput: 20/s', 'throughput: 10/s']);

/** The endpoints with a latency within half a millisecond of `seconds`, one by one taken as the only candidate. */
function endpointWith(seconds: number, endpoint: string): string {
  const bench = policyBench(`${fleet}
    default to endpoint "${endpoint}" where predicted_latency.textbook in ${seconds - 0.0005}s..${seconds + 0.0005}s`);
  bench.hold('gpu-1', { queuedTokens: 5000 });
  return bench.send(request);
}

describe('6. latency = queued ÷ throughput + tokens ÷ throughput; 200 tokens; 50, 50 and 100 ms a token; 0, 5000 and 0 queued', () => {
  test('is 10 s, 260 s and 20 s', () => {
    expect(endpointWith(10, 'gpu-0')).toBe('gpu-0');
    expect(endpointWith(260, 'gpu-1')).toBe('gpu-1');
    expect(endpointWith(20, 'gpu-2')).toBe('gpu-2');
    expect(endpointWith(20, 'gpu-0')).toBe('503 no_endpoint');
  });

  test('so the first is chosen', () => {
    const bench = policyBench(`${fleet} default to tier "t" by least_latency.textbook`);
    bench.hold('gpu-1', { queuedTokens: 5000 });
    expect(bench.send(request)).toBe('gpu-0');
  });

  test('and without it the third', () => {
    const bench = policyBench(`${fleet} default to tier "t" where name != "gpu-0" by least_latency.textbook`);
    bench.hold('gpu-1', { queuedTokens: 5000 });
    expect(bench.send(request)).toBe('gpu-2');
  });
});

describe('7. at 1000 tokens/s an H100 needs 100 ms for 100 tokens, at 300 tokens/s an A100 333 ms', () => {
  test('by the rate', () => {
    expect(tokensToMs(100, 1000)).toBe(100);
    expect(Math.round(tokensToMs(100, 300))).toBe(333);
  });

  test('by the prediction of an idle endpoint with that throughput', () => {
    const policy = (
      low: number,
      high: number,
    ): string => `${tier('t', ['gpu: "H100", throughput: 1000/s', 'gpu: "A100", throughput: 300/s'])}
      route to tier "t" where predicted_latency.textbook in ${low}ms..${high}ms
      default reject`;
    const hundred = { promptTokensExact: 0, maxTokens: 100 };
    expect(policyBench(policy(100, 100)).send(hundred)).toBe('gpu-0');
    expect(policyBench(policy(333, 334)).send(hundred)).toBe('gpu-1');
  });
});

test.each([
  ['H100', '7B', 500],
  ['H100', '13B', 300],
  ['H100', '70B', 50],
  ['A100', '7B', 150],
  ['A100', '13B', 80],
  ['A100', '70B', 15],
  ['H100', '34B', 100],
  ['L4', undefined, 100],
] as const)(
  '8. by the profile table, %s with %s makes %i tokens/s, and the prediction is tokens ÷ rate',
  (gpu, size, rate) => {
    expect(predictSecondsTextbook(1000, gpu, size)).toBe(1000 / rate);
  },
);

describe('15. a threshold T on the predicted latency', () => {
  const refuse = (threshold: number): string => `${fleet}
    default to endpoint "gpu-0" where predicted_latency.textbook < ${threshold}s
      else reject with status 503, retry_after 5s`;

  test('a prediction below T is accepted', () => {
    expect(policyBench(refuse(10.5)).send(request)).toBe('gpu-0');
  });

  test('a prediction of T or more is refused with Retry-After', () => {
    for (const threshold of [10, 9]) {
      const outcome = policyBench(refuse(threshold)).route(request);
      expect(outcome).toMatchObject({ kind: 'refuse', status: 503, retryAfterSeconds: 5 });
    }
  });

  test('or waits, when the policy says so', () => {
    const bench = policyBench(`${fleet}
      default to endpoint "gpu-0" where predicted_latency.textbook < 9s
        else queue with max_wait 2s, max_depth 10`);
    expect(bench.send(request)).toBe('queued');
    expect(bench.core.status().queued).toBe(1);
    bench.core.close();
  });

  test('the admission predicate sla() does the same with a named objective', () => {
    const policy = (latency: number): string => `${tier('t', ['throughput: 20/s'])}
      define slo "fast" { latency: ${latency}s }
      reject "too slow" when not sla("fast", tier "t") with status 503, retry_after 5s
      default to tier "t"`;
    // An idle endpoint: 100 output tokens at 20 a second, and no prompt.
    const idle = { promptTokensExact: 0, maxTokens: 100 };
    expect(policyBench(policy(5.5)).send(idle)).toBe('gpu-0');
    expect(policyBench(policy(5)).route(idle)).toMatchObject({ kind: 'refuse', status: 503, retryAfterSeconds: 5 });
  });
});
