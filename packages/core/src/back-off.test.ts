import { expect, test } from 'vitest';
import type { AttemptFailure } from './router.ts';
import { destination, ProgramBuilder, route, testCore, tier, type TestCore } from './program.fixture.ts';

const CONNECT: AttemptFailure = { cause: 'connect', status: 0, retryAfterSeconds: Number.NaN, durationMs: 5 };

/** The waits before the second, third … attempt of one request, by a core of this seed, in milliseconds. */
function waitsOf(seed: number, attempts: number): readonly number[] {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', attempts + 1, { model: 'm' })],
      routes: [
        route('default', [
          destination('A', [b.lowest('declared_order')], { with: { retry: { attempts, on: ['connect'] } } }),
        ]),
      ],
    }),
    { seed },
  );
  const one = t.forward();
  return Array.from({ length: attempts }, () => {
    const step = one.next(CONNECT);
    if (step.kind !== 'attempt') throw new Error(`no attempt: ${step.code}`);
    return step.waitMs;
  });
}

test('the wait before a retry is drawn evenly from 0 to 50 ms · 2ⁿ, and from 0 to 2 s at most', () => {
  const cores = 1500;
  const attempts = 8;
  const all = Array.from({ length: cores }, (_, seed) => waitsOf(seed + 1, attempts));
  for (let n = 0; n < attempts; n++) {
    const most = Math.min(2000, 50 * 2 ** n);
    const shares = all.map((waits) => (waits[n] ?? Number.NaN) / most).toSorted((a, b) => a - b);
    expect(shares.at(0)).toBeGreaterThanOrEqual(0);
    expect(shares.at(-1)).toBeLessThanOrEqual(1);
    // The largest gap to the even distribution; by chance alone it is above this once in 1,000 (Kolmogorov and Smirnov).
    const gap = Math.max(...shares.map((share, i) => Math.abs(share - (i + 0.5) / cores)));
    expect(gap).toBeLessThan(1.95 / Math.sqrt(cores));
  }
});

const refusedFor = (cause: 'rate_limited' | 'saturated', retryAfterSeconds: number): AttemptFailure => ({
  cause,
  status: cause === 'saturated' ? 503 : 429,
  retryAfterSeconds,
  durationMs: 5,
});

function build(endpoints: number): TestCore {
  const b = new ProgramBuilder();
  const retry = { attempts: 2, on: ['rate_limited', 'saturated'] } as const;
  return testCore(
    b.program({
      tiers: [tier('A', endpoints, { model: 'm' })],
      routes: [route('default', [destination('A', [b.lowest('declared_order')], { with: { retry } })])],
    }),
  );
}

test('the smallest wait that servers asked for is the client’s, whichever said it', () => {
  for (const waits of [
    [3, 7, 5],
    [7, 3, 5],
    [7, 5, 3],
  ]) {
    const one = build(3).forward();
    const steps = waits.map((seconds) => one.next(refusedFor('rate_limited', seconds)));
    expect(steps.at(-1)).toMatchObject({ kind: 'refuse', status: 429, retryAfterSeconds: 3 });
  }
});

test('a server that asks for more time than is left is not waited for: the client is told at once, and nothing is held', () => {
  const t = build(1);
  const one = t.forward({ deadlineMs: t.time.nowMs + 1000 });
  expect(one.next(refusedFor('saturated', 2))).toMatchObject({ kind: 'refuse', status: 503, retryAfterSeconds: 2 });
  expect(t.core.status()).toMatchObject({ leasesOpen: 0, leaseFaults: 0 });
  const other = build(1);
  expect(other.forward({ deadlineMs: other.time.nowMs + 3000 }).next(refusedFor('saturated', 2))).toMatchObject({
    kind: 'attempt',
    waitMs: 2000,
  });
});
