import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultBed, oneTier } from '../support/fault-bed.fixture.ts';
import { ANSWER, CHAT, chat, DONE, errorCode, event, plain, streamed, streaming } from '../support/wire.fixture.ts';

const recording = (name: string): string =>
  readFileSync(new URL(`../../../packages/openai-wire/fixtures/${name}`, import.meta.url), 'utf8');
const auto = (origins: readonly string[]): string => `define gateway { models: ["auto"] }\n${oneTier()(origins)}`;

test('bug-31: usage is read from any frame, and a frame that we asked for is not shown to who did not', async () => {
  const bed = await faultBed();
  const usage = '"usage":{"prompt_tokens":21,"completion_tokens":5}';
  const own = `data: {"model":"m","choices":[],${usage}}\n\n`;
  const inContent = `data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],${usage}}\n\n`;
  for (const [frame, body, shown] of [
    [own, chat({ stream: true }), false],
    [own, streaming(), true],
    [inContent, chat({ stream: true }), true],
  ] as const) {
    bed.upstream.onRequest = () => streamed(event('a') + frame + DONE);
    expect((await bed.client().post(CHAT, body).answer()).body).toBe(event('a') + (shown ? frame : '') + DONE);
    expect(bed.upstream.lastBody['stream_options']).toEqual({ include_usage: true });
    expect(bed.decisions.at(-1)).toMatchObject({ inputTokens: 21, outputTokens: 5 });
  }
});

test('bug-32: nothing is re-serialised: unknown fields, number forms, key order and spaces go both ways as they are', async () => {
  const bed = await faultBed();
  const sent =
    '{ "model" : "m","x_new":{"b":1.50,"a":1e2, "n":12345678901234567890},"messages":[{"role":"user","content":"\\u0068i"}], "seed":-0.0 }';
  const got =
    '{"id":"1","model":"m","x_ext":[1.0,2e0,{"deep":null}],"choices":[{"message":{"content":"\\u00e9"}}],"big":12345678901234567890}\n';
  bed.upstream.onRequest = () => plain(got);
  expect((await bed.client().post(CHAT, sent).answer()).body).toBe(got);
  expect(bed.upstream.requests[0]?.body).toBe(sent);
});

test.each([
  'openai-chat-stream-toolcall.sse',
  'groq-stream-toolcall.sse',
  'openrouter-stream-toolcall-comments.sse',
  'snowflake-stream-toolcall.sse',
])('bug-33: %s: tool calls and null contents of a stream are untouched', async (name) => {
  const bed = await faultBed();
  const stream = recording(name);
  bed.upstream.onRequest = () => streamed(stream);
  expect(await bed.client().post(CHAT, streaming()).answer()).toMatchObject({
    body: Buffer.from(stream).toString('latin1'),
    complete: true,
  });
});

test('bug-33: parallel tool calls of a plain answer and in a request are untouched', async () => {
  const bed = await faultBed();
  const got = recording('openai-chat-parallel-tools.json');
  bed.upstream.onRequest = () => plain(got);
  const sent = JSON.stringify(
    chat({
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'b', index: 4 },
            { id: 'a', index: 0 },
          ],
        },
        { role: 'tool', tool_call_id: 'b', content: '' },
      ],
    }),
  );
  expect((await bed.client().post(CHAT, sent).answer()).body).toBe(Buffer.from(got).toString('latin1'));
  expect(bed.upstream.requests[0]?.body).toBe(sent);
});

test('bug-34: text in parts is read, images are counted', async () => {
  const bed = await faultBed({
    policy: (origins) => `
      ${oneTier('', '')(origins)}
      reject "seen" when prompt contains "needle" and images == 2 with status 418, message "seen"
      default to tier "tier"`,
  });
  bed.upstream.onRequest = () => plain(ANSWER);
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  const parts = (text: string): object =>
    chat({ messages: [{ role: 'user', content: [image, { type: 'text', text }, image] }] });
  expect((await bed.client().post(CHAT, parts('a needle in a part')).answer()).status).toBe(418);
  expect((await bed.client().post(CHAT, parts('hay')).answer()).status).toBe(200);
});

test('bug-35: body: the name that was asked; record and what is sent: the real one', async () => {
  const bed = await faultBed({ policy: auto });
  bed.upstream.onRequest = (_request, index) => (index === 0 ? plain(ANSWER) : streamed(event('m is m') + DONE));
  const answer = await bed
    .client()
    .post(CHAT, chat({ model: 'auto' }))
    .answer();
  expect(JSON.parse(answer.body)).toMatchObject({ model: 'auto' });
  const stream = await bed
    .client()
    .post(CHAT, streaming({ model: 'auto' }))
    .answer();
  expect(stream.body).toBe(event('m is m', 'auto') + DONE);
  expect(bed.upstream.requests.map(({ body }) => (JSON.parse(body) as { model: string }).model)).toEqual(['m', 'm']);
  expect(bed.decisions).toMatchObject([
    { model: 'auto', servedModel: 'm' },
    { model: 'auto', servedModel: 'm' },
  ]);
});

test('bug-36: an unknown model is 404 model_not_found in the OpenAI envelope', async () => {
  const bed = await faultBed();
  for (const body of [chat({ model: 'nope' }), streaming({ model: 'nope' })]) {
    const answer = await bed.client().post(CHAT, body).answer();
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toMatchObject({
      error: { type: 'invalid_request_error', code: 'model_not_found', param: 'model' },
    });
  }
  expect(bed.upstream.requests).toHaveLength(0);
});

test('bug-37: an upgrade is a clean 501 in JSON, at once', async () => {
  const bed = await faultBed();
  const one = bed
    .client()
    .send(
      'GET /v1/realtime?model=m HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n\r\n',
    );
  const answer = await one.closed();
  expect(answer).toMatchObject({ status: 501, headers: { 'content-type': 'application/json' } });
  expect(errorCode(answer?.body ?? '')).toBe('not_implemented');
});

test('bug-38: the models are the union of all tiers, with their context length, and no endpoint is asked', async () => {
  const bed = await faultBed({
    upstreams: 2,
    policy: ([a, b]) => `
      define gateway { models: ["auto"] }
      define tier "a" { model: "m", endpoints: ["${a}"], context_window: 8192 }
      define tier "b" { model: "org/big:70b", endpoints: ["${b}"], context_window: 32768 }
      default to tier "a"`,
  });
  const one = bed.client();
  const list = JSON.parse((await one.send('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n').answer()).body) as {
    readonly data: readonly { readonly id: string; readonly max_model_len?: number }[];
  };
  expect(list.data.map(({ id }) => id).toSorted()).toEqual(['auto', 'm', 'org/big:70b']);
  expect(list.data.find(({ id }) => id === 'm')?.max_model_len).toBe(8192);
  const big = await one.send('GET /v1/models/org/big:70b HTTP/1.1\r\nhost: x\r\n\r\n').answer();
  expect(JSON.parse(big.body)).toMatchObject({ id: 'org/big:70b', max_model_len: 32_768 });
  expect(bed.upstreams.map(({ connections }) => connections)).toEqual([0, 0]);
});

test('bug-39: no input ends the process: malformed bearers, bodies, body-less requests and noise', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => plain(ANSWER);
  const head = (line: string, headers: readonly string[]): string =>
    `${line} HTTP/1.1\r\nhost: x\r\n${headers.map((h) => `${h}\r\n`).join('')}\r\n`;
  const json = 'content-type: application/json';
  const written = [
    head(`POST ${CHAT}`, [json]),
    head('GET /v1/models', ['authorization: Bearer']),
    head('GET /v1/models', ['authorization:']),
    head('GET /v1/models', ['authorization: Bearer  ,,,']),
    head(`POST ${CHAT}`, [json, 'content-length: 0']),
    head(`DELETE ${CHAT}`, []),
    head('GET /v1/models/%', []),
    head('GET /v1/models/%ff%00', []),
    ...[
      'null',
      '[]',
      '"x"',
      '1e400',
      '{"model":{}}',
      '{"model":"m","messages":{}}',
      '{"model":"m","messages":[null,1,[]]}',
      '{"__proto__":{"model":"m"}}',
      '{"model":"m","model":"x"}',
      `{"model":"m","messages":${'['.repeat(5000)}`,
      '\uFEFF{}',
      '{"model":"m","stream":"yes","messages":[{"content":[{"type":"text"}]}]}',
    ].map((body) => head(`POST ${CHAT}`, [json, `content-length: ${Buffer.byteLength(body)}`]) + body),
  ];
  const told = async (bytes: string | Uint8Array): Promise<void> => {
    const one = bed.client();
    one.socket.write(bytes);
    one.socket.end();
    await bed.run(one.closed());
    one.destroy();
  };
  for (const bytes of written) await told(bytes);
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 300 }),
      fc.constantFrom('', `POST ${CHAT} HTTP/1.1\r\nhost: x\r\n`, head(`POST ${CHAT}`, [json, 'content-length: 300'])),
      async (noise, before) => told(Buffer.concat([Buffer.from(before), noise])),
    ),
    { numRuns: 150 },
  );
  expect((await bed.client().post(CHAT, chat()).answer()).status).toBe(200);
});
