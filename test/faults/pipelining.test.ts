import { expect, test } from 'vitest';
import { faultBed } from './support/fault-bed.fixture.ts';
import {
  ANSWER,
  CHAT,
  chat,
  chunk,
  DONE,
  event,
  json,
  LAST_CHUNK,
  opened,
  plain,
  streaming,
} from './support/wire.fixture.ts';

test.each(['fin', 'reset'] as const)(
  'requests behind each other on one connection are all freed when it ends by %s',
  async (leave) => {
    const bed = await faultBed();
    const one = bed.client();
    for (let i = 0; i < 5; i++) one.post(CHAT, i % 2 === 0 ? chat() : streaming());
    await bed.upstream.received(5);
    if (leave === 'fin') one.socket.end();
    else one.socket.resetAndDestroy();
    await bed.until(() => bed.core.status().leasesOpen === 0, 'all leases are back');
    await bed.until(() => bed.upstream.sockets.size === 0, 'every server connection is freed');
    expect(bed.decisions.map(({ status }) => status)).toEqual([499, 499, 499, 499, 499]);
  },
);

test('an answer whose turn has not come is freed too, and those in front of it are whole', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = ({ body }) => (body.includes('"stream":true') ? opened(event('a')) : plain(ANSWER));
  const one = bed.client();
  one.post(CHAT, chat()).post(CHAT, streaming()).post(CHAT, chat()).post(CHAT, streaming());
  await bed.upstream.received(4);
  const text = await one.until((got) => got.includes('"a"'));
  expect(text.indexOf('"yo"')).toBeGreaterThan(0);
  expect(text.indexOf('"yo"')).toBeLessThan(text.indexOf('"a"'));
  one.socket.resetAndDestroy();
  await bed.until(() => bed.core.status().leasesOpen === 0, 'all leases are back');
  await bed.until(() => bed.proxy.stats.live === 0, 'all requests have ended');
});

test('a stream that breaks ends the connection, and what waits behind it is freed', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = (_request, index) => (index === 0 ? [...opened(event('a')), 'close'] : []);
  const one = bed.client();
  one.post(CHAT, streaming()).post(CHAT, chat()).post(CHAT, chat());
  await bed.upstream.received(3);
  const text = await one.closed();
  expect(text?.complete).toBe(false);
  await bed.until(() => bed.core.status().leasesOpen === 0, 'all leases are back');
});

test('answers keep their order, whichever is ready first', async () => {
  const bed = await faultBed();
  const one = bed.client();
  one.post(CHAT, streaming()).post(CHAT, chat());
  await bed.upstream.received(2);
  const stream = bed.upstream.requests.find(({ body }) => body.includes('"stream":true'))?.socket;
  const other = bed.upstream.requests.find(({ body }) => !body.includes('"stream":true'))?.socket;
  other?.write(json(200, ANSWER));
  await bed.until(() => bed.core.status().leasesOpen === 1, 'the second is ready');
  stream?.write(
    Buffer.concat([
      Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'),
      chunk(event('a') + DONE),
      Buffer.from(LAST_CHUNK),
    ]),
  );
  const text = await one.until((got) => got.includes('"yo"'));
  expect(text.indexOf('[DONE]')).toBeLessThan(text.indexOf('"yo"'));
});
