import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { DecisionRecord } from '../../packages/telemetry/src/index.ts';
import { createDecisionLines } from '../../packages/telemetry/src/decision-line.ts';
import { expectQuiet, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const VALID = `00-${TRACE}-00f067aa0ba902b7-01`;
const records: DecisionRecord[] = [];

let bed: EdgeBed;
beforeAll(async () => {
  bed = await startEdgeBed({
    gateway: 'audit: { file: "audit.ndjson" }',
    onDecision: (record) => records.push(record),
  });
});
afterEach(() => expectQuiet(bed));
afterAll(() => bed.stop());

/** What became of the trace of one request: in the record, in its log line, in its audit line, and upstream. */
async function traced(headers: readonly string[], body?: string): Promise<object> {
  bed.upstream.take();
  const id = `trace-${Math.random()}`;
  await exchange(bed.port, post([...headers, `X-Request-Id: ${id}`].map((line) => `${line}\r\n`).join(''), body));
  const audited = (): Record<string, unknown> | undefined =>
    readFileSync(join(bed.folder, 'audit.ndjson'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(id))
      .map((line) => JSON.parse(line) as Record<string, unknown>)[0];
  await expect.poll(audited, { timeout: 20_000 }).toBeDefined();
  const sent = bed.upstream.take()[0]?.headers ?? [];
  const record = records.find(({ requestId }) => requestId === id);
  return {
    record: record?.traceId,
    log:
      record === undefined
        ? undefined
        : (JSON.parse(createDecisionLines()(record, 0)) as Record<string, unknown>)['trace_id'],
    audit: audited()?.['trace_id'],
    upstream: sent.filter(([name]) => name === 'traceparent' || name === 'tracestate'),
  };
}

test.each([
  [VALID],
  [`00-${TRACE}-00f067aa0ba902b7-00`],
  [`01-${TRACE}-00f067aa0ba902b7-01`],
  [`cc-${TRACE}-00f067aa0ba902b7-01-what-comes-later`],
])('the trace of %s is recorded, and goes upstream as it came', async (traceparent) => {
  expect(await traced([`traceparent: ${traceparent}`, 'tracestate: a=1', 'Tracestate: b=2'])).toEqual({
    record: TRACE,
    log: TRACE,
    audit: TRACE,
    upstream: [
      ['traceparent', traceparent],
      ['tracestate', 'a=1,b=2'],
    ],
  });
});

test.each([
  ['', 'empty'],
  ['00-1-2-01', 'short'],
  [`00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, 'no trace'],
  [`00-${TRACE}-${'0'.repeat(16)}-01`, 'no parent'],
  [`ff-${TRACE}-00f067aa0ba902b7-01`, 'the forbidden version'],
  [`00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`, 'upper case'],
  [`00-${TRACE}-00f067aa0ba902b7-01-more`, 'more than version 00 has'],
  [`cc-${TRACE}-00f067aa0ba902b7-01more`, 'more without a dash'],
  [`00-${TRACE}-00f067aa0ba902b7-1`, 'short flags'],
  [`00-${TRACE.slice(1)}"-00f067aa0ba902b7-01`, 'a quote'],
])('%j (%s) is replaced by none, with its state', async (traceparent) => {
  expect(await traced([`traceparent: ${traceparent}`, 'tracestate: a=1'])).toEqual({
    record: '',
    log: undefined,
    audit: null,
    upstream: [],
  });
});

test('two of them are none, and a state alone is none', async () => {
  const none = { record: '', log: undefined, audit: null, upstream: [] };
  expect(await traced([`traceparent: ${VALID}`, `traceparent: ${VALID}`])).toEqual(none);
  expect(await traced(['tracestate: a=1'])).toEqual(none);
  expect(await traced([])).toEqual(none);
});

test('a request that no policy saw has its trace too', async () => {
  expect(await traced([`traceparent: ${VALID}`], '{"model":')).toEqual({
    record: TRACE,
    log: TRACE,
    audit: TRACE,
    upstream: [],
  });
});
