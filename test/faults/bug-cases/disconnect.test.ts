import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toAnswer } from '../../../packages/proxy/src/client.fixture.ts';
import { faultBed, oneTier } from '../support/fault-bed.fixture.ts';
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
} from '../support/wire.fixture.ts';

const gone = (socket: Socket | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (socket === undefined || socket.destroyed) resolve();
    else socket.on('close', () => resolve());
  });

describe('bug-13: a client that leaves frees the model server', () => {
  test.each([
    ['a plain answer is awaited', chat(), '', ''],
    ['half a plain answer has come', chat(), json(200, ANSWER).slice(0, -9), ''],
    ['the first event is awaited', streaming(), STREAM_HEAD, ''],
    ['the stream runs', streaming(), STREAM_HEAD + chunk(event('a')).toString(), '"a"'],
  ])('bug-13: while %s', async (_name, body, bytes, seen) => {
    for (const leave of ['fin', 'reset'] as const) {
      const bed = await faultBed();
      bed.upstream.onRequest = () => (bytes === '' ? [] : [{ send: bytes }]);
      const one = bed.client().post(CHAT, body);
      await bed.upstream.received(1);
      if (seen !== '') await one.until((text) => text.includes(seen));
      const freed = gone(bed.upstream.requests[0]?.socket);
      if (leave === 'fin') one.socket.end();
      else one.socket.resetAndDestroy();
      await freed;
      await bed.until(() => bed.decisions.length === 1, 'the record');
      expect(bed.decisions[0]).toMatchObject({ status: 499, attempts: [{ outcome: 'client_abort' }] });
      expect(bed.core.endpoints()[0]).toMatchObject({ healthy: true, ejections: 0 });
    }
  });
});

test('bug-14: a client that leaves in a long prefill gets nothing written and no second reply', async () => {
  const bed = await faultBed();
  const one = bed.client().post(CHAT, streaming());
  await bed.upstream.received(1);
  await bed.time.advance(25_000);
  const socket = bed.upstream.requests[0]?.socket;
  one.socket.resetAndDestroy();
  await gone(socket);
  await bed.until(() => bed.decisions.length === 1, 'the record');
  expect(one.text).toBe('');
  expect(bed.decisions).toHaveLength(1);
});

test('bug-15: chunks behind the end of an aborted exchange are dropped without a crash', async () => {
  const bed = await faultBed();
  for (let i = 0; i < 50; i++) {
    bed.upstream.onRequest = () => opened(event('a'));
    const one = bed.client().post(CHAT, streaming());
    await one.until((text) => text.includes('"a"'));
    const socket = bed.upstream.requests.at(-1)?.socket;
    one.socket.resetAndDestroy();
    // The abort and these bytes cross each other.
    for (let k = 0; k <= i % 5; k++) socket?.write(chunk(event('late')));
    socket?.write(Buffer.concat([chunk(DONE), Buffer.from(LAST_CHUNK)]));
    await gone(socket);
  }
  bed.upstream.onRequest = () => plain(ANSWER);
  expect((await bed.client().post(CHAT, chat()).answer()).status).toBe(200);
});

test('bug-16: the close of the answer before its end is the sign, also on a kept-alive connection behind other answers', async () => {
  const bed = await faultBed();
  const one = bed.client();
  bed.upstream.onRequest = () => plain(ANSWER);
  for (let i = 0; i < 3; i++) await one.post(CHAT, chat()).answer();
  bed.upstream.onRequest = () => [];
  one.post(CHAT, chat());
  await bed.upstream.received(4);
  const socket = bed.upstream.requests[3]?.socket;
  one.destroy();
  await gone(socket);
  await bed.until(() => bed.decisions.length === 4, 'the record');
  expect(bed.decisions.map(({ status }) => status)).toEqual([200, 200, 200, 499]);
});

test('bug-17: an abort in back-off leaves no further attempt and no timer', async () => {
  const bed = await faultBed({ upstreams: 2 });
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain({}, 503);
  const one = bed.client().post(CHAT, chat());
  const asked = (): number => bed.upstreams.reduce((sum, { requests }) => sum + requests.length, 0);
  await bed.until(() => bed.core.status().leasesStarted === 2, 'the back-off');
  one.destroy();
  await bed.until(() => bed.proxy.stats.live === 0, 'the end');
  await bed.time.advance(5_000);
  expect(asked()).toBe(1);
  expect(bed.decisions).toMatchObject([{ status: 499 }]);
});

describe('bug-18: a reset on a reused connection', () => {
  test.each(['reset', 'close'] as const)(
    'bug-18: by %s is repeated once for free and never reaches the client',
    async (death) => {
      const bed = await faultBed({ policy: oneTier('', 'default to tier "tier" with retry 0') });
      bed.upstream.onRequest = (_request, index) => (index === 1 ? [death] : plain(ANSWER));
      const one = bed.client();
      await one.post(CHAT, chat()).answer();
      expect((await one.post(CHAT, chat()).answer()).status).toBe(200);
      expect(bed.upstream.requests).toHaveLength(3);
      expect(bed.core.endpoints()[0]).toMatchObject({ healthy: true, ejections: 0 });
    },
  );

  test('bug-18: a server that closes each connection after one answer, without a word, is never an error', async () => {
    const bed = await faultBed();
    bed.upstream.onRequest = () => [...plain(ANSWER), 'close'];
    const clients = Array.from({ length: 8 }, () => bed.client());
    for (let round = 0; round < 50; round++) {
      const answers = await bed.run(Promise.all(clients.map((one) => one.post(CHAT, chat()).answer())));
      expect(answers.map(({ status }) => status)).toEqual(clients.map(() => 200));
    }
  });
});

test('bug-19: stray bytes on an idle connection are given to nobody, and the connection is dropped', async () => {
  const bed = await faultBed();
  const one = bed.client();
  for (const stray of [json(200, { answer: 'stray' }), 'garbage\r\n\r\n', '0\r\n\r\n', 'H']) {
    bed.upstream.onRequest = () => plain({ answer: 'right' });
    expect((await one.post(CHAT, chat()).answer()).body).toBe('{"answer":"right"}');
    const socket = bed.upstream.requests.at(-1)?.socket;
    socket?.write(stray);
    await gone(socket);
  }
  // And behind an answer, in the same packet.
  bed.upstream.onRequest = () => [{ send: json(200, { answer: 'right' }) + json(200, { answer: 'stray' }) }];
  for (let i = 0; i < 3; i++) expect((await bed.run(one.post(CHAT, chat()).answer())).body).toBe('{"answer":"right"}');
});

test('bug-20: listeners and heap stay flat over ten thousand requests', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = (_request, index) => (index % 4 === 0 ? streamed(event('a') + DONE) : plain(ANSWER));
  const warnings: string[] = [];
  const onWarning = (warning: Error): number => warnings.push(warning.message);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const clients = Array.from({ length: 8 }, () => bed.client());
  const count = process.env['SIGNALBOX_FAULTS'] === 'full' ? 10_000 : 2_000;
  for (let i = 0; i < count / clients.length; i++) {
    await Promise.all(clients.map((one) => one.post(CHAT, i % 4 === 0 ? streaming() : chat()).answer()));
    bed.upstream.requests.length = 0;
    for (const socket of bed.upstream.sockets) {
      for (const name of socket.eventNames()) expect(socket.listenerCount(name)).toBeLessThanOrEqual(4);
    }
  }
  expect(bed.upstream.connections).toBeLessThanOrEqual(clients.length * 2);
  expect(warnings).toEqual([]);
});

test('bug-21: a reader that never reads pauses the server, is dropped after 30 s, and the server is freed', async () => {
  const bed = await faultBed();
  const one = bed.client();
  one.socket.pause();
  one.post(CHAT, streaming());
  await bed.upstream.received(1);
  const socket = bed.upstream.requests[0]?.socket;
  socket?.write(STREAM_HEAD);
  const piece = chunk(event('x'.repeat(60_000)));
  const limit = 64 * 1024 * 1024;
  let sent = 0;
  while (sent < limit && (socket?.writableLength ?? 0) < 4_000_000) {
    socket?.write(piece);
    sent += piece.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  // Only the kernel's buffers and a bounded one of ours lie between.
  expect(sent).toBeLessThan(limit);
  await bed.time.advance(29_000);
  expect(bed.core.status().leasesOpen).toBe(1);
  const freed = gone(socket);
  await bed.time.advance(5_000);
  await freed;
  await bed.until(() => bed.decisions.length === 1, 'the record');
  expect(bed.decisions).toMatchObject([{ status: 499 }]);
});

test('bug-22: a body that is too large is a 413 that the client can read, by its length or as it comes', async () => {
  const bed = await faultBed({ proxy: { limits: { bodyBytes: 100_000 } } });
  const body = JSON.stringify(chat({ pad: 'x'.repeat(3_000_000) }));
  const declared = bed.client().post(CHAT, body);
  const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const pieces = bed.client().send(head);
  for (let at = 0; at < body.length; at += 50_000) pieces.socket.write(chunk(body.slice(at, at + 50_000)));
  pieces.send(LAST_CHUNK);
  for (const one of [declared, pieces]) {
    await one.until((text) => toAnswer(text)?.complete === true);
    const answer = toAnswer(one.text);
    expect(answer).toMatchObject({ status: 413 });
    expect(errorCode(answer?.body ?? '')).toBe('request_too_large');
    expect(one.reset).toBe(false);
  }
  expect(bed.upstream.requests).toHaveLength(0);
});

test('100-continue is answered here and not passed on; other interim answers of the server are skipped', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => [{ send: `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${json(200, ANSWER)}` }];
  const text = JSON.stringify(chat());
  const one = bed
    .client()
    .send(
      `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`,
    );
  await one.until((got) => got.startsWith('HTTP/1.1 100 Continue\r\n\r\n'));
  one.send(text);
  expect(await one.answer()).toMatchObject({ status: 200, body: JSON.stringify(ANSWER) });
  expect(bed.upstream.requests[0]?.headers['expect']).toBeUndefined();
});

test('a server that sends 100 Continue unasked has failed: another is tried', async () => {
  const bed = await faultBed({ upstreams: 2 });
  let asked = 0;
  for (const upstream of bed.upstreams) {
    upstream.onRequest = () => [
      { send: asked++ === 0 ? `HTTP/1.1 100 Continue\r\n\r\n${json(200, ANSWER)}` : json(200, ANSWER) },
    ];
  }
  expect(await bed.run(bed.client().post(CHAT, chat()).answer())).toMatchObject({
    status: 200,
    body: JSON.stringify(ANSWER),
  });
});
