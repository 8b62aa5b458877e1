import { once } from 'node:events';
import { createServer as createTlsUpstream } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toAnswer } from './client.fixture.ts';
import { ANSWER, CHAT, chat, rig, streaming } from './rig.fixture.ts';
import { target } from './scripted-router.fixture.ts';
import { CERT, KEY } from './tls.fixture.ts';
import { chunk, DONE, event, json, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

describe('many clients at once', () => {
  it('bug-46, F14: any mix of ends and aborts leaves no lease, no timer, no connection', async () => {
    const { upstream, router, proxy, time, client } = await rig((origin) => ({
      attempts: [{ target: target(origin) }, { target: target(origin) }],
    }));
    let asked = 0;
    upstream.onRequest = ({ socket }) => {
      const stream = STREAM_HEAD + chunk(event('a')).toString();
      const replies = [json(200, ANSWER), json(503, {}), stream, `${stream}${chunk(DONE).toString()}${LAST_CHUNK}`, ''];
      const reply = replies[asked++ % replies.length] ?? '';
      if (asked % 11 === 0) socket.resetAndDestroy();
      else if (asked % 13 === 0) socket.end(reply);
      else socket.write(reply);
    };
    const clients = Array.from({ length: 300 }, (_, i) => client().post(CHAT, i % 2 === 0 ? chat() : streaming()));
    while (router.traces.length < clients.length) await time.advance(0);
    for (const [i, one] of clients.entries()) {
      if (i % 3 === 0) one.socket.resetAndDestroy();
      else if (i % 3 === 1) one.socket.end();
    }
    await time.advance(100);
    for (const one of clients) one.destroy();
    while (proxy.stats.live > 0) await time.advance(10);
    expect(router.leases).toBe(0);
    expect(proxy.stats).toMatchObject({ live: 0, timers: 0 });
    for (const trace of router.traces) expect(trace.ends).toHaveLength(1);
    while (upstream.sockets.size > 0) {
      // Idle connections end by their own timer; all others were destroyed with their requests.
      for (const socket of upstream.sockets) socket.destroy();
      await time.advance(0);
    }
  });

  it('bug-20: listeners and heap stay flat over many requests on one connection', async () => {
    const { upstream, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const one = client();
    const warnings: string[] = [];
    const onWarning = (warning: Error): number => warnings.push(warning.message);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    for (let i = 0; i < 500; i++) await one.post(CHAT, chat()).answer();
    expect(upstream.connections).toBe(1);
    const socket = upstream.requests[0]?.socket;
    expect(socket?.listenerCount('data')).toBe(1);
    expect(warnings).toEqual([]);
  });
});

describe('TLS', () => {
  it('the listener speaks it', async () => {
    const { upstream, port } = await rig(undefined, { tls: { cert: CERT, key: KEY } });
    upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
    const socket = connectTls({ port, host: '127.0.0.1', ca: CERT });
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    const body = JSON.stringify(chat());
    socket.write(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    let text = '';
    while (toAnswer(text)?.complete !== true) text += String((await once(socket, 'data'))[0]);
    expect(toAnswer(text)).toMatchObject({ status: 200, body: JSON.stringify(ANSWER) });
  });

  it('an endpoint is believed by its own certificate authority, and not without', async () => {
    const server = createTlsUpstream({ cert: CERT, key: KEY }, (_request, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(ANSWER)),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { router, client } = await rig(() => ({
      attempts: [{ target: target(origin) }, { target: target(origin, { ca: CERT }) }],
    }));
    expect((await client().post(CHAT, chat()).answer()).body).toBe(JSON.stringify(ANSWER));
    expect(router.last.failures).toMatchObject([{ cause: 'connect' }]);
  });
});

describe('endpoints that leave', () => {
  it('a retired pool ends its running calls and opens no more', async () => {
    const { upstream, router, proxy, client } = await rig();
    upstream.onRequest = ({ socket }) => socket.write(STREAM_HEAD + chunk(event('a')).toString());
    const one = client().post(CHAT, streaming());
    await one.until((text) => text.includes('"a"'));
    const [attempt] = router.script.attempts;
    if (attempt !== undefined) proxy.retire(attempt.target);
    expect(proxy.stats.pools).toBe(0);
    const socket = upstream.requests[0]?.socket;
    const closed = new Promise<void>((resolve) => socket?.on('close', () => resolve()));
    socket?.write(chunk(event('b') + DONE) + LAST_CHUNK);
    expect((await one.answer()).body).toBe(event('a') + event('b') + DONE);
    await closed;
    expect(router.leases).toBe(0);
  });
});
