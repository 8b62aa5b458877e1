import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { BODY, CHAT, errorOf, expectQuiet, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange, type Exchanged } from './support/raw-exchange.ts';
import type { Recorded } from './support/recording-upstream.ts';

let bed: EdgeBed;
beforeAll(async () => {
  bed = await startEdgeBed();
});
afterEach(() => expectQuiet(bed));
afterAll(() => bed.stop());

async function relayed(text: string): Promise<{ readonly answer: Exchanged; readonly request: Recorded }> {
  bed.upstream.take();
  const answer = await exchange(bed.port, text, { quietMs: 5 });
  const [request, ...more] = bed.upstream.take();
  expect(more).toEqual([]);
  if (request === undefined) throw new Error(`nothing reached the upstream: ${answer.text}`);
  return { answer, request };
}

const names = ({ headers }: Recorded): string[] => headers.map(([name]) => name);
const valuesOf = ({ headers }: Recorded, wanted: string): string[] =>
  headers.filter(([name]) => name === wanted).map(([, value]) => value);

test.each([
  [
    'internal',
    ['X-Signalbox-Endpoint: evil', 'x-SIGNALBOX-tenant: admin', 'X-Gateway-Destination-Endpoint: 10.0.0.1:80'],
  ],
  ['destinations of other gateways', ['x-gateway-destination-endpoint-subset: 10.0.0.1', 'X-Envoy-Original-Path: /x']],
  [
    'forwarding',
    ['X-Forwarded-For: 1.2.3.4', 'X-Forwarded-Host: evil', 'Forwarded: for=1.2.3.4', 'X-Real-IP: 1.2.3.4'],
  ],
  ['other forwarding', ['X-Original-URL: /admin', 'True-Client-IP: 1.2.3.4', 'X-Forwarded-Proto: https']],
  [
    'hop-by-hop',
    ['Keep-Alive: timeout=5', 'TE: trailers', 'Proxy-Connection: keep-alive', 'Proxy-Authorization: Basic eA=='],
  ],
  ['hop-by-hop of upgrades', ['HTTP2-Settings: AAMAAABk', 'Upgrade: websocket', 'Proxy-Authenticate: Basic']],
  ['credentials', ['Authorization: Bearer sk-client', 'X-Api-Key: sk-client', 'Api-Key: sk-client', 'Cookie: sid=1']],
  ['named by Connection', ['Connection: close, X-Private', 'X-Private: 1', 'x-private: 2']],
  [
    'named by a second Connection',
    ['Connection: X-One', 'connection: x-two ,X-Three', 'X-One: 1', 'X-Two: 1', 'X-Three: 1'],
  ],
])('headers that end at the door: %s', async (_kind, lines) => {
  const { request } = await relayed(post(lines.map((line) => `${line}\r\n`).join('')));
  const sent = lines
    .map((line) => line.slice(0, line.indexOf(':')).toLowerCase())
    .filter((name) => name !== 'connection');
  for (const name of sent) expect(names(request)).not.toContain(name);
  expect(request.head).not.toMatch(/evil|sk-client/);
});

test('bug-29: no client can name away our own headers', async () => {
  const ours = ['content-type', 'content-length', 'host', 'x-request-id', 'accept-encoding'];
  const { request } = await relayed(post(`X-Request-Id: mine\r\nConnection: ${ours.join(', ')}\r\n`));
  for (const name of ours) expect(valuesOf(request, name)).toHaveLength(1);
  expect(valuesOf(request, 'x-request-id')).toEqual(['mine']);
  expect(valuesOf(request, 'content-length')).toEqual([String(BODY.length)]);
  expect(request.body).toBe(BODY);
});

test('the Host of the upstream is its own address, whatever the client calls us', async () => {
  const { request } = await relayed(post().replace('Host: x', 'Host: evil.test'));
  expect(valuesOf(request, 'host')).toEqual([`127.0.0.1:${bed.upstream.port}`]);
});

test('trailers of the request do not become headers', async () => {
  const { request } = await relayed(
    `POST ${CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n` +
      `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\nX-Late: 1\r\nAuthorization: Bearer x\r\nX-Signalbox-Tier: b\r\n\r\n`,
  );
  for (const name of ['x-late', 'authorization', 'x-signalbox-tier']) expect(names(request)).not.toContain(name);
});

test('Expect: 100-continue is answered here and goes no further', async () => {
  const { answer, request } = await relayed(post('Expect: 100-continue\r\n'));
  expect(answer.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  expect(names(request)).not.toContain('expect');
});

test.each([
  ['too long', 'a'.repeat(257)],
  ['with a space', 'a b'],
  ['with obs-text', 'caf\xe9'],
  ['empty', ''],
])('a request id that is %s is replaced, on the answer and upstream alike', async (_why, id) => {
  const { answer, request } = await relayed(post(`X-Request-Id: ${id}\r\n`));
  const given = answer.headers[0]?.['x-request-id'] ?? '';
  expect(given).toMatch(/^[0-9a-f-]{36}$/);
  expect(valuesOf(request, 'x-request-id')).toEqual([given]);
});

test('S4: no header value of a client breaks a head, ours or the upstream’s', async () => {
  const value = fc
    .array(fc.integer({ min: 0, max: 255 }), { maxLength: 40 })
    .map((codes) => String.fromCharCode(...codes));
  const name = fc.constantFrom(
    'X-Request-Id',
    'Traceparent',
    'X-Session-Id',
    'X-Team',
    'User-Agent',
    'Accept-Encoding',
  );
  await fc.assert(
    fc.asyncProperty(name, value, async (header, text) => {
      bed.upstream.take();
      const answer = await exchange(bed.port, post(`${header}: ${text}\r\nConnection: close\r\n`), { quietMs: 5 });
      const requests = bed.upstream.take();
      expect(bed.upstream.garbage).toBe('');
      expect(requests.length).toBeLessThanOrEqual(1);
      expect(answer.statuses.length).toBeLessThanOrEqual(1);
      for (const head of [...requests.map((request) => request.head), answer.text.split('\r\n\r\n')[0] ?? ''])
        expect(head.replaceAll('\r\n', '')).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
      // A value that holds no control character passes; one that does is refused, unless what it breaks into is clean by itself.
      if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) expect(answer.statuses).toEqual([200]);
    }),
    { numRuns: 300 },
  );
});

test('S4: no model name of a client breaks a head', async () => {
  const model = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
    fc.constantFrom(
      'a\r\nx-evil: 1',
      'm\0',
      '\u2028',
      '\ud800',
      '../m',
      '__proto__',
      'constructor',
      'toString',
      'm\u0000',
    ),
  );
  await fc.assert(
    fc.asyncProperty(model, async (name) => {
      const body = Buffer.from(JSON.stringify({ model: name, messages: [{ role: 'user', content: 'x' }] }));
      const answer = await exchange(bed.port, post('', body.toString('latin1')), { quietMs: 5 });
      expect(answer.statuses).toEqual([name === 'm' ? 200 : 404]);
      expect(Object.keys(answer.headers[0] ?? {})).not.toContain('x-evil');
      if (name !== 'm') expect(errorOf(answer.bodies[0] ?? '').code).toBe('model_not_found');
    }),
    { numRuns: 200 },
  );
});

test('S6: only the written paths reach an upstream, however a path is spelt', async () => {
  const segment = fc.constantFrom(
    'v1',
    'chat',
    'completions',
    '..',
    '.',
    '%2e%2e',
    '%2E%2e',
    '',
    '\\',
    '..;',
    '%2f',
    '%5c',
    '%00',
    ';a=b',
    'audio',
    'models',
    '__proto__',
    '%c0%ae',
  );
  const known = /^\/v1\/(?:(?:chat\/)?completions|embeddings|responses|messages|rerank|audio(?:\/[A-Za-z0-9_-]+)+)$/;
  await fc.assert(
    fc.asyncProperty(fc.array(segment, { minLength: 1, maxLength: 7 }), async (segments) => {
      const path = `/${segments.join('/')}`;
      bed.upstream.take();
      const answer = await exchange(bed.port, post('', BODY, path), { quietMs: 5 });
      const requests = bed.upstream.take();
      expect([200, 400, 404]).toContain(answer.statuses[0]);
      expect(answer.headers[0]?.['x-request-id']).toMatch(/./);
      for (const { target } of requests) expect(target).toMatch(known);
      if (/\.\.|%|;|\\|\/\//.test(path)) expect([path, requests.length]).toEqual([path, 0]);
    }),
    { numRuns: 300 },
  );
});

test.each([
  '/v1/audio/%2e%2e/chat/completions',
  '/v1/audio/x/../../chat/completions',
  '/v1/audio//speech',
  '/v1/audio/speech;v=1',
  '/v1/audio\\speech',
  '/v1/audio/speech%00',
  '/v1/%63hat/completions/',
  '/v1/chat%2fcompletions',
])('S6: %s is 404', async (path) => {
  const answer = await exchange(bed.port, post('', BODY, path));
  expect(answer.statuses).toEqual([404]);
  expect(bed.upstream.take()).toEqual([]);
});
