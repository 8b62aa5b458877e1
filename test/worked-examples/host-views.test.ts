import { expect, test } from 'vitest';
import { definePlugin } from '../../packages/plugin-api/src/index.ts';
import { viewContract } from '../../packages/testkit/src/index.ts';
import { policyBench } from './support/policy-bench.fixture.ts';

// The views that plugins get from the core pass the suite that testkit's own builders pass.
const checks = viewContract((facts, inspect) => {
  const probe = definePlugin({
    name: 'probe',
    apiVersion: 1,
    provides: {
      scorer: {
        probe: {
          doc: 'Looks at its views.',
          reads: facts.reads,
          setup: () => ({
            score(request, candidates, out) {
              out.fill(0.5, 0, candidates.length);
              inspect({ request, candidates });
            },
          }),
        },
      },
    },
  });
  const endpoints = facts.endpoints.map(({ name, zone, throughput }, i) => {
    const stated = [
      `name: "${name}"`,
      `url: "http://10.0.0.${i + 1}:8000"`,
      ...(zone === undefined ? [] : [`zone: "${zone}"`]),
      ...(throughput === undefined ? [] : [`throughput: ${throughput}/s`]),
    ];
    return `{ ${stated.join(', ')} }`;
  });
  const bench = policyBench(
    `define tier "t" { model: "m", endpoints: [${endpoints.join(', ')}] } default to tier "t" by probe`,
    [probe],
  );
  for (const { name, queued_tokens: queuedTokens } of facts.endpoints) bench.hold(name, { queuedTokens });
  bench.send({ promptTokensExact: 100 });
  // The core catches what a plugin throws and logs it; here it is the finding.
  if (bench.logged.length > 0) throw new Error(bench.logged.join('\n'));
});

for (const check of checks) {
  test(`the core's ${check.name}`, () => {
    expect(() => check.run()).not.toThrow();
  });
}
