import { describe, expect, test } from 'vitest';
import { firstPartyEntries, policyBench, tier } from './support/policy-bench.fixture.ts';
import type { PolicyBench } from './support/policy-bench.fixture.ts';

const facts = ['throughput: 100/s, weight: 1', 'throughput: 100/s, weight: 2', 'throughput: 200/s, weight: 4'];
const fleet = tier('t', facts);

describe('every first-party name works in a policy without options', () => {
  const cases: readonly (readonly [string, string, string])[] = firstPartyEntries.map(({ kind, name, type }) => {
    switch (kind) {
      case 'scorer':
        return [kind, name, `default to tier "t" by ${name}`];
      case 'picker':
        return [kind, name, `default to tier "t" by least_tokens pick ${name}`];
      case 'property':
        return [kind, name, `default to tier "t" by lowest(${name})`];
      case 'filter':
        return [kind, name, `default to tier "t" where ${name} or true`];
      case 'signal':
        return [kind, name, `route when ${type === 'bool' ? name : `${name} exists`} to tier "t" default to tier "t"`];
      case 'admission':
        return [
          kind,
          name,
          `define slo "s" { ttft: 1s } reject when ${name}("s", tier "t") ?? false default to tier "t"`,
        ];
    }
  });

  test.each(cases)('%s %s', (_kind, _name, policy) => {
    const bench = policyBench(`${fleet} ${policy}`);
    const endpoint = bench.send({ messages: 'Is Paris in France?' });
    expect(endpoint).toMatch(/^gpu-[012]$|^429 rejected$/);
    expect([...bench.core.status().pluginFailures]).toEqual([]);
  });
});

describe('what an expression says is what is computed', () => {
  const withState = (policy: string): PolicyBench => {
    const bench = policyBench(`${fleet} ${policy}`);
    bench.hold('gpu-0', { inflightRequests: 4, queuedTokens: 100, decodeTokens: 900 });
    bench.hold('gpu-1', { inflightRequests: 6, queuedTokens: 4000, decodeTokens: 100 });
    bench.hold('gpu-2', { inflightRequests: 16, queuedTokens: 900, decodeTokens: 1500 });
    return bench;
  };

  test.each([
    // 4, 6 and 16 in flight
    ['least_connections', 'gpu-0'],
    // 4 ÷ 1, 6 ÷ 2, 16 ÷ 4
    ['least_requests', 'gpu-1'],
    ['least_loaded', 'gpu-0'],
    // (10 + 900) ÷ 100, (400 + 100) ÷ 100, (90 + 1500) ÷ 200
    ['least_tokens', 'gpu-1'],
    // prompt tokens at full weight: 1000, 4100 and 2400 ÷ 2
    ['least_tokens(prompt_weight: 1)', 'gpu-0'],
    ['declared_order', 'gpu-0'],
  ])('%s picks %s', (scorer, endpoint) => {
    expect(withState(`default to tier "t" by ${scorer}`).send({ promptTokensExact: 0, maxTokens: 1 })).toBe(endpoint);
  });

  test.each([
    ['least_queue', 'gpu-1'],
    ['least_running', 'gpu-2'],
    ['smallest_batch', 'gpu-2'],
    ['least_kv_cache', 'gpu-0'],
  ])('%s picks %s by what engines report', (scorer, endpoint) => {
    const bench = withState(`default to tier "t" by ${scorer}`);
    bench.core.feed('gpu-0', { queueDepth: 5, running: 9, kvCacheUsed: 0.2 });
    bench.core.feed('gpu-1', { queueDepth: 1, running: 8, kvCacheUsed: 0.9 });
    bench.core.feed('gpu-2', { queueDepth: 3, running: 7, kvCacheUsed: 0.5 });
    expect(bench.send()).toBe(endpoint);
  });

  test('an unknown throughput counts as the mean of its tier in least_tokens', () => {
    const bench = policyBench(
      `${tier('t', ['throughput: 100/s', 'throughput: 300/s', ''])} default to tier "t" by least_tokens`,
    );
    // 200/s for the third: 1000 ÷ 100, 1000 ÷ 300, 500 ÷ 200
    bench.hold('gpu-0', { decodeTokens: 1000 });
    bench.hold('gpu-1', { decodeTokens: 1000 });
    bench.hold('gpu-2', { decodeTokens: 500 });
    expect(bench.send({ promptTokensExact: 0, maxTokens: 1 })).toBe('gpu-2');
    // 700 ÷ 200 is more than 1000 ÷ 300
    bench.hold('gpu-2', { decodeTokens: 700 });
    expect(bench.send({ promptTokensExact: 0, maxTokens: 1 })).toBe('gpu-1');
  });

  test('without any throughput the tokens alone decide', () => {
    const bench = policyBench(`${tier('t', ['', '', ''])} default to tier "t" by least_tokens`);
    bench.hold('gpu-0', { decodeTokens: 900 });
    bench.hold('gpu-1', { decodeTokens: 100 });
    bench.hold('gpu-2', { decodeTokens: 500 });
    expect(bench.send()).toBe('gpu-1');
  });
});
