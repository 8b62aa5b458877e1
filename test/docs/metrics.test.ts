import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { DecisionRecord } from '../../packages/telemetry/src/index.ts';
import { createMetrics } from '../../packages/telemetry/src/index.ts';
import { repositoryRoot } from './source-files.ts';

const page = readFileSync(join(repositoryRoot, 'docs/reference/metrics.md'), 'utf8');

/** Name, type and sorted labels of each row of the page's first table. */
const listed = [...page.matchAll(/^\| `(signalbox_[a-z_]+)` \| (\w+) \| ([^|]+) \|/gm)].map(
  ([, name = '', type = '', labels = '']) => ({
    name,
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label ?? '').toSorted(),
  }),
);

/** A queued, retried stream that a queue's time limit ended in the end: it gives every metric a series. */
const record: DecisionRecord = {
  v: 1,
  requestId: 'r',
  timeMs: 0,
  seed: 1,
  traceId: '',
  tenant: '',
  model: 'm',
  path: '/v1/chat/completions',
  stream: true,
  policy: 'p',
  generation: 1,
  verdict: 'routed',
  route: 'default',
  reasons: ['default'],
  signals: {},
  queuedMs: 5,
  decideMs: 1,
  shortlist: [],
  dropped: {},
  keys: { affinity: null, split: null },
  attempts: [
    { tier: 'a', endpoint: 'a/1', outcome: 'connect', status: 0, durationMs: 1 },
    { tier: 'a', endpoint: 'a/2', outcome: 'ok', status: 200, durationMs: 9 },
  ],
  servedModel: 'm',
  tier: 'a',
  endpoint: 'a/2',
  status: 503,
  code: 'queue_timeout',
  shed: { queue: 'default', class: 'normal' },
  ttftMs: 3,
  durationMs: 20,
  inputTokens: 5,
  cachedTokens: 0,
  outputTokens: 5,
};

test('every metric is on the page of metrics with its type and labels, and every metric on the page is exposed', async () => {
  const metrics = createMetrics({
    endpoints: () => [
      {
        tier: 'a',
        endpoint: 'a/1',
        inflightRequests: 0,
        inflightTokens: 0,
        maxRequests: 8,
        healthy: true,
        cordoned: false,
        ejections: 0,
      },
    ],
    queues: () => [{ tier: 'default', class: 'normal', size: 1 }],
    queueRates: () => [{ tier: 'default', tokens: 1, tokensPerSecond: 1 }],
    panicking: () => ['a'],
    plugins: () => [{ plugin: 'p', errors: 1, invalidValues: 0 }],
    unknownScorers: () => [['least_kv_cache', 1]],
    leaseLeaks: () => 0,
    audit: () => ({ written: 1, dropped: 0 }),
    lifecycle: () => ({
      versions: { in_force: 1 },
      retiringRequests: 0,
      pinned: false,
      canaryRequests: [{ version: 'canary', outcome: 'ok', count: 1 }],
      canaryRollbacks: { ttft: 1 },
      shadowDecisions: { agreed: 1 },
      shadowSeconds: 0.1,
    }),
  });
  metrics.config.hash = 'abc';
  metrics.config.unfed = ['kv_cache_used'];
  metrics.record(record);
  const text = await metrics.expose();
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]));
  const exposed = [...types].map(([name, type]) => {
    const series =
      text.split('\n').find((line) => line.startsWith(type === 'histogram' ? `${name}_count` : name)) ?? '';
    return { name, type, labels: [...series.matchAll(/[{,](\w+)="/g)].map(([, label]) => label ?? '').toSorted() };
  });
  const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1);
  expect(exposed.length).toBeGreaterThan(15);
  expect(listed.toSorted(byName)).toEqual(exposed.toSorted(byName));
});
