import { afterEach, expect, test } from 'vitest';
import type { Bed } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

let bed: Bed;
let release: () => void;
afterEach(() => bed.stop());

/** A gateway whose one place is held by an answer that ends with `release`. */
async function full(queue: string): Promise<void> {
  bed = await startBed({
    engines: [{}],
    policy: ([url]) => `define tier "t" { model: "sim", max_requests: 1, endpoints: ["${url}"] }
      default to tier "t" by least_tokens else queue ${queue}`,
  });
  const abort = new AbortController();
  release = () => abort.abort();
  const held = await ask({ stream: true, max_tokens: 20_000, ignore_eos: true }, {}, abort.signal);
  expect(held.status).toBe(200);
  void held.text().catch(() => {});
}

function ask(body: object = {}, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${bed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'sim', messages: [{ role: 'user', content: 'hello' }], max_tokens: 3, ...body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

const metrics = async (): Promise<string> => (await fetch(`${bed.gateway.adminUrl}/metrics`)).text();

/** So many wait. */
const queued = (count: number): Promise<void> =>
  eventually(async () => {
    const sizes = [...(await metrics()).matchAll(/^signalbox_queue_size\{.*\} (\d+)$/gm)].map(([, size]) =>
      Number(size),
    );
    return sizes.reduce((sum, size) => sum + size, 0) === count;
  }, `${count} wait`);

test('a full queue displaces of the lowest class and answers 503 with a cause and Retry-After, counted by rule and class', async () => {
  await full('with max_wait 20s, max_depth 1, overflow lowest');
  const low = ask({}, { 'x-priority': 'low' });
  await queued(1);
  const normal = ask();
  const displaced = await low;
  expect(displaced.status).toBe(503);
  expect(Number(displaced.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(displaced.headers.get('x-signalbox-reason')).toContain('queue_full');
  expect(await displaced.json()).toMatchObject({ error: { code: 'queue_full', type: 'server_error' } });
  const another = await ask({}, { 'x-priority': 'low' });
  expect(another.status).toBe(503);
  await another.text();
  release();
  const answered = await normal;
  expect(answered.status).toBe(200);
  await answered.text();
  expect(await metrics()).toContain('signalbox_shed_total{tier="default",class="low",reason="queue_full"} 2');
});

test.each([
  ['x-request-deadline-ms', '300'],
  ['x-stainless-timeout', '0.3'],
])('a wait ends with the deadline of %s', async (name, value) => {
  await full('by deadline with max_wait 20s');
  const late = await ask({}, { [name]: value });
  expect(late.status).toBe(504);
  expect(await late.json()).toMatchObject({ error: { code: 'upstream_timeout' } });
  // It never went upstream.
  expect(bed.engines[0]?.requests.count('/v1/chat/completions')).toBe(1);
  release();
});
