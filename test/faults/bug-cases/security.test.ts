import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../../packages/gateway/src/gateway.ts';
import type { LogFields, Logger } from '../../../packages/plugin-api/src/index.ts';
import { RawClient } from '../../../packages/proxy/src/client.fixture.ts';
import { eventually } from '../../e2e/support/gateway.fixture.ts';
import { faultBed, oneTier } from '../support/fault-bed.fixture.ts';
import { FaultUpstream } from '../support/fault-upstream.fixture.ts';
import { ANSWER, CHAT, chat, event, json, opened, plain, streaming } from '../support/wire.fixture.ts';

test('bug-77: nothing that a caller says, and no redirect, names an upstream', async () => {
  const trap = new FaultUpstream();
  const origin = await trap.listen();
  onTestFinished(() => trap.close());
  const host = new URL(origin).host;
  const bed = await faultBed({ policy: oneTier('key: { env: "KEY" }') });
  bed.upstream.onRequest = () => plain(ANSWER);
  const fields = {
    api_base: origin,
    base_url: origin,
    baseURL: origin,
    custom_host: origin,
    endpoint: origin,
    url: origin,
    api_key: 'k',
    provider: origin,
  };
  const headers = [
    'x-portkey-custom-host',
    'x-gateway-destination-endpoint',
    'x-forwarded-host',
    'x-original-url',
    'x-signalbox-endpoint',
    'x-base-url',
    'forwarded',
  ];
  for (const path of [
    CHAT,
    '/v1/completions',
    '/v1/embeddings',
    '/v1/responses',
    '/v1/messages',
    '/v1/rerank',
    '/v1/audio/speech',
  ]) {
    const body = chat({ prompt: 'x', input: 'x', ...fields, metadata: fields });
    const one = bed.client().post(
      `${path}?api_base=${origin}`,
      body,
      headers.map((name) => `${name}: ${name === 'forwarded' ? `host=${host}` : origin}`),
    );
    expect((await one.answer()).status).toBe(200);
  }
  const absolute = bed.client().send(`POST ${origin}${CHAT} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 0\r\n\r\n`);
  await absolute.until((text) => text.startsWith('HTTP/1.1 400 '));
  for (const status of [301, 302, 307, 308]) {
    bed.upstream.onRequest = () => [{ send: json(status, {}, [`location: ${origin}${CHAT}`]) }];
    const answer = await bed.run(bed.client().post(CHAT, chat()).answer());
    expect(answer.status).toBe(502);
    expect(answer.headers).not.toHaveProperty('location');
  }
  expect(trap.connections).toBe(0);
});

test('bug-78: the admin listener is loopback or asks for its token, denies by default, and has no call that sets upstreams', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-faults-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const policyPath = join(folder, 'policy.route');
  writeFileSync(policyPath, oneTier()(['http://127.0.0.1:9']));
  await expect(startGateway({ policyPath, listen: '127.0.0.1:0', admin: '0.0.0.0:0' })).rejects.toMatchObject({
    code: 'admin_open',
  });
  const gateway = await startGateway({ policyPath, listen: '127.0.0.1:0', admin: '127.0.0.1:0', adminToken: 'right' });
  onTestFinished(() => gateway.stop({ graceMs: 0 }));
  const status = async (path: string, method = 'GET', headers: Record<string, string> = {}): Promise<number> =>
    (await fetch(gateway.adminUrl + path, { method, headers })).status;
  for (const path of ['/metrics', '/-/policy', '/-/decisions', '/nowhere']) {
    expect([path, await status(path)]).toEqual([path, 401]);
    expect([path, await status(path, 'GET', { authorization: 'Bearer wrong' })]).toEqual([path, 401]);
  }
  expect(await status('/-/reload', 'POST')).toBe(401);
  const right = { authorization: 'Bearer right' };
  expect(await status('/metrics', 'GET', right)).toBe(200);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    for (const path of ['/-/policy', '/-/endpoints', '/api/providers', '/v1/config'])
      expect([404, 405]).toContain(await status(path, method, right));
  for (const path of ['/metrics', '/-/policy', '/-/reload'])
    expect((await fetch(gateway.url + path, { method: path === '/-/reload' ? 'POST' : 'GET' })).status).toBe(404);
});

test('bug-79: two tenants with one session id share no pin', async () => {
  const bed = await faultBed({
    upstreams: 4,
    policy: oneTier('', 'default to tier "tier" with affinity session'),
    proxy: { hooks: { identify: (credential) => ({ kind: 'known', tenant: credential ?? 'none' }) } },
  });
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain(ANSWER);
  const home = async (tenant: string, session: string): Promise<string | undefined> =>
    (
      await bed
        .client()
        .post(CHAT, chat(), [`authorization: Bearer ${tenant}`, `x-session-id: ${session}`])
        .answer()
    ).headers['x-signalbox-endpoint'];
  let same = 0;
  for (let i = 0; i < 60; i++) {
    const one = await home('one', `s${i}`);
    expect(await home('one', `s${i}`)).toBe(one);
    if ((await home('two', `s${i}`)) === one) same++;
  }
  // A quarter by chance.
  expect(same).toBeLessThan(30);
});

test('bug-80: no key and no prompt is in a log or a record, at any level, whatever fails', async () => {
  const lines: string[] = [];
  const log = (message: string, fields?: LogFields): void =>
    void lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const logger: Logger = { trace: log, debug: log, info: log, warn: log, error: log, child: () => logger };
  const upstream = new FaultUpstream();
  const origin = await upstream.listen();
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-faults-'));
  const policyPath = join(folder, 'policy.route');
  writeFileSync(join(folder, 'key'), 'sk-upstream-secret');
  writeFileSync(
    policyPath,
    oneTier('key: { file: "key" }', 'default to tier "tier" with affinity session, retry 0')([origin]),
  );
  const records: string[] = [];
  const gateway = await startGateway({
    policyPath,
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    logger,
    onDecision: (record) => records.push(JSON.stringify(record)),
  });
  onTestFinished(async () => {
    await gateway.stop({ graceMs: 0 });
    upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const port = Number(new URL(gateway.url).port);
  const body = (more: object): object =>
    chat({ messages: [{ role: 'user', content: 'prompt-secret' }], user: 'user-1', ...more });
  const answers = [
    plain({ answer: 'answer-secret' }),
    plain({ error: { message: 'answer-secret sk-upstream-secret' } }, 500),
    plain({ error: { message: 'answer-secret' } }, 400),
    ['reset' as const],
    [...opened(event('answer-secret')), 'close' as const],
    [{ send: 'answer-secret\r\n\r\n' }, 'close' as const],
  ];
  for (const [i, acts] of answers.entries()) {
    upstream.onRequest = () => acts;
    const one = new RawClient(port).post(CHAT, i === 4 ? streaming(body({})) : body({}), [
      'authorization: Bearer sk-client-secret',
      'x-api-key: sk-client-secret',
    ]);
    await Promise.race([one.answer().catch(() => one.closed()), one.closed()]);
    one.destroy();
  }
  const unread = [
    `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-client-secret\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{"prompt-secret"`,
    'sk-client-secret\r\n\r\n',
  ];
  for (const bytes of unread) {
    const one = new RawClient(port).send(bytes);
    await one.until((text) => text.startsWith('HTTP/1.1 4'));
    one.destroy();
  }
  await eventually(() => records.length === answers.length + unread.length, 'all records');
  const admin = await Promise.all(
    ['/-/decisions', '/-/policy', '/metrics'].map(async (path) => (await fetch(gateway.adminUrl + path)).text()),
  );
  const all = [...lines, ...records, ...admin].join('\n');
  expect(lines.length).toBeGreaterThan(0);
  expect(all).not.toMatch(/sk-upstream-secret|sk-client-secret|prompt-secret|answer-secret/);
});
