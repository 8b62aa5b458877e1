import { mkdtempSync, readFileSync, symlinkSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Bed } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

let bed: Bed;
afterEach(() => bed.stop());

type Line = { readonly [field: string]: unknown };

const linesOf = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

function ask(body: object, headers: object = {}): Promise<Response> {
  return fetch(`${bed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      model: 'sim',
      messages: [{ role: 'user', content: 'hello there' }],
      max_tokens: 2,
      ...body,
    }),
  });
}

const policy =
  (audit: string) =>
  ([url]: readonly string[]): string =>
    `
    define gateway { audit: ${audit} }
    define tier "t" { model: "sim", endpoints: ["${url}"] }
    reject "no tools" when tools > 0
    route "session" when session != "" to tier "t" where queue_depth < 100 by least_tokens with affinity session
    default to tier "t" by least_tokens`;

const written = async (): Promise<number> => {
  const text = await (await fetch(`${bed.gateway.adminUrl}/metrics`)).text();
  return Number(/signalbox_audit_records_total\{outcome="written"\} (\d+)/.exec(text)?.[1]);
};

test('every request has one line: answered, refused by the policy, and refused at the door', async () => {
  bed = await startBed({ engines: [{}], policy: policy('{ file: "audit.ndjson", record: all }') });
  const before = Date.now();
  await (await ask({ stream: true }, { 'x-session-id': 'session-of-jane', 'x-request-id': 'r-1' })).text();
  await (await ask({ tools: [{ type: 'function', function: { name: 'f' } }] }, { 'x-request-id': 'r-2' })).text();
  await (await ask({ model: 'other' }, { 'x-request-id': 'r-3' })).text();
  await (await ask({ messages: 'no' }, { 'x-request-id': 'r-4' })).text();
  await eventually(async () => (await written()) === 4, 'four lines');
  const lines = linesOf(bed.path('audit.ndjson'));
  expect(
    lines.map((line) => [line['request_id'], line['verdict'], line['route'], line['status'], line['code']]),
  ).toEqual([
    ['r-1', 'routed', 'session', 200, null],
    ['r-2', 'rejected', null, 429, 'rejected'],
    ['r-3', 'refused', null, 404, 'model_not_found'],
    ['r-4', 'refused', null, 400, 'invalid_request'],
  ]);
  expect(lines[0]).toMatchObject({
    v: 1,
    tenant: null,
    model: 'sim',
    policy: expect.stringMatching(/^[0-9a-f]{12}$/) as string,
    reason: expect.arrayContaining(['matched']) as string[],
    signals: { session: expect.stringMatching(/^[0-9a-f]{16}$/) as string, tools: 0 },
    shortlist: [{ endpoint: 't/1', properties: { queue_depth: 0 } }],
    attempts: [{ tier: 't', endpoint: 't/1', outcome: 'ok', status: 200 }],
    keys: { affinity: expect.stringMatching(/^[0-9a-f]{16}$/) as string, split: null },
    served_model: 'sim',
    output_tokens: 2,
    path: '/v1/chat/completions',
    stream: true,
  });
  for (const line of lines) {
    const time = Date.parse(String(line['time']));
    expect(time).toBeGreaterThanOrEqual(before - 50);
    expect(time).toBeLessThanOrEqual(Date.now() + 50);
    expect(Object.keys(line)).toEqual(Object.keys(lines[0] ?? {}));
  }
});

test('a full disk holds up no request, and the lines that waited are written when there is room', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'signalbox-audit-')), 'audit.ndjson');
  symlinkSync('/dev/full', file);
  bed = await startBed({ engines: [{}], policy: policy(`{ file: "${file}" }`) });
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask({})));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await Promise.all(answers.map((answer) => answer.text()));
  expect(await written()).toBe(0);
  unlinkSync(file);
  await eventually(async () => (await written()) === 50, 'all lines are written');
  expect(new Set(linesOf(file).map((line) => line['request_id'])).size).toBe(50);
});

test('a file that cannot be opened is told at the start', async () => {
  bed = await startBed({ engines: [{}], policy: policy('{ file: "audit.ndjson" }') });
  await expect(
    startBed({ engines: [], policy: () => policy('{ file: "no/such/folder/audit.ndjson" }')(['http://127.0.0.1:9']) }),
  ).rejects.toThrow(/the audit file no\/such\/folder\/audit\.ndjson cannot be written: ENOENT/);
});
