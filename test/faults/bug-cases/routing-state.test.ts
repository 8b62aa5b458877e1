import { describe, expect, test } from 'vitest';
import type { FaultBed } from '../support/fault-bed.fixture.ts';
import { faultBed, oneTier, tierEach } from '../support/fault-bed.fixture.ts';
import type { FaultUpstream } from '../support/fault-upstream.fixture.ts';
import {
  ANSWER,
  CHAT,
  chat,
  chunk,
  DONE,
  errorCode,
  event,
  json,
  LAST_CHUNK,
  opened,
  plain,
  streaming,
} from '../support/wire.fixture.ts';

const ask = (bed: FaultBed, body: object = chat(), headers: readonly string[] = []) =>
  bed.run(bed.client().post(CHAT, body, headers).answer());
const counts = (bed: FaultBed): number[] => bed.upstreams.map(({ requests }) => requests.length);
const second = (bed: FaultBed): FaultUpstream => {
  const [, upstream] = bed.upstreams;
  if (upstream === undefined) throw new Error('there is one server only');
  return upstream;
};

test('bug-40: after an overload the breaker half-opens and everything heals with no restart', async () => {
  const bed = await faultBed({ upstreams: 3, policy: oneTier('', 'default to tier "tier" with retry 0') });
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain({}, 500);
  for (let i = 0; i < 40; i++) expect((await ask(bed)).status).toBeGreaterThanOrEqual(500);
  expect(bed.core.endpoints().some(({ ejections }) => ejections > 0)).toBe(true);
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain(ANSWER);
  await bed.time.advance(400_000);
  for (let i = 0; i < 30; i++) expect((await ask(bed)).status).toBe(200);
  await bed.time.advance(60_000);
  for (let i = 0; i < 60; i++) await ask(bed);
  expect(bed.core.endpoints().every(({ healthy, halfOpen }) => healthy && !halfOpen)).toBe(true);
});

test('bug-40: a server that was away is used again as soon as it is back', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => plain(ANSWER);
  await ask(bed);
  await bed.upstream.refuse();
  expect((await ask(bed)).status).toBeGreaterThanOrEqual(500);
  await bed.upstream.restart();
  expect((await ask(bed)).status).toBe(200);
});

test('bug-41: a second failure ejects for longer, and the result of a request from before an ejection does not end it', async () => {
  const bed = await faultBed({
    upstreams: 2,
    policy: tierEach('default to tier "t1" with retry 0', 'ejection: { failures: 2, duration: 10s, max_share: 100% }'),
  });
  const [state] = [() => bed.core.endpoints()[0]];
  // One request is under way when the others fail.
  bed.upstream.onRequest = (_request, index) => (index === 0 ? [] : plain({}, 500));
  const old = bed.client().post(CHAT, chat());
  await bed.upstream.received(1);
  for (let i = 0; i < 2; i++) await ask(bed);
  expect(state()).toMatchObject({ healthy: false, ejections: 1 });
  bed.upstream.requests[0]?.socket.write(json(200, ANSWER));
  expect((await bed.run(old.answer())).status).toBe(200);
  expect(state()).toMatchObject({ healthy: false, ejections: 1 });
  // Out for 10 s to 12 s; then one request decides, and fails.
  await bed.time.advance(13_000);
  await ask(bed);
  expect(state()).toMatchObject({ healthy: false, ejections: 2 });
  await bed.time.advance(13_000);
  expect(state()?.healthy).toBe(false);
  await bed.time.advance(12_000);
  bed.upstream.onRequest = () => plain(ANSWER);
  expect((await ask(bed)).status).toBe(200);
});

describe('bug-42: nothing available', () => {
  test('bug-42: is 503 with a cause and Retry-After', async () => {
    const bed = await faultBed({
      policy: oneTier('', 'default to tier "tier" where context_window > 9000 with retry 0'),
    });
    const answer = await ask(bed);
    expect(answer).toMatchObject({ status: 503 });
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(errorCode(answer.body)).toBe('no_endpoint');
  });

  test('bug-42: is 429 only if every endpoint said so', async () => {
    for (const [status, expected] of [
      [429, 429],
      [503, 503],
    ] as const) {
      const bed = await faultBed({
        upstreams: 2,
        policy: oneTier('', 'default to tier "tier" with retry 1 (on: [rate_limited, saturated])'),
      });
      bed.upstream.onRequest = () => plain({}, 429);
      second(bed).onRequest = () => plain({}, status);
      const answer = await ask(bed);
      expect(counts(bed)).toEqual([1, 1]);
      expect(answer.status).toBe(expected);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
  });

  test('bug-42: is 429 for the limit of the caller', async () => {
    const bed = await faultBed({
      policy: (origins) => `
        define limit "few" { key: user, requests: 1/min }
        ${oneTier('', 'reject "few" when over_limit("few") with status 429, message "slow down"\ndefault to tier "tier"')(origins)}`,
    });
    bed.upstream.onRequest = () => plain(ANSWER);
    expect((await ask(bed, chat({ user: 'u' }))).status).toBe(200);
    const refused = await ask(bed, chat({ user: 'u' }));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect((await ask(bed, chat({ user: 'v' }))).status).toBe(200);
  });
});

test('bug-43: each attempt is made from the original bytes, not from what the one before made of them', async () => {
  const bed = await faultBed({
    upstreams: 2,
    policy: ([a, b]) => `
      define gateway { models: ["auto"] }
      define tier "t1" { model: "one", endpoints: ["${a}"] headers: { "x-tier": "one" } }
      define tier "t2" { model: "two", endpoints: ["${b}"] }
      default to tier "t1" with set "temperature" 0.5, retry 0, fallback tier "t2"`,
  });
  bed.upstream.onRequest = () => plain({}, 500);
  second(bed).onRequest = () => plain(ANSWER);
  const sent = '{"model":"auto","messages":[{"role":"user","content":"hi"}],"x":1.0}';
  const answer = await bed.run(bed.client().post(CHAT, sent).answer());
  expect(answer.status).toBe(200);
  expect(bed.upstream.lastBody).toMatchObject({ model: 'one' });
  expect(second(bed).lastBody).toMatchObject({ model: 'two', x: 1 });
  expect(second(bed).requests[0]?.body).toContain('"x":1.0');
  expect(second(bed).requests[0]?.headers).not.toHaveProperty('x-tier');
});

test('bug-44: parallel calls reserve their tokens at the door, and streams are settled with what they really used', async () => {
  const bed = await faultBed({
    policy: (origins) => `
      define limit "t" { key: user, tokens: 600/min }
      ${oneTier('', 'reject "t" when over_limit("t") with status 429, message "slow down"\ndefault to tier "tier"')(origins)}`,
  });
  const body = streaming({ user: 'u', max_tokens: 250 });
  const clients = Array.from({ length: 5 }, () => bed.client().post(CHAT, body));
  await bed.until(() => bed.core.status().leasesOpen + bed.decisions.length === 5, 'all five');
  expect(bed.core.status().leasesOpen).toBe(2);
  const open = bed.upstream.requests.length;
  await bed.until(() => bed.upstream.requests.length === bed.core.status().leasesOpen, 'those that were let in');
  expect(open).toBeLessThanOrEqual(2);
  for (const { socket } of bed.upstream.requests) {
    const usage = 'data: {"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":10}}\n\n';
    socket.write(
      Buffer.concat([
        Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'),
        chunk(event('a') + usage + DONE),
        Buffer.from(LAST_CHUNK),
      ]),
    );
  }
  await bed.run(Promise.all(clients.map((one) => one.answer())));
  // Some 15 tokens each were used, so there is room again within the same minute.
  const again = bed.client().post(CHAT, body);
  await bed.upstream.received(bed.upstream.requests.length + 1).finally(() => undefined);
  bed.upstream.requests.at(-1)?.socket.write(json(200, ANSWER));
  expect((await again.answer()).status).toBe(200);
});

test('bug-45: bad requests never open the breaker', async () => {
  const bed = await faultBed({ upstreams: 2 });
  for (const upstream of bed.upstreams)
    upstream.onRequest = (_request, index) =>
      plain({ error: { message: 'bad' } }, [400, 401, 403, 404, 413, 422][index % 6]);
  for (let i = 0; i < 60; i++) expect((await ask(bed)).status).toBeLessThan(500);
  expect(bed.core.endpoints()).toMatchObject([
    { healthy: true, ejections: 0 },
    { healthy: true, ejections: 0 },
  ]);
});

test('bug-46: any mix of aborts and cuts, a split [DONE] among them, leaves the ledger at zero', async () => {
  const bed = await faultBed({ upstreams: 2 });
  const whole = Buffer.from(event('a') + DONE);
  for (const upstream of bed.upstreams) {
    upstream.onRequest = (_request, index) => {
      const cut = index % (whole.length + 1);
      const parts = [
        { send: 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n' },
        ...(cut > 0 ? [{ send: chunk(whole.subarray(0, cut)) }] : []),
      ];
      if (index % 3 === 0) return [...parts, 'reset'];
      if (index % 3 === 1) return [...parts, 'close'];
      return cut < whole.length
        ? [...parts, { send: chunk(whole.subarray(cut)) }, { send: LAST_CHUNK }]
        : [...parts, { send: LAST_CHUNK }];
    };
  }
  const clients = Array.from({ length: 250 }, () => bed.client().post(CHAT, streaming()));
  await bed.until(() => bed.upstreams.some(({ requests }) => requests.length > 50), 'load');
  for (const [i, one] of clients.entries()) if (i % 4 === 0) one.socket.resetAndDestroy();
  await bed.run(Promise.all(clients.map((one) => Promise.race([one.answer().catch(() => undefined), one.closed()]))));
  await bed.quiet();
  // A connection that was reset before its request was read has no record.
  expect(bed.decisions.length + bed.unrouted.length).toBeLessThanOrEqual(250);
});

test('bug-47: load is held from the pick to the end of the body, on every path', async () => {
  const bed = await faultBed();
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n';
  bed.upstream.onRequest = ({ path }) =>
    path === '/v1/responses' ? opened('event: x\ndata: {"type":"x"}\n\n') : [{ send: `${head}{}` }];
  const paths = [
    CHAT,
    '/v1/completions',
    '/v1/embeddings',
    '/v1/responses',
    '/v1/messages',
    '/v1/rerank',
    '/v1/audio/speech',
  ];
  const clients = paths.map((path) =>
    bed.client().post(path, chat({ prompt: 'x', input: 'x', query: 'x', documents: [] })),
  );
  await bed.upstream.received(paths.length);
  await bed.run(new Promise<void>((resolve) => setImmediate(resolve)));
  await bed.time.advance(1_000);
  expect(bed.core.endpoints()[0]?.inflightRequests).toBe(paths.length);
  for (const { path, socket } of bed.upstream.requests) {
    socket.write(
      path === '/v1/responses'
        ? Buffer.concat([
            chunk('event: response.completed\ndata: {"type":"response.completed"}\n\n'),
            Buffer.from(LAST_CHUNK),
          ])
        : '  ',
    );
  }
  for (const one of clients) expect((await one.answer()).status).toBe(200);
  await bed.until(() => bed.core.status().leasesOpen === 0, 'all ended');
});

test('bug-48: equal loads share: no endpoint has more than a tenth above or below its part', async () => {
  const bed = await faultBed({ upstreams: 4 });
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain(ANSWER);
  const one = bed.client();
  // a tenth of a share is five standard deviations of a fair draw
  const count = 8_000;
  for (let i = 0; i < count; i++) await one.post(CHAT, chat()).answer();
  for (const got of counts(bed)) {
    expect(got).toBeGreaterThan((count / 4) * 0.9);
    expect(got).toBeLessThan((count / 4) * 1.1);
  }
});

test('bug-49: an endpoint that leaves and comes back is not charged for what it held before', async () => {
  const bed = await faultBed({ upstreams: 2 });
  const both = oneTier()(bed.upstreams.map(({ origin }) => origin));
  const without = oneTier()([second(bed).origin]);
  bed.upstream.onRequest = () => opened(event('a'));
  second(bed).onRequest = () => opened(event('a'));
  const clients = Array.from({ length: 6 }, () => bed.client().post(CHAT, streaming()));
  for (const one of clients) await one.until((text) => text.includes('"a"'));
  for (let i = 0; i < 5; i++) {
    bed.reload(`${without}\n# ${i}`);
    bed.reload(`${both}\n# ${i}`);
  }
  for (const upstream of bed.upstreams)
    for (const { socket } of upstream.requests) socket.write(Buffer.concat([chunk(DONE), Buffer.from(LAST_CHUNK)]));
  for (const one of clients) expect(await one.answer()).toMatchObject({ body: event('a') + DONE, complete: true });
  await bed.until(() => bed.core.status().leasesOpen === 0, 'all ended');
  for (const { inflightRequests, inflightTokens } of bed.core.endpoints())
    expect([inflightRequests, inflightTokens]).toEqual([0, 0]);
});

test('bug-50: six silent minutes still count', async () => {
  const bed = await faultBed();
  const one = bed.client().post(CHAT, chat());
  await bed.upstream.received(1);
  await bed.time.advance(360_000);
  expect(bed.core.endpoints()[0]?.inflightRequests).toBe(1);
  bed.upstream.requests[0]?.socket.write(json(200, ANSWER));
  expect((await one.answer()).status).toBe(200);
});

test('bug-51: fifty picks between two reports spread', async () => {
  const bed = await faultBed({ upstreams: 5 });
  for (let i = 1; i <= 5; i++) bed.core.feed(`tier/${i}`, { queueDepth: i === 3 ? 0 : 2, running: i === 3 ? 0 : 2 });
  const clients = Array.from({ length: 50 }, () => bed.client().post(CHAT, chat()));
  await bed.until(() => counts(bed).reduce((a, b) => a + b) === 50, 'all fifty');
  for (const got of counts(bed)) {
    expect(got).toBeGreaterThanOrEqual(8);
    expect(got).toBeLessThanOrEqual(12);
  }
  for (const upstream of bed.upstreams) for (const { socket } of upstream.requests) socket.write(json(200, ANSWER));
  for (const one of clients) expect((await one.answer()).status).toBe(200);
});

test('bug-52: a retry goes elsewhere while another endpoint is eligible, also with affinity', async () => {
  const bed = await faultBed({
    upstreams: 3,
    policy: oneTier('', 'default to tier "tier" with affinity session, retry 1 (on: [connect, error])'),
  });
  const rest = [...bed.upstreams];
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain(ANSWER);
  await ask(bed, chat(), ['x-session-id: s1']);
  const home = rest.find(({ requests }) => requests.length === 1);
  if (home === undefined) throw new Error('no endpoint was asked');
  home.onRequest = () => ['reset'];
  for (let i = 0; i < 12; i++) {
    const before = home.requests.length;
    expect((await ask(bed, chat(), ['x-session-id: s1'])).status).toBe(200);
    // Besides the one free repetition of a reused connection.
    expect(home.requests.length - before).toBeLessThanOrEqual(2);
  }
  // Failures in a row took it out of routing, cache or not.
  const before = home.requests.length;
  for (let i = 0; i < 5; i++) expect((await ask(bed, chat(), ['x-session-id: s1'])).status).toBe(200);
  expect(home.requests.length).toBe(before);
});
