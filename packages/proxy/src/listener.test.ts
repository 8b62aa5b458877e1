import { once } from 'node:events';
import { Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { RawClient } from './client.fixture.ts';
import { CHAT, rig, streaming } from './rig.fixture.ts';
import { chunk, event, STREAM_HEAD } from './upstream.fixture.ts';

it('the listener: no delay, and slow clients are looked for each 5 s, by limits of 15 s, 30 s and 75 s', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen');
  onTestFinished(() => listen.mockRestore());
  await rig();
  const server = listen.mock.contexts.find((one) => one instanceof Server);
  expect(server).toMatchObject({
    noDelay: true,
    connectionsCheckingInterval: 5_000,
    headersTimeout: 15_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 75_000,
  });
});

it('a reader that takes nothing costs 256 KiB of what was relayed to it at most, however much the server sends', async () => {
  let most = 0;
  const heads = vi.spyOn(ServerResponse.prototype, 'writeHead');
  // What is written to a response, at once or later, passes here.
  for (const method of ['write', 'uncork'] as const) {
    const original = Socket.prototype[method] as (...rest: unknown[]) => unknown;
    const spy = vi.spyOn(Socket.prototype, method).mockImplementation(function (this: Socket, ...rest: unknown[]) {
      const result = Reflect.apply(original, this, rest);
      if (heads.mock.contexts.some((one) => one instanceof ServerResponse && one.socket === this))
        most = Math.max(most, this.writableLength);
      return result as never;
    });
    onTestFinished(() => spy.mockRestore());
  }
  onTestFinished(() => heads.mockRestore());
  const { upstream, time, client } = await rig();
  const burst = chunk(event('x'.repeat(1000)))
    .toString()
    .repeat(64);
  upstream.onRequest = ({ socket }) => void socket.write(STREAM_HEAD);
  const one = client();
  one.socket.pause();
  one.post(CHAT, streaming());
  await upstream.received(1);
  const socket = upstream.requests[0]?.socket;
  let sent = 0;
  let full = 0;
  // Until nothing has moved for a while: the buffers of both connections in the kernel are full.
  while (full < 200 && sent < 64e6) {
    if (socket?.writableLength === 0) {
      socket.write(burst);
      sent += burst.length;
      full = 0;
    } else full++;
    await time.advance(0);
  }
  expect(sent).toBeLessThan(64e6);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(256 * 1024);
});

it('a connection beyond the most is closed at once and counted; when one has left, the next is served', async () => {
  const { client, proxy } = await rig(undefined, { limits: { connections: 2 } });
  const status = async (one: RawClient): Promise<number> =>
    (await one.send('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n').answer()).status;
  const [first, second] = [client(), client()];
  expect([await status(first), await status(second)]).toEqual([200, 200]);
  const third = client();
  await third.closed();
  expect(proxy.stats.connectionsDropped).toBe(1);
  first.destroy();
  await first.closed();
  await vi.waitFor(async () => expect(await status(client())).toBe(200));
  expect(await status(second)).toBe(200);
});

it('a stop does not reset a connection that is new: a request may be on its way; one that stays silent is closed at the next look', async () => {
  const { client, proxy, time } = await rig();
  const [late, silent] = [client(), client()];
  await Promise.all([late, silent].map(async ({ socket }) => once(socket, 'connect')));
  // Both are accepted when a later one has been answered.
  expect((await client().send('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n').answer()).status).toBe(200);
  const closed = proxy.close({ graceMs: 10_000 });
  const answer = await late.send('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n').answer();
  expect([answer.status, answer.headers['connection']]).toEqual([200, 'close']);
  expect(silent.socket.closed).toBe(false);
  await time.advance(1000);
  await silent.closed();
  await closed;
});
