import { expect, test } from 'vitest';
import { policyBench, tier } from './support/policy-bench.fixture.ts';
import type { PolicyBench } from './support/policy-bench.fixture.ts';

/** Sends requests one after another, each taking `2 s × slowness` of its endpoint, and counts where they went. */
function run(
  bench: PolicyBench,
  requests: number,
  slowness: { readonly [endpoint: string]: number },
): { readonly [endpoint: string]: number } {
  const counts: { [endpoint: string]: number } = {};
  for (let i = 0; i < requests; i++) {
    const outcome = bench.route({ promptTokensExact: 500, maxTokens: 100 });
    if (outcome instanceof Promise || outcome.kind !== 'forward') throw new Error('expected a forward');
    const { endpoint } = outcome.attempt;
    counts[endpoint] = (counts[endpoint] ?? 0) + 1;
    const factor = slowness[endpoint] ?? 1;
    bench.clock.advance(100 * factor);
    outcome.commit(100 * factor);
    bench.clock.advance(1900 * factor);
    outcome.finish({
      outcome: 'ok',
      status: 200,
      upstreamStatus: 200,
      ttftMs: 100 * factor,
      durationMs: 2000 * factor,
      promptTokens: 500,
      cachedTokens: 0,
      outputTokens: 100,
    });
  }
  return counts;
}

test('endpoints of one profile are told apart by what they take: the slow one is left, and tried again now and then', () => {
  const bench = policyBench(
    `${tier('t', ['gpu: "H100", model_size: 8B', 'gpu: "H100", model_size: 8B', 'gpu: "H100", model_size: 8B'])}
    default to tier "t" by least_latency`,
  );
  const slowness = { 'gpu-0': 1, 'gpu-1': 2.5, 'gpu-2': 1 };
  const first = run(bench, 30, slowness);
  const later = run(bench, 300, slowness);
  expect(first['gpu-1'] ?? 0).toBeLessThan(10);
  expect(later['gpu-1'] ?? 0).toBeGreaterThan(0);
  expect(later['gpu-1'] ?? 0).toBeLessThan(15);
});

test('a prediction in `where` follows what was measured', () => {
  const bench = policyBench(
    `${tier('t', ['gpu: "H100", model_size: 8B'])}
    default to tier "t" where predicted_latency < 8s else reject with status 503`,
  );
  expect(bench.send({ promptTokensExact: 500, maxTokens: 100 })).toBe('gpu-0');
  run(bench, 1, { 'gpu-0': 5 });
  expect(bench.send({ promptTokensExact: 500, maxTokens: 100 })).toBe('503 rejected');
});
