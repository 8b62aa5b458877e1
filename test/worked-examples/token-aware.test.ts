import { describe, expect, test } from 'vitest';
import { policyBench, tier } from './support/policy-bench.fixture.ts';
import type { PolicyBench } from './support/policy-bench.fixture.ts';

const fleet = tier('t', ['throughput: 100/s', 'throughput: 100/s']);

describe('9. token-aware, 100 tokens/s each, holding (500 prompt, 20 decode) and (100 prompt, 60 decode)', () => {
  const bench = (policy: string): PolicyBench => {
    const made = policyBench(`${fleet} ${policy}`);
    made.hold('gpu-0', { queuedTokens: 500, decodeTokens: 20 });
    made.hold('gpu-1', { queuedTokens: 100, decodeTokens: 60 });
    return made;
  };

  test('both are at load 0.70', () => {
    for (const endpoint of ['gpu-0', 'gpu-1']) {
      expect(bench(`default to endpoint "${endpoint}" where load == 70%`).send()).toBe(endpoint);
    }
  });

  test.each([
    [100, 50],
    [2000, 100],
    [100, 500],
  ])(
    'a request of %i prompt and %i output tokens goes to the first, declared order breaking the tie',
    (promptTokensExact, maxTokens) => {
      expect(
        bench('default to tier "t" by least_tokens then declared_order').send({ promptTokensExact, maxTokens }),
      ).toBe('gpu-0');
    },
  );

  test('an endpoint at load 0.95 is no candidate, one just below is', () => {
    const cut = bench('default to tier "t" where under_load(95%) by least_tokens then declared_order');
    cut.hold('gpu-0', { queuedTokens: 350, decodeTokens: 60 });
    cut.hold('gpu-1', { queuedTokens: 949, decodeTokens: 0 });
    expect(cut.send()).toBe('gpu-1');
    cut.hold('gpu-1', { queuedTokens: 950, decodeTokens: 0 });
    expect(cut.send()).toBe('503 no_endpoint');
  });
});
