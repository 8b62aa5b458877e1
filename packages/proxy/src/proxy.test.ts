import { readdirSync, readFileSync } from 'node:fs';
import OpenAI, { APIError } from 'openai';
import { describe, expect, it } from 'vitest';
import { ANSWER, CHAT, chat, rig, streaming } from './rig.fixture.ts';
import { target } from './scripted-router.fixture.ts';
import { chunk, DONE, event, json, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

const recordings = new URL('../../openai-wire/fixtures/', import.meta.url);

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

describe('a plain answer', () => {
  it('is relayed with our headers, and the ledger closes', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const answer = await client().post(CHAT, chat(), ['x-request-id: r-1']).answer();
    expect(answer).toMatchObject({ status: 200, complete: true, body: JSON.stringify(ANSWER) });
    expect(answer.headers).toMatchObject({
      'x-request-id': 'r-1',
      'x-signalbox-route': 'default',
      'x-signalbox-tier': 'tier',
      'x-signalbox-endpoint': 'tier/1',
      'x-signalbox-policy': 'p1',
      'x-signalbox-attempts': '1',
      'x-signalbox-reason': 'matched',
      'content-type': 'application/json',
    });
    expect(answer.headers['server-timing']).toMatch(
      /^queue;dur=\S+, decide;dur=\S+, upstream;dur=\S+, gateway;dur=\S+$/,
    );
    expect(upstream.requests[0]).toMatchObject({ method: 'POST', path: CHAT, body: JSON.stringify(chat()) });
    expect(router.last.ends).toMatchObject([{ outcome: 'ok', status: 200, promptTokens: 7, outputTokens: 2 }]);
    expect(router.leases).toBe(0);
  });

  it('many requests share one connection on both sides', async () => {
    const { upstream, router, proxy, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client();
    for (let i = 0; i < 20; i++) expect((await one.post(CHAT, chat()).answer()).status).toBe(200);
    expect(upstream.connections).toBe(1);
    expect(router.traces).toHaveLength(20);
    expect(proxy.stats).toMatchObject({ live: 0, timers: 0, pools: 1 });
  });

  it('of many chunks is held until it is whole and gets a length', async () => {
    const { upstream, client } = await rig();
    const text = JSON.stringify(ANSWER);
    upstream.onRequest = ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
      for (const char of text) socket.write(chunk(char));
      socket.write(LAST_CHUNK);
    };
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer).toMatchObject({ body: text, headers: { 'content-length': String(text.length) } });
    expect(answer.headers['transfer-encoding']).toBeUndefined();
  });

  it('beyond the holding limit is relayed as it comes', async () => {
    const { upstream, router, client } = await rig(undefined, { limits: { heldAnswerBytes: 1000 } });
    const text = JSON.stringify({ ...ANSWER, pad: 'x'.repeat(5000) });
    upstream.onRequest = ({ socket }) => socket.write(json(200, text));
    expect((await client().post(CHAT, chat()).answer()).body).toBe(text);
    upstream.onRequest = ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
      for (let at = 0; at < text.length; at += 700) socket.write(chunk(text.slice(at, at + 700)));
      socket.write(LAST_CHUNK);
    };
    expect((await client().post(CHAT, chat()).answer()).body).toBe(text);
    expect(router.leases).toBe(0);
  });

  it('bug-12: the upstream content type decides, whatever `stream` says', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    expect(await client().post(CHAT, streaming()).answer()).toMatchObject({
      status: 200,
      body: JSON.stringify(ANSWER),
    });
    upstream.onRequest = ({ socket }) => socket.write(STREAM_HEAD + chunk(event('a') + DONE).toString() + LAST_CHUNK);
    expect((await client().post(CHAT, chat()).answer()).body).toBe(event('a') + DONE);
  });

  it('bug-23: a compressed answer passes with its header and bytes', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, 'GZIPPED', ['content-encoding: gzip']));
    expect(await client().post(CHAT, chat()).answer()).toMatchObject({
      body: 'GZIPPED',
      headers: { 'content-encoding': 'gzip' },
    });
  });

  it('what would tell of the server behind, and its load report, end here', async () => {
    const reports: string[] = [];
    const { upstream, client } = await rig(undefined, {
      hooks: { loadReport: (to, header) => reports.push(`${to.origin} ${header}`) },
    });
    const headers = [
      'server: uvicorn',
      'x-ratelimit-limit-requests: 5',
      'endpoint-load-metrics: JSON {}',
      'connection: x-hop',
    ];
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER, [...headers, 'x-hop: 1', 'x-kept: 1']));
    const answer = await client().post(CHAT, chat()).answer();
    expect(answer.headers).toMatchObject({ 'x-kept': '1' });
    for (const name of ['server', 'x-ratelimit-limit-requests', 'endpoint-load-metrics', 'x-hop']) {
      expect(answer.headers[name]).toBeUndefined();
    }
    expect(reports).toEqual([`http://127.0.0.1:${upstream.port} JSON {}`]);
  });

  it('bug-05: arrives after six silent minutes', async () => {
    const { upstream, router, time, client } = await rig();
    const one = client().post(CHAT, chat());
    await upstream.received(1);
    await time.advance(360_000);
    expect(router.leases).toBe(1);
    upstream.requests[0]?.socket.write(json(200, ANSWER));
    expect((await one.answer()).status).toBe(200);
  });
});

describe('a stream', () => {
  it.each(readdirSync(recordings).filter((name) => name.endsWith('.sse') && !name.includes('error')))(
    '%s is relayed byte for byte',
    async (name) => {
      const bytes = readFileSync(new URL(name, recordings));
      const { upstream, router, client } = await rig();
      for (const step of [bytes.length, 1021, 97]) {
        upstream.onRequest = ({ socket }) => {
          socket.write(STREAM_HEAD);
          for (let at = 0; at < bytes.length; at += step) socket.write(chunk(bytes.subarray(at, at + step)));
          socket.write(LAST_CHUNK);
        };
        const answer = await client().post(CHAT, streaming()).answer();
        expect(answer).toMatchObject({ status: 200, complete: true });
        expect(answer.body).toBe(bytes.toString('latin1'));
      }
      expect(router.last.ends).toMatchObject([{ outcome: 'ok', status: 200 }]);
      expect(router.leases).toBe(0);
    },
  );

  it('bug-04: each event leaves at once, with the head of a stream', async () => {
    const { upstream, router, client } = await rig();
    const one = client().post(CHAT, streaming());
    await upstream.received(1);
    const socket = upstream.requests[0]?.socket;
    socket?.write(STREAM_HEAD);
    socket?.write(chunk(event('first')));
    await one.until((text) => text.includes('first'));
    expect(router.last.commits).toHaveLength(1);
    expect(one.text).toMatch(/cache-control: no-cache/);
    expect(one.text).toMatch(/x-accel-buffering: no/);
    expect(one.text).not.toMatch(/content-length/);
    socket?.write(chunk(event('second')));
    await one.until((text) => text.includes('second'));
    socket?.write(chunk(DONE) + LAST_CHUNK);
    expect((await one.answer()).complete).toBe(true);
  });

  it('the head is held until the first data event; comments before it do not commit', async () => {
    const { upstream, router, client } = await rig();
    const one = client().post(CHAT, streaming());
    await upstream.received(1);
    const socket = upstream.requests[0]?.socket;
    socket?.write(STREAM_HEAD);
    socket?.write(chunk(': PROCESSING\n\n'));
    socket?.write(chunk(event('a').slice(0, 20)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(one.text).toBe('');
    expect(router.last.commits).toHaveLength(0);
    socket?.write(chunk(event('a').slice(20) + DONE) + LAST_CHUNK);
    expect((await one.answer()).body).toBe(`: PROCESSING\n\n${event('a')}${DONE}`);
  });

  it('bug-06, bug-11: silence is filled with comments, and comments from upstream do not hide a hung stream', async () => {
    const { upstream, router, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), idleMs: 60_000 }],
    }));
    const one = client().post(CHAT, streaming());
    await upstream.received(1);
    const socket = upstream.requests[0]?.socket;
    socket?.write(STREAM_HEAD);
    socket?.write(chunk(event('a')));
    await one.until((text) => text.includes('"a"'));
    await time.advance(15_100);
    await one.until((text) => text.includes(': keep-alive\n\n'));
    for (let i = 0; i < 9; i++) {
      socket?.write(chunk(': ping\n\n'));
      await one.until((text) => text.split(': ping').length > i + 1);
      await time.advance(5_000);
    }
    const end = await one.closed();
    expect(end?.complete).toBe(false);
    expect(end?.body).toContain('"code":"upstream_timeout"');
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_timeout', status: 200 }]);
    expect(router.leases).toBe(0);
  });

  it('bug-07: a server that dies mid-answer gives whole events, our error event, no end mark, no last chunk', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => {
      socket.write(STREAM_HEAD);
      socket.end(chunk(event('a') + event('b').slice(0, 30)));
    };
    const end = await client().post(CHAT, streaming()).closed();
    expect(end?.complete).toBe(false);
    expect(end?.body).toBe(
      `${event('a')}data: {"error":{"message":"The upstream disconnected before the answer was complete.","type":"server_error","param":null,"code":"upstream_disconnected"}}\n\n`,
    );
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_disconnected', status: 200 }]);
  });

  it('a clean end without a final event is a truncation too', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(STREAM_HEAD + chunk(event('a')).toString() + LAST_CHUNK);
    const end = await client().post(CHAT, streaming()).closed();
    expect(end).toMatchObject({ complete: false });
    expect(end?.body).toContain('upstream_disconnected');
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_disconnected' }]);
  });

  it('a close-delimited stream is complete with its end mark and truncated without', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.end(head + event('a') + DONE);
    expect(await client().post(CHAT, streaming()).answer()).toMatchObject({ complete: true, body: event('a') + DONE });
    upstream.onRequest = ({ socket }) => socket.end(head + event('a').replace('null', '"stop"'));
    expect((await client().post(CHAT, streaming()).closed())?.body).toContain('upstream_disconnected');
    expect(router.leases).toBe(0);
  });

  it.each([
    ['bug-08: an error event and [DONE]', event('a') + 'data: {"error":{"message":"boom","code":500}}\n\n' + DONE],
    ['an event of type error', event('a') + 'event: error\ndata: {"error":{"message":"boom"}}\n\n' + event('b')],
  ])('%s after output: relayed, failed, nothing behind it', async (_name, source) => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(STREAM_HEAD + chunk(source).toString() + LAST_CHUNK);
    const end = await client().post(CHAT, streaming()).closed();
    expect(end?.complete).toBe(false);
    expect(end?.body.endsWith('}}\n\n')).toBe(true);
    expect(end?.body).toContain('boom');
    expect(end?.body).not.toContain('[DONE]');
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_error', status: 200 }]);
    expect(router.leases).toBe(0);
  });

  it('Messages and Responses streams fail in their own ways', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.end(STREAM_HEAD + chunk('event: x\ndata: {"type":"x"}\n\n').toString());
    const messages = await client().post('/v1/messages', { model: 'm', stream: true, messages: [] }).closed();
    expect(messages?.body).toContain('event: error\ndata: {"type":"error"');
    const responses = await client().post('/v1/responses', { model: 'm', stream: true, input: 'x' }).closed();
    expect(responses?.body).toContain('event: response.failed\ndata: {"type":"response.failed"');
  });

  it('bug-21: a reader that does not read pauses the upstream and is dropped in the end', async () => {
    const { upstream, router, time, client } = await rig();
    const one = client();
    one.socket.pause();
    one.post(CHAT, streaming());
    await upstream.received(1);
    const socket = upstream.requests[0]?.socket;
    socket?.write(STREAM_HEAD);
    const piece = chunk(event('x'.repeat(60_000)));
    const limit = 64 * 1024 * 1024;
    let sent = 0;
    const closed = new Promise<void>((resolve) => socket?.on('close', () => resolve()));
    // The kernel's buffers fill, then the server's writes stop being taken.
    while (sent < limit && socket?.write(piece) === true) {
      sent += piece.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    while (sent < limit && socket !== undefined && socket.writableLength < 4_000_000) {
      socket.write(piece);
      sent += piece.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(sent).toBeLessThan(limit);
    await time.advance(29_000);
    expect(router.leases).toBe(1);
    await time.advance(5_000);
    await closed;
    expect(router.last.ends).toMatchObject([{ outcome: 'client_abort', status: 499 }]);
    expect(router.leases).toBe(0);
  });

  it('a paused upstream goes on when the reader reads again', async () => {
    const { upstream, client } = await rig();
    const one = client();
    one.socket.pause();
    one.post(CHAT, streaming());
    await upstream.received(1);
    const socket = upstream.requests[0]?.socket;
    const text = Array.from({ length: 200 }, (_, i) => event(`${i}:${'x'.repeat(40_000)}`)).join('');
    socket?.write(STREAM_HEAD);
    for (let at = 0; at < text.length; at += 50_000) socket?.write(chunk(text.slice(at, at + 50_000)));
    socket?.write(chunk(DONE) + LAST_CHUNK);
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    one.socket.resume();
    expect((await one.answer()).body).toBe(text + DONE);
  });
});

describe('what goes upstream', () => {
  it('bug-26, bug-29: credentials, hop-by-hop, internal and Connection-named headers end at the door', async () => {
    const { upstream, client } = await rig((origin) => ({
      attempts: [
        {
          target: target(origin, { headers: [{ name: 'authorization', value: 'Bearer upstream' }] }),
          headers: [{ name: 'x-team', value: 'blue' }],
        },
      ],
    }));
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    await client()
      .post(CHAT, chat(), [
        'authorization: Bearer client',
        'x-api-key: client',
        'cookie: a=b',
        'connection: keep-alive, x-hop, content-type, authorization',
        'x-hop: 1',
        'keep-alive: timeout=5',
        'te: trailers',
        'expect: 100-continue',
        'x-signalbox-tier: mine',
        'x-gateway-destination-endpoint: 10.0.0.1:80',
        'x-gateway-destination-endpoint-subset: a',
        'x-forwarded-for: 1.2.3.4',
        'forwarded: for=1.2.3.4',
        'x-team: red',
        'x-kept: yes',
        'accept-encoding: gzip',
        `traceparent: ${TRACE}`,
      ])
      .answer();
    const sent = upstream.requests[0]?.headers ?? {};
    expect(sent).toMatchObject({
      authorization: 'Bearer upstream',
      'x-team': 'blue',
      'x-kept': 'yes',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      traceparent: TRACE,
    });
    expect(Object.keys(sent).toSorted()).toEqual(
      [
        'accept-encoding',
        'authorization',
        'connection',
        'content-length',
        'content-type',
        'host',
        'traceparent',
        'x-kept',
        'x-request-id',
        'x-team',
      ].toSorted(),
    );
    expect(JSON.stringify(upstream.requests[0]?.lines)).not.toContain('client');
  });

  it('bug-25, bug-43: each attempt is made from the original bytes, with its own length', async () => {
    const { upstream, router, client } = await rig((origin) => ({
      attempts: [
        { target: target(origin), model: 'big', set: [{ field: 'temperature', json: '0.5' }], drop: ['seed'] },
        { target: target(origin, { basePath: '/base' }), model: 'small' },
      ],
    }));
    upstream.onRequest = ({ socket }, index) => socket.write(index === 0 ? json(503, {}) : json(200, ANSWER));
    const body = '{"seed":1, "model" : "m","x":"\\u00e9 é","messages":[{"role":"user","content":"model: m"}]}';
    await client().post(CHAT, body).answer();
    expect(upstream.requests.map((r) => [r.path, r.body])).toEqual([
      [CHAT, '{ "model" : "big","x":"\\u00e9 é","messages":[{"role":"user","content":"model: m"}],"temperature":0.5}'],
      [`/base${CHAT}`, body.replace('"m"', '"small"')],
    ]);
    for (const request of upstream.requests) {
      expect(request.headers['content-length']).toBe(String(Buffer.byteLength(request.body)));
      expect(request.headers['transfer-encoding']).toBeUndefined();
    }
    expect(router.leases).toBe(0);
  });

  it('a query goes along, a request id is taken if it is one, and deadlines become absolute', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client();
    await one
      .post(`${CHAT}?api-version=1`, chat(), [
        'x-request-id: bad id',
        'x-stainless-timeout: 600',
        'x-request-deadline-ms: 5000',
      ])
      .answer();
    expect(upstream.requests[0]?.path).toBe(`${CHAT}?api-version=1`);
    expect(upstream.requests[0]?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(router.last.request.deadlineMs - router.last.request.receivedAtMs).toBe(5000);
    await one.post(CHAT, chat(), ['x-stainless-timeout: 2']).answer();
    expect(router.last.request.deadlineMs - router.last.request.receivedAtMs).toBe(2000);
    expect(router.last.request.headers['content-type']).toBe('application/json');
    expect(router.last.request.headers['x-request-id']).toBeUndefined();
  });

  it('a deadline that is over is the router’s to refuse; one that is no number is 400, and nothing is sent', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    for (const over of ['0', '-5', '1000000000000']) {
      await client()
        .post(CHAT, chat(), [`x-request-deadline-ms: ${over}`])
        .answer();
      const { deadlineMs, receivedAtMs } = router.last.request;
      expect([over, deadlineMs - receivedAtMs]).toEqual([over, 0]);
    }
    const asked = upstream.requests.length;
    const refused = await client().post(CHAT, chat(), ['x-request-deadline-ms: soon']).answer();
    expect(refused.status).toBe(400);
    expect(refused.body).toContain('x-request-deadline-ms must be a number of milliseconds');
    expect(upstream.requests).toHaveLength(asked);
  });

  it('a form passes with its boundary, its model read and renamed', async () => {
    const { upstream, router, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), model: 'whisper-large' }],
    }));
    upstream.onRequest = ({ socket }) => socket.write(json(200, { text: 'hello' }));
    const form = (model: string): string =>
      `--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxyz\r\n--B--\r\n`;
    const body = form('w');
    const one = client().send(
      `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=B\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    expect((await one.answer()).body).toBe('{"text":"hello"}');
    expect(upstream.requests[0]).toMatchObject({ path: '/v1/audio/transcriptions', body: form('whisper-large') });
    expect(upstream.requests[0]?.headers['content-type']).toBe('multipart/form-data; boundary=B');
    expect(router.last.request.parsed.model).toBe('w');
  });

  it('a large body goes whole, with its length, and again on a retry', async () => {
    const { upstream, client } = await rig((origin) => ({
      attempts: [{ target: target(origin) }, { target: target(origin), model: 'other' }],
    }));
    upstream.onRequest = ({ socket }, index) => socket.write(index === 0 ? json(503, {}) : json(200, ANSWER));
    const body = JSON.stringify(chat({ pad: 'é'.repeat(2_000_000) }));
    expect((await client().post(CHAT, body).answer()).status).toBe(200);
    expect(upstream.requests[0]?.body === body).toBe(true);
    expect(upstream.requests[1]?.body === body.replace('"m"', '"other"')).toBe(true);
    expect(upstream.requests[0]?.headers['content-length']).toBe(String(Buffer.byteLength(body)));
  });

  it('a chunked upload gets a length', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const body = JSON.stringify(chat());
    const one = client().send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    for (const char of body) one.send(chunk(char).toString());
    expect((await one.send(LAST_CHUNK).answer()).status).toBe(200);
    expect(upstream.requests[0]).toMatchObject({ body });
  });
});

describe('the name of the model', () => {
  it('bug-35: is what the client asked for, in plain answers and in every event', async () => {
    const { upstream, client } = await rig((origin) => ({
      attempts: [{ target: target(origin), model: 'real/model' }],
    }));
    upstream.onRequest = ({ socket }) => socket.write(json(200, { ...ANSWER, model: 'real/model' }));
    expect((await client().post(CHAT, chat()).answer()).body).toBe(JSON.stringify(ANSWER));
    upstream.onRequest = ({ socket }) =>
      socket.write(STREAM_HEAD + chunk(event('real/model', 'real/model') + DONE).toString() + LAST_CHUNK);
    expect((await client().post(CHAT, streaming()).answer()).body).toBe(event('real/model') + DONE);
    expect(JSON.parse(upstream.requests[0]?.body ?? '')).toMatchObject({ model: 'real/model' });
  });

  it('is the real one where the gateway reports it, and on paths that only pass through', async () => {
    const script = (origin: string): { attempts: { target: ReturnType<typeof target>; model: string }[] } => ({
      attempts: [{ target: target(origin), model: 'real' }],
    });
    const real = await rig(script, { reportModel: () => 'real' });
    real.upstream.onRequest = ({ socket }) => socket.write(json(200, { model: 'real' }));
    expect((await real.client().post(CHAT, chat()).answer()).body).toBe('{"model":"real"}');
    const asked = await rig(script);
    asked.upstream.onRequest = ({ socket }) => socket.write(json(200, { model: 'real' }));
    expect((await asked.client().post('/v1/rerank', { model: 'm', query: 'x' }).answer()).body).toBe(
      '{"model":"real"}',
    );
  });
});

describe('usage', () => {
  const usage =
    'data: {"model":"m","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}\n\n';

  it('bug-31: is asked for on streams, read, and its frame removed for who did not ask', async () => {
    const { upstream, router, client } = await rig();
    upstream.onRequest = ({ socket }) =>
      socket.write(STREAM_HEAD + chunk(event('a') + usage + DONE).toString() + LAST_CHUNK);
    expect(
      (
        await client()
          .post(CHAT, chat({ stream: true }))
          .answer()
      ).body,
    ).toBe(event('a') + DONE);
    expect(JSON.parse(upstream.requests[0]?.body ?? '')).toMatchObject({ stream_options: { include_usage: true } });
    expect(router.last.ends).toMatchObject([{ promptTokens: 11, cachedTokens: 8, outputTokens: 3 }]);
    expect((await client().post(CHAT, streaming()).answer()).body).toBe(event('a') + usage + DONE);
    expect(router.last.ends).toMatchObject([{ promptTokens: 11 }]);
  });

  it('is not asked for on plain answers, or of an engine that may not know it', async () => {
    const { upstream, origin, router, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    await client().post(CHAT, chat()).answer();
    router.script = { attempts: [{ target: target(origin, { engine: 'other' }) }] };
    await client()
      .post(CHAT, chat({ stream: true }))
      .answer();
    expect(upstream.requests.map((r) => r.body)).toEqual([
      JSON.stringify(chat()),
      JSON.stringify(chat({ stream: true })),
    ]);
  });
});

describe('the official client', () => {
  const sdk = (port: number): OpenAI =>
    new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'k', maxRetries: 0 });
  const params = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }] };

  it('gets answers, streams, models and typed errors', async () => {
    const { upstream, router, port } = await rig();
    const client = sdk(port);
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    expect((await client.chat.completions.create(params)).choices[0]?.message.content).toBe('yo');
    upstream.onRequest = ({ socket }) =>
      socket.write(STREAM_HEAD + chunk(event('a') + event('b') + DONE).toString() + LAST_CHUNK);
    let text = '';
    for await (const frame of await client.chat.completions.create({ ...params, stream: true }))
      text += frame.choices[0]?.delta.content ?? '';
    expect(text).toBe('ab');
    router.modelInfos = [{ id: 'org/a:b', ownedBy: 'signalbox', maxModelLen: 4096 }];
    expect((await client.models.list()).data).toMatchObject([{ id: 'org/a:b', max_model_len: 4096 }]);
    expect(await client.models.retrieve('org/a:b')).toMatchObject({ id: 'org/a:b', object: 'model' });
    await expect(client.models.retrieve('nope')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
    router.script = {
      attempts: [],
      refusal: { status: 429, code: 'rate_limited', message: 'slow down', retryAfterSeconds: 3 },
    };
    await expect(client.chat.completions.create(params)).rejects.toMatchObject({
      status: 429,
      code: 'rate_limited',
      type: 'rate_limit_error',
    });
  });

  it('bug-07: raises an APIError with our code and keeps the text so far', async () => {
    const { upstream, port } = await rig();
    upstream.onRequest = ({ socket }) => {
      socket.write(STREAM_HEAD);
      socket.end(chunk(event('so ') + event('far') + event('cut').slice(0, 40)));
    };
    let text = '';
    const read = async (): Promise<void> => {
      for await (const frame of await sdk(port).chat.completions.create({ ...params, stream: true }))
        text += frame.choices[0]?.delta.content ?? '';
    };
    const error: unknown = await read().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: 'upstream_disconnected' });
    expect(text).toBe('so far');
  });
});
