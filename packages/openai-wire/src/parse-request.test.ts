import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRequest } from './parse-request.ts';
import { ScannedRequest } from './scanned-request.ts';
import { spliceBody } from './splice-body.ts';
import type { WireError } from './wire-error.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const CHAT = '/v1/chat/completions';

function parsed(path: string, body: unknown): ScannedRequest {
  const result = parseRequest(
    path,
    typeof body === 'string' ? encoder.encode(body) : encoder.encode(JSON.stringify(body)),
  );
  if (result instanceof ScannedRequest) return result;
  throw new Error(result.message);
}

function refused(path: string, body: string | Uint8Array): WireError {
  const result = parseRequest(path, typeof body === 'string' ? encoder.encode(body) : body);
  if (result instanceof ScannedRequest) throw new Error('was accepted');
  return result;
}

const chat = (rest: object = {}): object => ({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...rest });

describe('the fields of a chat request', () => {
  it('says whether the answer is stored', () => {
    for (const [value, stores] of [
      [true, true],
      [false, false],
      [null, false],
      ['true', false],
    ] as const)
      expect(parsed(CHAT, chat({ store: value })).stores).toBe(stores);
    expect(parsed(CHAT, chat()).stores).toBe(false);
    expect(parsed(CHAT, chat({ metadata: { store: true } })).stores).toBe(false);
  });

  it.each([
    ['0', 0],
    ['77', 77],
    ['7.7E1', 77],
    [`1.${'0'.repeat(40)}e9`, 1e9],
    [`1${'0'.repeat(40)}`, 1e40],
    ['-1', Number.NaN],
    ['1e400', Number.NaN],
    ['"77"', Number.NaN],
    ['null', Number.NaN],
  ])('reads the limit %s as the model server would', (json, value) => {
    const body = `{"max_tokens":${json},"model":"m","messages":[{"role":"user","content":"x"}]}`;
    const request = parseRequest(CHAT, encoder.encode(body));
    expect(request).toMatchObject({ maxTokens: value });
  });

  it('reads model, stream, limits, user, tools, formats and images', () => {
    const request = parsed(CHAT, {
      model: 'llama/70b:latest',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 5,
      max_completion_tokens: 77,
      user: 'ann',
      prompt_cache_key: 'k1',
      metadata: { session_id: 's', n: 1 },
      reasoning_effort: 'high',
      response_format: { type: 'json_schema', json_schema: {} },
      tools: [{ type: 'function', function: { name: 'f' } }, { name: 'g' }],
      messages: [
        { role: 'system', content: 'be brief' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a😀' },
            { type: 'image_url', image_url: { url: 'data:,' } },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [] },
        { role: 'user', content: 'last' },
      ],
    });
    expect(request).toMatchObject({
      kind: 'chat',
      model: 'llama/70b:latest',
      stream: true,
      includeUsage: true,
      maxTokens: 77,
    });
    expect(request).toMatchObject({
      user: 'ann',
      promptCacheKey: 'k1',
      tools: 2,
      images: 1,
      jsonSchema: true,
      reasoning: true,
    });
    expect(request.metadata('session_id')).toBe('s');
    expect(request.metadata('n')).toBeUndefined();
    expect(request.metadata('toString')).toBeUndefined();
    expect(request.toolNames()).toEqual(['f', 'g']);
    expect(request.promptChars).toBe(8 + 2 + 1 + 4);
    expect(request.systemPrompt()).toBe('be brief');
    expect(request.firstUserMessage()).toBe('a😀\nb');
    expect(request.lastUserMessage()).toBe('last');
    expect(request.prompt()).toBe('be brief\na😀\nb\n\nlast');
    expect(request.messages()).toHaveLength(4);
  });

  it('takes the last of twin keys, like JSON.parse', () => {
    const request = parsed(
      CHAT,
      '{"model":"a","model":"b","stream":true,"stream":false,"messages":[{"role":"user","content":"x","content":"yz"}],"messages":[{"role":"user","content":"abc"}]}',
    );
    expect(request.model).toBe('b');
    expect(request.stream).toBe(false);
    expect(request.promptChars).toBe(3);
    expect(decoder.decode(spliceBody(request, {}))).toContain('{"model":"b","model":"b"');
  });

  it('reads a key that is written with escapes', () => {
    expect(parsed(CHAT, '{"mod\\u0065l":"a","messages":[{"\\u0072ole":"user","content":"x"}]}').model).toBe('a');
  });

  it('remembers what was read and lets the body go on release', () => {
    const request = parsed(CHAT, chat({ user: 'ann' }));
    expect(request.user).toBe('ann');
    request.release();
    expect(request.bytes()).toBeUndefined();
    expect(request.user).toBe('ann');
    expect(request.promptChars).toBe(2);
    expect(request.prompt()).toBe('');
  });
});

describe('prompts of completions and embeddings', () => {
  it.each([
    ['a text', 'hello', 5, Number.NaN],
    ['texts', ['ab', 'c'], 3, Number.NaN],
    ['token ids', [1, 2, 3], 0, 3],
    ['lists of token ids', [[1, 2], [3]], 0, 3],
  ])('%s', (_name, prompt, chars, tokens) => {
    for (const [path, field] of [
      ['/v1/completions', 'prompt'],
      ['/v1/embeddings', 'input'],
    ] as const) {
      const request = parsed(path, { model: 'm', [field]: prompt });
      expect(request.promptChars).toBe(chars);
      expect(request.promptTokensExact).toBe(tokens);
    }
  });

  it('an unknown API gives model and stream alone', () => {
    const request = parsed('/v1/responses', { model: 'm', stream: true, input: [{ role: 'user', content: 'x' }] });
    expect(request).toMatchObject({ kind: 'other', model: 'm', stream: true, promptChars: 0 });
  });
});

describe('refusals', () => {
  it.each([
    ['nothing', '', null],
    ['no object', '[]', null],
    ['an open end', '{"model":"m"', null],
    ['something behind the object', '{"model":"m","messages":[{}]} x', null],
    ['a bad escape', '{"model":"\\x"}', null],
    ['a bare control character', '{"model":"a\nb"}', null],
    ['a trailing comma', '{"model":"m",}', null],
    ['a number with a leading zero', '{"model":"m","messages":[{}],"n":01}', null],
    ['no model', '{"messages":[{"role":"user","content":"x"}]}', 'model'],
    ['an empty model', '{"model":"","messages":[{}]}', 'model'],
    ['a model that is no string', '{"model":5,"messages":[{}]}', 'model'],
    ['no messages', '{"model":"m"}', 'messages'],
    ['empty messages', '{"model":"m","messages":[]}', 'messages'],
    ['messages that are a text', '{"model":"m","messages":"x"}', 'messages'],
    ['a stream that is a text', '{"model":"m","messages":[{}],"stream":"true"}', 'stream'],
  ])('%s', (_name, body, param) => {
    expect(refused(CHAT, body)).toMatchObject({ status: 400, code: 'invalid_request', param });
  });

  it('an empty prompt or input', () => {
    expect(refused('/v1/completions', '{"model":"m","prompt":""}').param).toBe('prompt');
    expect(refused('/v1/embeddings', '{"model":"m","input":[]}').param).toBe('input');
  });

  it('bytes that are not UTF-8', () => {
    for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      const body = new Uint8Array([...encoder.encode('{"model":"m'), ...bad, ...encoder.encode('"}')]);
      expect(refused(CHAT, body).message).toMatch(/UTF-8|unexpected end/);
    }
  });

  it('nesting beyond the limit, without a deep stack', () => {
    const deep = `{"model":"m","messages":[{}],"x":${'['.repeat(63)}${']'.repeat(63)}}`;
    expect(parsed(CHAT, deep).model).toBe('m');
    expect(refused(CHAT, `{"model":"m","x":${'['.repeat(50_000)}`).message).toContain('64 deep');
  });
});

describe('properties', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 });

  it('accepts what JSON.parse accepts and counts the same code points', () => {
    const message = fc.record({
      role: fc.constantFrom('user', 'system', 'assistant', 'tool'),
      content: fc.oneof(text, fc.constant(null)),
    });
    fc.assert(
      fc.property(
        fc.array(message, { minLength: 1, maxLength: 5 }),
        fc.jsonValue(),
        fc.constantFrom(0, 1, '\t'),
        (messages, extra, space) => {
          const request = parsed(CHAT, JSON.stringify({ extra, model: 'm', messages }, null, space));
          const texts = messages.map((m) => m.content ?? '').map((t) => new TextDecoder().decode(encoder.encode(t)));
          expect(request.promptChars).toBe(texts.reduce((sum, t) => sum + [...t].length, 0));
          expect(request.messages().map((m) => m.role)).toEqual(messages.map((m) => m.role));
        },
      ),
    );
  });

  it('agrees with JSON.parse on which mutated bodies are JSON', () => {
    const base = encoder.encode(JSON.stringify(chat({ a: [1.5e3, -0, true, null], b: { 'ü\n': '\u0001😀' } })));
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: base.length - 1 }),
        fc.integer({ min: 0, max: 255 }),
        fc.boolean(),
        (at, byte, cut) => {
          const body = cut ? base.slice(0, at) : base.slice();
          if (!cut) body[at] = byte;
          let valid = true;
          try {
            JSON.parse(strict.decode(body));
          } catch {
            valid = false;
          }
          const result = parseRequest(CHAT, body);
          const refusedAsJson = !(result instanceof ScannedRequest) && result.message.startsWith('The request body is');
          expect(!refusedAsJson).toBe(valid);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['null', '{"include_usage":true}'],
    ['{}', '{"include_usage":true}'],
    ['{"include_usage":null}', '{"include_usage":true}'],
    ['{"include_usage":false,"x":1}', '{"include_usage":true,"x":1}'],
    ['{"x":[{"include_usage":3}]}', '{"include_usage":true,"x":[{"include_usage":3}]}'],
    ...[
      '"x"',
      '[1]',
      '7',
      'true',
      'false',
      '{"include_usage":"yes"}',
      '{"include_usage":1}',
      '{"include_usage":{}}',
    ].map((wrong) => [wrong, wrong]),
  ])(
    'usage is asked for in stream_options of %s only if they are of the right type; others go on as sent',
    (given, sent) => {
      const body = (options: string): string =>
        `{"model":"m","stream":true,"stream_options":${options},"messages":[{"role":"user","content":"hi"}]}`;
      const request = parsed(CHAT, body(given));
      expect(decoder.decode(spliceBody(request, { includeUsage: true }))).toBe(body(sent));
      expect(request.mayAskUsage).toBe(given !== sent);
    },
  );

  it('splicing changes what it names and keeps every other byte', () => {
    const keys = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'stream_options', 'model'), { maxLength: 5 });
    fc.assert(
      fc.property(
        keys,
        keys,
        keys,
        text,
        fc.constantFrom(0, 2),
        fc.boolean(),
        (present, set, drop, model, space, includeUsage) => {
          const body: Record<string, unknown> = {};
          for (const key of present) body[key] = key === 'model' ? 'm' : key === 'stream_options' ? { x: 1 } : key;
          if (!present.includes('model')) body['model'] = 'm';
          body['messages'] = [{ role: 'user', content: 'hi' }];
          const source = JSON.stringify(body, null, space);
          const request = parsed(CHAT, source);
          const name = new TextDecoder().decode(encoder.encode(`x${model}`));
          const edits = { model: name, includeUsage, set: set.map((field) => ({ field, json: '[7]' })), drop };
          const expected: Record<string, unknown> = { ...body, model: name };
          if (includeUsage)
            expected['stream_options'] = { ...(body['stream_options'] as object | undefined), include_usage: true };
          for (const field of drop) delete expected[field];
          for (const field of set) expected[field] = [7];
          const out = decoder.decode(spliceBody(request, edits));
          expect(JSON.parse(out)).toEqual(expected);
          expect(decoder.decode(spliceBody(request, {}))).toBe(source);
          expect(decoder.decode(spliceBody(request, edits))).toBe(out);
        },
      ),
    );
  });
});

describe('multipart', () => {
  const form = (model: string): string =>
    `--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n\u0000--x\r\n\r\n--B\r\n` +
    `Content-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--B\r\nContent-Disposition: form-data; name="stream"\r\n\r\ntrue\r\n--B--\r\n`;

  it('reads model and stream from their parts and splices the model', () => {
    const request = parseRequest('/v1/audio/transcriptions', encoder.encode(form('whisper')), { boundary: 'B' });
    if (!(request instanceof ScannedRequest)) throw new Error(request.message);
    expect(request).toMatchObject({ model: 'whisper', stream: true, kind: 'other' });
    expect(decoder.decode(spliceBody(request, { model: 'big-whisper' }))).toBe(form('big-whisper'));
    expect(spliceBody(request, {})).toBe(request.bytes());
  });

  it.each([
    ['its boundary does not appear', `${'x'.repeat(40)}\r\n\r\n`],
    ['its boundary does not appear', '\r\n\r\n\r\n\r\n\r\n\r\n'],
    ['a boundary line does not end in CR LF', `preamble\r\n--Bx\r\n\r\n`],
    ['the closing boundary is missing', `preamble\r\n--B\r\n\r\nx`],
  ])('a malformed form is told why: %s', (why, body) => {
    const result = parseRequest('/v1/audio/transcriptions', encoder.encode(body), { boundary: 'B' });
    expect(result).toMatchObject({ message: `The multipart body is malformed: ${why}.` });
  });

  it.each(['', '--B', '--B\r\n', '--B\r\n\r\n', 'x', form('w').slice(0, -8), '--B--\r\n'])(
    'a malformed form is refused: %j',
    (body) => {
      const result = parseRequest('/v1/audio/transcriptions', encoder.encode(body), { boundary: 'B' });
      expect(result).toMatchObject({ kind: 'error', status: 400 });
    },
  );
});

it('the name of a model is read anew whatever the name before it was', () => {
  const names = [
    'm',
    'm',
    'n',
    'é',
    'Ã©',
    'é',
    String.raw`\u0041`,
    'A',
    'AAAAAA',
    'A',
    '"',
    String.raw`\"`,
    'm/x:1',
    'm',
  ];
  const bodies = names.flatMap((name) => {
    const plain = JSON.stringify(name);
    const escaped = [...name]
      .map((char) => String.raw`\u` + char.codePointAt(0)?.toString(16).padStart(4, '0'))
      .join('');
    return [plain, `"${escaped}"`, plain].map(
      (model) => [name, `{"model":${model},"messages":[{"role":"user","content":"hi"}]}`] as const,
    );
  });
  for (const [name, body] of bodies) expect(parsed(CHAT, body).model).toBe(name);
});
