import { definePlugin } from '@signalbox/plugin-api';
import type { ScorerInstance } from '@signalbox/plugin-api';
import { viewContract } from '@signalbox/testkit';
import { expect, test } from 'vitest';
import { destination, ProgramBuilder, route, SPAN, testCore, tier } from '../program.fixture.ts';

const checks = viewContract((facts, inspect) => {
  let failure: unknown;
  const plugin = definePlugin({
    name: 'inspector',
    apiVersion: 1,
    provides: {
      scorer: {
        inspect: {
          doc: 'Shows what a scorer sees.',
          reads: facts.reads,
          setup: (): ScorerInstance => ({
            score(request, candidates, out) {
              try {
                inspect({ request, candidates });
              } catch (error) {
                failure = error;
              }
              out.fill(0, 0, candidates.length);
            },
          }),
        },
      },
    },
  });
  const b = new ProgramBuilder();
  const scorer = {
    kind: 'function',
    name: 'inspect',
    provider: { kind: 'plugin', plugin: 'inspector' },
    options: {},
    cost: false,
    instance: 'policy',
    reads: [],
    span: SPAN,
  } as const;
  const base = tier('gpu', facts.endpoints.length, { model: 'm' });
  const endpoints = base.endpoints.map((endpoint, i) => {
    const { name = '', zone, throughput } = facts.endpoints[i] ?? {};
    return {
      ...endpoint,
      name,
      ...(zone === undefined ? {} : { zone }),
      ...(throughput === undefined ? {} : { throughput }),
    };
  });
  const t = testCore(
    b.program({
      tiers: [{ ...base, endpoints }],
      routes: [route('default', [destination('gpu', [{ span: SPAN, terms: [{ weight: 1, scorer }] }])])],
    }),
    { plugins: [plugin] },
  );
  facts.endpoints.forEach((endpoint) => {
    t.core.fleet.table.queuedTokens[t.core.fleet.slotOf(endpoint.name) ?? -1] = endpoint.queued_tokens;
  });
  t.forward({ body: { model: 'm', promptTokensExact: 100 } });
  if (failure !== undefined) throw failure;
});

test.each(checks)('$name', ({ run }) => {
  expect(run).not.toThrow();
});
