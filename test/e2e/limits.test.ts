import { createHash } from 'node:crypto';
import OpenAI, { RateLimitError } from 'openai';
import { afterEach, expect, test } from 'vitest';
import type { Bed, BedOptions } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

const hash = (key: string): string => createHash('sha256').update(key).digest('hex');

let bed: Bed;
afterEach(() => bed.stop());

/** A gateway with tenants `a` and `b`, whose keys are `key-a` and `key-b`. */
async function start(limits: string, tenantLimits: string, more: Partial<BedOptions> = {}): Promise<void> {
  bed = await startBed({
    engines: [{}],
    policy: ([url]) => `
      ${limits}
      define tenant "a" { keys: ["${hash('key-a')}"], limits: [${tenantLimits}] }
      define tenant "b" { keys: ["${hash('key-b')}"], limits: [${tenantLimits}] }
      define tier "t" { model: "sim", endpoints: ["${url}"] }
      default to tier "t" by least_tokens`,
    ...more,
  });
}

function ask(tenant: string, body: object = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${bed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer key-${tenant}` },
    body: JSON.stringify({
      model: 'sim',
      messages: [{ role: 'user', content: 'hello there' }],
      max_tokens: 5,
      ...body,
    }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** What the `x-ratelimit-*` headers of an answer say of requests or tokens: limit, remaining, reset. */
const standing = (answer: Response, of: 'requests' | 'tokens'): readonly (string | null)[] =>
  ['limit', 'remaining', 'reset'].map((part) => answer.headers.get(`x-ratelimit-${part}-${of}`));

const status = async (tenant: string, body?: object): Promise<number> => {
  const answer = await ask(tenant, body);
  await answer.arrayBuffer();
  return answer.status;
};

/** No lease is open, so that all that was used is settled. */
const settled = (): Promise<void> => eventually(() => bed.gateway.inflight() === 0, 'all is settled');

test('bug-44: five calls at once cannot spend more than 100 tokens a minute: each reserves at entry, and is settled with what it used', async () => {
  await start('define limit "plan" { key: tenant.id, tokens: 100/min }', '"plan"');
  const body = { max_tokens: 60, ignore_eos: true };
  const answers = await Promise.all(Array.from({ length: 5 }, () => ask('a', body)));
  const usages = await Promise.all(
    answers
      .filter(({ ok }) => ok)
      .map(async (answer) => ((await answer.json()) as { usage: { total_tokens: number } }).usage.total_tokens),
  );
  expect(answers.map((answer) => answer.status).toSorted()).toEqual([200, 429, 429, 429, 429]);
  expect(usages[0]).toBeLessThanOrEqual(100);
  for (const refused of answers.filter(({ ok }) => !ok)) {
    expect(((await refused.json()) as { error: object }).error).toEqual({
      message: 'The limit "plan" is used up. Try again later.',
      type: 'rate_limit_error',
      param: null,
      code: 'rate_limited',
    });
    // Nothing is used for sure yet, so nobody can tell sooner than in one window.
    expect(refused.headers.get('retry-after')).toBe('60');
  }
  await settled();
  const after = await ask('a', { max_tokens: 1 });
  const left = 100 - (usages[0] ?? 0);
  expect(Number(standing(after, 'tokens')[1])).toBeLessThan(left);
  expect(Number(standing(after, 'tokens')[1])).toBeGreaterThan(left - 30);
  expect(bed.engines[0]?.requests.count()).toBe(2);
  expect(await status('b', body)).toBe(200);
});

test('a stream holds its estimate until it ends, and then counts what it really used', async () => {
  await start('define limit "plan" { key: tenant.id, tokens: 200/min }', '"plan"', {
    engines: [{ speed: { tokensPerSecond: 60, prefillTokensPerSecond: 1e6 } }],
  });
  const stream = await ask('a', { stream: true, max_tokens: 150, ignore_eos: true });
  expect(stream.status).toBe(200);
  expect(Number(standing(stream, 'tokens')[1])).toBeLessThanOrEqual(50);
  expect(await status('a', { max_tokens: 60 })).toBe(429);
  const text = await stream.text();
  expect(text).toMatch(/data: \[DONE\]/);
  expect(text.match(/"content":"[^"]/g)).toHaveLength(150);
  await settled();
  const refused = await ask('a', { max_tokens: 60 });
  expect(refused.status).toBe(429);
  // The slices that are in the way leave one window from now.
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50);
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(63);
  const small = await ask('a', { max_tokens: 1 });
  expect(small.status).toBe(200);
  await small.arrayBuffer();
});

test('a stream that its caller leaves still costs what was predicted', async () => {
  await start('define limit "plan" { key: tenant.id, output_tokens: 200/min }', '"plan"', {
    engines: [{ speed: { tokensPerSecond: 20, prefillTokensPerSecond: 1e6 } }],
  });
  const abort = new AbortController();
  const stream = await ask('a', { stream: true, max_tokens: 150, ignore_eos: true }, abort.signal);
  abort.abort();
  await expect(stream.text()).rejects.toThrow();
  await settled();
  expect(await status('a', { max_tokens: 60 })).toBe(429);
  expect(await status('a', { max_tokens: 40 })).toBe(200);
});

test('requests under way are limited by their number, and places come back when they end', async () => {
  await start('define limit "plan" { key: tenant.id, concurrency: 2 }', '"plan"', {
    engines: [{ speed: { tokensPerSecond: 60, prefillTokensPerSecond: 1e6 } }],
  });
  const body = { stream: true, max_tokens: 60, ignore_eos: true };
  const streams = await Promise.all([ask('a', body), ask('a', body)]);
  expect(streams.map((answer) => answer.status)).toEqual([200, 200]);
  expect([await status('a'), await status('b')]).toEqual([429, 200]);
  await Promise.all(streams.map((answer) => answer.text()));
  await settled();
  expect(await status('a')).toBe(200);
});

test('every answer says where its caller stands in the tightest limit, a refusal too; refused requests are charged to nobody', async () => {
  await start(
    `define limit "minute" { key: tenant.id, requests: 3/min, tokens: 10k/min }
     define limit "day" { key: api_key.name, requests: 1000/d, input_tokens: 100k/d }`,
    '"minute", "day"',
  );
  const remaining: (string | null)[] = [];
  for (let i = 0; i < 6; i++) {
    const answer = await ask('a', { stream: i % 2 === 0 });
    await answer.text();
    expect(answer.status).toBe(i < 3 ? 200 : 429);
    const [limit, left, reset] = standing(answer, 'requests');
    expect([limit, /^6[0-3]s$/.test(reset ?? '')]).toEqual(['3', true]);
    remaining.push(left ?? null);
    expect(standing(answer, 'tokens')[0]).toBe('10000');
    if (i < 3) continue;
    const retryAfter = Number(answer.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(50);
    expect(retryAfter).toBeLessThanOrEqual(63);
  }
  expect(remaining).toEqual(['2', '1', '0', '0', '0', '0']);
  expect(standing(await ask('b'), 'requests')[1]).toBe('2');
  const unknown = await ask('b', { model: 'other' });
  expect([unknown.status, standing(unknown, 'requests')[1]]).toEqual([404, '2']);
});

test('a rule may refuse by a limit, or send elsewhere what exceeds it', async () => {
  bed = await startBed({
    engines: [{}, {}],
    policy: ([one, two]) => `
      define gateway { keys: { env: "SIGNALBOX_TEST_KEYS" } }
      define tenant "a" { }
      define tenant "b" { }
      define limit "fast" { key: tenant.id, requests: 2/min }
      define limit "all" { key: tenant.id ?? "none", requests: 4/min }
      define tier "fast" { model: "sim", endpoints: ["${one}"] }
      define tier "slow" { model: "sim", endpoints: ["${two}"] }
      reject "over" when over_limit("all") with status 429, message "enough for this minute"
      route "within" when not over_limit("fast") to tier "fast"
      default to tier "slow"`,
    gateway: { environment: { SIGNALBOX_TEST_KEYS: `${hash('key-a')} tenant=a; ${hash('key-b')} tenant=b` } },
  });
  const tiers: (string | null)[] = [];
  for (let i = 0; i < 5; i++) {
    const answer = await ask('a');
    tiers.push(
      answer.ok
        ? answer.headers.get('x-signalbox-tier')
        : ((await answer.json()) as { error: { message: string } }).error.message,
    );
  }
  expect(tiers).toEqual(['fast', 'fast', 'slow', 'slow', 'enough for this minute']);
});

test('the openai client sees a RateLimitError with the code and the time to wait', async () => {
  await start('define limit "plan" { key: tenant.id, requests: 1/min }', '"plan"');
  const client = new OpenAI({ baseURL: `${bed.gateway.url}/v1`, apiKey: 'key-a', maxRetries: 0 });
  const request = { model: 'sim', messages: [{ role: 'user' as const, content: 'hi' }], max_tokens: 1 };
  await client.chat.completions.create(request);
  const error: unknown = await client.chat.completions.create(request).catch((thrown: unknown) => thrown);
  if (!(error instanceof RateLimitError)) throw error;
  expect([error.status, error.code, Number(error.headers.get('retry-after')) > 50]).toEqual([
    429,
    'rate_limited',
    true,
  ]);
});

test('limits outlive a reload: what was used stays used', async () => {
  await start('define limit "plan" { key: tenant.id, requests: 2/min }', '"plan"');
  expect([await status('a'), await status('a'), await status('a')]).toEqual([200, 200, 429]);
  bed.writePolicy(`
    define limit "plan" { key: tenant.id, requests: 3/min }
    define tenant "a" { keys: ["${hash('key-a')}"], limits: ["plan"] }
    define tier "t" { model: "sim", endpoints: ["${bed.engines[0]?.url}"] }
    default to tier "t"`);
  await eventually(() => bed.reloads.at(-1)?.changed === true, 'the reload');
  expect([await status('a'), await status('a'), await status('b')]).toEqual([200, 429, 401]);
});
