import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BODY, CHAT, errorOf, expectQuiet, post, startEdgeBed, type EdgeBed } from './support/edge-bed.ts';
import { exchange } from './support/raw-exchange.ts';

/** Aim of the design: milliseconds for each megabyte of a hostile body; shared machines get ten times that. */
const AIM_MS_PER_MB = 50;
const CEILING = 10;

let bed: EdgeBed;
const pace: string[] = [];
beforeAll(async () => {
  bed = await startEdgeBed();
});
afterEach(() => expectQuiet(bed));
afterAll(async () => {
  console.log(
    `hostile bodies, aim ${AIM_MS_PER_MB} ms/MB, ceiling ${AIM_MS_PER_MB * CEILING} ms/MB:\n${pace.join('\n')}`,
  );
  await bed.stop();
});

async function judge(
  name: string,
  body: string,
  lines = '',
): Promise<{ readonly status: number; readonly body: string }> {
  const text = post(lines, body);
  const bytes = Buffer.from(text, 'latin1');
  const began = performance.now();
  const answer = await exchange(bed.port, bytes, { quietMs: 0, limitMs: 60_000 });
  const ms = performance.now() - began;
  const megabytes = Math.max(1, body.length / 1e6);
  pace.push(
    `  ${name.padEnd(44)} ${(ms / megabytes).toFixed(1).padStart(7)} ms/MB (${ms.toFixed(1)} ms, ${body.length} bytes)`,
  );
  expect(ms / megabytes).toBeLessThan(AIM_MS_PER_MB * CEILING);
  expect(answer.statuses).toHaveLength(1);
  return { status: answer.statuses[0] ?? 0, body: answer.bodies[0] ?? '' };
}

const messages = '"messages":[{"role":"user","content":"hi"}]';
const nested = (depth: number, open: string, close: string): string =>
  `{"model":"m",${messages},"x":${open.repeat(depth)}1${close.repeat(depth)}}`;
const utf8 = (text: string): string => Buffer.from(text).toString('latin1');

describe('B2: hostile JSON is refused fast and reaches no upstream', () => {
  it.each([
    ['arrays 65 deep', nested(64, '[', ']'), 400],
    ['arrays 50,000 deep', nested(50_000, '[', ']'), 400],
    ['objects 50,000 deep', nested(50_000, '{"a":', '}'), 400],
    ['arrays 50,000 deep, never closed', `{"model":"m",${messages},"x":${'['.repeat(50_000)}`, 400],
    ['10 MB of open brackets', '['.repeat(10_000_000), 400],
    ['10 MB of quotes', `{"model":"m","x":${'"'.repeat(10_000_000)}`, 400],
    ['10 MB of backslashes, unpaired', `{"model":"m","x":"${'\\'.repeat(9_999_999)}"}`, 400],
    ['10 MB of digits, then a letter', `{"model":"m","x":${'1'.repeat(10_000_000)}x}`, 400],
    ['10 MB of white space', ' '.repeat(10_000_000), 400],
    ['an empty body', '', 400],
    ['an array', '[]', 400],
    ['null', 'null', 400],
    ['a text behind the object', `${BODY}{}`, 400],
    ['a byte order mark', `\xef\xbb\xbf${BODY}`, 400],
    ['UTF-16', Buffer.from(BODY, 'utf16le').toString('latin1'), 400],
    ['a lone continuation byte', BODY.replace('hi', '\x80'), 400],
    ['an overlong slash', BODY.replace('hi', '\xc0\xaf'), 400],
    ['an encoded surrogate', BODY.replace('hi', '\xed\xa0\x80'), 400],
    ['a code point beyond Unicode', BODY.replace('hi', '\xf4\x90\x80\x80'), 400],
    ['a sequence cut by the end', BODY.slice(0, BODY.indexOf('hi')) + '\xe2\x82', 400],
    ['a control character in a string', BODY.replace('hi', '\x01'), 400],
    ['NUL behind the text', `${BODY}\0`, 400],
    ['a number with a leading zero', BODY.replace('}', '').replace('"hi"', '01'), 400],
    ['NaN', `{"model":"m",${messages},"temperature":NaN}`, 400],
    ['single quotes', BODY.replaceAll('"', "'"), 400],
    ['a trailing comma', `${BODY.slice(0, -1)},}`, 400],
    ['a comment', `/* */${BODY}`, 400],
    ['a model that is no string', `{"model":{"$ne":1},${messages}}`, 400],
    ['a model of 1 MB', `{"model":"${'m'.repeat(1_000_000)}",${messages}}`, 400],
    ['an empty model', `{"model":"",${messages}}`, 400],
    ['a model twice, the last unknown', `{"model":"m",${messages},"model":"other"}`, 404],
    ['a model twice, the last spelt with escapes', `{"model":"m",${messages},"\\u006dodel":"other"}`, 404],
    ['stream that is no boolean', `{"model":"m",${messages},"stream":"yes"}`, 400],
    ['a model named __proto__', `{"model":"__proto__",${messages}}`, 404],
  ])('%s', async (name, body, status) => {
    const answer = await judge(name, body);
    expect(answer.status).toBe(status);
    expect(errorOf(answer.body)).toMatchObject({ type: 'invalid_request_error' });
    expect(bed.upstream.take()).toEqual([]);
  });
});

describe('odd JSON that is JSON goes through with the same bytes', () => {
  it.each([
    ['64 deep', nested(63, '[', ']')],
    ['twin keys', `{"model":"m","model":"m",${messages},"x":1,"x":2}`],
    ['1e400', `{"model":"m",${messages},"x":1e400,"y":-1e400}`],
    ['a number of 100,000 digits', `{"model":"m",${messages},"seed":${'9'.repeat(100_000)}}`],
    ['max_tokens of 1e400', `{"model":"m",${messages},"max_tokens":1e400}`],
    ['a negative max_tokens', `{"model":"m",${messages},"max_tokens":-5}`],
    ['lone surrogates as escapes', BODY.replace('hi', String.raw`\ud800 \udc00\ud800`)],
    ['every escape', BODY.replace('hi', String.raw`\"\\\/\b\f\n\r\t\u0000\ud83d\ude00`)],
    [
      '__proto__ and constructor as keys',
      `{"model":"m",${messages},"__proto__":{"a":1},"constructor":{"prototype":{}}}`,
    ],
    ['emoji, U+2028, U+FFFF', utf8(BODY.replace('hi', '\u{1f600}\u2028\uffff'))],
    ['white space everywhere', ` \r\n\t{ "model" :\t"m" ,\r\n${messages} } \n`],
    [
      '100,000 members',
      `{"model":"m",${messages}${Array.from({ length: 100_000 }, (_, i) => `,"k${i}":${i}`).join('')}}`,
    ],
    [
      '100,000 messages',
      `{"model":"m","messages":[${Array(100_000).fill('{"role":"user","content":"hi"}').join(',')}]}`,
    ],
    ['a prompt of 10 MB', BODY.replace('hi', 'word '.repeat(2_000_000))],
  ])('%s', async (name, body) => {
    expect((await judge(name, body)).status).toBe(200);
    expect(bed.upstream.take().map((request) => request.body === body)).toEqual([true]);
  });
});

describe('a model written twice', () => {
  it('goes upstream as the one that was routed by, wherever an engine looks', async () => {
    const answer = await judge('a model twice, the last known', `{"model":"other",${messages},"model":"m"}`);
    expect(answer.status).toBe(200);
    expect(bed.upstream.take().map(({ body }) => body)).toEqual([`{"model":"m",${messages},"model":"m"}`]);
  });
});

describe('sizes and codings', () => {
  it('bug-22: 100 MB by its length is a 413 that its sender can read', async () => {
    const answer = await judge('100 MB by length', 'x'.repeat(100_000_000));
    expect(answer.status).toBe(413);
    expect(errorOf(answer.body).code).toBe('request_too_large');
    expect(bed.upstream.take()).toEqual([]);
  });

  it('bug-22: 100 MB in chunks is a 413 that its sender can read', async () => {
    const piece = Buffer.from(`10000\r\n${'x'.repeat(65_536)}\r\n`);
    const body = Buffer.concat([...Array.from({ length: 1526 }, () => piece), Buffer.from('0\r\n\r\n')]);
    const head = `POST ${CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const began = performance.now();
    const answer = await exchange(bed.port, Buffer.concat([Buffer.from(head), body]), { quietMs: 0, limitMs: 60_000 });
    pace.push(`  ${'100 MB in chunks'.padEnd(44)} ${((performance.now() - began) / 100).toFixed(1).padStart(7)} ms/MB`);
    expect(answer.statuses).toEqual([413]);
  });

  it('bug-22: the same from fetch, which must see the status and not a reset', async () => {
    const answer = await fetch(`${bed.gateway.url}${CHAT}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: 'x'.repeat(30_000_000),
    });
    expect(answer.status).toBe(413);
    expect(errorOf(await answer.text()).code).toBe('request_too_large');
  });

  it('a body of exactly 20 MiB passes, one byte more does not', async () => {
    const limit = 20 * 1024 * 1024;
    const fill = (bytes: number): string => BODY.replace('hi', 'x'.repeat(bytes - BODY.length + 2));
    expect((await judge('20 MiB', fill(limit))).status).toBe(200);
    expect((await judge('20 MiB and a byte', fill(limit + 1))).status).toBe(413);
    expect(bed.upstream.take()).toHaveLength(1);
  });

  it('S8, bug-24: a compressed body is 415, whatever it would inflate to, and is not inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000, 0x20)).toString('latin1');
    for (const coding of ['gzip', 'GZIP', 'deflate', 'br', 'zstd', 'gzip, identity', 'x-gzip', 'nonsense']) {
      const answer = await judge(`content-encoding: ${coding}`, bomb, `Content-Encoding: ${coding}\r\n`);
      expect([coding, answer.status]).toEqual([coding, 415]);
      expect(errorOf(answer.body).code).toBe('unsupported_media_type');
    }
    expect(bed.upstream.take()).toEqual([]);
    expect((await judge('content-encoding: identity', BODY, 'Content-Encoding: identity\r\n')).status).toBe(200);
  });

  it('two content encodings, the first harmless, are 415', async () => {
    const lines = 'Content-Encoding: gzip\r\nContent-Encoding: identity\r\n';
    expect((await judge('content-encoding twice', BODY, lines)).status).toBe(415);
    expect(bed.upstream.take()).toEqual([]);
  });

  it('two content types are refused: the upstream could read the other', async () => {
    const answer = await judge('content-type twice', BODY, 'Content-Type: multipart/form-data; boundary=x\r\n');
    expect(answer.status).toBe(400);
    expect(bed.upstream.take()).toEqual([]);
  });
});
