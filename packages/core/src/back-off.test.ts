import { expect, test } from 'vitest';
import type { AttemptFailure } from './router.ts';
import { destination, ProgramBuilder, route, testCore, tier } from './program.fixture.ts';

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
