import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ANSWER, CHAT, chat, rig } from './rig.fixture.ts';
import type { UnroutedEnd } from './hooks.ts';
import { json } from './upstream.fixture.ts';

const errorOf = (body: string): { readonly code: string; readonly message: string; readonly param: string | null } =>
  (
    JSON.parse(body) as {
      readonly error: { readonly code: string; readonly message: string; readonly param: string | null };
    }
  ).error;

describe('bodies that are refused', () => {
  it.each([
    ['bad JSON', CHAT, '{"model":', 400, 'invalid_request', null],
    ['no model', CHAT, '{"messages":[{"role":"user","content":"x"}]}', 400, 'invalid_request', 'model'],
    ['no messages', CHAT, '{"model":"m"}', 400, 'invalid_request', 'messages'],
    ['an empty prompt', '/v1/completions', '{"model":"m","prompt":""}', 400, 'invalid_request', 'prompt'],
    ['deep nesting', CHAT, `{"model":"m","x":${'['.repeat(50_000)}`, 400, 'invalid_request', null],
    ['nothing', CHAT, '', 400, 'invalid_request', null],
  ])('%s', async (_name, path, body, status, code, param) => {
    const { router, client } = await rig();
    const answer = await client().post(path, body, ['x-request-id: r']).answer();
    expect(answer).toMatchObject({ status, headers: { 'x-request-id': 'r', 'x-signalbox-reason': code } });
    expect(errorOf(answer.body)).toMatchObject({ code, param });
    expect(router.traces).toHaveLength(0);
  });

  it('bug-24: a compressed or foreign body is 415', async () => {
    const { upstream, client } = await rig();
    expect((await client().post(CHAT, chat(), ['content-encoding: gzip']).answer()).status).toBe(415);
    const twice = ['content-encoding: gzip', 'content-encoding: identity'];
    expect((await client().post(CHAT, chat(), twice).answer()).status).toBe(415);
    const form = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 3\r\n\r\na=b`,
    );
    expect((await form.answer()).status).toBe(415);
    expect(upstream.requests).toHaveLength(0);
  });

  it('a content type with parameters, a +json type, or none is JSON', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const body = JSON.stringify(chat());
    for (const type of [
      'content-type: application/json; charset=utf-8\r\n',
      'content-type: application/vnd.api+json\r\n',
      '',
    ]) {
      const answer = await client()
        .send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\n${type}content-length: ${body.length}\r\n\r\n${body}`)
        .answer();
      expect(answer.status).toBe(200);
    }
  });

  it('bug-22: too large a body is a 413 that the client can read, by its length or as it comes', async () => {
    const { router, time, client, proxy } = await rig(undefined, { limits: { bodyBytes: 100_000 } });
    const big = 'x'.repeat(3_000_000);
    const sized = client().post(CHAT, big);
    expect((await sized.answer()).status).toBe(413);
    const chunked = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    chunked.send(`${big.length.toString(16)}\r\n${big}\r\n0\r\n\r\n`);
    const answer = await chunked.answer();
    expect(answer).toMatchObject({ status: 413, headers: { connection: 'close' } });
    expect(errorOf(answer.body).code).toBe('request_too_large');
    await chunked.closed();
    // One that never ends is cut after a while.
    const endless = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900000000\r\n\r\nxxx`,
    );
    expect((await endless.answer()).status).toBe(413);
    await time.advance(6_000);
    await endless.closed();
    expect(router.traces).toHaveLength(0);
    expect(proxy.stats).toMatchObject({ live: 0, timers: 0 });
  });

  it('Expect: 100-continue is answered here, and not for a body that is too large', async () => {
    const { upstream, client } = await rig(undefined, { limits: { bodyBytes: 1000 } });
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const body = JSON.stringify(chat());
    const one = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    await one.until((text) => text.startsWith('HTTP/1.1 100'));
    expect((await one.send(body).answer()).status).toBe(200);
    const big = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 5000\r\n\r\n`,
    );
    await big.until((text) => text.startsWith('HTTP/1.1 413'));
  });
});

describe('answers that no policy decided', () => {
  const head = 'HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ok\r\n';
  const body = (text: string, more = 'content-type: application/json\r\n'): string =>
    `${head}${more}content-length: ${text.length}\r\n\r\n${text}`;
  it.each([
    ['the models', 200, `GET /v1/models ${head}\r\n`],
    ['an unknown path', 404, `GET /nowhere ${head}\r\n`],
    ['an unknown model', 404, `GET /v1/models/x ${head}\r\n`],
    ['no key', 401, `GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n`],
    ['no key for a call', 401, `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`],
    ['bad JSON', 400, `POST ${CHAT} ${body('{')}`],
    ['a foreign body', 415, `POST ${CHAT} ${body('x', 'content-type: text/plain\r\n')}`],
    ['too much', 413, `POST ${CHAT} ${body('x'.repeat(200))}`],
    ['two hosts', 400, `GET /v1/models ${head}host: y\r\n\r\n`],
    ['an expectation', 417, `POST ${CHAT} ${head}expect: more\r\ncontent-length: 0\r\n\r\n`],
    ['an upgrade', 501, `GET /v1/realtime ${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n`],
    ['a tunnel', 400, `CONNECT x:80 ${head}\r\n`],
    ['no HTTP', 400, 'nonsense\r\n\r\n'],
    ['headers that are too large for a stranger', 401, `GET /v1/models ${head}y: ${'y'.repeat(20_000)}\r\n\r\n`],
  ])('carry our headers and are recorded: %s', async (_name, status, request) => {
    const ends: UnroutedEnd[] = [];
    const { client } = await rig(undefined, {
      limits: { bodyBytes: 100 },
      hooks: {
        policy: () => 'p7 é',
        identify: (credential) =>
          credential === 'ok'
            ? { kind: 'known', tenant: 'acme' }
            : { kind: 'refuse', status: 401, code: 'invalid_api_key', message: 'no' },
        unrouted: (end) => ends.push(end),
      },
    });
    const answer = await client().send(request).answer();
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/) as string,
      'x-signalbox-policy': 'p7 %C3%A9',
      'x-signalbox-attempts': '0',
      'server-timing': expect.stringMatching(
        /^queue;dur=[\d.]+, decide;dur=[\d.]+, upstream;dur=[\d.]+, gateway;dur=[\d.]+$/,
      ) as string,
      date: expect.stringMatching(/ GMT$/) as string,
      'content-type': 'application/json',
    });
    if (status === 200) expect(ends).toEqual([]);
    else {
      const tenant = [400, 413].includes(status) && request.startsWith(`POST ${CHAT}`) ? 'acme' : '';
      const requestId = answer.headers['x-request-id'];
      expect(ends).toEqual([expect.objectContaining({ status, tenant, requestId })]);
      expect(answer.headers['x-signalbox-reason']).toBe(ends[0]?.code);
    }
  });

  it('a body whose framing breaks off is answered with the id of its request, and recorded once', async () => {
    const ends: UnroutedEnd[] = [];
    const { client, time } = await rig(undefined, { hooks: { unrouted: (end) => ends.push(end) } });
    const broken = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nx-request-id: r\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"mod\r\nno size\r\n`,
    );
    expect(await broken.answer()).toMatchObject({ status: 400, headers: { 'x-request-id': 'r' } });
    await broken.closed();
    while (ends.length === 0) await time.advance(0);
    await time.advance(6_000);
    expect(ends).toMatchObject([{ requestId: 'r', path: CHAT }]);
  });

  it('a connection that never says a word is closed and is no request', async () => {
    const ends: UnroutedEnd[] = [];
    const { client } = await rig(undefined, {
      limits: { headersTimeoutMs: 50 },
      hooks: { unrouted: (end) => ends.push(end) },
    });
    const silent = client();
    const halting = client().send('GET /v1/models HTTP/1.1\r\nhost: x\r\n');
    await Promise.all([silent.closed(), halting.closed()]);
    expect(ends).toMatchObject([{ status: 408, code: 'invalid_request' }]);
  });
});

describe('paths', () => {
  it('bug-30, bug-36: unknown ones are 404 with a request id', async () => {
    const { client } = await rig();
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', CHAT],
      ['POST', '/v1/chat/completions/'],
      ['POST', '/v1//chat/completions'],
      ['POST', '/v1/files'],
      ['POST', '/v1/audio/../chat/completions'],
      ['POST', '/v1/audio/%2e%2e/x'],
      ['POST', '/v1/audio/a;b'],
      ['POST', '/v1/%'],
      ['DELETE', '/v1/models/x'],
    ] as const) {
      const answer = await client()
        .send(`${method} ${path} HTTP/1.1\r\nhost: x\r\nx-request-id: r\r\ncontent-length: 0\r\n\r\n`)
        .answer();
      expect([method, path, answer.status]).toEqual([
        method,
        path,
        method === 'GET' && path !== '/' && path !== CHAT ? 400 : 404,
      ]);
      expect(answer.headers['x-request-id']).toBe('r');
      expect(errorOf(answer.body).code).toBe('not_found');
    }
  });

  it('bug-38: models are the router’s, with their context; an id is the whole rest of the path, decoded once', async () => {
    const { router, client } = await rig(undefined, {
      hooks: {
        identify: (credential) =>
          credential === 'ok'
            ? { kind: 'known', allows: (model) => model !== 'hidden' }
            : { kind: 'refuse', status: 401, code: 'invalid_api_key', message: 'no' },
      },
    });
    router.modelInfos = [
      { id: 'org/a:b', ownedBy: 'signalbox', maxModelLen: 4096 },
      { id: 'x%2Fy', ownedBy: 'signalbox', maxModelLen: undefined },
      { id: 'hidden', ownedBy: 'signalbox', maxModelLen: undefined },
    ];
    const get = async (path: string, key = 'ok'): Promise<[number, unknown]> => {
      const answer = await client()
        .send(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`)
        .answer();
      return [answer.status, JSON.parse(answer.body)];
    };
    const a = { id: 'org/a:b', object: 'model', created: 0, owned_by: 'signalbox', max_model_len: 4096 };
    const x = { id: 'x%2Fy', object: 'model', created: 0, owned_by: 'signalbox' };
    expect(await get('/v1/models')).toEqual([200, { object: 'list', data: [a, x] }]);
    expect(await get('/v1/models/org/a:b')).toEqual([200, a]);
    expect(await get('/v1/models/org%2Fa%3Ab')).toEqual([200, a]);
    expect(await get('/v1/models/x%252Fy')).toEqual([200, x]);
    expect((await get('/v1/models/hidden'))[0]).toBe(404);
    expect(await get('/v1/models/hidden')).toEqual(await get('/v1/models/nope'));
    expect((await get('/v1/models', 'no'))[0]).toBe(401);
    expect((await client().post(CHAT, chat()).answer()).status).toBe(401);
    expect(router.traces).toHaveLength(0);
  });

  it('bug-37: an upgrade is a clean 501 at once', async () => {
    const { client } = await rig();
    const one = client().send(
      'GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n',
    );
    const answer = await one.closed();
    expect(answer).toMatchObject({ status: 501, complete: true });
    expect(errorOf(answer?.body ?? '').code).toBe('not_implemented');
  });

  it('nothing is routed before a policy is in force', async () => {
    const { router, client } = await rig();
    router.isReady = false;
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
  });
});

describe('HTTP that is not clean', () => {
  it.each([
    ['two hosts', `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nhost: y\r\ncontent-length: 0\r\n\r\n`],
    ['no host', `POST ${CHAT} HTTP/1.1\r\ncontent-length: 0\r\n\r\n`],
    ['HTTP/1.0 with chunks', `POST ${CHAT} HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['an absolute target', `GET http://x/v1/models HTTP/1.1\r\nhost: x\r\n\r\n`],
    ['GET with a body', `GET /v1/models HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc`],
    [
      'length and chunks',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['two lengths', `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc`],
    [
      'a hop to HTTP/2',
      `GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: x\r\n\r\n`,
    ],
    ['a bare LF in a header', `GET /v1/models HTTP/1.1\r\nhost: x\r\na: b\nc: d\r\n\r\n`],
    ['no HTTP', `hello\r\n\r\n`],
    [
      'two content types',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\nContent-Type: a/b\r\ncontent-length: 0\r\n\r\n`,
    ],
    ['two credentials', `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: a\r\nauthorization: b\r\n\r\n`],
    ['a version beyond 1.1', `GET /v1/models HTTP/2.0\r\nhost: x\r\n\r\n`],
    ['a host that is none', `GET /v1/models HTTP/1.1\r\nhost: x/y\r\n\r\n`],
    ['a fragment', `GET /v1/models#x HTTP/1.1\r\nhost: x\r\n\r\n`],
    ['a tunnel', `CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n`],
    ['an offer of h2c alone', `GET /v1/models HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\n\r\n`],
    [
      'a coding before chunked',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'a coding that is not chunked',
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n`,
    ],
    ['too many headers', `GET /v1/models HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(200)}\r\n`],
    ['another expectation', `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nexpect: tea\r\ncontent-length: 0\r\n\r\n`],
    ['too large headers', `GET /v1/models HTTP/1.1\r\nhost: x\r\na: ${'b'.repeat(20_000)}\r\n\r\n`],
  ])('%s is refused in our envelope', async (name, text) => {
    const { router, client } = await rig();
    const answer = await client().send(text).closed();
    expect(answer?.status).toBe(name.startsWith('too ') ? 431 : name === 'another expectation' ? 417 : 400);
    expect(errorOf(answer?.body ?? '').code).toBe('invalid_request');
    expect(answer?.headers['x-request-id']).toMatch(/./);
    expect(router.traces).toHaveLength(0);
  });

  it('what is wrong behind a whole request is answered after that one', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client().post(CHAT, chat()).send('garbage\r\n\r\n');
    await one.closed();
    expect([...one.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(['200', '400']);
  });

  it('a refused upgrade, tunnel or garbage whose sender does not hang up is cut', async () => {
    const { time, port } = await rig();
    for (const text of [
      'GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
      'CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n',
      'garbage\r\n\r\n',
    ]) {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      const closed = new Promise((resolve) => socket.once('close', resolve));
      const ended = once(socket, 'end');
      socket.on('error', () => undefined);
      socket.resume();
      socket.write(text);
      await ended;
      await time.advance(6_000);
      // Only a connection that is gone answers what is sent on it with a reset.
      const poke = setInterval(() => socket.write('x'), 5);
      await closed;
      clearInterval(poke);
      expect(socket.destroyed).toBe(true);
    }
  });

  it('a refusal can be read by a client whose upload still runs', async () => {
    const { client } = await rig();
    const body = 'x'.repeat(4_000_000);
    const answer = await client().post('/v1/unknown', body).answer();
    expect(answer.status).toBe(404);
    expect((await client().post(CHAT, body, ['host: y']).answer()).status).toBe(400);
  });

  it('pipelined requests are answered in order', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket, body }) =>
      socket.write(json(200, { got: (JSON.parse(body) as { readonly n: number }).n }));
    const one = client();
    for (let n = 0; n < 5; n++) one.post(CHAT, chat({ n }));
    const text = await one.until((all) => all.includes('{"got":4}'));
    expect([...text.matchAll(/"got":(\d)/g)].map((match) => match[1])).toEqual(['0', '1', '2', '3', '4']);
  });
});
