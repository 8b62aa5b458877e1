import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseReader, type SseReaderOptions } from './sse-reader.ts';

const fixtures = new URL('../fixtures/', import.meta.url);
const encoder = new TextEncoder();
const streams = readdirSync(fixtures)
  .filter((name) => name.endsWith('.sse'))
  .map((name) => ({ name, bytes: new Uint8Array(readFileSync(new URL(name, fixtures))) }));

interface Seen {
  readonly out: string;
  readonly events: number;
  readonly done: boolean;
  readonly finished: boolean;
  readonly usage: unknown;
  readonly error: unknown;
}

function read(chunks: readonly Uint8Array[], options: SseReaderOptions = { dialect: 'chat' }): Seen {
  const reader = new SseReader(options);
  let out = '';
  for (const chunk of chunks) out += Buffer.from(reader.push(chunk)).toString('latin1');
  const rest = reader.end();
  if (reader.isComplete(true)) out += Buffer.from(rest).toString('latin1');
  const { events, done, finished, usage, error } = reader;
  return { out, events, done, finished, usage, error };
}

const text = (value: string): Uint8Array[] => [encoder.encode(value)];
const latin = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

describe('recorded streams', () => {
  it('there are recordings', () => {
    expect(streams.length).toBeGreaterThanOrEqual(14);
  });

  it.each(streams)(
    '$name: the same events and bytes for a cut at every offset',
    ({ bytes }) => {
      const whole = read([bytes]);
      // Behind an error event nothing is given out.
      expect(latin(bytes).startsWith(whole.out)).toBe(true);
      expect(whole.error !== undefined || whole.out.length === bytes.length).toBe(true);
      const expected = Buffer.from(whole.out, 'latin1');
      const wrong: number[] = [];
      for (let cut = 1; cut < bytes.length; cut++) {
        const reader = new SseReader({ dialect: 'chat' });
        const first = reader.push(bytes.subarray(0, cut));
        const second = reader.push(bytes.subarray(cut));
        const same =
          expected.subarray(0, first.length).equals(first) &&
          expected.subarray(first.length).equals(second) &&
          reader.heldBytes === 0 &&
          reader.events === whole.events &&
          reader.done === whole.done &&
          reader.finished === whole.finished &&
          JSON.stringify([reader.usage, reader.error]) === JSON.stringify([whole.usage, whole.error]);
        if (!same) wrong.push(cut);
      }
      expect(wrong).toEqual([]);
    },
    120_000,
  );

  it.each(streams)('$name: the same events with LF, CR and CRLF', ({ bytes }) => {
    const whole = read([bytes]);
    for (const lineEnd of ['\r', '\r\n']) {
      const converted = Buffer.from(latin(bytes).replaceAll('\n', lineEnd), 'latin1');
      const seen = read([converted]);
      expect({ ...seen, out: '' }).toEqual({ ...whole, out: '' });
      expect(latin(converted).startsWith(seen.out)).toBe(true);
      expect(seen.error !== undefined || seen.out.length === converted.length).toBe(true);
      expect({ ...read(Array.from(converted, (byte) => Uint8Array.of(byte))), out: '' }).toEqual({ ...whole, out: '' });
    }
  });

  it('usage, final marks and errors are read', () => {
    const of = (name: string): Seen => read([streams.find((s) => s.name === name)?.bytes ?? new Uint8Array()]);
    expect(of('vllm-0.24.0-crusoe-chat-stream.sse')).toMatchObject({
      done: true,
      finished: true,
      usage: { promptTokens: 46, cachedTokens: 0, outputTokens: 14 },
    });
    expect(of('openai-chat-stream.sse')).toMatchObject({
      done: true,
      finished: true,
      usage: { promptTokens: Number.NaN },
    });
    expect(of('groq-stream-error-midstream.sse')).toMatchObject({
      done: false,
      error: { status: 400, code: 'tool_use_failed' },
    });
    const openrouter = of('openrouter-stream-error-comments.sse');
    expect(openrouter).toMatchObject({ done: false, error: { status: 400 } });
    expect(openrouter.out).not.toContain('[DONE]');
    expect(openrouter.out).toContain('Token limit reached');
  });
});

describe('framing', () => {
  const done = 'data: [DONE]\n\n';

  it.each([
    ['no space behind the colon', 'data:{"choices":[{}]}\n\n'],
    ['a byte order mark', '\ufeffdata: {"choices":[{}]}\n\n'],
    ['comments around and inside', ': hi\n\ndata: {"choices":[{}]}\n: inside\nid: 1\nretry: 5\n\n: bye\n\n'],
    ['several data lines', 'data: {"choices":\ndata: [{}]}\n\n'],
    ['mixed line ends', 'data: {"choices":\r\ndata: [{}]}\r\r\n'],
    ['an event type', 'event: x\ndata: {"choices":[{}]}\n\n'],
  ])('%s', (_name, source) => {
    const bytes = encoder.encode(source + done);
    const whole = read([bytes]);
    expect(whole).toMatchObject({ events: 1, done: true, out: latin(bytes) });
    for (let a = 0; a <= bytes.length; a++) {
      for (let b = a; b <= bytes.length; b++) {
        expect(read([bytes.subarray(0, a), bytes.subarray(a, b), bytes.subarray(b)])).toEqual(whole);
      }
    }
  });

  it('comments, pings, empty data and unknown fields are no output', () => {
    expect(read(text(': ping\n\ndata\n\ndata:\n\nid: 3\n\nretry: 1\n\n')).events).toBe(0);
    expect(read(text('event: ping\ndata: {"type":"ping"}\n\n'), { dialect: 'messages' }).events).toBe(0);
  });

  it('a half event is kept back, and given out only if the stream is complete', () => {
    expect(read(text('data: {"choices":[{"delta":{}}]}\n\ndata: {"cho')).out).toBe(
      'data: {"choices":[{"delta":{}}]}\n\n',
    );
    expect(read(text('data: {"choices":[]}\n\ndata: [DONE]'))).toMatchObject({
      done: true,
      out: 'data: {"choices":[]}\n\ndata: [DONE]',
    });
  });

  it('completeness: the end mark, or a finish reason and whole framing; never a mere close', () => {
    const ended = (source: string, dialect: SseReaderOptions['dialect']): [boolean, boolean] => {
      const reader = new SseReader({ dialect });
      reader.push(encoder.encode(source));
      return [reader.isComplete(true), reader.isComplete(false)];
    };
    expect(ended(done, 'chat')).toEqual([true, true]);
    expect(ended('data: {"choices":[{"finish_reason":"stop"}]}\n\n', 'chat')).toEqual([true, false]);
    expect(ended('data: {"choices":[{"finish_reason":null}]}\n\n', 'chat')).toEqual([false, false]);
    expect(ended('event: message_stop\ndata: {"type":"message_stop"}\n\n', 'messages')).toEqual([true, true]);
    expect(ended('event: response.completed\ndata: {}\n\n', 'responses')).toEqual([true, true]);
    expect(ended('data: {}\n\n', 'responses')).toEqual([false, false]);
    expect(ended('data: {}\n\n', 'other')).toEqual([true, false]);
  });

  it('nothing behind the end mark counts, though it is given out', () => {
    const behind = 'data: {"error":{"message":"x"}}\n\ndata: {"choices":[],"usage":{"prompt_tokens":9}}\n\n';
    expect(read(text(done + behind))).toMatchObject({
      done: true,
      error: undefined,
      usage: read(text(done)).usage,
      out: done + behind,
    });
  });

  it('words of the stream inside a text are not taken for keys', () => {
    const content = JSON.stringify({
      choices: [{ delta: { content: '"error": {"a":1}, "usage": {"prompt_tokens": 9}, [DONE]' } }],
    });
    expect(read(text(`data: ${content}\n\n`))).toMatchObject({
      events: 1,
      error: undefined,
      done: false,
      usage: { promptTokens: Number.NaN },
    });
    const toolCall = JSON.stringify({ type: 'error_report', choices: [{ error: { nested: true } }] });
    expect(read(text(`data: ${toolCall}\n\n`))).toMatchObject({ events: 1, error: undefined });
  });

  it('an event beyond the limit stops the reader with bounded memory, in linear time', () => {
    const reader = new SseReader({ dialect: 'chat', maxEventBytes: 100_000 });
    const byte = Uint8Array.of(0x61);
    for (let i = 0; i < 100_002 && !reader.overflowed; i++) reader.push(byte);
    expect(reader.overflowed).toBe(true);
    expect(reader.heldBytes).toBe(0);
  });

  it('any bytes in any chunks give the same result and never throw', () => {
    const piece = fc.constantFrom(
      'data: ',
      'data:',
      '\n',
      '\r',
      '\r\n',
      ': c',
      'event: error',
      '{"error":{"code":"x"}}',
      '[DONE]',
      '{"usage":{"prompt_tokens":1},"choices":[]}',
      'é',
      '\ufeff',
      '{"model":"a"}',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 30 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        fc.boolean(),
        (pieces, cuts, rewrite) => {
          const bytes = encoder.encode(pieces.join(''));
          const options: SseReaderOptions = rewrite
            ? { dialect: 'chat', alias: 'z', dropUsageFrames: true }
            : { dialect: 'chat' };
          const offsets = [0, ...cuts.filter((c) => c < bytes.length).toSorted((a, b) => a - b), bytes.length];
          const chunks = offsets.slice(1).map((end, i) => bytes.subarray(offsets[i] ?? 0, end));
          const cut = read(chunks, options);
          const whole = read([bytes], options);
          // The LF of a CRLF that closes an error event may come after the reader has stopped.
          const trim = (seen: Seen): Seen => (seen.error === undefined ? seen : { ...seen, out: seen.out.trimEnd() });
          expect(trim(cut)).toEqual(trim(whole));
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe('rewriting', () => {
  const options: SseReaderOptions = { dialect: 'chat', alias: 'asked/"name"', dropUsageFrames: true };

  it.each(streams.filter((s) => !s.name.includes('error')))(
    '$name: only the model changes, at every cut',
    ({ bytes }) => {
      const whole = read([bytes], options).out;
      const models = (source: string): unknown[] =>
        Buffer.from(source, 'latin1')
          .toString('utf8')
          .split('\n\n')
          .filter((event) => event.startsWith('data: {'))
          .map(
            (event) => JSON.parse(event.slice(6)) as { readonly choices: readonly unknown[]; readonly usage?: object },
          )
          .filter((frame) => !(frame.choices.length === 0 && frame.usage))
          .map((frame) => ({ ...frame, model: 'asked/"name"' }));
      expect(models(whole)).toEqual(models(latin(bytes)));
      for (let cut = 1; cut < bytes.length; cut += 7) {
        expect(read([bytes.subarray(0, cut), bytes.subarray(cut)], options).out).toBe(whole);
      }
    },
  );

  it('a model name in the text is left alone, and only the top level is spliced', () => {
    const source =
      'data: {"choices":[{"model":"real","delta":{"content":"\\"model\\":\\"real\\""}}] , "model" : "real"}\n\n';
    expect(read(text(source), { dialect: 'chat', alias: 'a' }).out).toBe(
      source.replace('"model" : "real"', '"model" : "a"'),
    );
  });

  it('in an event of many lines only the name changes: other fields, comments, line ends and a BOM stay where they were', () => {
    const lines = [
      '\ufeff: before',
      'id: 7',
      'event: e',
      'data: {"model":',
      ': between',
      'data:"real",',
      'data',
      'retry: 5',
      'data: "choices":[{"text":"\ufeff"}]}',
    ];
    for (const end of ['\n', '\r\n', '\r']) {
      const source = lines.join(end) + end + end;
      const out = Buffer.from(read(text(source), { dialect: 'chat', alias: 'a' }).out, 'latin1').toString();
      expect(out).toBe(source.replace('"real"', '"a"'));
    }
  });

  it('usage on a frame with choices stays', () => {
    const source = 'data: {"model":"m","choices":[{}],"usage":{"prompt_tokens":3}}\n\n';
    const seen = read(text(source), { dialect: 'chat', dropUsageFrames: true });
    expect(seen.out).toBe(source);
    expect(seen.usage).toMatchObject({ promptTokens: 3 });
  });
});

describe('bytes that end inside an event', () => {
  const finish = 'data: {"choices":[{"finish_reason":"stop"}]}\n\n';
  const last = 'data: {"model":"m","choices":[],"usage":{"prompt_tokens":1}}';
  const ended = (stream: string, options: Partial<SseReaderOptions> = {}): { complete: boolean; rest: string } => {
    const reader = new SseReader({ dialect: 'chat', ...options });
    reader.push(encoder.encode(stream));
    const rest = Buffer.from(reader.end()).toString();
    return { complete: reader.isComplete(true), rest };
  };

  it('make a stream incomplete, even if the framing was kept and a reason to finish was given', () => {
    for (let cut = 1; cut < last.length; cut++) {
      expect(ended(finish + last.slice(0, cut)).complete).toBe(false);
      expect(ended(last.slice(0, cut), { dialect: 'other' }).complete).toBe(false);
    }
    expect(ended(finish).complete).toBe(true);
    expect(ended(finish + last).complete).toBe(true);
    expect(ended(`${finish}: bye`).complete).toBe(true);
    expect(ended(`${finish}data: [DONE]`).complete).toBe(true);
  });

  it('are rewritten as all others if they are whole', () => {
    expect(ended(finish + last, { alias: 'auto' }).rest).toBe(last.replace('"m"', '"auto"'));
    expect(ended(finish + last, { dropUsageFrames: true })).toEqual({ complete: true, rest: '' });
  });
});
