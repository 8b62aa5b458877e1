import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FaultBed } from '../support/fault-bed.fixture.ts';
import { faultBed, oneTier, tierEach } from '../support/fault-bed.fixture.ts';
import type { Act, FaultUpstream } from '../support/fault-upstream.fixture.ts';
import {
  ANSWER,
  CHAT,
  chat,
  chunk,
  DONE,
  event,
  FINISH,
  json,
  LAST_CHUNK,
  opened,
  plain,
  STREAM_HEAD,
  streamed,
  streaming,
} from '../support/wire.fixture.ts';

const USAGE = 'data: {"model":"m","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":4}}\n\n';
const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
const aliased = (origins: readonly string[]): string => `define gateway { models: ["auto"] }\n${oneTier()(origins)}`;

/** Bytes of a stream in the given pieces, one HTTP chunk and one write each. */
const inPieces = (bytes: Buffer, cuts: readonly number[]): readonly Act[] => {
  const borders = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  const pieces = borders.slice(1).map((end, i) => bytes.subarray(borders[i], end));
  return [
    { send: STREAM_HEAD },
    ...pieces.filter(({ length }) => length > 0).map((piece) => ({ send: chunk(piece) })),
    { send: LAST_CHUNK },
  ];
};

test('bug-01: a character cut at any byte reaches the client untouched, also where the model is renamed', async () => {
  const bed = await faultBed({ policy: aliased });
  const bytes = Buffer.from(event('é漢🎉\u2028') + FINISH + DONE);
  const from = bytes.indexOf('é');
  for (const model of ['m', 'auto']) {
    const expected = latin1(bytes.toString().replaceAll('"model":"m"', `"model":"${model}"`));
    for (let cut = from; cut < from + 13; cut++) {
      bed.upstream.onRequest = () => inPieces(bytes, [cut]);
      const answer = await bed.client().post(CHAT, streaming({ model })).answer();
      expect(answer).toMatchObject({ status: 200, body: expected, complete: true });
    }
  }
});

test('bug-02: one event in many chunks and many in one give the same bytes and the same usage', async () => {
  const bed = await faultBed();
  const bytes = Buffer.from(event('a') + event('b') + FINISH + USAGE + DONE);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 40 }), async (cuts) => {
      bed.upstream.onRequest = () => inPieces(bytes, cuts);
      const one = bed.client().post(CHAT, streaming());
      expect((await one.answer()).body).toBe(bytes.toString());
      one.destroy();
      expect(bed.decisions.at(-1)).toMatchObject({ inputTokens: 11, outputTokens: 4, attempts: [{ outcome: 'ok' }] });
    }),
    { numRuns: 60 },
  );
});

test.each([
  ['LF', '\n\n'],
  ['CRLF', '\r\n\r\n'],
  ['CR', '\r\r'],
  ['a mixture', '\r\n\n'],
])('bug-03: events whose lines end in %s are framed alike', async (_name, lineEnds) => {
  const bed = await faultBed();
  const bytes = Buffer.from((event('a') + FINISH + USAGE + DONE).replaceAll('\n\n', lineEnds));
  for (const piece of [bytes.length, 1]) {
    bed.upstream.onRequest = () => inPieces(bytes, piece === 1 ? [...bytes.keys()].slice(1) : []);
    const answer = await bed.client().post(CHAT, streaming()).answer();
    expect(answer).toMatchObject({ body: bytes.toString(), complete: true });
    expect(bed.decisions.at(-1)).toMatchObject({ inputTokens: 11, outputTokens: 4 });
  }
});

test('bug-03: data without a space, in several lines, behind comments and a byte order mark is read and relayed as it is', async () => {
  const bed = await faultBed();
  const bytes = Buffer.from(
    `\uFEFF: hello\n\ndata:{"model":"m","choices":[{"delta":\ndata: {"content":"a"}}]}\n\nid: 7\nretry: 3\ndata:\n\n${FINISH}${USAGE}data:[DONE]\n\n`,
  );
  bed.upstream.onRequest = () => streamed(bytes);
  const answer = await bed.client().post(CHAT, streaming()).answer();
  expect(answer).toMatchObject({ body: bytes.toString('latin1'), complete: true });
  expect(bed.decisions.at(-1)).toMatchObject({ inputTokens: 11, outputTokens: 4 });
});

test('bug-04: the first event leaves at once, unbuffered', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => opened(event('first'));
  const one = bed.client().post(CHAT, streaming());
  const text = await one.until((got) => got.includes('"first"'));
  expect(text.toLowerCase()).toContain('x-accel-buffering: no');
  expect(text.toLowerCase()).toContain('cache-control: no-cache');
  expect(text.toLowerCase()).not.toContain('content-length');
  bed.upstream.requests[0]?.socket.write(Buffer.concat([chunk(DONE), Buffer.from(LAST_CHUNK)]));
  expect((await one.answer()).complete).toBe(true);
});

test('bug-05: a plain answer after six silent minutes arrives', async () => {
  const bed = await faultBed();
  const one = bed.client().post(CHAT, chat());
  await bed.upstream.received(1);
  await bed.time.advance(360_000);
  bed.upstream.requests[0]?.socket.write(json(200, ANSWER));
  expect(await one.answer()).toMatchObject({ status: 200, body: JSON.stringify(ANSWER) });
});

test('bug-06: silence on a stream is filled with comments, silence in any other body is not', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = ({ path }) =>
    path.endsWith('speech')
      ? [{ send: 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 6\r\n\r\nabc' }]
      : opened(event('a'));
  const stream = bed.client().post(CHAT, streaming());
  const audio = bed.client().post('/v1/audio/speech', { model: 'm', input: 'x' });
  await stream.until((text) => text.includes('"a"'));
  await audio.until((text) => text.endsWith('abc'));
  await bed.time.advance(31_000);
  expect(
    (await stream.until((text) => text.split(': keep-alive\n\n').length === 3)).split(': keep-alive\n\n'),
  ).toHaveLength(3);
  for (const { path, socket } of bed.upstream.requests) {
    socket.write(path.endsWith('speech') ? 'def' : Buffer.concat([chunk(DONE), Buffer.from(LAST_CHUNK)]));
  }
  expect((await audio.answer()).body).toBe('abcdef');
  expect((await stream.answer()).body).toBe(`${event('a')}: keep-alive\n\n: keep-alive\n\n${DONE}`);
});

const comment = ': keep-alive\n\n';
/** Heads of streams are sent after 40 s of silence. */
const speaksEarly = { proxy: { earlyHeadMs: () => 40_000 } };

/** A client of a silent server, after 71 s: it has the head and three comments. */
async function silentFor71s(acts: readonly Act[], rule: string, upstreams = 1) {
  const bed = await faultBed({ ...speaksEarly, policy: oneTier('', rule), upstreams });
  for (const upstream of bed.upstreams) upstream.onRequest = () => acts;
  const asked = (): FaultUpstream => bed.upstreams.find(({ requests }) => requests.length > 0) ?? bed.upstream;
  const one = bed.client().post(CHAT, streaming());
  await bed.until(() => asked().requests.length > 0, 'the server is asked');
  await bed.time.advance(39_000);
  expect(one.text).toBe('');
  await bed.time.advance(32_000);
  await one.until((text) => text.split(comment).length === 4);
  const socket = asked().requests[0]?.socket;
  if (socket === undefined) throw new Error('no server was asked');
  return { bed, one, socket };
}

test.each([
  ['before the head of the server', [] as readonly Act[], STREAM_HEAD, event('a')],
  ['behind the head of the server', [{ send: STREAM_HEAD }], '', event('a')],
  ['inside the first event', opened(event('a').slice(0, 20)), '', event('a').slice(20)],
])('bug-06: where asked for, silence %s is filled with comments too', async (_name, acts, head, rest) => {
  const { bed, one, socket } = await silentFor71s(acts, 'default to tier "tier" with first_token 5m');
  socket.write(Buffer.concat([Buffer.from(head), chunk(rest + DONE), Buffer.from(LAST_CHUNK)]));
  const answer = await one.answer();
  expect(answer).toMatchObject({ status: 200, complete: true, body: comment.repeat(3) + event('a') + DONE });
  expect(answer.headers['content-type']).toMatch(/^text\/event-stream/);
  expect(bed.decisions.at(-1)).toMatchObject({ status: 200, code: '', attempts: [{ outcome: 'ok' }] });
});

test.each([
  ['a reset', 'reset', 'upstream_error'],
  ['an end', 'close', 'upstream_error'],
  ['503', { send: json(503, {}) }, 'upstream_error'],
  ['400', { send: json(400, { error: { message: 'secret' } }) }, 'upstream_error'],
  ['a plain answer', { send: json(200, ANSWER) }, 'upstream_error'],
  [
    'an error event',
    { send: Buffer.concat([Buffer.from(STREAM_HEAD), chunk('data: {"error":{"message":"secret"}}\n\n')]) },
    'upstream_error',
  ],
  ['no word until first_token', 'hang', 'upstream_timeout'],
] as const)(
  'bug-06: behind an early head %s is an error event, and no other server is asked',
  async (_name, act, code) => {
    const { bed, one, socket } = await silentFor71s(
      [],
      'default to tier "tier" with retry 2 (on: [connect, error]), first_token 2m',
      2,
    );
    if (act === 'reset') socket.resetAndDestroy();
    else if (act === 'close') socket.destroy();
    else if (act !== 'hang') socket.write(act.send);
    const end = await bed.run(one.closed());
    expect(end).toMatchObject({ status: 200, complete: false });
    const [error = '', ...behind] = (end?.body ?? '').split(comment).toReversed();
    expect(behind.every((text) => text === '')).toBe(true);
    expect(error).toMatch(
      new RegExp(
        `^data: \\{"error":\\{"message":"[^"]+","type":"server_error","param":null,"code":"${code}"\\}\\}\\n\\n$`,
      ),
    );
    expect(end?.body).not.toContain('secret');
    expect(bed.upstreams.flatMap(({ requests }) => requests)).toHaveLength(1);
    expect(bed.decisions.at(-1)?.attempts).toHaveLength(1);
  },
);

test('bug-06: an early head is for streams of events alone, and its client may leave', async () => {
  const bed = await faultBed({ ...speaksEarly, policy: oneTier('', 'default to tier "tier" with first_token 5m') });
  const quiet = [
    bed.client().post(CHAT, chat()),
    bed.client().post('/v1/audio/speech', { model: 'm', input: 'x', stream: true }),
    bed.client().post('/v1/embeddings', { model: 'm', input: 'x' }),
  ];
  const stream = bed
    .client()
    .post('/v1/messages', { model: 'm', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'x' }] });
  await bed.upstream.received(4);
  await bed.time.advance(90_000);
  await stream.until((text) => text.includes(comment));
  expect(quiet.map(({ text }) => text)).toEqual(['', '', '']);
  for (const one of [...quiet, stream]) one.destroy();
  await bed.until(() => bed.upstream.sockets.size === 0, 'the server is freed');
  expect(bed.decisions.map(({ status }) => status)).toEqual([499, 499, 499, 499]);
});

test.each(['reset', 'close'] as const)(
  'bug-07: a server that dies mid-answer by %s gives an error event, no [DONE], no last chunk, and is logged as failed',
  async (death) => {
    const bed = await faultBed();
    bed.upstream.onRequest = () => opened(event('a') + event('b').slice(0, 30));
    const one = bed.client().post(CHAT, streaming());
    await one.until((text) => text.includes('"a"'));
    const socket = bed.upstream.requests[0]?.socket;
    if (death === 'reset') socket?.resetAndDestroy();
    else socket?.end();
    const answer = await one.closed();
    expect(answer).toMatchObject({ status: 200, complete: false });
    expect(answer?.body.startsWith(event('a'))).toBe(true);
    expect(answer?.body.slice(event('a').length)).toMatch(
      /^data: \{"error":\{"message":"[^"]+","type":"server_error","param":null,"code":"upstream_disconnected"\}\}\n\n$/,
    );
    expect(bed.decisions.at(-1)).toMatchObject({
      code: 'upstream_disconnected',
      attempts: [{ outcome: 'upstream_disconnected' }],
    });
  },
);

describe('bug-08: each API fails in its own way, with an end mark on success only', () => {
  const cases: readonly (readonly [path: string, first: string, final: string, failure: RegExp])[] = [
    [CHAT, event('a'), FINISH + DONE, /^data: \{"error":\{.*"code":"upstream_disconnected"\}\}\n\n$/],
    [
      '/v1/completions',
      'data: {"choices":[{"text":"a"}]}\n\n',
      DONE,
      /^data: \{"error":\{.*"code":"upstream_disconnected"\}\}\n\n$/,
    ],
    [
      '/v1/messages',
      'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      /^event: error\ndata: \{"type":"error","error":\{.*\}\}\n\n$/,
    ],
    [
      '/v1/responses',
      'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"a"}\n\n',
      'event: response.completed\ndata: {"type":"response.completed","response":{}}\n\n',
      /^event: response\.failed\ndata: \{.*"type":"response\.failed".*\}\n\n$/,
    ],
  ];
  test.each(cases)('bug-08: %s', async (path, first, final, failure) => {
    const bed = await faultBed();
    const body = path.endsWith('completions')
      ? streaming({ prompt: 'x' })
      : { model: 'm', stream: true, messages: [], input: 'x' };
    bed.upstream.onRequest = (_request, index) => (index === 0 ? streamed(first + final) : [...opened(first), 'close']);
    expect(await bed.client().post(path, body).answer()).toMatchObject({ body: first + final, complete: true });
    const failed = await bed.client().post(path, body).closed();
    expect(failed?.complete).toBe(false);
    expect(failed?.body.slice(0, first.length)).toBe(first);
    expect(failed?.body.slice(first.length)).toMatch(failure);
    expect(failed?.body).not.toContain('[DONE]');
  });
});

test('bug-08: an engine error event followed by [DONE] is relayed without the end mark', async () => {
  const bed = await faultBed();
  const failure = 'data: {"error":{"message":"out of memory","code":"engine_dead"}}\n\n';
  bed.upstream.onRequest = () => streamed(event('a') + failure + DONE);
  const answer = await bed.client().post(CHAT, streaming()).closed();
  expect(answer).toMatchObject({ complete: false, body: event('a') + failure });
});

describe('bug-09: a fallback', () => {
  const rule = 'default to tier "t1" with fallback tier "t2"';
  const answers = async (bed: FaultBed, first: readonly Act[]): Promise<string> => {
    bed.upstream.onRequest = () => first;
    const second = bed.upstreams[1];
    if (second !== undefined) second.onRequest = () => streamed(event('second') + DONE);
    const one = bed.client().post(CHAT, streaming());
    return (await Promise.race([one.answer().catch(() => one.closed()), one.closed()]))?.body ?? '';
  };

  test('bug-09: is free before the commit point', async () => {
    for (const first of [plain({}, 500), [...opened(': hello\n\n'), 'close' as const], ['reset' as const]]) {
      const bed = await faultBed({ upstreams: 2, policy: tierEach(rule) });
      expect(await answers(bed, first)).toBe(event('second') + DONE);
      expect(bed.decisions.at(-1)?.reasons).toContain('fallback');
    }
  });

  test('bug-09: never comes after output', async () => {
    const bed = await faultBed({ upstreams: 2, policy: tierEach(rule) });
    const body = await answers(bed, [...opened(event('a')), 'close']);
    expect(body.startsWith(`${event('a')}data: {"error"`)).toBe(true);
    expect(bed.upstreams[1]?.requests).toHaveLength(0);
  });

  test('bug-09: never comes unasked', async () => {
    const bed = await faultBed({ upstreams: 2, policy: tierEach('default to tier "t1"') });
    bed.upstream.onRequest = () => plain({}, 500);
    expect((await bed.client().post(CHAT, chat()).answer()).status).toBe(502);
    expect(bed.upstreams[1]?.requests).toHaveLength(0);
  });
});

test('bug-10: 200 whose first event is an error is a failed attempt: retried, else its own status', async () => {
  const failure = 'data: {"error":{"message":"secret words","code":429}}\n\n';
  const bed = await faultBed({
    upstreams: 2,
    policy: tierEach('default to tier "t1" with fallback tier "t2" (on: [rate_limited])'),
  });
  bed.upstream.onRequest = () => streamed(failure + DONE);
  const second = bed.upstreams[1];
  if (second === undefined) throw new Error('two servers');
  second.onRequest = (_request, index) => (index === 0 ? streamed(event('b') + DONE) : streamed(failure + DONE));
  expect((await bed.run(bed.client().post(CHAT, streaming()).answer())).body).toBe(event('b') + DONE);
  const answer = await bed.run(bed.client().post(CHAT, streaming()).answer());
  expect(answer).toMatchObject({ status: 429, complete: true });
  expect(answer.body).not.toContain('secret');
});

test('bug-11: comments are skipped by what reads along, and do not hide a hung stream', async () => {
  const bed = await faultBed({ policy: oneTier('', 'default to tier "tier" with idle 60s') });
  bed.upstream.onRequest = () => opened(`: ping\n\n${event('a')}`);
  const one = bed.client().post(CHAT, streaming());
  await one.until((text) => text.includes('"a"'));
  const socket = bed.upstream.requests[0]?.socket;
  for (let i = 0; i < 6; i++) {
    socket?.write(chunk(': ping\n\n'));
    await one.until((text) => text.split(': ping').length > i + 2);
    await bed.time.advance(10_100);
  }
  const answer = await one.closed();
  expect(answer?.complete).toBe(false);
  expect(answer?.body).toContain('"code":"upstream_timeout"');
  expect(bed.decisions.at(-1)?.attempts).toMatchObject([{ outcome: 'upstream_timeout' }]);
});

test('bug-11: a flood of comments before the first event ends in a refusal, not in memory', async () => {
  const bed = await faultBed({
    proxy: { limits: { heldStreamBytes: 64 * 1024 } },
    policy: oneTier('', 'default to tier "tier" with retry 0'),
  });
  bed.upstream.onRequest = () => [
    { send: STREAM_HEAD },
    ...Array.from({ length: 200 }, () => ({ send: chunk(`: ${'x'.repeat(1020)}\n\n`) })),
  ];
  expect((await bed.client().post(CHAT, streaming()).answer()).status).toBe(502);
});

test('bug-12: the content type of the answer decides, not the word `stream` of the request', async () => {
  const bed = await faultBed();
  const refusal = '{"error":{"message":"no such tool","type":"invalid_request_error","param":null,"code":null}}';
  bed.upstream.onRequest = (_request, index) =>
    [
      plain(refusal, 400),
      plain(ANSWER),
      streamed(event('a') + DONE),
      [{ send: 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 7\r\n\r\ndata: x' }] as const,
    ][index] ?? [];
  const one = bed.client();
  expect(await one.post(CHAT, streaming()).answer()).toMatchObject({ status: 400, body: refusal });
  expect(await one.post(CHAT, streaming()).answer()).toMatchObject({
    body: JSON.stringify(ANSWER),
    headers: { 'content-type': 'application/json' },
  });
  expect(await one.post(CHAT, chat()).answer()).toMatchObject({ body: event('a') + DONE });
  expect(await one.post('/v1/audio/speech', { model: 'm', stream: true, input: 'x' }).answer()).toMatchObject({
    body: 'data: x',
    headers: { 'content-type': 'audio/mpeg', 'content-length': '7' },
  });
});

test('bug-76: what comes behind the first end mark counts for nothing: events, errors, a second last chunk', async () => {
  const bed = await faultBed();
  const behind =
    'data: {"error":{"message":"too late"}}\n\ndata: {"choices":[],"usage":{"prompt_tokens":99}}\n\ndata: [DONE]\n\n';
  bed.upstream.onRequest = (_request, index) =>
    index === 0
      ? [{ send: STREAM_HEAD }, { send: chunk(event('a') + USAGE + DONE + behind) }, { send: LAST_CHUNK + LAST_CHUNK }]
      : plain(ANSWER);
  const one = bed.client();
  expect(await one.post(CHAT, streaming()).answer()).toMatchObject({
    body: event('a') + USAGE + DONE + behind,
    complete: true,
  });
  expect(bed.decisions.at(-1)).toMatchObject({ inputTokens: 11, code: '', attempts: [{ outcome: 'ok' }] });
  expect((await bed.run(one.post(CHAT, chat()).answer())).body).toBe(JSON.stringify(ANSWER));
});

test('bug-76: many answers of one megabyte whose readers wait come whole and in order', async () => {
  const bed = await faultBed();
  const text = Array.from({ length: 16 }, (_, i) => event(`${i}:${'x'.repeat(65_000)}`)).join('') + DONE;
  bed.upstream.onRequest = () => streamed(text);
  const clients = Array.from({ length: process.env['SIGNALBOX_FAULTS'] === 'full' ? 100 : 30 }, () => bed.client());
  for (const one of clients) one.socket.pause();
  for (const one of clients) one.post(CHAT, streaming());
  await bed.until(() => bed.core.status().leasesStarted === clients.length, 'all streams');
  for (const one of clients) {
    one.socket.resume();
    expect((await one.answer()).body).toBe(text);
    one.destroy();
  }
});
