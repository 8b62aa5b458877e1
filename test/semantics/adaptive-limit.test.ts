import { expect, test } from 'vitest';
import type { Forward } from '../../packages/core/src/index.ts';
import { codes, DONE, failure, inBothModes } from './support/bench.fixture.ts';
import type { Bench } from './support/bench.fixture.ts';

const tier = (facts: string): string =>
  `define tier "a" { model: "m", endpoints: ["http://10.0.0.1:8000"]${facts} }
default to tier "a"`;
const stream = { stream: true, promptTokensExact: 512, maxTokens: 16 };

/** Requests that find a place, until one finds none. */
function fill(bench: Bench): Forward[] {
  const held: Forward[] = [];
  for (;;) {
    const outcome = bench.route(stream);
    if (outcome instanceof Promise) throw new Error('the policy has no queue');
    if (outcome.kind === 'refuse') {
      expect(`${outcome.status} ${outcome.code}`).toBe('503 no_endpoint');
      outcome.finish();
      return held;
    }
    held.push(outcome);
  }
}

/** Fills the endpoint, lets each answer take so long to its first token, and gives how many there were. */
function round(bench: Bench, ttftMs: number): number {
  const held = fill(bench);
  bench.time.advance(ttftMs);
  for (const one of held) one.commit(ttftMs);
  for (const one of held) one.finish({ ...DONE, ttftMs, durationMs: ttftMs, promptTokens: 512 });
  return held.length;
}

const limit = (bench: Bench): number => bench.core.endpoints()[0]?.maxRequests ?? Number.NaN;

test('a limit on requests follows what the endpoint bears, over reloads too', async () => {
  await inBothModes(tier(', adaptive_limit: true'), (bench) => {
    expect(limit(bench)).toBe(20);
    expect(round(bench, 100)).toBe(20);
    for (let i = 0; i < 5; i++) round(bench, 100);
    const grown = limit(bench);
    expect(grown).toBeGreaterThan(20);
    for (let i = 0; i < 8; i++) round(bench, 5000);
    const shrunk = limit(bench);
    expect(shrunk).toBeLessThan(0.7 * grown);
    expect(round(bench, 100)).toBe(shrunk);
    const now = limit(bench);
    bench.reload(tier(', adaptive_limit: true, zone: "b"'));
    expect(limit(bench)).toBe(now);
    expect(round(bench, 100)).toBe(now);
    bench.reload(tier(', adaptive_limit: true, max_requests: 3'));
    expect(round(bench, 100)).toBe(3);
    bench.reload(tier(''));
    expect(limit(bench)).toBeNaN();
  });
});

test('plain answers are measured by their whole time, and refusals of the server count', async () => {
  await inBothModes(`${tier(', adaptive_limit: true')} with retry 0`, (bench) => {
    const plain = { promptTokensExact: 100, maxTokens: 90 };
    const answer = (count: number, durationMs: number): void => {
      const held = Array.from({ length: count }, () => bench.forward(plain));
      bench.time.advance(durationMs);
      for (const one of held) one.finish({ ...DONE, durationMs, promptTokens: 100, outputTokens: 90 });
    };
    answer(10, 1000);
    answer(20, 1000);
    const before = limit(bench);
    expect(before).toBe(21);
    for (let i = 0; i < 3; i++) answer(limit(bench), 4000);
    expect(limit(bench)).toBeLessThan(before);
    const after = limit(bench);
    bench.time.advance(1);
    const held = Array.from({ length: 10 }, () => bench.forward(plain));
    for (const one of held) {
      one.next(failure('saturated'));
      one.finish({ ...DONE, outcome: 'upstream_error', status: 503, upstreamStatus: 503 });
    }
    expect(limit(bench)).toBeLessThan(after);
  });
});

test('`max_requests` in a rule is the limit in force, so that a share of it can be kept free', async () => {
  const policy = tier(', adaptive_limit: true').replace(
    'default to tier "a"',
    'default to tier "a" where inflight_requests < 75% * max_requests',
  );
  expect(codes(policy)).toEqual([]);
  await inBothModes(policy, (bench) => {
    expect(fill(bench)).toHaveLength(15);
  });
});
