import { expect, test } from 'vitest';
import { ManualTime } from '../../packages/proxy/src/manual-time.fixture.ts';
import { faultBed, oneTier } from './support/fault-bed.fixture.ts';
import { ANSWER, CHAT, chat, errorCode, event, opened, plain, streaming } from './support/wire.fixture.ts';

const HOUR_MS = 3_600_000;

/** Time whose wall clock is set by hand, apart from the monotonic one. */
class ShiftedTime extends ManualTime {
  shiftMs = 0;

  override epochMs(): number {
    return super.epochMs() + this.shiftMs;
  }
}

/** Sets the wall clock to and fro, in each way that a test is run. */
const jumps = [
  ['an hour forward', HOUR_MS],
  ['an hour back', -HOUR_MS],
] as const;

test.each(jumps)('F8: the wall clock goes %s: timeouts and deadlines hold', async (_way, jumpMs) => {
  const time = new ShiftedTime();
  const rule = 'default to tier "tier" with retry 0, first_token 10s, idle 20s, attempt_timeout 30s';
  const bed = await faultBed({ time, policy: oneTier('', rule) });
  const tookMs = async (promise: Promise<unknown>): Promise<number> => {
    const startMs = time.now();
    await bed.until(() => bed.proxy.stats.live > 0, 'the request is under way');
    await time.advance(200);
    time.shiftMs += jumpMs;
    await bed.run(promise);
    return time.now() - startMs;
  };
  const within = (ms: number, limitMs: number): void => {
    expect(ms).toBeGreaterThanOrEqual(limitMs);
    expect(ms).toBeLessThan(limitMs * 1.1);
  };
  bed.upstream.onRequest = () => [];
  within(await tookMs(bed.client().post(CHAT, streaming()).answer()), 10_000);
  within(await tookMs(bed.client().post(CHAT, chat()).answer()), 30_000);
  within(await tookMs(bed.client().post(CHAT, chat(), ['x-request-deadline-ms: 5000']).answer()), 5_000);
  // An absolute deadline is understood by the clock as it was when it came.
  const absolute = bed.client().post(CHAT, chat(), [`x-request-deadline-ms: ${time.epochMs() + 7_000}`]);
  within(await tookMs(absolute.answer()), 7_000);
  bed.upstream.onRequest = () => opened(event('a'));
  within(await tookMs(bed.client().post(CHAT, streaming()).closed()), 20_000);
  expect(bed.decisions.every(({ durationMs }) => durationMs > 0 && durationMs < 33_000)).toBe(true);
});

test.each(jumps)('F8: the wall clock goes %s: limits, ejections and waits hold', async (_way, jumpMs) => {
  const time = new ShiftedTime();
  const bed = await faultBed({
    time,
    upstreams: 2,
    policy: (origins) =>
      `define limit "few" { key: "all", requests: 3/min }\nreject "slow down" when over_limit("few")\n${oneTier('', 'default to tier "tier" with retry 1 (on: [connect, error])')(origins)}`,
  });
  for (const upstream of bed.upstreams) upstream.onRequest = () => plain(ANSWER);
  const ask = () => bed.run(bed.client().post(CHAT, chat()).answer());
  for (let i = 0; i < 3; i++) expect((await ask()).status).toBe(200);
  const refused = await ask();
  expect(refused.status).toBe(429);
  time.shiftMs += jumpMs;
  const again = await ask();
  expect(again.status).toBe(429);
  const retryAfter = Number(again.headers['retry-after']);
  expect(Math.abs(retryAfter - Number(refused.headers['retry-after']))).toBeLessThanOrEqual(1);
  await time.advance(retryAfter * 1_000);
  expect((await ask()).status).toBe(200);
});

test('F8: an endpoint that is left alone on the word of its server stays so while the wall clock jumps', async () => {
  const time = new ShiftedTime();
  const bed = await faultBed({ time, upstreams: 2 });
  const [first, second] = bed.upstreams;
  if (first === undefined || second === undefined) throw new Error('two servers are needed');
  // As an HTTP date: 30 s from now, by the clock as it is at this moment.
  first.onRequest = () => plain({}, 503, [`retry-after: ${new Date(time.epochMs() + 30_000).toUTCString()}`]);
  second.onRequest = () => plain(ANSWER);
  const ask = () => bed.run(bed.client().post(CHAT, chat()).answer());
  while (first.requests.length === 0) expect((await ask()).status).toBe(200);
  const asked = first.requests.length;
  for (const jumpMs of [HOUR_MS, -HOUR_MS, -HOUR_MS]) {
    time.shiftMs += jumpMs;
    for (let i = 0; i < 12; i++) expect((await ask()).status).toBe(200);
  }
  expect(first.requests).toHaveLength(asked);
  first.onRequest = () => plain(ANSWER);
  await time.advance(32_000);
  for (let i = 0; i < 40; i++) expect(errorCodeOf(await ask())).toBe('');
  expect(first.requests.length).toBeGreaterThan(asked);
});

function errorCodeOf({ status, body }: { readonly status: number; readonly body: string }): string {
  return status < 400 ? '' : errorCode(body);
}
