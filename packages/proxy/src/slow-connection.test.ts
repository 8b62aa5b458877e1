import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { CHAT, rig, streaming } from './rig.fixture.ts';
import { target } from './scripted-router.fixture.ts';
import { CERT, KEY } from './tls.fixture.ts';
import { DONE, event } from './upstream.fixture.ts';

/** A TLS server that begins each handshake, and each answer, when it is told to. */
async function slowServer() {
  const waiting: Socket[] = [];
  const answers: (() => void)[] = [];
  const https = createHttpsServer({ cert: CERT, key: KEY }, (_request, response) => {
    answers.push(() => response.setHeader('content-type', 'text/event-stream').end(event('a') + DONE));
  });
  const server = createServer((socket) => waiting.push(socket.pause()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    https.closeAllConnections();
    for (const socket of waiting) socket.destroy();
    server.close();
  });
  return {
    origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waiting,
    answers,
    shakeHands: (): void => waiting.forEach((socket) => https.emit('connection', socket)),
  };
}

it.each([
  ['ends later by as much as the connection took', 4_900, true],
  ['ends then', 5_100, false],
])(
  'the first-token limit begins when the request is sent, not with its connection: it %s',
  async (_name, ms, whole) => {
    const server = await slowServer();
    const { router, time, client } = await rig(() => ({
      attempts: [{ target: target(server.origin, { ca: CERT }), connectMs: 2_000, firstTokenMs: 5_000 }],
    }));
    const answer = client().post(CHAT, streaming()).answer();
    while (server.waiting.length === 0) await time.advance(0);
    await time.advance(1_900);
    server.shakeHands();
    while (server.answers.length === 0) await time.advance(0);
    await time.advance(ms);
    if (whole) server.answers[0]?.();
    expect((await answer).status === 200).toBe(whole);
    expect(router.last.failures).toMatchObject(whole ? [] : [{ cause: 'first_token' }]);
  },
);
