import { describe, expect, onTestFinished, test } from 'vitest';
import type { RawClient } from '../../packages/proxy/src/client.fixture.ts';
import { faultBed, oneTier, type FaultBed } from './support/fault-bed.fixture.ts';
import { FaultProxy } from './support/fault-proxy.fixture.ts';
import type { Act } from './support/fault-upstream.fixture.ts';
import {
  ANSWER,
  CHAT,
  chat,
  chunk,
  DONE,
  errorCode,
  event,
  json,
  LAST_CHUNK,
  opened,
  plain,
  STREAM_HEAD,
  streamed,
  streaming,
} from './support/wire.fixture.ts';

const patient = 'default to tier "tier" with retry 0, first_token 10s, idle 20s, attempt_timeout 30s';
const whole = event('a') + DONE;

/** Milliseconds of the bed's clock until the promise is settled. */
async function elapsed(bed: FaultBed, promise: Promise<unknown>): Promise<number> {
  const startMs = bed.time.now();
  await bed.run(promise);
  return bed.time.now() - startMs;
}

function within(ms: number, limitMs: number): void {
  expect(ms).toBeGreaterThanOrEqual(limitMs);
  expect(ms).toBeLessThan(limitMs * 1.1);
}

describe('F2: a server that hangs is given up after the limit that is for it, with the right reason', () => {
  test('at accept: a stream by first_token, a plain answer by attempt_timeout', async () => {
    const bed = await faultBed({ policy: oneTier('', patient) });
    bed.upstream.onConnection = () => false;
    const stream = bed.client().post(CHAT, streaming());
    within(
      await elapsed(
        bed,
        stream.answer().then(({ status }) => expect(status).toBe(504)),
      ),
      10_000,
    );
    const one = bed.client().post(CHAT, chat());
    within(
      await elapsed(
        bed,
        one.answer().then(({ status }) => expect(status).toBe(504)),
      ),
      30_000,
    );
    expect(bed.decisions.map(({ attempts }) => attempts[0]?.outcome)).toEqual(['first_token', 'timeout']);
  });

  test.each([
    ['before the head', [] as readonly Act[]],
    ['inside the head', [{ send: STREAM_HEAD.slice(0, 30) }]],
    ['behind the head', [{ send: STREAM_HEAD }]],
    ['inside the first event', opened(event('a').slice(0, 20))],
  ])('%s', async (_name, acts) => {
    const bed = await faultBed({ policy: oneTier('', patient) });
    bed.upstream.onRequest = () => acts;
    const answer = bed.client().post(CHAT, streaming()).answer();
    within(await elapsed(bed, answer), 10_000);
    expect(errorCode((await answer).body)).toBe('upstream_timeout');
    await bed.until(() => bed.upstream.sockets.size === 0, 'the connection is closed');
  });

  test('mid-stream: by idle, with the error event', async () => {
    const bed = await faultBed({ policy: oneTier('', patient) });
    bed.upstream.onRequest = () => opened(event('a'));
    const one = bed.client().post(CHAT, streaming());
    await one.until((text) => text.includes('"a"'));
    const end = one.closed();
    within(await elapsed(bed, end), 20_000);
    expect((await end)?.body).toMatch(/"code":"upstream_timeout"\}\}\n\n$/);
    await bed.until(() => bed.upstream.sockets.size === 0, 'the connection is closed');
  });
});

describe('F5: framing that is wrong', () => {
  const text = JSON.stringify(ANSWER);
  const head = (length: number): string =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  const failing: readonly (readonly [name: string, acts: readonly Act[]])[] = [
    ['a content-length beyond the body', [{ send: head(text.length + 5) + text }, 'close']],
    ['a content-length that is no number', [{ send: head(Number.NaN) + text }, 'close']],
    [
      'two content-lengths',
      [{ send: `HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ` }, 'close'],
    ],
    [
      'length and chunks',
      [
        { send: `HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n` },
        'close',
      ],
    ],
    ['a chunk size that is no number', [{ send: `${STREAM_HEAD}zz\r\n${whole}` }, 'close']],
    ['a chunk longer than said', [{ send: `${STREAM_HEAD}2\r\n${whole}\r\n0\r\n\r\n` }, 'close']],
    ['a chunk that is cut', [{ send: `${STREAM_HEAD}ffff\r\n${event('a').slice(0, 9)}` }, 'close']],
    ['no HTTP', [{ send: Buffer.from('\u0000\u0001\u0002 220 smtp ready\r\n\r\n') }, 'close']],
    ['a head without end', [{ send: `HTTP/1.1 200 OK\r\n${'x-pad: y\r\n'.repeat(20_000)}` }]],
    ['a status that is none', [{ send: 'HTTP/1.1 99999 OK\r\n\r\n' }, 'close']],
    ['HTTP/2', [{ send: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }, 'close']],
  ];

  test.each(failing)('%s: another server is asked, and the client has its answer alone', async (_name, acts) => {
    const bed = await faultBed({ upstreams: 2 });
    let asked = 0;
    for (const upstream of bed.upstreams) upstream.onRequest = () => (asked++ === 0 ? acts : plain(ANSWER));
    expect(await bed.run(bed.client().post(CHAT, chat()).answer())).toMatchObject({ status: 200, body: text });
    expect(bed.decisions.at(-1)?.attempts).toHaveLength(2);
  });

  test.each(failing)('%s: with no other server, a refusal that can be read', async (_name, acts) => {
    const bed = await faultBed({ policy: oneTier('', 'default to tier "tier" with retry 0') });
    bed.upstream.onRequest = () => acts;
    const answer = await bed.run(bed.client().post(CHAT, chat()).answer());
    expect(answer).toMatchObject({ status: 502, complete: true });
    expect(errorCode(answer.body)).toBe('upstream_error');
  });

  test('a content-length short of the body: the body is cut there, and the surplus goes to nobody', async () => {
    const bed = await faultBed();
    bed.upstream.onRequest = () => [{ send: `${head(2)}{}{"answer":"stray"}` }];
    const one = bed.client();
    for (let i = 0; i < 5; i++) expect((await bed.run(one.post(CHAT, chat()).answer())).body).toBe('{}');
  });

  test('one byte at a time, heads and chunk sizes included: plain and stream are the same', async () => {
    const bed = await faultBed();
    bed.upstream.onRequest = (_request, index) =>
      [...(index === 0 ? plain(ANSWER) : streamed(event('é漢🎉') + DONE))].map((act) =>
        typeof act === 'string' ? act : { ...act, piece: 1 },
      );
    expect((await bed.client().post(CHAT, chat()).answer()).body).toBe(text);
    const body = Buffer.from(event('é漢🎉') + DONE).toString('latin1');
    expect(await bed.client().post(CHAT, streaming()).answer()).toMatchObject({ body, complete: true });
  });

  test('a line of one megabyte in a stream passes; one beyond the limit ends the stream with an error', async () => {
    const bed = await faultBed({ proxy: { limits: { eventBytes: 2_000_000 } } });
    const long = event('x'.repeat(1_000_000));
    bed.upstream.onRequest = (_request, index) =>
      index === 0 ? streamed(long + DONE) : opened(event('a') + event('x'.repeat(3_000_000)));
    expect((await bed.client().post(CHAT, streaming()).answer()).body).toBe(long + DONE);
    const end = await bed.client().post(CHAT, streaming()).closed();
    expect(end?.body).toMatch(/"code":"upstream_error"\}\}\n\n$/);
    expect(end?.body.length).toBeLessThan(3_000_000);
  });
});

describe('a request from the client', () => {
  test('one byte at a time is read', async () => {
    const bed = await faultBed();
    bed.upstream.onRequest = () => plain(ANSWER);
    const body = JSON.stringify(chat());
    const one = bed.client();
    for (const byte of `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`) {
      one.send(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await one.answer()).status).toBe(200);
  });

  test('that is cut at any byte sends nothing on and leaves nothing', async () => {
    const bed = await faultBed();
    const body = JSON.stringify(chat());
    const bytes = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    for (let cut = 0; cut < bytes.length; cut += 3) {
      const one = bed.client().send(bytes.slice(0, cut));
      if (cut % 2 === 0) one.socket.end();
      else one.socket.resetAndDestroy();
      await one.closed();
    }
    expect(bed.upstream.requests).toHaveLength(0);
    expect(bed.decisions).toHaveLength(0);
  });
});

describe('a link that is slow or lossy', () => {
  async function behindProxy(bed: FaultBed): Promise<FaultProxy> {
    const proxy = new FaultProxy(Number(new URL(bed.upstream.origin).port), bed.time);
    onTestFinished(() => proxy.close());
    bed.reload(oneTier('', patient)([await proxy.listen()]));
    return proxy;
  }

  test('delay changes no byte', async () => {
    const bed = await faultBed();
    const proxy = await behindProxy(bed);
    proxy.wayBack = () => ({ delayMs: 400 });
    bed.upstream.onRequest = () => [
      { send: STREAM_HEAD },
      { send: chunk(event('a')) },
      { send: chunk(event('b') + DONE) },
      { send: LAST_CHUNK },
    ];
    const answer = bed.client().post(CHAT, streaming()).answer();
    expect(await elapsed(bed, answer)).toBeGreaterThanOrEqual(400);
    expect(await answer).toMatchObject({ body: event('a') + event('b') + DONE, complete: true });
    proxy.close();
  });

  test.each(['stall', 'reset'] as const)(
    'loss as %s after any number of bytes is a refusal or an error event, never a cut',
    async (lossIs) => {
      const bed = await faultBed();
      const proxy = await behindProxy(bed);
      const wire = Buffer.concat([Buffer.from(STREAM_HEAD), chunk(whole), Buffer.from(LAST_CHUNK)]);
      bed.upstream.onRequest = () => [{ send: wire }];
      let loseAfter = 0;
      proxy.wayBack = () => ({ loseAfter, lossIs });
      for (loseAfter = 1; loseAfter < wire.length; loseAfter += 9) {
        const one = bed.client().post(CHAT, streaming());
        const answer = await bed.run(Promise.race([one.answer().catch(() => one.closed()), one.closed()]));
        // All of the events may have come before the loss.
        if (answer?.status === 200)
          expect(answer.complete ? answer.body.replaceAll(': keep-alive\n\n', '') : answer.body.slice(-4)).toBe(
            answer.complete ? whole : '}}\n\n',
          );
        else expect(answer?.status).toBe(lossIs === 'stall' ? 504 : 502);
        one.destroy();
      }
      proxy.close();
    },
  );
});

test('F6: half of the tier flapping never takes more than half of it out, and hardly a client sees an error', async () => {
  const bed = await faultBed({
    upstreams: 6,
    policy: oneTier('', 'default to tier "tier" with retry 3 (on: [connect, error])'),
  });
  let up = true;
  for (const [i, upstream] of bed.upstreams.entries())
    upstream.onRequest = () => (i < 3 || up ? plain(ANSWER) : ['reset']);
  const one = bed.client();
  let failed = 0;
  for (let i = 0; i < 600; i++) {
    if (i % 20 === 0) up = !up;
    if ((await bed.run(one.post(CHAT, chat()).answer())).status !== 200) failed++;
    await bed.time.advance(50);
    expect(bed.core.endpoints().filter(({ healthy }) => !healthy).length).toBeLessThanOrEqual(3);
  }
  const asked = bed.upstreams.slice(0, 3).map(({ requests }) => requests.length);
  expect(Math.max(...asked)).toBeLessThanOrEqual(2 * (600 / 3));
  // The retry budget, a tenth of the requests, is all that is spent on it.
  expect(failed).toBeLessThanOrEqual(6);
});

test('F14: streams reset at once, 2,000 in the full run, free every server connection and leave no rejection behind', async () => {
  const streams = process.env['SIGNALBOX_FAULTS'] === 'full' ? 2_000 : 300;
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', onRejection);
  onTestFinished(() => void process.off('unhandledRejection', onRejection));
  const bed = await faultBed();
  bed.upstream.onRequest = () => opened(event('a'));
  const clients: RawClient[] = [];
  while (clients.length < streams) {
    const more = Array.from({ length: Math.min(100, streams - clients.length) }, () => bed.client());
    await Promise.all(more.map((one) => one.post(CHAT, streaming()).until((text) => text.includes('"a"'))));
    clients.push(...more);
  }
  expect(bed.core.status().leasesOpen).toBe(streams);
  for (const one of clients) one.socket.resetAndDestroy();
  await bed.until(() => bed.upstream.sockets.size === 0 && bed.core.status().leasesOpen === 0, 'all are freed');
  expect(bed.decisions.map(({ status }) => status)).toEqual(clients.map(() => 499));
  expect(rejections).toEqual([]);
});

test('F18: a server that closes idle connections just as they are used again is no error to any client', async () => {
  const bed = await faultBed({ policy: oneTier('', 'default to tier "tier" with retry 0') });
  const rounds = process.env['SIGNALBOX_FAULTS'] === 'full' ? 5_000 : 500;
  const met = new WeakSet<object>();
  // Each connection serves one request; the next one on it meets its end.
  bed.upstream.onRequest = ({ socket }) => {
    if (met.has(socket)) return ['reset'];
    met.add(socket);
    return plain(ANSWER);
  };
  const clients = [bed.client(), bed.client()];
  for (let i = 0; i < rounds; i++) {
    for (const { status } of await bed.run(Promise.all(clients.map((one) => one.post(CHAT, chat()).answer()))))
      expect(status).toBe(200);
    bed.upstream.requests.length = 0;
  }
});

test('a server that answers before it has read the request, and closes: its answer is relayed, or another server is asked', async () => {
  const bed = await faultBed({ upstreams: 2 });
  const refusal = '{"error":{"message":"too long","type":"invalid_request_error","param":null,"code":null}}';
  for (const upstream of bed.upstreams) {
    upstream.onConnection = (socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.end(json(413, refusal, ['connection: close']), () => socket.destroy());
      });
      return true;
    };
  }
  const body = chat({ pad: 'x'.repeat(8_000_000) });
  for (let i = 0; i < 10; i++) {
    const one = bed.client().post(CHAT, body);
    const answer = await bed.run(one.answer());
    expect([413, 502]).toContain(answer.status);
    one.destroy();
  }
});
