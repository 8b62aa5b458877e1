import { expect, test } from 'vitest';
import { auditLine } from './audit-line.ts';
import type { DecisionRecord } from './decision-record.ts';
import { unroutedRecord } from './unrouted-record.ts';

const RECORD: DecisionRecord = {
  v: 1,
  requestId: 'r-1',
  timeMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  seed: 7,
  traceId: '',
  tenant: 'acme',
  model: 'auto',
  path: '/v1/chat/completions',
  stream: true,
  policy: 'abc123',
  generation: 3,
  verdict: 'routed',
  route: 'hard',
  decided: { admission: '', step: 1, fallback: -1, candidates: 4 },
  reasons: ['matched', 'retried'],
  signals: { complexity: 72, session: null },
  queuedMs: 0,
  decideMs: 0.0123456,
  shortlist: [
    {
      endpoint: '70B/2',
      tier: '70B',
      score: 0.9,
      parts: { least_tokens: 0.9 },
      properties: { queued_tokens: 5, age: null },
    },
  ],
  dropped: { capacity: 1 },
  keys: { affinity: '00ff00ff00ff00ff', split: null },
  attempts: [{ tier: '70B', endpoint: '70B/1', outcome: 'connect', status: 0, durationMs: 1.23456 }],
  servedModel: 'llama',
  tier: '70B',
  endpoint: '70B/2',
  status: 200,
  code: '',
  ttftMs: 84.00049,
  durationMs: 1200,
  inputTokens: 38,
  cachedTokens: Number.NaN,
  outputTokens: 61,
};

test('a line has the fields of the audit page in their order, unknown as null', () => {
  const line = auditLine(RECORD, 'read');
  expect(line.endsWith('}\n') && !line.slice(0, -1).includes('\n')).toBe(true);
  const parsed = JSON.parse(line) as { readonly [field: string]: unknown };
  expect(Object.keys(parsed)).toEqual(
    (
      'v time request_id seed trace_id tenant model policy verdict route decided reason signals queued_ms shortlist dropped keys attempts ' +
      'served_model status ttft_ms duration_ms input_tokens cached_tokens output_tokens'
    ).split(' '),
  );
  expect(parsed).toMatchObject({
    v: 1,
    time: '2026-01-02T03:04:05.678Z',
    trace_id: null,
    decided: { admission: null, step: 1, fallback: null, candidates: 4 },
    reason: ['matched', 'retried'],
    signals: { complexity: 72, session: null },
    shortlist: [
      {
        endpoint: '70B/2',
        tier: '70B',
        score: 0.9,
        parts: { least_tokens: 0.9 },
        properties: { queued_tokens: 5, age: null },
      },
    ],
    keys: { affinity: '00ff00ff00ff00ff', split: null },
    attempts: [{ tier: '70B', endpoint: '70B/1', outcome: 'connect', status: 0, ms: 1.235 }],
    ttft_ms: 84,
    cached_tokens: null,
  });
});

test('`record: all` adds what else the record has', () => {
  const fields = (line: string): string[] => Object.keys(JSON.parse(line) as object);
  const more = fields(auditLine(RECORD, 'all')).slice(fields(auditLine(RECORD, 'read')).length);
  expect(more).toEqual(['path', 'stream', 'generation', 'tier', 'endpoint', 'code', 'decide_ms']);
});

test('a line of a request that was shed says so: by which queue, and of which class', () => {
  const shed = { queue: 'brown-out', class: 'low' };
  const line = JSON.parse(auditLine({ ...RECORD, reasons: ['shed'], shed }, 'read')) as object;
  expect(line).toMatchObject({ reason: ['shed'], shed });
  expect(JSON.parse(auditLine(RECORD, 'all'))).not.toHaveProperty('shed');
});

test('a request that no policy saw has the same fields, and its time is its start', () => {
  const end = {
    requestId: 'r-2',
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    tenant: 'acme',
    path: '/v1/chat/completions',
    status: 401,
    code: 'invalid_api_key',
    durationMs: 5,
    timeMs: 1005,
  };
  const line = JSON.parse(auditLine(unroutedRecord(end, 'abc123'), 'read')) as object;
  expect(Object.keys(line)).toEqual(Object.keys(JSON.parse(auditLine(RECORD, 'read')) as object));
  expect(line).toMatchObject({
    time: '1970-01-01T00:00:01.000Z',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    tenant: 'acme',
    policy: 'abc123',
    verdict: 'refused',
    reason: ['invalid_api_key'],
    status: 401,
    route: null,
    decided: null,
    model: null,
    seed: null,
    input_tokens: null,
  });
});
