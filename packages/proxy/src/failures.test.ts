import { describe, expect, it } from 'vitest';
import { ANSWER, CHAT, chat, rig, streaming } from './rig.fixture.ts';
import { target, type Script } from './scripted-router.fixture.ts';
import { chunk, DONE, event, json, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

const CLOSED = 'http://127.0.0.1:1';
const twice = (origin: string): Script => ({ attempts: [{ target: target(origin) }, { target: target(origin) }] });
const errorCode = (body: string): string =>
  (JSON.parse(body) as { readonly error: { readonly code: string } }).error.code;

describe('before the commit point an attempt is replaced', () => {
  it('a refused connection', async () => {
    const { upstream, router, client } = await rig((origin) => ({
      attempts: [{ target: target(CLOSED) }, { target: target(origin) }],
    }));
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'x-signalbox-endpoint': 'tier/2', 'x-signalbox-attempts': '2' },
    });
    expect(router.last.failures).toMatchObject([{ cause: 'connect', status: 0 }]);
    expect(router.leases).toBe(0);
  });

  it.each([
    ['503', json(503, {}, ['retry-after: 7']), { cause: 'saturated', status: 503, retryAfterSeconds: 7 }],
    ['429', json(429, {}, ['retry-after: 0']), { cause: 'rate_limited', status: 429, retryAfterSeconds: 0 }],
    ['500', json(500, {}), { cause: 'error', status: 500 }],
    ['408', json(408, {}), { cause: 'error', status: 408 }],
    ['a redirect', json(302, {}, ['location: http://169.254.169.254/']), { cause: 'error', status: 302 }],
    [
      'an error event before output',
      STREAM_HEAD + chunk('data: {"error":{"message":"x","code":"boom"}}\n\n').toString(),
      { cause: 'error', status: 200 },
    ],
    [
      'an error event that names a status',
      STREAM_HEAD + chunk(': c\n\ndata: {"error":{"code":429}}\n\n').toString(),
      { cause: 'rate_limited', status: 429 },
    ],
    [
      'a stream that ends before output',
      STREAM_HEAD + chunk(': c\n\n').toString() + LAST_CHUNK,
      { cause: 'error', status: 200 },
    ],
    ['bytes that are no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', { cause: 'error', status: 0 }],
  ])('%s', async (_name, first, failure) => {
    const { upstream, router, client } = await rig(twice);
    upstream.onRequest = ({ socket }, index) =>
      socket.write(index === 0 ? first : STREAM_HEAD + chunk(event('a') + DONE).toString() + LAST_CHUNK);
    const answer = await client().post(CHAT, streaming()).answer();
    expect(answer).toMatchObject({ status: 200, body: event('a') + DONE });
    expect(router.last.failures).toMatchObject([failure]);
    expect(router.last.ends).toMatchObject([{ outcome: 'ok' }]);
    expect(router.leases).toBe(0);
  });

  it('a reset on a fresh connection, or a stream that dies before output', async () => {
    for (const bytes of ['', STREAM_HEAD, STREAM_HEAD + chunk(event('a').slice(0, 9)).toString()]) {
      const { upstream, router, client } = await rig(twice);
      upstream.onRequest = ({ socket }, index) => (index === 0 ? socket.end(bytes) : socket.write(json(200, ANSWER)));
      expect((await client().post(CHAT, chat()).answer()).status).toBe(200);
      expect(router.last.failures).toMatchObject([{ cause: bytes === '' ? 'connect' : 'error' }]);
      expect(router.last.failures[0]?.keepAliveRace).toBeUndefined();
      expect(router.leases).toBe(0);
    }
  });

  it('a truncated plain answer', async () => {
    const { upstream, router, client } = await rig(twice);
    upstream.onRequest = ({ socket }, index) =>
      index === 0 ? socket.end(json(200, ANSWER).slice(0, -9)) : socket.write(json(200, ANSWER));
    expect(await client().post(CHAT, chat()).answer()).toMatchObject({ status: 200, body: JSON.stringify(ANSWER) });
    expect(router.last.failures).toMatchObject([{ cause: 'error', status: 200 }]);
  });

  it('an answer that only the close of its connection ends, unless it is whole JSON', async () => {
    const text = JSON.stringify(ANSWER);
    const closed = (body: string, type = 'application/json'): string =>
      `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n\r\n${body}`;
    const ask = async (first: string, path = CHAT): Promise<readonly [body: string, failures: unknown]> => {
      const { upstream, router, client } = await rig(twice);
      upstream.onRequest = ({ socket }, index) =>
        index === 0 ? socket.end(first) : socket.write(json(200, { second: true }));
      const answer = await client().post(path, chat()).answer();
      expect(answer.status).toBe(200);
      expect(router.leases).toBe(0);
      return [answer.body, router.last.failures];
    };
    for (const cut of [0, 1, 20, text.length - 1])
      expect(await ask(closed(text.slice(0, cut)))).toMatchObject([
        '{"second":true}',
        [{ cause: 'error', status: 200 }],
      ]);
    expect(await ask(closed(`${text}\n`))).toEqual([`${text}\n`, []]);
    expect(await ask(closed('half', 'text/plain'))).toEqual(['half', []]);
    expect(await ask(closed('half'), '/v1/responses')).toEqual(['half', []]);
  });

  it('bug-18: a reset on a reused connection is marked as a keep-alive race', async () => {
    const { upstream, router, client } = await rig(twice);
    const one = client();
    upstream.onRequest = ({ socket }, index) => (index === 1 ? socket.destroy() : socket.write(json(200, ANSWER)));
    await one.post(CHAT, chat()).answer();
    expect((await one.post(CHAT, chat()).answer()).status).toBe(200);
    expect(router.last.failures).toMatchObject([{ cause: 'connect', keepAliveRace: true, status: 0 }]);
  });

  it('where the call stores something, a lost answer is an error and not a lost connection', async () => {
    const { upstream, router, client } = await rig(twice);
    upstream.onRequest = ({ socket }, index) => (index === 0 ? socket.end() : socket.write(json(200, {})));
    await client().post('/v1/responses', { model: 'm', input: 'x' }).answer();
    expect(router.last.failures).toMatchObject([{ cause: 'error', status: 502 }]);
  });

  it('bug-19: stray bytes on an idle connection are given to nobody', async () => {
    const { upstream, client } = await rig(twice);
    const one = client();
    upstream.onRequest = ({ socket }, index) => socket.write(json(200, { answer: index }));
    expect((await one.post(CHAT, chat()).answer()).body).toBe('{"answer":0}');
    const socket = upstream.requests[0]?.socket;
    const closed = new Promise<void>((resolve) => socket?.on('close', () => resolve()));
    socket?.write(json(200, { answer: 'stray' }));
    await closed;
    expect((await one.post(CHAT, chat()).answer()).body).toBe('{"answer":1}');
  });

  it('bug-17: back-off is waited for by the clock', async () => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(CLOSED) }, { target: target(origin), waitMs: 400 }],
    }));
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client().post(CHAT, chat());
    while (router.traces[0]?.failures.length !== 1) await time.advance(0);
    await time.advance(380);
    expect(upstream.requests).toHaveLength(0);
    await time.advance(60);
    expect((await one.answer()).status).toBe(200);
  });
});

describe('when no attempt is left', () => {
  it('the router says what the client gets, in our envelope and never in the upstream words', async () => {
    const { upstream, router, client } = await rig((origin) => ({
      attempts: [{ target: target(origin) }],
      last: { status: 503, code: 'no_endpoint', retryAfterSeconds: 4.2 },
    }));
    upstream.onRequest = ({ socket }) => socket.write(json(503, { secret: 'stack trace' }));
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5', 'content-type': 'application/json', 'x-signalbox-reason': 'matched, no_endpoint' },
    });
    expect(answer.body).not.toContain('secret');
    expect(errorCode(answer.body)).toBe('no_endpoint');
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_error', status: 503, upstreamStatus: 503 }]);
    expect(router.leases).toBe(0);
  });

  it('an upstream 4xx is relayed whole, also for a stream', async () => {
    const { upstream, router, client } = await rig();
    const body = '{"error":{"message":"no such tool","type":"invalid_request_error","param":"tools","code":null}}';
    upstream.onRequest = ({ socket }) => socket.write(json(400, body, ['retry-after: 7', 'x-own: 1']));
    expect(await client().post(CHAT, streaming()).answer()).toMatchObject({
      status: 400,
      headers: { 'retry-after': '7', 'x-own': '1' },
      body,
    });
    expect(router.last.failures).toEqual([]);
    expect(router.last.ends).toMatchObject([{ outcome: 'ok', status: 400, upstreamStatus: 400 }]);
  });

  it('a prompt that is too long goes to a fallback if there is one, else the upstream answer is relayed', async () => {
    const body = `{"error":{"message":"This model's maximum context length is 10 tokens","code":"context_length_exceeded"}}`;
    const { upstream, router, client } = await rig(twice);
    upstream.onRequest = ({ socket }, index) => socket.write(index === 1 ? json(200, ANSWER) : json(400, body));
    expect((await client().post(CHAT, chat()).answer()).status).toBe(200);
    expect(router.last.failures).toMatchObject([{ cause: 'context_exceeded', status: 400 }]);
    router.script = { attempts: router.script.attempts.slice(0, 1) };
    expect(await client().post(CHAT, chat()).answer()).toMatchObject({ status: 400, body });
    expect(router.leases).toBe(0);
  });

  it('bug-10: an error event that opens a stream gives its own status, as if it had come as a plain answer', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) =>
      socket.write(
        STREAM_HEAD +
          chunk(
            'event: error\ndata: {"error":{"message":"secret","code":"tool_use_failed","status_code":400}}\n\n',
          ).toString(),
      );
    const answer = await client().post(CHAT, streaming()).answer();
    expect(answer.status).toBe(400);
    expect(errorCode(answer.body)).toBe('tool_use_failed');
    expect(answer.body).not.toContain('secret');
    expect(router.leases).toBe(0);
  });

  it('a header that the policy makes of what no header may hold refuses the request, and the endpoint has no part in it', async () => {
    const { upstream, router, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), headers: [{ name: 'x-user', value: 'a\r\nx-admin: 1' }] }],
    }));
    expect((await client().post(CHAT, chat()).answer()).status).toBe(400);
    expect(upstream.requests).toHaveLength(0);
    expect(router.last.failures).toEqual([]);
    expect(router.leases).toBe(0);
  });

  it('a refusal of the router is answered and closed', async () => {
    const { router, client } = await rig(() => ({
      attempts: [],
      refusal: { status: 503, code: 'queue_full', message: 'The queue is full.', retryAfterSeconds: 2 },
    }));
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    expect(errorCode(answer.body)).toBe('queue_full');
    expect(router.last.refusalsFinished).toBe(1);
    expect((await client().post('/v1/messages', { model: 'm', messages: [] }).answer()).body).toBe(
      '{"type":"error","error":{"type":"overloaded_error","message":"The queue is full."}}',
    );
  });

  it('a fault of the router is a 500 and ends nothing else', async () => {
    const { router, client } = await rig();
    const { route } = router;
    router.route = () => {
      throw new Error('bug');
    };
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain('bug');
    router.route = () => Promise.reject(new Error('bug'));
    expect((await client().post(CHAT, chat()).answer()).status).toBe(500);
    router.route = route;
  });
});

describe('timers', () => {
  it('connect: an endpoint that never finishes the handshake', async () => {
    const { upstream, router, origin, time, client } = await rig();
    router.script = {
      attempts: [{ target: target(origin.replace('http:', 'https:')), connectMs: 2_000 }, { target: target(origin) }],
    };
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client().post(CHAT, chat());
    while (upstream.connections === 0) await time.advance(0);
    const stuck = [...upstream.sockets][0];
    const closed = new Promise<void>((resolve) => stuck?.on('close', () => resolve()));
    await time.advance(1_950);
    expect(router.last.failures).toEqual([]);
    await time.advance(100);
    expect((await one.answer()).status).toBe(200);
    expect(router.last.failures).toMatchObject([{ cause: 'connect' }]);
    expect(router.last.failures[0]?.durationMs).toBeGreaterThanOrEqual(2_000);
    expect(router.last.failures[0]?.durationMs).toBeLessThan(2_200);
    await closed;
  });

  it.each([
    ['before the head', ''],
    ['behind the head', STREAM_HEAD],
    ['with comments only', STREAM_HEAD + chunk(': c\n\n').toString()],
  ])('first token, %s', async (_name, bytes) => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), firstTokenMs: 5_000 }, { target: target(origin) }],
    }));
    upstream.onRequest = ({ socket }, index) =>
      socket.write(
        index === 0 ? bytes || ' '.repeat(0) : STREAM_HEAD + chunk(event('a') + DONE).toString() + LAST_CHUNK,
      );
    const one = client().post(CHAT, streaming());
    await upstream.received(1);
    const first = upstream.requests[0]?.socket;
    const closed = new Promise<void>((resolve) => first?.on('close', () => resolve()));
    await time.advance(4_900);
    expect(router.last.failures).toEqual([]);
    await time.advance(200);
    await closed;
    expect((await one.answer()).body).toBe(event('a') + DONE);
    expect(router.last.failures).toMatchObject([{ cause: 'first_token' }]);
    expect(router.leases).toBe(0);
  });

  it('a plain answer is bound by the attempt and the deadline alone', async () => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), firstTokenMs: 100, attemptTimeoutMs: 3_000 }],
      last: { status: 504, code: 'upstream_timeout' },
    }));
    const one = client().post(CHAT, chat());
    await upstream.received(1);
    await time.advance(2_900);
    expect(router.last.failures).toEqual([]);
    await time.advance(200);
    expect((await one.answer()).status).toBe(504);
    expect(router.last.failures).toMatchObject([{ cause: 'timeout' }]);
  });

  it('the deadline ends attempts, back-offs and streams', async () => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin) }],
      last: { status: 504, code: 'upstream_timeout' },
    }));
    const plain = client().post(CHAT, chat(), ['x-request-deadline-ms: 1000']);
    await upstream.received(1);
    await time.advance(1_050);
    expect((await plain.answer()).status).toBe(504);
    expect(router.last.failures).toMatchObject([{ cause: 'timeout' }]);
    const stream = client().post(CHAT, streaming(), ['x-request-deadline-ms: 1000']);
    await upstream.received(2);
    upstream.requests[1]?.socket.write(STREAM_HEAD + chunk(event('a')).toString());
    await stream.until((text) => text.includes('"a"'));
    await time.advance(1_050);
    expect((await stream.closed())?.body).toContain('upstream_timeout');
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_timeout' }]);
    expect(router.leases).toBe(0);
  });

  it('a server that keeps a finished stream open is let go', async () => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), idleMs: 5_000 }],
    }));
    upstream.onRequest = ({ socket }) => socket.write(STREAM_HEAD + chunk(event('a') + DONE).toString());
    const one = client().post(CHAT, streaming());
    await one.until((text) => text.includes('[DONE]'));
    const closed = new Promise<void>((resolve) => upstream.requests[0]?.socket.on('close', () => resolve()));
    await time.advance(5_100);
    expect(await one.answer()).toMatchObject({ complete: true, body: event('a') + DONE });
    await closed;
    expect(router.last.ends).toMatchObject([{ outcome: 'ok' }]);
  });

  it('after a stall of the event loop data is looked at before timers', async () => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), firstTokenMs: 5_000 }],
    }));
    const one = client().post(CHAT, streaming());
    await upstream.received(1);
    await time.advance(4_000);
    // The data is in the kernel when the loop comes back, long after the limit.
    upstream.requests[0]?.socket.write(STREAM_HEAD + chunk(event('a') + DONE).toString() + LAST_CHUNK);
    await time.advance(60_000);
    expect((await one.answer()).body).toBe(event('a') + DONE);
    expect(router.last.failures).toEqual([]);
  });
});

describe('a client that leaves', () => {
  it('bug-13, bug-14: frees the upstream before any header, plain or stream', async () => {
    for (const body of [chat(), streaming()]) {
      const { upstream, router, proxy, client } = await rig();
      const one = client().post(CHAT, body);
      await upstream.received(1);
      const closed = new Promise<void>((resolve) => upstream.requests[0]?.socket.on('close', () => resolve()));
      one.destroy();
      await closed;
      expect(router.last.ends).toMatchObject([{ outcome: 'client_abort', status: 499 }]);
      expect(router.last.failures).toEqual([]);
      expect(router.leases).toBe(0);
      expect(proxy.stats).toMatchObject({ live: 0, timers: 0 });
    }
  });

  it('frees it mid-stream and while a plain answer is held; a FIN counts as leaving', async () => {
    for (const bytes of [STREAM_HEAD + chunk(event('a')).toString(), json(200, ANSWER).slice(0, -5)]) {
      const { upstream, router, client } = await rig();
      upstream.onRequest = ({ socket }) => socket.write(bytes);
      const one = client().post(CHAT, streaming());
      await upstream.received(1);
      if (bytes.startsWith(STREAM_HEAD)) await one.until((text) => text.includes('"a"'));
      const closed = new Promise<void>((resolve) => upstream.requests[0]?.socket.on('close', () => resolve()));
      one.socket.end();
      await closed;
      expect(router.last.ends).toMatchObject([{ outcome: 'client_abort', status: 499 }]);
      expect(router.leases).toBe(0);
    }
  });

  it('while the connection is being opened', async () => {
    const { upstream, router, origin, time, client } = await rig();
    router.script = { attempts: [{ target: target(origin.replace('http:', 'https:')) }] };
    const one = client().post(CHAT, chat());
    while (upstream.connections === 0) await time.advance(0);
    const closed = new Promise<void>((resolve) => [...upstream.sockets][0]?.on('close', () => resolve()));
    one.destroy();
    await closed;
    expect(router.last.ends).toMatchObject([{ outcome: 'client_abort' }]);
    expect(router.leases).toBe(0);
  });

  it('while it is queued, and in back-off', async () => {
    const { upstream, router, origin, time, client, proxy } = await rig(() => ({
      attempts: [],
      queued: new Promise(() => undefined),
    }));
    const queued = client().post(CHAT, chat());
    while (router.traces.length === 0) await time.advance(0);
    queued.destroy();
    while (router.last.refusalsFinished === 0) await time.advance(0);
    expect(router.last).toMatchObject({ aborts: 1, refusalsFinished: 1 });
    router.script = { attempts: [{ target: target(CLOSED) }, { target: target(origin), waitMs: 500 }] };
    const waiting = client().post(CHAT, chat());
    while (router.last.failures.length === 0) await time.advance(0);
    waiting.destroy();
    while (router.last.ends.length === 0) await time.advance(0);
    await time.advance(2_000);
    expect(upstream.requests).toHaveLength(0);
    expect(router.last.ends).toMatchObject([{ outcome: 'client_abort' }]);
    expect(router.leases).toBe(0);
    expect(proxy.stats).toMatchObject({ live: 0, timers: 0 });
  });

  it('while its body is uploaded: the router never hears of it', async () => {
    const ends: unknown[] = [];
    const { router, time, client, proxy } = await rig(undefined, { hooks: { unrouted: (end) => ends.push(end) } });
    const one = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"model"`,
    );
    while (proxy.stats.live === 0) await time.advance(0);
    one.destroy();
    while (ends.length === 0) await time.advance(0);
    expect(ends).toMatchObject([{ status: 499, code: 'client_abort' }]);
    expect(router.traces).toHaveLength(0);
  });
});

describe('a graceful end', () => {
  it('bug-15, F17: streams go on within grace, then get the error event; nothing is left', async () => {
    const { upstream, router, time, client, proxy } = await rig();
    const stream = client().post(CHAT, streaming());
    const plain = client().post(CHAT, chat());
    const idle = client();
    await upstream.received(2);
    const [first, second] = upstream.requests;
    const [streamUp, plainUp] = first?.body.includes('stream') === true ? [first, second] : [second, first];
    streamUp?.socket.write(STREAM_HEAD + chunk(event('a')).toString());
    await stream.until((text) => text.includes('"a"'));
    const closed = proxy.close({ acceptMs: 1_000, graceMs: 10_000, forceMs: 1_000 });
    await time.advance(500);
    plainUp?.socket.write(json(200, ANSWER));
    expect((await plain.answer()).headers['connection']).toBe('close');
    const late = client().post(CHAT, chat());
    await upstream.received(3);
    upstream.requests[2]?.socket.write(json(200, ANSWER));
    expect((await late.answer()).status).toBe(200);
    await time.advance(1_000);
    expect(proxy.address).toBeUndefined();
    await idle.closed();
    streamUp?.socket.write(chunk(event('b')));
    await stream.until((text) => text.includes('"b"'));
    await time.advance(11_000);
    const end = await stream.closed();
    expect(end).toMatchObject({ complete: false });
    expect(end?.body).toContain('shutting down');
    await time.advance(2_000);
    await closed;
    expect(router.leases).toBe(0);
    expect(proxy.stats).toMatchObject({ live: 0, timers: 0, pools: 0 });
  });

  it('requests without an answer get a 503, and a second call hastens the first', async () => {
    const { upstream, router, time, client, proxy } = await rig();
    const one = client().post(CHAT, chat());
    await upstream.received(1);
    const closed = proxy.close({ graceMs: 3_600_000 });
    await time.advance(10_000);
    expect(proxy.stats.live).toBe(1);
    void proxy.close({ graceMs: 0 });
    const answer = await one.answer();
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    expect(errorCode(answer.body)).toBe('draining');
    await time.advance(6_000);
    await closed;
    expect(router.leases).toBe(0);
  });
});
