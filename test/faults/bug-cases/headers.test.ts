import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { faultBed, oneTier, tierEach } from '../support/fault-bed.fixture.ts';
import { ANSWER, CHAT, chat, errorCode, plain, streaming } from '../support/wire.fixture.ts';

test('bug-23: a compressed answer passes with its header and its bytes', async () => {
  const bed = await faultBed();
  const body = gzipSync(JSON.stringify(ANSWER));
  bed.upstream.onRequest = () => [
    {
      send: Buffer.concat([
        Buffer.from(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`,
        ),
        body,
      ]),
    },
  ];
  const answer = await bed.client().post(CHAT, chat()).answer();
  expect(answer.headers['content-encoding']).toBe('gzip');
  expect(Buffer.from(answer.body, 'latin1').equals(body)).toBe(true);
});

test('bug-24: a compressed request body is 415, and nothing is sent on', async () => {
  const bed = await faultBed();
  const body = gzipSync(JSON.stringify(chat()));
  const one = bed
    .client()
    .send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
  one.socket.write(body);
  await one.until((text) => text.includes('\r\n\r\n') && text.endsWith('}'));
  expect(one.text).toContain(' 415 ');
  expect(one.text).toContain('unsupported_media_type');
  expect(bed.upstream.requests).toHaveLength(0);
});

test('bug-25: the length is that of the body that is sent, also after the model was rewritten, and never stands beside chunks', async () => {
  const bed = await faultBed({
    policy: (origins) => `define gateway { models: ["a-much-longer-name-é"] }\n${oneTier()(origins)}`,
  });
  bed.upstream.onRequest = () => plain(ANSWER);
  const body = JSON.stringify(chat({ model: 'a-much-longer-name-é' }));
  const declared = bed.client().post(CHAT, body);
  await declared.answer();
  const chunked = bed
    .client()
    .send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    );
  await chunked.answer();
  for (const { headers, body: sent } of bed.upstream.requests) {
    expect(JSON.parse(sent)).toMatchObject({ model: 'm', messages: [{ content: 'hi' }] });
    expect(headers['content-length']).toBe(String(Buffer.byteLength(sent)));
    expect(headers['transfer-encoding']).toBeUndefined();
  }
  expect(bed.upstream.misframed).toEqual([]);
});

test('bug-26: internal headers of a client are stripped at the door, its key goes nowhere, ours are set once', async () => {
  const bed = await faultBed({ policy: oneTier('key: { env: "KEY" } headers: { "x-team": "ours" }') });
  bed.upstream.onRequest = () => plain(ANSWER);
  await bed
    .client()
    .post(CHAT, chat(), [
      'authorization: Bearer sk-client',
      'x-api-key: sk-client',
      'api-key: sk-client',
      'cookie: session=sk-client',
      'x-team: theirs',
      'x-signalbox-endpoint: theirs',
      'x-gateway-destination-endpoint: 10.0.0.1:80',
      'x-forwarded-for: 10.0.0.1',
    ])
    .answer();
  const lines = bed.upstream.requests[0]?.lines ?? [];
  expect(lines.join('\n')).not.toMatch(/sk-client|theirs|10\.0\.0\.1/);
  expect(lines.filter((line) => /^authorization:/i.test(line))).toEqual(['authorization: Bearer upstream-secret']);
  expect(lines.filter((line) => /^x-team:/i.test(line))).toEqual(['x-team: ours']);
});

test('bug-27: the least Retry-After of all that said 429 is passed on', async () => {
  const bed = await faultBed({
    upstreams: 3,
    policy: oneTier('', 'default to tier "tier" with retry 2 (on: [rate_limited])'),
  });
  for (const [i, upstream] of bed.upstreams.entries())
    upstream.onRequest = () => plain({}, 429, [`retry-after: ${[40, 7, 19][i]}`]);
  const answer = await bed.run(bed.client().post(CHAT, chat()).answer());
  expect(bed.upstreams.map(({ requests }) => requests.length)).toEqual([1, 1, 1]);
  expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '7' } });
  expect(errorCode(answer.body)).toBe('rate_limited');
});

test('bug-27: a lone 429 passes its Retry-After on', async () => {
  const bed = await faultBed({ policy: oneTier('', 'default to tier "tier" with retry 0') });
  bed.upstream.onRequest = () => plain({}, 429, ['retry-after: 12']);
  expect(await bed.run(bed.client().post(CHAT, chat()).answer())).toMatchObject({
    status: 429,
    headers: { 'retry-after': '12' },
  });
});

test.each(['', '/', '/v1', '/v1/', '/base', '/base/v1', '/base/v1/'])(
  'bug-28: an endpoint written with %s is asked under the right path',
  async (suffix) => {
    const bed = await faultBed({ policy: (origins) => oneTier()(origins.map((origin) => origin + suffix)) });
    bed.upstream.onRequest = () => plain(ANSWER);
    await bed.client().post(CHAT, chat()).answer();
    expect(bed.upstream.requests[0]?.path).toBe(suffix.startsWith('/base') ? `/base${CHAT}` : CHAT);
  },
);

test('bug-29: headers named in Connection end here, but no client can name away ours or the content type', async () => {
  const bed = await faultBed({ policy: oneTier('key: { env: "KEY" }') });
  bed.upstream.onRequest = () => plain(ANSWER);
  await bed
    .client()
    .post(CHAT, chat(), [
      'x-hop: 1',
      'x-end: 2',
      'connection: keep-alive, X-Hop, authorization, content-type, content-length, x-request-id, host',
      'x-request-id: rid-1',
    ])
    .answer();
  const { headers } = bed.upstream.requests[0] ?? { headers: {} };
  expect(headers).toMatchObject({
    'x-end': '2',
    'content-type': 'application/json',
    authorization: 'Bearer upstream-secret',
    'x-request-id': 'rid-1',
  });
  expect(headers).not.toHaveProperty('x-hop');
});

test('bug-30: every answer has a request id: 4xx, 404, 413, 415, 431, 5xx, bytes that are no HTTP', async () => {
  const bed = await faultBed({
    upstreams: 2,
    policy: tierEach(
      'route when path == "/v1/embeddings" to tier "t2" with retry 0\ndefault to tier "t1" with retry 0',
    ),
    proxy: { limits: { bodyBytes: 10_000 } },
  });
  bed.upstream.onRequest = () => plain({}, 400);
  const second = bed.upstreams[1];
  if (second !== undefined) second.onRequest = () => plain({}, 500);
  const head = (line: string, ...headers: string[]): string =>
    `${line} HTTP/1.1\r\nhost: x\r\n${headers.map((h) => `${h}\r\n`).join('')}\r\n`;
  const post = (body: object): string =>
    head(`POST ${CHAT}`, 'content-type: application/json', `content-length: ${JSON.stringify(body).length}`).concat(
      JSON.stringify(body),
    );
  const asks: readonly (readonly [status: number, bytes: string])[] = [
    [404, head('GET /nowhere')],
    [404, head('POST /v1/nowhere', 'content-length: 2').concat('{}')],
    [404, head('GET /v1/models/none')],
    [400, head(`POST ${CHAT}`, 'content-type: application/json', 'content-length: 1').concat('{')],
    [404, post(chat({ model: 'none' }))],
    [413, head(`POST ${CHAT}`, 'content-type: application/json', 'content-length: 20000').concat('x'.repeat(20_000))],
    [415, head(`POST ${CHAT}`, 'content-type: text/plain', 'content-length: 1').concat('x')],
    [431, head('GET /v1/models', `x-long: ${'x'.repeat(20_000)}`)],
    [400, 'SSH-2.0-OpenSSH\r\n\r\n'],
    [400, head('GET /v1/models', 'host: y')],
    [501, head('GET /v1/realtime', 'connection: upgrade', 'upgrade: websocket')],
    [400, post(chat())],
  ];
  for (const [status, bytes] of asks) {
    const one = bed.client().send(bytes);
    const text = await one.until((got) => /^HTTP\/1\.1 \d{3} [^]*\r\n\r\n/.test(got));
    expect(text.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
    expect(text).toMatch(/\r\nx-request-id: [\x21-\x7e]{1,256}\r\n/i);
  }
  const failed = await bed.run(
    bed.client().post('/v1/embeddings', { model: 'm', input: 'hi' }, ['x-request-id: mine']).answer(),
  );
  expect(failed).toMatchObject({ status: 502, headers: { 'x-request-id': 'mine' } });
});

test('bug-26: a streamed request too keeps its own headers out of what is sent on', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => plain(ANSWER);
  await bed.client().post(CHAT, streaming(), ['x-signalbox-tier: t9', 'te: trailers']).answer();
  expect(bed.upstream.requests[0]?.headers).not.toHaveProperty('x-signalbox-tier');
  expect(bed.upstream.requests[0]?.headers).not.toHaveProperty('te');
});
