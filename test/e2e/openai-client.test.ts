import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Bed } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

let bed: Bed;
let client: OpenAI;
const messages = [{ role: 'user' as const, content: 'Is Paris in France?' }];
const hard = [
  { role: 'user' as const, content: 'Analyze the economic impact of climate change on small island states.' },
];

beforeAll(async () => {
  bed = await startBed({
    engines: [{ model: 'small' }, { model: 'large' }, { model: 'embedder' }],
    policy: ([small, large, embedder]) => `
      define gateway { models: ["auto"] }
      define tier "small" { model: "small", endpoints: ["${small}"], context_window: 8k }
      define tier "large" { model: "large", endpoints: ["${large}"] }
      define tier "embed" { model: "embedder", endpoints: ["${embedder}"] }
      reject "no" when model == "forbidden" with status 403, message "not here"
      route "embeddings" when path == "/v1/embeddings" to tier "embed"
      route "hard" when complexity > 50 to tier "large" by least_tokens with affinity session
      default to tier "small" by least_tokens`,
  });
  client = new OpenAI({ baseURL: `${bed.gateway.url}/v1`, apiKey: 'unused', maxRetries: 0 });
});
afterAll(() => bed.stop());

test('a plain chat is answered by the tier that the policy says, under the name the client asked for', async () => {
  const { data, response } = await client.chat.completions.create({ model: 'auto', messages }).withResponse();
  expect(data.model).toBe('auto');
  expect(data.choices[0]?.message.content).toMatch(/\w/);
  expect(data.usage?.completion_tokens).toBeGreaterThan(0);
  expect(response.headers.get('x-signalbox-route')).toBe('default');
  expect(response.headers.get('x-signalbox-tier')).toBe('small');
  const difficult = await client.chat.completions.create({ model: 'auto', messages: hard }).withResponse();
  expect(difficult.response.headers.get('x-signalbox-route')).toBe('hard');
  expect(difficult.response.headers.get('x-signalbox-tier')).toBe('large');
  expect(JSON.parse(bed.engines[1]?.requests.last('/v1/chat/completions')?.body.toString() ?? '{}')).toMatchObject({
    model: 'large',
  });
});

test('a streamed chat gives the same text as the engine asked directly', async () => {
  const direct = new OpenAI({ baseURL: `${bed.engines[0]?.url}/v1`, apiKey: 'unused', maxRetries: 0 });
  const collect = async (
    from: OpenAI,
    model: string,
  ): Promise<{ text: string; models: Set<string>; usages: number }> => {
    let text = '';
    let usages = 0;
    const models = new Set<string>();
    for await (const chunk of await from.chat.completions.create({ model, messages, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
      models.add(chunk.model);
      if (chunk.usage) usages++;
    }
    return { text, models, usages };
  };
  const through = await collect(client, 'auto');
  const straight = await collect(direct, 'small');
  expect(through.text).toBe(straight.text);
  expect(through.text.length).toBeGreaterThan(20);
  expect([...through.models]).toEqual(['auto']);
  expect(through.usages).toBe(0);
});

test('usage comes at the end of a stream exactly when the client asks for it', async () => {
  const stream = await client.chat.completions.create({
    model: 'auto',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  const usages = [];
  for await (const chunk of stream) if (chunk.usage) usages.push(chunk);
  expect(usages).toHaveLength(1);
  expect(usages[0]?.choices).toEqual([]);
  expect(usages[0]?.usage?.prompt_tokens).toBeGreaterThan(0);
});

test('completions work plain and streamed', async () => {
  const plain = await client.completions.create({ model: 'auto', prompt: 'Once upon a time', max_tokens: 12 });
  let text = '';
  for await (const chunk of await client.completions.create({
    model: 'auto',
    prompt: 'Once upon a time',
    max_tokens: 12,
    stream: true,
  })) {
    text += chunk.choices[0]?.text ?? '';
  }
  expect(text).toBe(plain.choices[0]?.text);
  expect(plain.choices[0]?.finish_reason).toBe('length');
});

test('embeddings come as floats by the base64 default of the client', async () => {
  const { data } = await client.embeddings.create({ model: 'auto', input: ['one', 'two'] });
  expect(data).toHaveLength(2);
  expect(data[0]?.embedding.length).toBeGreaterThan(8);
  expect(data[0]?.embedding).not.toEqual(data[1]?.embedding);
});

test('models are listed with their context length, and one can be asked for by id', async () => {
  const listed = new Map(
    (await client.models.list()).data.map((model) => [model.id, model as { max_model_len?: number }]),
  );
  expect([...listed.keys()].toSorted()).toEqual(['auto', 'embedder', 'forbidden', 'large', 'small']);
  expect(listed.get('small')?.max_model_len).toBe(8000);
  expect((await client.models.retrieve('large')).id).toBe('large');
  await expect(client.models.retrieve('nothing')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
});

test('an aborted stream frees the engine and the lease', async () => {
  const abort = new AbortController();
  const stream = await client.chat.completions.create(
    {
      model: 'auto',
      messages,
      stream: true,
      max_tokens: 4000,
      ignore_eos: true,
    } as OpenAI.ChatCompletionCreateParamsStreaming,
    { signal: abort.signal },
  );
  let seen = 0;
  await expect(
    (async () => {
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content && ++seen === 5) abort.abort();
      abort.signal.throwIfAborted();
    })(),
  ).rejects.toThrow();
  await eventually(() => bed.engines[0]?.engine.state().running === 0, 'the engine stops');
  await eventually(() => bed.gateway.inflight() === 0, 'the lease is back');
  expect(bed.gateway.decisions(1)[0]).toMatchObject({ status: 499 });
});

describe('errors are raised as the client knows them', () => {
  test('an unknown model', async () => {
    const error = await client.chat.completions
      .create({ model: 'nothing', messages })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect(error).toMatchObject({ status: 404, code: 'model_not_found', type: 'invalid_request_error' });
    expect((error as InstanceType<typeof OpenAI.APIError>).requestID).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('a policy that rejects', async () => {
    const error = await client.chat.completions
      .create({ model: 'forbidden', messages })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
    expect(error).toMatchObject({ status: 403, code: 'rejected' });
    expect((error as Error).message).toContain('not here');
  });

  test('a request that is no request', async () => {
    await expect(client.chat.completions.create({ model: 'auto', messages: [] })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
  });

  test('an engine that refuses a request as wrong is relayed whole', async () => {
    await expect(
      client.chat.completions.create({ model: 'auto', messages, max_tokens: 10_000_000 }),
    ).rejects.toMatchObject({ status: 400 });
  });

  test('a stream that dies in the middle raises, and keeps the text so far', async () => {
    bed.engines[0]?.setFaults([{ resetAtByte: 1500, times: 1 }]);
    let text = '';
    const error = await (async () => {
      for await (const chunk of await client.chat.completions.create({ model: 'auto', messages, stream: true })) {
        text += chunk.choices[0]?.delta.content ?? '';
      }
      return undefined;
    })().catch((caught: unknown) => caught);
    bed.engines[0]?.setFaults([]);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ code: 'upstream_disconnected' });
    expect(text.length).toBeGreaterThan(0);
  });

  test('an endpoint that is down is a 502 with no word of the server’s', async () => {
    bed.engines[0]?.setFaults([{ errorStatus: 500, times: 1 }]);
    const error = await client.chat.completions.create({ model: 'auto', messages }).catch((caught: unknown) => caught);
    bed.engines[0]?.setFaults([]);
    expect(error).toMatchObject({ status: 502, code: 'upstream_error' });
  });
});
