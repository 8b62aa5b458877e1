import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EndpointStatus } from '@signalbox/core';
import { silentLogger, SignalboxError } from '@signalbox/plugin-api';
import type { PolicyState } from '../lifecycle/policy-lifecycle.ts';
import type { AdminServer, AdminSource } from './admin-server.ts';
import { splitListen, startAdminServer } from './admin-server.ts';

let ready = true;
let reloads = 0;
const acted: unknown[] = [];
const STATE: PolicyState = {
  policy: 'abc',
  generation: 1,
  etag: '"1-1"',
  pinned: false,
  held: null,
  canary: null,
  shadow: null,
};
const unused = (): Promise<never> => Promise.reject(new Error('not asked for'));
const source: AdminSource = {
  ready: () => ready,
  metrics: () => Promise.resolve({ contentType: 'text/plain; version=0.0.4', text: 'signalbox_requests_total 1\n' }),
  reload: () => {
    reloads++;
    return Promise.resolve({
      ok: reloads === 1,
      changed: true,
      keys: null,
      keysChanged: false,
      policy: 'abc',
      generation: 2,
      diagnostics: [],
      failedTests: [],
      held: null,
      text: 'E0201 …',
    });
  },
  policy: () => ({
    ...STATE,
    file: 'x.route',
    since: '',
    keys: null,
    lastReload: { ok: true, text: '' },
    unfed: [],
    endpoints: [],
  }),
  explain: (body) => Promise.resolve({ explanation: body, text: 'because' }),
  explainRecorded: (id) => (id === 'r/1' ? { explanation: { id }, text: 'it was' } : undefined),
  endpoints: {
    list: () => [],
    act(action, name) {
      acted.push([action, name]);
      if (name === 'nobody')
        throw new SignalboxError('no endpoint', { code: 'endpoint_unknown', source: 'client', status: 404 });
      return { endpoint: { name } as EndpointStatus, drained: name === 'idle' };
    },
  },
  lifecycle: {
    state: () => STATE,
    list: () => [],
    show: () => {
      throw new Error('not asked for');
    },
    canary: () => undefined,
    shadow: () => undefined,
    rollback: unused,
    pin: unused,
    unpin: unused,
    startCanary: unused,
    promote: unused,
    abort: unused,
    startShadow: unused,
    endShadow: unused,
  },
  decisions: (limit) => Array.from({ length: Math.min(limit, 3) }, (_, i) => ({ i })),
};
let server: AdminServer;

function send(
  path: string,
  { method = 'GET', headers = {}, body = '' }: { method?: string; headers?: object; body?: string } = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(server.url + path, { method, headers: { ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

describe('on loopback without a token', () => {
  beforeEach(async () => {
    ready = true;
    reloads = 0;
    acted.length = 0;
    server = await startAdminServer({ listen: '127.0.0.1:0', token: undefined, source });
  });
  afterEach(() => server.close());

  test('livez is always 200, readyz follows the gateway', async () => {
    expect((await send('/livez')).status).toBe(200);
    expect((await send('/readyz')).status).toBe(200);
    ready = false;
    expect((await send('/livez')).status).toBe(200);
    expect((await send('/readyz')).status).toBe(503);
  });

  test('metrics, policy and decisions are read by GET', async () => {
    expect((await send('/metrics')).body).toBe('signalbox_requests_total 1\n');
    expect(JSON.parse((await send('/-/policy')).body)).toMatchObject({ policy: 'abc' });
    expect(JSON.parse((await send('/-/decisions?limit=2')).body)).toEqual({ decisions: [{ i: 0 }, { i: 1 }] });
  });

  test('a number of decisions that is none is told so', async () => {
    for (const limit of ['0', '-1', '1.5', 'all', 'Infinity', '1&limit=2']) {
      const { status, body } = await send(`/-/decisions?limit=${limit}`);
      expect({ status, body }).toMatchObject({ status: 400, body: expect.stringContaining('whole number') as string });
    }
  });

  test('a path that cannot be read is answered in the envelope of all errors', async () => {
    const { status, body } = await send('/-/%zz');
    expect({ status, ...(JSON.parse(body) as object) }).toMatchObject({
      status: 400,
      error: { code: 'invalid_request' },
    });
  });

  test('reload is a POST, and answers 422 with the findings when the new policy is refused', async () => {
    expect((await send('/-/reload')).status).toBe(404);
    expect(reloads).toBe(0);
    expect((await send('/-/reload', { method: 'POST' })).status).toBe(200);
    const refused = await send('/-/reload', { method: 'POST' });
    expect(refused.status).toBe(422);
    expect(refused.body).toContain('E0201');
  });

  test('endpoints are taken out and in by POST alone, by a name that may hold slashes', async () => {
    expect(JSON.parse((await send('/-/endpoints')).body)).toEqual({ endpoints: [] });
    const post = { method: 'POST' };
    for (const [path, status] of [
      ['70B/1/cordon', 200],
      ['70B%2F1/uncordon', 200],
      ['gpu%20%25/cordon', 200],
      ['drain/drain', 202],
      ['idle/drain', 200],
    ] as const)
      expect([path, (await send(`/-/endpoints/${path}`, post)).status]).toEqual([path, status]);
    expect(acted).toEqual([
      ['cordon', '70B/1'],
      ['uncordon', '70B/1'],
      ['cordon', 'gpu %'],
      ['drain', 'drain'],
      ['drain', 'idle'],
    ]);
    acted.length = 0;
    for (const path of ['/cordon', 'cordon', 'a/', 'a/remove', 'a/Cordon', '']) {
      const { status, body } = await send(`/-/endpoints/${path}`, post);
      expect([path, status, body]).toEqual([path, 404, expect.stringContaining('not_found')]);
    }
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'])
      expect((await send('/-/endpoints/a/cordon', { method })).status).toBe(404);
    const headers = { origin: 'http://evil.example' };
    expect((await send('/-/endpoints/a/cordon', { method: 'POST', headers })).status).toBe(403);
    expect(acted).toEqual([]);
    const unknown = await send('/-/endpoints/nobody/cordon', post);
    expect([unknown.status, JSON.parse(unknown.body)]).toEqual([
      404,
      { error: { message: 'no endpoint', type: 'invalid_request_error', param: null, code: 'not_found' } },
    ]);
  });

  test('a recorded decision is explained by its request id, as JSON or as text', async () => {
    const recorded = await send('/-/explain?request=r%2F1', {});
    expect(JSON.parse(recorded.body)).toEqual({ explanation: { id: 'r/1' }, text: 'it was' });
    expect((await send('/-/explain?request=r%2F1', { headers: { accept: 'text/plain' } })).body).toBe('it was');
    const unknown = await send('/-/explain?request=nobody', {});
    expect(unknown.status).toBe(404);
    expect(unknown.body).toContain('signalbox explain --audit FILE --request ID');
    for (const query of ['', '?request=', '?request=a&request=b']) {
      expect((await send(`/-/explain${query}`, {})).status).toBe(400);
    }
  });

  test('explain answers as JSON, or as text where asked', async () => {
    const post = { method: 'POST', body: '{"model":"auto"}' };
    const json = { 'content-type': 'application/json' };
    expect(JSON.parse((await send('/-/explain', { ...post, headers: json })).body)).toEqual({
      explanation: { model: 'auto' },
      text: 'because',
    });
    expect((await send('/-/explain', { ...post, headers: { ...json, accept: 'text/plain' } })).body).toBe('because');
    expect((await send('/-/explain', { method: 'POST', body: '{', headers: json })).status).toBe(400);
  });

  test('a Host that is not this listener is refused, so a rebound name of an attacker reaches nothing', async () => {
    expect((await send('/-/policy', { headers: { host: 'evil.example' } })).status).toBe(403);
  });

  test('a page of another origin cannot reload', async () => {
    expect((await send('/-/reload', { method: 'POST', headers: { origin: 'http://evil.example' } })).status).toBe(403);
    expect((await send('/-/reload', { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
    expect(reloads).toBe(0);
  });
});

test('with a token, everything but the probes wants it', async () => {
  server = await startAdminServer({ listen: '127.0.0.1:0', token: 'right', source });
  for (const probe of ['/livez', '/readyz', '/livez?from=balancer']) expect((await send(probe)).status).toBe(200);
  for (const authorization of ['', 'Bearer wrong', 'Bearer righ', 'Bearer right2']) {
    expect((await send('/-/policy', { headers: { authorization } })).status).toBe(401);
  }
  expect((await send('/-/policy', { headers: { authorization: 'Bearer right' } })).status).toBe(200);
  await server.close();
});

test('a fault of ours is a 500 without its words, which the log has', async () => {
  const told: unknown[] = [];
  const logger = {
    ...silentLogger,
    error: (message: string, fields?: object) => void told.push({ message, ...fields }),
  };
  const failing = { ...source, metrics: () => Promise.reject(new Error('inner words')) };
  server = await startAdminServer({ listen: '127.0.0.1:0', token: undefined, logger, source: failing });
  const { status, body } = await send('/metrics');
  await server.close();
  expect(status).toBe(500);
  expect(body).not.toContain('inner words');
  expect(told).toEqual([
    { message: 'an admin request failed', error: expect.stringContaining('inner words') as string },
  ]);
});

test.each(['', '0.0.0.0'])(
  'on every address ("%s"), with a token, it is reached by any of them and by no name',
  async (host) => {
    server = await startAdminServer({ listen: `${host}:0`, token: 'right', source });
    const port = new URL(server.url).port;
    expect(server.url).toBe(`http://${host === '' ? '127.0.0.1' : host}:${port}`);
    for (const [given, status] of [
      [`127.0.0.1:${port}`, 200],
      [`10.1.2.3:${port}`, 200],
      ['[fd00::1]', 200],
      ['evil.example', 403],
      [`10.1.2.3.evil.example:${port}`, 403],
    ] as const)
      expect([given, (await send('/livez', { headers: { host: given } })).status]).toEqual([given, status]);
    await server.close();
  },
);

test('a public address without a token is refused at start', async () => {
  await expect(startAdminServer({ listen: '0.0.0.0:0', token: undefined, source })).rejects.toThrow(
    /SIGNALBOX_ADMIN_TOKEN/,
  );
});

test('addresses are host and port', () => {
  expect(splitListen('127.0.0.1:8080')).toEqual({ host: '127.0.0.1', port: 8080 });
  expect(splitListen('[::1]:0')).toEqual({ host: '::1', port: 0 });
  for (const wrong of ['8080', 'localhost', '127.0.0.1:99999', 'http://x:1'])
    expect(() => splitListen(wrong)).toThrow(/host:port/);
});
