import { afterEach, beforeEach, expect, test } from 'vitest';
import type { EndpointStatus } from '../../packages/core/src/index.ts';
import type { Finished } from './support/command.fixture.ts';
import { signalbox, startSignalbox } from './support/command.fixture.ts';
import type { Bed } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

const policy = (urls: readonly string[], names: readonly string[], limit = ''): string => `
  define gateway { models: ["auto"] ${limit} }
  define tier "sim" { model: "sim" }
  ${names.map((name, i) => `define endpoint "${name}" { tier: "sim", url: "${urls[i]}" }`).join('\n')}
  default to tier "sim" by lowest(inflight_requests)`;

let bed: Bed;
beforeEach(async () => {
  bed = await startBed({
    engines: [{ speed: { tokensPerSecond: 40, prefillTokensPerSecond: 1_000_000 } }, {}],
    policy: (urls) => policy(urls, ['gpu/1', 'gpu/2']),
  });
});
afterEach(() => bed.stop());

const command = (...args: string[]): Promise<Finished> =>
  signalbox(['endpoints', ...args, '--admin', bed.gateway.adminUrl], process.cwd());

async function ask(more: object = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${bed.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'hello' }], max_tokens: 1, ...more }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function endpointsOf(count: number): Promise<ReadonlySet<string | null>> {
  const used = new Set<string | null>();
  for (let i = 0; i < count; i++) {
    const response = await ask();
    await response.arrayBuffer();
    used.add(response.headers.get('x-signalbox-endpoint'));
  }
  return used;
}

const statusOf = (name: string): EndpointStatus | undefined => bed.gateway.endpoints().find((row) => row.name === name);

/** A stream that runs at `gpu/1` until it is left. */
async function streamAtFirst(): Promise<() => void> {
  await command('cordon', 'gpu/2');
  const leave = new AbortController();
  const response = await ask({ stream: true, max_tokens: 4000, ignore_eos: true }, leave.signal);
  expect([response.status, response.headers.get('x-signalbox-endpoint')]).toEqual([200, 'gpu/1']);
  response.text().catch(() => undefined);
  await command('uncordon', 'gpu/2');
  return () => leave.abort();
}

test('a cordoned endpoint gets nothing new, through a reload that renames it, until it is uncordoned', async () => {
  expect(await command('cordon', 'gpu/1')).toEqual({
    code: 0,
    out: 'gpu/1 is drained: it has nothing in flight, and gets nothing until it is uncordoned\n',
    err: '',
  });
  expect(await endpointsOf(6)).toEqual(new Set(['gpu/2']));
  expect(bed.gateway.decisions(1)[0]?.dropped).toEqual({ draining: 1 });
  expect(await (await fetch(`${bed.gateway.adminUrl}/metrics`)).text()).toContain(
    'signalbox_endpoint_cordoned{tier="sim",endpoint="gpu/1"} 1',
  );

  bed.writePolicy(
    policy(
      bed.engines.map(({ url }) => url),
      ['old', 'gpu/2'],
    ),
  );
  await eventually(() => bed.reloads.length === 1, 'the reload');
  expect(bed.reloads[0]).toMatchObject({ ok: true, changed: true });
  expect(await endpointsOf(3)).toEqual(new Set(['gpu/2']));
  const { out } = await command('list');
  expect(out.split('\n')[1]).toMatch(/^old\s+sim\s+draining\s+0\s+0\s+cordoned$/);

  expect((await command('uncordon', 'old')).out).toBe('old takes requests again\n');
  expect(statusOf('old')).toMatchObject({ state: 'ready', cordoned: false });
  // Two in flight go to two endpoints.
  const two = await Promise.all([ask({ max_tokens: 30, ignore_eos: true }), ask({ max_tokens: 30, ignore_eos: true })]);
  await Promise.all(two.map((response) => response.arrayBuffer()));
  expect(new Set(two.map((response) => response.headers.get('x-signalbox-endpoint')))).toEqual(
    new Set(['old', 'gpu/2']),
  );
});

test('with all cordoned, requests are refused with 503, and explain says that they drain', async () => {
  for (const name of ['gpu/1', 'gpu/2']) expect((await command('cordon', name)).code).toBe(0);
  const response = await ask();
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await response.json()).toMatchObject({ error: { code: 'no_endpoint' } });
  const explained = await fetch(`${bed.gateway.adminUrl}/-/explain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'hello' }] }),
  });
  const { explanation } = (await explained.json()) as { explanation: { candidates: { verdict: string }[] } };
  expect(explanation.candidates.map(({ verdict }) => verdict)).toEqual(['draining', 'draining']);
});

test('a drain waits, telling what is in flight, until the last stream has ended, and cuts none', async () => {
  const leave = await streamAtFirst();
  const drain = startSignalbox(['endpoints', 'drain', 'gpu/1', '--admin', bed.gateway.adminUrl]);
  await drain.saw('gpu/1: 1 request in flight');
  expect(statusOf('gpu/1')).toMatchObject({ state: 'draining', inflightRequests: 1 });
  expect(drain.out()).toBe('');
  leave();
  expect(await drain.ended).toBe(0);
  expect(drain.out()).toMatch(/^gpu\/1 is drained/);
  expect(statusOf('gpu/1')).toMatchObject({ cordoned: true, inflightRequests: 0 });
});

test('a drain that takes too long, is undone, or whose endpoint leaves the policy meanwhile, ends and says so', async () => {
  const leave = await streamAtFirst();
  expect(await command('drain', 'gpu/1', '--timeout', '0')).toEqual({
    code: 1,
    out: '',
    err: 'gpu/1: 1 request in flight\ngpu/1 still has 1 request in flight; it stays cordoned\n',
  });
  const late = await command('drain', 'gpu/1', '--timeout', '0', '--json');
  expect([late.code, JSON.parse(late.out)]).toMatchObject([1, { drained: false, endpoint: { inflightRequests: 1 } }]);

  const undone = startSignalbox(['endpoints', 'drain', 'gpu/1', '--admin', bed.gateway.adminUrl]);
  await undone.saw('1 request in flight');
  await command('uncordon', 'gpu/1');
  expect(await undone.ended).toBe(1);
  expect(undone.err()).toMatch(/taken back in by somebody else/);

  const gone = startSignalbox(['endpoints', 'drain', 'gpu/1', '--admin', bed.gateway.adminUrl, '--json']);
  await gone.saw('1 request in flight');
  bed.writePolicy(policy([bed.engines[1]?.url ?? ''], ['gpu/2']));
  await eventually(() => bed.reloads.length === 1, 'the reload');
  expect((await command()).out).toMatch(/gpu\/1\s+sim\s+draining\s+1 .*no longer in the policy, cordoned/);
  leave();
  expect(await gone.ended).toBe(0);
  expect(JSON.parse(gone.out())).toMatchObject({ drained: true, endpoint: { name: 'gpu/1', inflightRequests: 0 } });
});

test('the admin listener answers a drain with 202 until it is done, and a wrong name with 404 and the right one', async () => {
  const leave = await streamAtFirst();
  const drain = (): Promise<Response> => fetch(`${bed.gateway.adminUrl}/-/endpoints/gpu/1/drain`, { method: 'POST' });
  const first = await drain();
  expect([first.status, await first.json()]).toMatchObject([202, { drained: false, endpoint: { name: 'gpu/1' } }]);
  leave();
  await eventually(async () => (await drain()).status === 200, 'the drain');

  const wrong = await command('cordon', 'gpu1');
  expect(wrong).toEqual({
    code: 1,
    out: '',
    err: 'signalbox endpoints: the policy in force has no endpoint "gpu1"; did you mean "gpu/1"? "signalbox endpoints", or GET /-/endpoints, lists them\n',
  });
});

test('the list tells who is ejected and for how long, and who starts slowly', async () => {
  await Promise.all(bed.engines.map((engine) => engine.close('reset')));
  while (statusOf('gpu/1')?.healthy !== false && statusOf('gpu/2')?.healthy !== false)
    await (await ask()).arrayBuffer();
  const ejected = bed.gateway.endpoints().find(({ healthy }) => !healthy);
  const row = (await command()).out.split('\n').find((line) => line.startsWith(`${ejected?.name} `));
  expect(row).toMatch(/^gpu\/[12]\s+sim\s+ejected\s+0\s+0\s+ejected for another \d+ s$/);
  bed.writePolicy(policy([...bed.engines.map(({ url }) => url), 'http://127.0.0.1:9'], ['gpu/1', 'gpu/2', 'gpu/3']));
  await eventually(() => bed.reloads.length === 1, 'the reload');
  expect((await command()).out).toMatch(/\ngpu\/3\s+sim\s+ready\s+0\s+0\s+slow start, \d+ % of its share\n/);
});

test('a wrong command line is told with exit code 2, and a listener that cannot be had with 1', async () => {
  for (const [args, said] of [
    [['stop', 'gpu/1'], 'expected list, cordon, drain, uncordon, got "stop"'],
    [['drain'], 'drain needs the name of an endpoint'],
    [['list', 'gpu/1'], 'unexpected argument "gpu/1"'],
    [['cordon', 'gpu/1', '--timeout', '5'], '--timeout is for drain alone'],
    [['drain', 'gpu/1', '--timeout', 'soon'], 'a number of seconds from 0 to 86400, got "soon"'],
  ] as const) {
    const { code, err } = await command(...args);
    expect([args, code, err]).toEqual([args, 2, expect.stringContaining(said)]);
  }
  const asked = (admin: string): Promise<Finished> => signalbox(['endpoints', '--admin', admin], process.cwd());
  expect(await asked('http://')).toMatchObject({ code: 2, err: expect.stringContaining('--admin must be') as string });
  expect(await asked('127.0.0.1:1')).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /http:\/\/127\.0\.0\.1:1 does not answer: .*ECONNREFUSED.*Is the gateway running/,
    ) as string,
  });
  expect(await asked(bed.gateway.url)).toMatchObject({ code: 1, err: expect.stringMatching(/endpoints:/) as string });
});

test('a listener with a token wants it from the command too', async () => {
  await bed.stop();
  bed = await startBed({
    engines: [{}],
    policy: (urls) => policy(urls, ['gpu/1']),
    gateway: { adminToken: 'right' },
  });
  expect(await command()).toMatchObject({
    code: 1,
    err: expect.stringMatching(/--token.*SIGNALBOX_ADMIN_TOKEN/) as string,
  });
  expect((await command('--token', 'wrong')).code).toBe(1);
  expect(await command('--token', 'two\nlines')).toMatchObject({
    code: 2,
    err: expect.stringContaining('visible ASCII') as string,
  });
  expect((await command('--token', 'right')).out).toMatch(/^ENDPOINT.*\ngpu\/1 /);
  expect(statusOf('gpu/1')).toMatchObject({ cordoned: false });
});
