import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { CHAT, rig, streaming } from './rig.fixture.ts';
import { chunk, DONE, event, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

it('an event behind the first is one write to the socket, framed; one too large to copy is given over as it is', async () => {
  const heads = vi.spyOn(ServerResponse.prototype, 'writeHead');
  const writes = vi.spyOn(Socket.prototype, 'write');
  onTestFinished(() => {
    heads.mockRestore();
    writes.mockRestore();
  });
  const { upstream, client } = await rig();
  upstream.onRequest = ({ socket }) => void socket.write(STREAM_HEAD);
  const one = client().post(CHAT, streaming());
  await upstream.received(1);
  const socket = upstream.requests[0]?.socket;
  const large = event('x'.repeat(20_000));
  const events = [event('a'), event('b'), event('ü'), large, event('c')];
  for (const text of events) {
    socket?.write(chunk(text));
    await one.until((all) => all.includes(Buffer.from(text).toString('latin1')));
  }
  const toClient = (): unknown[] =>
    writes.mock.calls
      .filter((_, call) =>
        heads.mock.contexts.some((context) => (context as ServerResponse).socket === writes.mock.contexts[call]),
      )
      .map(([bytes]) => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : bytes));
  const framed = (text: string): string => chunk(text).toString();
  expect(toClient()).toEqual(
    expect.arrayContaining([framed(event('b')), framed(event('ü')), framed(event('c')), large]),
  );
  expect(toClient()).not.toContain(framed(large));
  socket?.write(Buffer.concat([chunk(DONE), Buffer.from(LAST_CHUNK)]));
  expect(Buffer.from((await one.answer()).body, 'latin1').toString()).toBe(events.join('') + DONE);
});
