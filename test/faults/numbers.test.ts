import { describe, expect, test } from 'vitest';
import { faultBed, oneTier, tierEach, type FaultBed } from './support/fault-bed.fixture.ts';
import type { Act } from './support/fault-upstream.fixture.ts';
import { ANSWER, CHAT, chat, errorCode, event, json, opened, plain, streaming } from './support/wire.fixture.ts';

const ask = (bed: FaultBed, body: object = chat(), headers: readonly string[] = []) =>
  bed.run(bed.client().post(CHAT, body, headers).answer());
const asked = (bed: FaultBed): number => bed.upstreams.reduce((sum, { requests }) => sum + requests.length, 0);
const each = (bed: FaultBed, acts: readonly Act[]): void => {
  for (const upstream of bed.upstreams) upstream.onRequest = () => acts;
};

describe('retries', () => {
  test('cost at most a tenth of the requests, one a second, and ten saved up', async () => {
    const bed = await faultBed({
      upstreams: 3,
      policy: oneTier('ejection: false', 'default to tier "tier" with retry 3 (on: [connect, error])'),
    });
    each(bed, ['close']);
    const startMs = bed.time.now();
    const requests = 300;
    for (let i = 0; i < requests; i++) await ask(bed);
    const seconds = (bed.time.now() - startMs) / 1_000;
    const retries = asked(bed) - requests;
    expect(retries).toBeLessThanOrEqual(10 + requests / 10 + seconds);
    expect(retries).toBeGreaterThanOrEqual(requests / 10);
  });

  test.each([
    ['a reset on a fresh connection', ['reset'] as const, chat(), true],
    ['the same where the answer is stored', ['reset'] as const, chat({ store: true }), false],
    ['store: false', ['reset'] as const, chat({ store: false }), true],
    ['503', plain({}, 503), chat(), true],
    ['429', plain({}, 429), chat(), true],
    ['500', plain({}, 500), chat(), false],
    ['502', plain({}, 502), chat(), false],
    ['504', plain({}, 504), chat(), false],
    ['302', plain({}, 302, ['location: /elsewhere']), chat(), false],
    ['400', plain({}, 400), chat(), false],
    ['an empty reply', ['close'] as const, chat(), true],
    ['200 and an error event', opened('data: {"error":{"message":"x"}}\n\n'), streaming(), true],
  ])('unless the policy says otherwise, %s', async (_name, acts, body, again) => {
    const bed = await faultBed({ upstreams: 2 });
    let first = true;
    for (const upstream of bed.upstreams) {
      upstream.onRequest = () => {
        const now = first ? acts : plain(ANSWER);
        first = false;
        return now;
      };
    }
    expect((await ask(bed, body)).status === 200).toBe(again);
    expect(asked(bed)).toBe(again ? 2 : 1);
  });

  test('Retry-After: 0 is obeyed: no time passes', async () => {
    const bed = await faultBed({ upstreams: 2 });
    let first = true;
    for (const upstream of bed.upstreams) {
      upstream.onRequest = () => {
        const acts = first ? plain({}, 503, ['retry-after: 0']) : plain(ANSWER);
        first = false;
        return acts;
      };
    }
    const startMs = bed.time.now();
    expect((await bed.client().post(CHAT, chat()).answer()).status).toBe(200);
    expect(bed.time.now()).toBe(startMs);
  });

  test('Retry-After keeps an endpoint out of routing for so long, while there are others', async () => {
    const bed = await faultBed({ upstreams: 2 });
    bed.upstream.onRequest = (_request, index) => (index === 0 ? plain({}, 503, ['retry-after: 20']) : plain(ANSWER));
    const other = bed.upstreams[1];
    if (other !== undefined) other.onRequest = () => plain(ANSWER);
    for (let i = 0; i < 30 && bed.upstream.requests.length === 0; i++) expect((await ask(bed)).status).toBe(200);
    expect(bed.upstream.requests).toHaveLength(1);
    for (let i = 0; i < 30; i++) await ask(bed);
    expect(bed.upstream.requests).toHaveLength(1);
    await bed.time.advance(21_000);
    for (let i = 0; i < 30; i++) await ask(bed);
    expect(bed.upstream.requests.length).toBeGreaterThan(1);
  });

  test('none is made behind the deadline of the caller', async () => {
    const bed = await faultBed({
      upstreams: 3,
      policy: oneTier('', 'default to tier "tier" with retry 5 (on: [error])'),
    });
    for (const upstream of bed.upstreams) upstream.onRequest = () => [];
    const answer = bed.client().post(CHAT, chat(), ['x-request-deadline-ms: 800']).answer();
    const startMs = bed.time.now();
    expect((await bed.run(answer)).status).toBe(504);
    expect(bed.time.now() - startMs).toBeLessThan(880);
    expect(asked(bed)).toBe(1);
  });
});

test('a deadline that has passed already is 504 at once: nothing is sent, and no time goes by', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => plain(ANSWER);
  const startMs = bed.time.now();
  for (const over of ['0', '-1', String(bed.time.epochMs() - 1000)]) {
    for (const body of [chat(), streaming()]) {
      const answer = await bed
        .client()
        .post(CHAT, body, [`x-request-deadline-ms: ${over}`])
        .answer();
      expect([over, answer.status, errorCode(answer.body)]).toEqual([over, 504, 'upstream_timeout']);
    }
  }
  expect(bed.time.now()).toBe(startMs);
  expect(asked(bed)).toBe(0);
  expect(bed.decisions.map(({ status, attempts }) => [status, attempts.length])).toEqual(
    Array.from({ length: 6 }, () => [504, 0]),
  );
});

describe('the queue', () => {
  const one = oneTier('max_requests: 1', 'default to tier "tier" else queue with max_wait 3s, max_depth 2');

  test('is bounded by count: what finds it full is 503 queue_full at once, with Retry-After', async () => {
    const bed = await faultBed({ policy: one });
    const clients = Array.from({ length: 4 }, () => bed.client().post(CHAT, chat()));
    const refused = await Promise.race(clients.map((client) => client.answer()));
    expect(refused.status).toBe(503);
    expect(errorCode(refused.body)).toBe('queue_full');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(bed.core.status().queued).toBe(2);
    for (let i = 0; i < 3; i++) {
      await bed.run(bed.upstream.received(i + 1));
      bed.upstream.requests[i]?.socket.write(json(200, ANSWER));
    }
    await bed.until(() => bed.decisions.length === 4, 'all four');
    expect(bed.decisions.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 503]);
  });

  test('gives up after max_wait, and at the deadline of the caller if that is earlier', async () => {
    const bed = await faultBed({ policy: one });
    const busy = bed.client().post(CHAT, chat());
    await bed.upstream.received(1);
    const patient = bed.client().post(CHAT, chat()).answer();
    const hasty = bed.client().post(CHAT, chat(), ['x-request-deadline-ms: 1000']).answer();
    await bed.until(() => bed.core.status().queued === 2, 'both wait');
    const startMs = bed.time.now();
    const refused = await bed.run(hasty);
    expect(bed.time.now() - startMs).toBeLessThanOrEqual(1_150);
    expect([503, 504]).toContain(refused.status);
    const timedOut = await bed.run(patient);
    expect(bed.time.now() - startMs).toBeLessThanOrEqual(3_200);
    expect(timedOut.status).toBe(503);
    expect(errorCode(timedOut.body)).toBe('queue_timeout');
    expect(Number(timedOut.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    bed.upstream.requests[0]?.socket.write(json(200, ANSWER));
    expect((await busy.answer()).status).toBe(200);
    expect(bed.upstream.requests).toHaveLength(1);
  });

  test('a client that leaves it is forgotten', async () => {
    const bed = await faultBed({ policy: one });
    const busy = bed.client().post(CHAT, chat());
    await bed.upstream.received(1);
    const waiting = bed.client().post(CHAT, chat());
    await bed.until(() => bed.core.status().queued === 1, 'it waits');
    waiting.destroy();
    await bed.until(() => bed.core.status().queued === 0, 'it is forgotten');
    bed.upstream.requests[0]?.socket.write(json(200, ANSWER));
    expect((await busy.answer()).status).toBe(200);
    expect(bed.upstream.requests).toHaveLength(1);
  });
});

test('panic: with more than half of a tier ejected, health is ignored and the answer says so', async () => {
  const bed = await faultBed({
    upstreams: 4,
    policy: oneTier('ejection: { max_share: 100% }', 'default to tier "tier" with retry 0'),
  });
  each(bed, plain({}, 500));
  for (let i = 0; i < 80; i++) await ask(bed);
  expect(bed.core.endpoints().filter(({ healthy }) => healthy).length).toBeLessThan(2);
  each(bed, plain(ANSWER));
  const answer = await ask(bed);
  expect(answer.status).toBe(200);
  expect(answer.headers['x-signalbox-reason']).toContain('panic');
});

test('a policy never falls back to a tier that it does not name, however many fail', async () => {
  const bed = await faultBed({
    upstreams: 3,
    policy: tierEach('default to tier "t1" with retry 2, fallback tier "t2"'),
  });
  bed.upstream.onRequest = () => ['close'];
  const second = bed.upstreams[1];
  if (second !== undefined) second.onRequest = () => ['close'];
  expect((await ask(bed)).status).toBe(502);
  expect(bed.upstreams[2]?.requests).toHaveLength(0);
});

test('drain: streams go on within grace, then get the error event; what comes late is refused', async () => {
  const bed = await faultBed();
  bed.upstream.onRequest = () => opened(event('a'));
  const stream = bed.client().post(CHAT, streaming());
  await stream.until((text) => text.includes('"a"'));
  const closed = bed.proxy.close({ graceMs: 5_000, forceMs: 1_000 });
  await bed.time.advance(4_000);
  expect(stream.ended).toBe(false);
  await bed.time.advance(2_000);
  const end = await stream.closed();
  expect(end?.complete).toBe(false);
  expect(end?.body).toMatch(/data: \{"error":\{.*\}\}\n\n$/);
  await bed.time.advance(2_000);
  await closed;
  expect(bed.decisions).toHaveLength(1);
});
