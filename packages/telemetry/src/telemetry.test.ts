import { expect, test } from 'vitest';
import { createDecisionHistory } from './decision-history.ts';
import { createDecisionLines, decisionText } from './decision-line.ts';
import type { DecisionRecord } from './decision-record.ts';
import { createHistogram, observe } from './histogram.ts';
import { createDecisionLog, createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import type { MetricsSource } from './metrics.ts';

function record(change: Partial<DecisionRecord> = {}): DecisionRecord {
  return {
    v: 1,
    requestId: 'r-1',
    timeMs: 0,
    seed: 1,
    traceId: '',
    tenant: '',
    model: 'auto',
    path: '/v1/chat/completions',
    stream: true,
    policy: 'abc123',
    generation: 1,
    verdict: 'routed',
    route: 'hard',
    reasons: ['matched'],
    signals: { complexity: 72.04, model: 'auto' },
    queuedMs: 0,
    decideMs: 0.004,
    shortlist: [],
    dropped: {},
    keys: { affinity: null, split: null },
    attempts: [{ tier: '70B', endpoint: '70B/1', outcome: 'ok', status: 200, durationMs: 1200 }],
    servedModel: 'llama-70b',
    tier: '70B',
    endpoint: '70B/1',
    status: 200,
    code: '',
    ttftMs: 84,
    durationMs: 1200,
    inputTokens: 38,
    cachedTokens: 0,
    outputTokens: 61,
    ...change,
  };
}

const idle: MetricsSource = {
  endpoints: () => [
    {
      tier: '70B',
      endpoint: '70B/1',
      inflightRequests: 2,
      inflightTokens: 99,
      maxRequests: 20,
      healthy: true,
      cordoned: false,
      ejections: 0,
    },
  ],
  queues: () => [{ tier: '70B', class: 'normal', size: 3 }],
  queueRates: () => [
    { tier: 'brown-out', tokens: 1200, tokensPerSecond: 400 },
    { tier: 'new', tokens: 300, tokensPerSecond: NaN },
  ],
  panicking: () => [],
  plugins: () => [{ plugin: 'strategies', errors: 1, invalidValues: 2 }],
  leaseLeaks: () => 0,
};

test('a value on a bound counts in the bucket of that bound', () => {
  const histogram = createHistogram([1, 2]);
  for (const value of [1, 1.5, 2, 9, NaN]) observe(histogram, value);
  expect([...histogram.counts]).toEqual([1, 2, 1]);
  expect(histogram.count).toBe(4);
});

test('requests are counted by route, tier, model, code and reason, and a model that no policy names is other', async () => {
  const metrics = createMetrics(idle);
  metrics.setModels(['auto']);
  metrics.record(record());
  metrics.record(record());
  metrics.record(
    record({ model: 'attacker-chosen', status: 503, code: 'no_endpoint', attempts: [], tier: '', endpoint: '' }),
  );
  const text = await metrics.expose();
  expect(text).toContain(
    'signalbox_requests_total{route="hard",tier="70B",model="auto",code="200",reason="matched"} 2',
  );
  expect(text).toContain('model="other",code="503",reason="no_endpoint"} 1');
  expect(text).not.toContain('attacker');
  expect(text).toContain('signalbox_ttft_seconds_bucket{le="0.1",tier="70B",model="auto"} 2');
  expect(text).toContain('signalbox_ttft_seconds_bucket{le="0.05",tier="70B",model="auto"} 0');
  expect(text).toContain('signalbox_tokens_total{tier="70B",model="auto",type="output"} 122');
  expect(text).toContain('signalbox_inflight_requests{tier="70B",endpoint="70B/1"} 2');
  expect(text).toContain('signalbox_queue_size{tier="70B",class="normal"} 3');
  expect(text).toContain('signalbox_queue_tokens{tier="new"} 300');
  expect(text).toContain('signalbox_queue_drain_tokens_per_second{tier="brown-out"} 400');
  expect(text).not.toContain('signalbox_queue_drain_tokens_per_second{tier="new"}');
  expect(text).toContain('signalbox_plugin_errors_total{plugin="strategies"} 3');
  expect(text).toMatch(/^# HELP signalbox_requests_total /m);
});

test('what overload protection refuses is counted by queue, class and reason', async () => {
  const metrics = createMetrics(idle);
  const refused: Partial<DecisionRecord> = { verdict: 'refused', status: 503, attempts: [], tier: '', endpoint: '' };
  metrics.record(
    record({ ...refused, code: 'queue_timeout', queuedMs: 900, shed: { queue: 'brown-out', class: 'low' } }),
  );
  metrics.record(record({ ...refused, code: 'shed', shed: { queue: '', class: 'normal' } }));
  metrics.record(record({ ...refused, code: 'no_endpoint' }));
  const text = await metrics.expose();
  expect(text).toContain('signalbox_shed_total{tier="brown-out",class="low",reason="queue_timeout"} 1');
  expect(text).toContain('signalbox_shed_total{tier="",class="normal",reason="shed"} 1');
  expect(text).toContain('signalbox_queue_wait_seconds_count{tier="brown-out"} 1');
  expect(text.match(/^signalbox_shed_total/gm)).toHaveLength(2);
});

test('a request that no policy saw is counted by its code', async () => {
  const metrics = createMetrics(idle);
  metrics.recordUnrouted(413, 'request_too_large', 3);
  expect(await metrics.expose()).toContain(
    'signalbox_requests_total{route="",tier="",model="other",code="413",reason="request_too_large"} 1',
  );
});

test('the time between tokens is that of the stream alone, however long the request had waited in a queue', async () => {
  const metrics = createMetrics(idle);
  metrics.record(record({ queuedMs: 2000, ttftMs: 2100, durationMs: 3000, outputTokens: 10 }));
  const text = await metrics.expose();
  expect(text).toContain('signalbox_inter_token_seconds_sum{tier="70B",model="other"} 0.1');
  expect(text).toContain('signalbox_inter_token_seconds_bucket{le="0.075",tier="70B",model="other"} 0');
});

test('the history keeps the newest records and finds one by request id', () => {
  const history = createDecisionHistory(3);
  for (const requestId of ['a', 'b', 'c', 'd']) history.add(record({ requestId }));
  expect(history.recent(10).map(({ requestId }) => requestId)).toEqual(['d', 'c', 'b']);
  expect(history.recent(1)).toHaveLength(1);
  expect(history.find('c')?.requestId).toBe('c');
  expect(history.find('a')).toBeUndefined();
});

test('the line for people tells route, endpoint, signals and times', () => {
  expect(decisionText(record())).toBe(
    '200 "hard" → 70B/1 · complexity 72 · first token 84 ms · 1.20 s · 38 → 61 tokens',
  );
  expect(
    decisionText(
      record({
        endpoint: '',
        status: 503,
        code: 'no_endpoint',
        reasons: ['no_endpoint'],
        inputTokens: NaN,
        ttftMs: NaN,
      }),
    ),
  ).toBe('503 "hard" ✗ no_endpoint · complexity 72 · 1.20 s');
});

test('the line of a request is JSON of its scalars, whatever a caller put into them, and leaves unknown numbers out', () => {
  const line = createDecisionLines()(
    record({ seed: 4_294_967_295, ttftMs: NaN, model: 'a "b" \\ \n\u2028 é', tenant: 't' }),
    Date.UTC(2026, 0, 1),
  );
  expect(line.indexOf('\n')).toBe(line.length - 1);
  expect(JSON.parse(line)).toEqual({
    level: 'info',
    v: 1,
    seed: 4_294_967_295,
    time: '2026-01-01T00:00:00.000Z',
    msg: 'request',
    request_id: 'r-1',
    verdict: 'routed',
    route: 'hard',
    tier: '70B',
    endpoint: '70B/1',
    attempt: 1,
    model: 'a "b" \\ \n\u2028 é',
    served_model: 'llama-70b',
    policy: 'abc123',
    status: 200,
    reason: 'matched',
    tenant: 't',
    queued_ms: 0,
    duration_ms: 1200,
    input_tokens: 38,
    cached_tokens: 0,
    output_tokens: 61,
  });
});

test('the line of a request that no policy saw has no seed', () => {
  const line = createDecisionLines()(record({ seed: Number.NaN }), 0);
  expect(JSON.parse(line)).not.toHaveProperty('seed');
});

test('secrets and contents are redacted at every level', () => {
  const lines: string[] = [];
  const logger = createLogger({ level: 'trace', destination: { write: (line: string) => void lines.push(line) } });
  logger.trace('x', { authorization: 'Bearer sk-secret', prompt: 'private words' });
  logger.child({ api_key: 'sk-secret' }).error('y');
  expect(lines).toHaveLength(2);
  expect(lines.join('')).not.toMatch(/sk-secret|private/);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'trace', msg: 'x', authorization: '[redacted]' });
});

test('the request log is one line for each request at level info, and nothing above it', () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  createDecisionLog({ level: 'info', destination })(record());
  createDecisionLog({ level: 'warn', destination })(record());
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'info',
    msg: 'request',
    request_id: 'r-1',
    endpoint: '70B/1',
    status: 200,
    ttft_ms: 84,
  });
});

test('lines of requests that differ in any field differ in it, whatever was written before, and carry their own time', () => {
  const lineOf = createDecisionLines();
  const base = record();
  const variants: Partial<DecisionRecord>[] = [
    {},
    { verdict: 'refused' },
    { route: 'r"1' },
    { tier: 't1' },
    { endpoint: 'e1' },
    { attempts: [] },
    { model: 'm1' },
    { servedModel: 's1' },
    { policy: 'p1' },
    { status: 503 },
    { reasons: ['a', 'b'] },
    { reasons: [] },
  ];
  for (const epochMs of [0, 999, 1000, 1_764_500_000_123, 7.9]) {
    for (const change of [...variants, ...variants.toReversed()]) {
      const one = { ...base, ...change };
      expect(JSON.parse(lineOf(one, epochMs))).toMatchObject({
        time: new Date(epochMs).toISOString(),
        verdict: one.verdict,
        route: one.route,
        tier: one.tier,
        endpoint: one.endpoint,
        attempt: one.attempts.length,
        model: one.model,
        served_model: one.servedModel,
        policy: one.policy,
        status: one.status,
        reason: one.reasons.join(','),
      });
    }
  }
});

test('every label tells series apart, in whatever order they come', async () => {
  const metrics = createMetrics(idle);
  metrics.setModels(['m']);
  const kinds: Partial<DecisionRecord>[] = [
    {},
    { route: 'other' },
    { tier: 'other' },
    { model: 'm' },
    { status: 418 },
    { reasons: ['retried'] },
    { code: 'shed' },
  ];
  for (const kind of [...kinds, ...kinds.toReversed(), ...kinds]) metrics.record(record(kind));
  const counts = (await metrics.expose()).match(/^signalbox_requests_total\{.*\} \d+$/gm) ?? [];
  expect(counts.map((line) => line.slice(line.lastIndexOf(' ')))).toEqual(kinds.map(() => ' 3'));
});
