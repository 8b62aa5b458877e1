import { connect } from 'node:net';
import type { Socket } from 'node:net';
import OpenAI from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import type { Fault } from './fault.ts';
import { createPacer } from './pacer.ts';
import { startSimulatedEngine } from './simulated-engine.ts';
import type { SimulatedEngine, SimulatedEngineOptions } from './simulated-engine.ts';

const engines: SimulatedEngine[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
});

/** A fast engine: two thousand tokens a second by the wall clock. */
async function start(options: Partial<SimulatedEngineOptions> = {}): Promise<SimulatedEngine> {
  const engine = await startSimulatedEngine({
    model: 'sim-8b',
    speed: { tokensPerSecond: 200, prefillTokensPerSecond: 20_000 },
    timeScale: 10,
    ...options,
  });
  engines.push(engine);
  return engine;
}

const chat = (content: string, more: object = {}): object => ({
  model: 'sim-8b',
  messages: [{ role: 'user', content }],
  ...more,
});

async function post(
  engine: SimulatedEngine,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(engine.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

interface Completion {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly choices: readonly {
    readonly message?: { readonly content: string };
    readonly text?: string;
    readonly finish_reason: string;
  }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

const completion = async (response: Response): Promise<Completion> => (await response.json()) as Completion;
const errorOf = async (
  response: Response,
): Promise<{ code: string; message: string; type: string; param: string | null }> =>
  ((await response.json()) as { error: { code: string; message: string; type: string; param: string | null } }).error;

/** Sends a raw request and collects what comes until the connection ends or `until` holds. */
function raw(
  engine: SimulatedEngine,
  body: object,
  until: (bytes: Buffer) => boolean = () => false,
): Promise<{ readonly bytes: Buffer; readonly end: 'fin' | 'reset' | 'still open' }> {
  return new Promise((resolve) => {
    const socket = connect(engine.port, '127.0.0.1');
    sockets.push(socket);
    let bytes = Buffer.alloc(0);
    const text = JSON.stringify(body);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (until(bytes)) resolve({ bytes, end: 'still open' });
    });
    socket.once('end', () => resolve({ bytes, end: 'fin' }));
    socket.once('error', () => resolve({ bytes, end: 'reset' }));
  });
}

/** Resolves when the condition holds, looked at each turn of the event loop; rejects after five seconds. */
async function eventually(condition: () => boolean): Promise<void> {
  const giveUpMs = performance.now() + 5000;
  while (!condition()) {
    if (performance.now() > giveUpMs) throw new Error('the condition never held');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('chat completions', () => {
  test('a whole answer has text, usage and a finish reason, and is the same each time', async () => {
    const engine = await start();
    const first = await completion(await post(engine, '/v1/chat/completions', chat('Tell me of the sea.')));
    const second = await completion(await post(engine, '/v1/chat/completions', chat('Tell me of the sea.')));
    expect(first).toMatchObject({ object: 'chat.completion', model: 'sim-8b', choices: [{ finish_reason: 'stop' }] });
    expect(first.choices[0]?.message?.content).toMatch(/^([a-z]{3} )+[a-z]{3}\.$/);
    expect(second.choices).toEqual(first.choices);
    expect(first.usage.completion_tokens).toBe((first.choices[0]?.message?.content.length ?? 0) / 4);
    expect(first.id).not.toBe(second.id);
  });

  test('max_tokens and max_completion_tokens cut the answer, and it says so', async () => {
    const engine = await start();
    for (const limit of [{ max_tokens: 5 }, { max_completion_tokens: 5 }]) {
      const answer = await completion(await post(engine, '/v1/chat/completions', chat('Hello', limit)));
      expect(answer).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 5 } });
    }
    const long = await completion(
      await post(engine, '/v1/chat/completions', chat('Hello', { max_tokens: 200, ignore_eos: true })),
    );
    expect(long).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 200 } });
  });

  test('the openai client streams the very text that a whole answer has', async () => {
    const engine = await start();
    const client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Count to ten.' }];
    const whole = await client.chat.completions.create({ model: 'sim-8b', messages });
    const stream = await client.chat.completions.create({
      model: 'sim-8b',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let finish: string | null | undefined;
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe(whole.choices[0]?.message.content);
    expect(finish).toBe('stop');
    expect(usage?.completion_tokens).toBe(text.length / 4);
    expect(usage?.prompt_tokens).toBe(whole.usage?.prompt_tokens);
  });

  test('a stream is, byte for byte, role, tokens, finish, usage if asked, and the end mark', async () => {
    const engine = await start();
    const response = await post(
      engine,
      '/v1/chat/completions',
      chat('Hi', { stream: true, max_tokens: 2, stream_options: { include_usage: true } }),
      {
        'x-request-id': 'abc',
      },
    );
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('x-request-id')).toBe('abc');
    const text = await response.text();
    const created = /"created":(\d+)/.exec(text)?.[1] ?? '';
    const head = `data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":${created},"model":"sim-8b","choices":[`;
    const [one = '', two = ''] = [...text.matchAll(/"content":"([a-z]{3} )"/g)].map((match) => match[1] ?? '');
    expect(text).toBe(
      [
        `${head}{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
        `${head}{"index":0,"delta":{"content":"${one}"},"logprobs":null,"finish_reason":null}]}`,
        `${head}{"index":0,"delta":{"content":"${two}"},"logprobs":null,"finish_reason":null}]}`,
        `${head}{"index":0,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
        `${head}],"usage":{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
        'data: [DONE]',
        '',
      ].join('\n\n'),
    );
  });

  test('the next turn of a conversation finds the last turn and its answer cached', async () => {
    const engine = await start();
    const opening = 'A long question to begin with. '.repeat(20);
    const first = await completion(await post(engine, '/v1/chat/completions', chat(opening)));
    const messages = [
      { role: 'user', content: opening },
      { role: 'assistant', content: first.choices[0]?.message?.content },
      { role: 'user', content: 'And then?' },
    ];
    const second = await completion(await post(engine, '/v1/chat/completions', { model: 'sim-8b', messages }));
    const whole = first.usage.prompt_tokens + first.usage.completion_tokens - 1;
    expect(second.usage.prompt_tokens_details.cached_tokens).toBe(Math.floor(whole / 16) * 16);
  });

  test('tokens arrive at the stated pace', async () => {
    const engine = await start({ speed: { tokensPerSecond: 100, prefillTokensPerSecond: 1e6 }, timeScale: 1 });
    const startMs = performance.now();
    await (
      await post(engine, '/v1/chat/completions', chat('Pace', { max_tokens: 31, ignore_eos: true, stream: true }))
    ).text();
    const elapsedMs = performance.now() - startMs;
    expect(elapsedMs).toBeGreaterThanOrEqual(300);
    expect(elapsedMs).toBeLessThan(3000);
  });

  test('content in parts, images and tools make longer prompts', async () => {
    const engine = await start();
    const content = [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: 'data:,x' } },
    ];
    const answer = await completion(
      await post(engine, '/v1/chat/completions', {
        model: 'sim-8b',
        messages: [{ role: 'user', content }],
        tools: [{ type: 'function' }],
        max_tokens: 1,
      }),
    );
    expect(answer.usage.prompt_tokens).toBe(6 + 1 + 1 + 256 + 1 + 1);
  });
});

describe('other routes', () => {
  test('completions take text or token ids, whole and as a stream', async () => {
    const engine = await start();
    const client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const byText = await client.completions.create({ model: 'sim-8b', prompt: 'Once upon a time' });
    expect(byText).toMatchObject({
      object: 'text_completion',
      usage: { prompt_tokens: 4, completion_tokens: 16 },
      choices: [{ finish_reason: 'length' }],
    });
    const byIds = await client.completions.create({ model: 'sim-8b', prompt: [1, 2, 3], max_tokens: 4 });
    expect(byIds.usage?.prompt_tokens).toBe(3);
    let streamed = '';
    for await (const chunk of await client.completions.create({
      model: 'sim-8b',
      prompt: 'Once upon a time',
      stream: true,
    }))
      streamed += chunk.choices[0]?.text ?? '';
    expect(streamed).toBe(byText.choices[0]?.text);
  });

  test('embeddings are unit vectors fixed by their input, the same as floats and as base64', async () => {
    const engine = await start();
    const client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const floats = await client.embeddings.create({
      model: 'sim-8b',
      input: ['one text', 'another'],
      encoding_format: 'float',
    });
    // Without a format the client asks for base64 and decodes it.
    const decoded = await client.embeddings.create({ model: 'sim-8b', input: ['one text', 'another'] });
    expect(floats.data).toHaveLength(2);
    expect(floats.data[0]?.embedding).toHaveLength(64);
    expect(floats.data[0]?.embedding.reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 5);
    expect(decoded.data.map(({ embedding }) => embedding)).toEqual(floats.data.map(({ embedding }) => embedding));
    expect(floats.usage).toMatchObject({ prompt_tokens: 4, total_tokens: 4 });
    const short = await client.embeddings.create({
      model: 'sim-8b',
      input: [5, 6],
      dimensions: 8,
      encoding_format: 'float',
    });
    expect(short.data[0]?.embedding).toHaveLength(8);
  });

  test('models, health, version, tokenize and metrics answer', async () => {
    const engine = await start({ adapters: ['sql-lora'], maxModelLen: 4096, aliases: ['sim'] });
    const models = (await (await fetch(`${engine.url}/v1/models`)).json()) as {
      data: { id: string; max_model_len: number | null; parent: string | null }[];
    };
    expect(models.data.map(({ id, max_model_len, parent }) => [id, max_model_len, parent])).toEqual([
      ['sim-8b', 4096, null],
      ['sim', 4096, null],
      ['sql-lora', null, 'sim-8b'],
    ]);
    expect((await fetch(`${engine.url}/health`)).status).toBe(200);
    expect(await (await fetch(`${engine.url}/version`)).json()).toHaveProperty('version');
    expect(await (await post(engine, '/tokenize', { model: 'sim-8b', prompt: 'eight ch' })).json()).toMatchObject({
      count: 2,
      max_model_len: 4096,
    });
    await (await post(engine, '/v1/chat/completions', { ...chat('Hi'), model: 'sql-lora' })).text();
    const metrics = await (await fetch(`${engine.url}/metrics`)).text();
    expect(metrics).toContain(
      'vllm:request_success_total{engine="0",model_name="sim-8b",finished_reason="stop"} 1.0\n',
    );
    expect(metrics).toContain('vllm:lora_requests_info{max_lora="8"');
    expect(metrics).toMatch(/vllm:cache_config_info\{block_size="16",.*num_gpu_blocks="4096"\} 1\.0/);
  });

  test('a load report comes with the answer when asked for', async () => {
    const engine = await start();
    const json = await post(engine, '/v1/chat/completions', chat('Hi', { max_tokens: 1 }), {
      'endpoint-load-metrics-format': 'JSON',
    });
    expect(json.headers.get('endpoint-load-metrics')).toMatch(/^JSON \{"named_metrics":\{"kv_cache_usage_perc":/);
    const text = await post(engine, '/v1/chat/completions', chat('Hi', { max_tokens: 1 }), {
      'endpoint-load-metrics-format': 'TEXT',
    });
    expect(text.headers.get('endpoint-load-metrics')).toMatch(/^TEXT named_metrics\.kv_cache_usage_perc=/);
  });

  test('the log keeps what was sent, byte for byte', async () => {
    const engine = await start();
    const body = '{"model":"sim-8b",  "messages":[{"role":"user","content":"h\\u00e9"}],"max_tokens":1}';
    await (await post(engine, '/v1/chat/completions', body, { 'x-tenant': 'blue' })).text();
    expect(engine.requests.count()).toBe(1);
    expect(engine.requests.count('/v1/chat/completions')).toBe(1);
    expect(engine.requests.last()?.body.toString()).toBe(body);
    expect(engine.requests.last()?.headers['x-tenant']).toBe('blue');
  });

  test('its speed can come from a hardware profile; an unknown GPU is named', async () => {
    const engine = await start({ speed: { gpu: 'L4', modelSize: '8B', precision: 'fp8' }, timeScale: 50 });
    expect(engine.profile).toMatchObject({ gpu: 'L4-24GB', provenance: 'estimated' });
    expect(engine.engine.kvBlocks).toBe(Math.floor((engine.profile?.kvTokensCapacity ?? 0) / 16));
    await expect(start({ speed: { gpu: 'L5', modelSize: '8B' } })).rejects.toThrow(/L5.*did you mean L4-24GB/s);
    const rates = { tokensPerSecond: 200, prefillTokensPerSecond: 20_000 };
    const unknown = await start({ speed: { gpu: 'L5', modelSize: '8B' }, speedIfUnknown: rates });
    expect(unknown.profile).toBeUndefined();
    const known = await start({ speed: { gpu: 'L4', modelSize: '8B' }, speedIfUnknown: rates });
    expect(known.profile?.gpu).toMatch(/^L4/);
  });
});

describe('refusals', () => {
  test('each mistake has its status, code and parameter', async () => {
    const engine = await start({ maxModelLen: 100 });
    const cases: [string, unknown, number, string, string | null][] = [
      ['/v1/chat/completions', '{"model":', 400, 'invalid_json', null],
      ['/v1/chat/completions', '[]', 400, 'invalid_json', null],
      ['/v1/chat/completions', { model: 'sim-8b' }, 400, 'invalid_request', 'messages'],
      [
        '/v1/chat/completions',
        { model: 'sim-8b', messages: [{ role: 'user', content: 5 }] },
        400,
        'invalid_request',
        'messages',
      ],
      ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }, 400, 'invalid_request', 'model'],
      ['/v1/chat/completions', { ...chat('x'), model: 'gpt-9' }, 404, 'model_not_found', 'model'],
      ['/v1/chat/completions', chat('x', { max_tokens: 0 }), 400, 'invalid_request', 'max_tokens'],
      ['/v1/chat/completions', chat('x', { n: 2 }), 400, 'invalid_request', 'n'],
      ['/v1/chat/completions', chat('x', { stream_options: {} }), 400, 'invalid_request', 'stream_options'],
      ['/v1/chat/completions', chat('y'.repeat(500)), 400, 'context_length_exceeded', 'messages'],
      ['/v1/chat/completions', chat('x', { max_tokens: 100 }), 400, 'context_length_exceeded', 'messages'],
      ['/v1/completions', { model: 'sim-8b', prompt: ['a', 'b'] }, 400, 'invalid_request', 'prompt'],
      ['/v1/completions', { model: 'sim-8b', prompt: '' }, 400, 'invalid_request', 'prompt'],
      ['/v1/embeddings', { model: 'sim-8b', input: [] }, 400, 'invalid_request', 'input'],
      ['/v1/embeddings', { model: 'sim-8b', input: 'z'.repeat(500) }, 400, 'context_length_exceeded', 'input'],
      ['/v1/nothing', {}, 404, 'not_found', null],
    ];
    for (const [path, body, status, code, param] of cases) {
      const response = await post(engine, path, body);
      expect([path, body, response.status, await errorOf(response)]).toMatchObject([
        path,
        body,
        status,
        { code, param },
      ]);
    }
    expect(engine.engine.state()).toMatchObject({ running: 0, waiting: 0 });
  });

  test('with an API key set, /v1 needs it and health does not', async () => {
    const engine = await start({ apiKey: 'secret' });
    expect((await post(engine, '/v1/chat/completions', chat('x'))).status).toBe(401);
    expect((await fetch(`${engine.url}/v1/models`)).status).toBe(401);
    expect((await fetch(`${engine.url}/health`)).status).toBe(200);
    expect((await post(engine, '/v1/chat/completions', chat('x'), { authorization: 'Bearer secret' })).status).toBe(
      200,
    );
  });

  test('a body over the limit is refused', async () => {
    const engine = await start({ maxBodyBytes: 1000 });
    expect((await post(engine, '/v1/chat/completions', chat('x'.repeat(2000)))).status).toBe(413);
  });
});

describe('a client that leaves', () => {
  test('frees its sequence at once, streaming or not', async () => {
    const engine = await start({ timeScale: 1 });
    for (const stream of [true, false]) {
      const controller = new AbortController();
      const pending = fetch(`${engine.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(chat('x', { stream, max_tokens: 5000, ignore_eos: true })),
        signal: controller.signal,
      });
      await eventually(() => engine.engine.state().running === 1);
      controller.abort();
      await pending.then((response) => response.text()).catch(() => undefined);
      await eventually(() => engine.engine.state().running === 0);
    }
    expect(engine.engine.metrics.finished.abort).toBe(2);
    expect(engine.engine.state().kvUsage).toBe(0);
  });

  test('a reader that stops reading gets every token once it reads again', async () => {
    const engine = await start({ timeScale: 1000 });
    const tokens = 20_000;
    const response = await post(
      engine,
      '/v1/chat/completions',
      chat('x', { stream: true, max_tokens: tokens, ignore_eos: true }),
    );
    await eventually(() => engine.engine.metrics.generationTokens === tokens);
    const text = await response.text();
    expect(text.match(/"delta":\{"content":"[a-z]{3} "\}/g)).toHaveLength(tokens);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });
});

describe('faults', () => {
  test('a delay holds the answer back', async () => {
    const engine = await start({ faults: [{ delayMs: 80 }] });
    const startMs = performance.now();
    expect((await post(engine, '/v1/chat/completions', chat('x', { max_tokens: 1 }))).status).toBe(200);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(79);
  });

  test('an error status comes with its code, message and Retry-After, so many times after so many skipped', async () => {
    const engine = await start({
      faults: [{ errorStatus: 429, errorCode: 'busy', errorMessage: 'Come back.', retryAfter: 3, times: 2, skip: 1 }],
    });
    const seen: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      const response = await post(engine, '/v1/chat/completions', chat('x', { max_tokens: 1 }));
      seen.push(
        response.ok ? 'served' : [response.status, response.headers.get('retry-after'), await errorOf(response)],
      );
    }
    const refusal = [429, '3', { message: 'Come back.', type: 'rate_limit_error', param: null, code: 'busy' }];
    expect(seen).toEqual(['served', refusal, refusal, 'served']);
  });

  test('a fault can be kept to a path, a model, or streams', async () => {
    const engine = await start({ aliases: ['other'] });
    const status = async (path: string, body: object): Promise<number> => (await post(engine, path, body)).status;
    engine.setFaults([{ match: { path: '/health' }, errorStatus: 503 }]);
    expect((await fetch(`${engine.url}/health`)).status).toBe(503);
    expect(await status('/v1/chat/completions', chat('x'))).toBe(200);
    engine.setFaults([{ match: { model: 'other' }, errorStatus: 500 }]);
    expect(await status('/v1/chat/completions', chat('x'))).toBe(200);
    expect(await status('/v1/chat/completions', { ...chat('x'), model: 'other' })).toBe(500);
    engine.setFaults([{ match: { stream: true }, errorStatus: 500 }]);
    expect(await status('/v1/chat/completions', chat('x'))).toBe(200);
    expect(await status('/v1/chat/completions', chat('x', { stream: true }))).toBe(500);
    expect((await fetch(`${engine.url}/metrics`)).status).toBe(200);
  });

  test('hanging at accept leaves the connection open and unread', async () => {
    const engine = await start({ faults: [{ hangAt: 'accept', times: 1 }] });
    let bytes = 0;
    void raw(engine, chat('x'), (got) => (bytes = got.length) > 0);
    await eventually(() => engine.connections() === 1);
    expect((await post(engine, '/v1/chat/completions', chat('x', { max_tokens: 1 }))).status).toBe(200);
    expect(engine.requests.count()).toBe(1);
    expect(bytes).toBe(0);
  });

  test('hanging at the head reads the request and answers nothing', async () => {
    const engine = await start({ faults: [{ hangAt: 'headers', times: 1 }] });
    let bytes = 0;
    void raw(engine, chat('x'), (got) => (bytes = got.length) > 0);
    await eventually(() => engine.requests.count() === 1);
    expect((await post(engine, '/v1/chat/completions', chat('x', { max_tokens: 1 }))).status).toBe(200);
    expect(bytes).toBe(0);
  });

  test('hanging in the stream stops after so many tokens', async () => {
    const engine = await start({ faults: [{ hangAt: 'stream', hangAfterEvents: 3 }] });
    const { bytes, end } = await raw(
      engine,
      chat('x', { stream: true }),
      (got) => (got.toString().match(/"delta":\{"content":"[a-z]/g)?.length ?? 0) >= 3,
    );
    await eventually(() => engine.engine.state().running === 0);
    expect(end).toBe('still open');
    expect(bytes.toString().match(/"delta":\{"content":"[a-z]/g)).toHaveLength(3);
    expect(bytes.toString()).not.toContain('[DONE]');
  });

  test('a whole answer hangs after its head', async () => {
    const engine = await start({ faults: [{ hangAt: 'stream' }] });
    const { bytes, end } = await raw(engine, chat('x'), (got) => got.includes('\r\n\r\n'));
    expect(end).toBe('still open');
    expect(bytes.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^{]*\r\n\r\n$/s);
  });

  test.each([0, 1, 17, 250, 400])('the connection is ended in order at byte %i', async (endAtByte) => {
    const engine = await start({ faults: [{ endAtByte }] });
    const { bytes, end } = await raw(engine, chat('x', { stream: true }));
    expect(end).toBe('fin');
    expect(bytes).toHaveLength(endAtByte);
  });

  test.each([0, 17, 400])('the connection is reset at byte %i', async (resetAtByte) => {
    const engine = await start({ faults: [{ resetAtByte }] });
    const { bytes, end } = await raw(engine, chat('x', { stream: true }));
    expect(end).toBe('reset');
    expect(bytes).toHaveLength(resetAtByte);
    await eventually(() => engine.engine.state().running === 0);
  });

  test('a cut beyond the answer’s end changes nothing, and the connection serves on', async () => {
    const engine = await start({ faults: [{ endAtByte: 100_000, times: 1 }] });
    for (let i = 0; i < 2; i++) {
      const response = await post(engine, '/v1/chat/completions', chat('x'));
      expect(response.status).toBe(200);
      await response.text();
    }
  });

  test('an error event ends the stream after so many tokens, and frees the sequence', async () => {
    const engine = await start({ faults: [{ errorEventAfter: 2, errorMessage: 'CUDA error' }], timeScale: 1 });
    const text = await (
      await post(engine, '/v1/chat/completions', chat('x', { stream: true, max_tokens: 4000, ignore_eos: true }))
    ).text();
    expect(text.match(/"delta":\{"content":"[a-z]/g)).toHaveLength(2);
    expect(text).toContain(
      'data: {"error":{"message":"CUDA error","type":"server_error","param":null,"code":"engine_error"}}\n\ndata: [DONE]\n\n',
    );
    expect(engine.engine.state().running).toBe(0);
  });

  test('faults are set, shown and lifted over HTTP, and mistakes are explained', async () => {
    const engine = await start();
    const fault: Fault = { errorStatus: 500, times: 1 };
    expect((await post(engine, '/-/faults', fault)).status).toBe(200);
    expect((await post(engine, '/v1/chat/completions', chat('x'))).status).toBe(500);
    expect(await (await fetch(`${engine.url}/-/faults`)).json()).toEqual({ faults: [{ ...fault, done: 1 }] });
    expect(await (await fetch(`${engine.url}/-/faults`, { method: 'DELETE' })).json()).toEqual({ faults: [] });
    const unknown = await post(engine, '/-/faults', [{ errorStatuss: 500 }]);
    expect(unknown.status).toBe(400);
    expect((await errorOf(unknown)).message).toMatch(/unknown knob "errorStatuss"; known are/);
    expect((await errorOf(await post(engine, '/-/faults', { errorStatus: 200 }))).message).toContain(
      'no value for "errorStatus"',
    );
  });
});

describe('closing', () => {
  test('a closed engine refuses connections, and its port can be taken again', async () => {
    const engine = await start({ timeScale: 1 });
    const stream = raw(engine, chat('x', { stream: true, max_tokens: 5000, ignore_eos: true }));
    await eventually(() => engine.engine.state().running === 1);
    await engine.close('reset');
    expect((await stream).end).toBe('reset');
    await expect(post(engine, '/v1/chat/completions', chat('x'))).rejects.toThrow('fetch failed');
    const again = await start({ port: engine.port });
    expect((await post(again, '/v1/chat/completions', chat('x'))).status).toBe(200);
  });

  test('a port in use rejects', async () => {
    const engine = await start();
    await expect(start({ port: engine.port })).rejects.toThrow(/EADDRINUSE/);
  });
});

/** The clock and the one timer of a pacer: `fire` moves the clock to when the timer is due, and runs it; false if none is set. */
function manualTimer(): {
  nowMs: number;
  fired: number;
  readonly set: (run: () => void, delayMs: number) => () => void;
  fire(): boolean;
} {
  let due: { readonly run: () => void; readonly atMs: number } | undefined;
  return {
    nowMs: 0,
    fired: 0,
    set(run, delayMs) {
      if (due !== undefined) throw new Error('a second timer');
      const mine = { run, atMs: this.nowMs + delayMs };
      due = mine;
      return () => {
        if (due === mine) due = undefined;
      };
    },
    fire() {
      if (due === undefined) return false;
      const { run, atMs } = due;
      due = undefined;
      this.nowMs = atMs;
      this.fired++;
      run();
      return true;
    },
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('four engines with fifty streams each at 30 tokens a second share one timer; the CPU share is printed', async () => {
  const time = manualTimer();
  const pacer = createPacer({ now: () => time.nowMs, setTimer: (run, delayMs) => time.set(run, delayMs) });
  const fleet = await Promise.all(
    Array.from({ length: 4 }, (_, i) =>
      start({ model: `sim-${i}`, pacer, timeScale: 1, speed: { tokensPerSecond: 30, prefillTokensPerSecond: 8000 } }),
    ),
  );
  const streams = fleet.flatMap((engine) =>
    Array.from({ length: 50 }, (_, i) => {
      const socket = connect(engine.port, '127.0.0.1');
      sockets.push(socket);
      const text = JSON.stringify({
        ...chat(`stream ${i}`, { stream: true, max_tokens: 90, ignore_eos: true }),
        model: engine.model,
      });
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
      );
      let bytes = 0;
      return new Promise<number>((resolve) => {
        socket.on('data', (chunk) => void (bytes += chunk.length));
        socket.once('close', () => resolve(bytes));
      });
    }),
  );
  await eventually(() => fleet.every(({ engine }) => engine.state().waiting + engine.state().running === 50));
  const before = process.cpuUsage();
  let sizes: readonly number[] | undefined;
  const ended = Promise.all(streams).then((all) => (sizes = all));
  while (time.fire()) await turn();
  await ended;
  const { user, system } = process.cpuUsage(before);
  const events = fleet.reduce((sum, engine) => sum + engine.engine.metrics.generationTokens, 0);
  process.stdout.write(
    `4 engines × 50 streams at 30 tok/s, engines and readers in one process: ${((user + system) / time.nowMs / 10).toFixed(0)} % of one core, ${((user + system) / events).toFixed(0)} µs a token event, ${(time.nowMs / 1000).toFixed(1)} s of their time\n`,
  );
  expect(events).toBe(4 * 50 * 90);
  expect(Math.min(...(sizes ?? [0]))).toBeGreaterThan(90 * 100);
  // 3 s at 30 steps a second, and a few steps for the prompts.
  expect(time.nowMs).toBeGreaterThan(2900);
  expect(time.fired).toBeLessThan(4 * 100);
});
