import { describe, expect, test } from 'vitest';
import type { Forward } from '../../packages/core/src/index.ts';
import { bench, DONE, endpoints, failure, inBothModes } from './support/bench.fixture.ts';
import type { Bench } from './support/bench.fixture.ts';

const NAMES = ['a', 'b', 'c', 'd'] as const;
const fleet = endpoints(
  Object.fromEntries(
    NAMES.map((name) => [name, 'throughput: 2000/s, max_requests: 1000, price: $1, gpu: "A100", model_size: 7B']),
  ),
);
const REQUEST_EVERY_MS = 10;
const REQUEST_LASTS_MS = 400;
const RAMP_MS = 30_000;
const WINDOW_MS = 5000;

/** A steady stream of requests over a bench: `REQUEST_LASTS_MS` each, so that forty are under way. */
class Traffic {
  readonly #bench: Bench;
  readonly #open: { readonly forward: Forward; readonly endsMs: number }[] = [];
  #sent = 0;

  constructor(made: Bench) {
    this.#bench = made;
  }

  /** Requests by endpoint in so many milliseconds. */
  run(ms: number): { readonly [endpoint: string]: number } {
    const { time } = this.#bench;
    const counts: { [endpoint: string]: number } = Object.fromEntries(NAMES.map((name) => [name, 0]));
    for (const untilMs = time.now() + ms; time.now() < untilMs; time.advance(REQUEST_EVERY_MS)) {
      while (this.#open[0] !== undefined && this.#open[0].endsMs <= time.now()) this.#end(this.#open.shift());
      const forward = this.#bench.forward({
        stream: true,
        promptTokensExact: 600,
        maxTokens: 100,
        headers: { 'x-session-id': `s-${this.#sent++ % 997}` },
      });
      counts[forward.attempt.endpoint] = (counts[forward.attempt.endpoint] ?? 0) + 1;
      forward.commit(50);
      this.#open.push({ forward, endsMs: time.now() + REQUEST_LASTS_MS });
    }
    return counts;
  }

  #end(one: { readonly forward: Forward } | undefined): void {
    one?.forward.finish({ ...DONE, ttftMs: 50, durationMs: REQUEST_LASTS_MS, promptTokens: 600, outputTokens: 100 });
  }
}

/** The mean share of one of four endpoints whose weight is max(10 %, t ÷ 30 s), over a stretch of its slow start. */
function dueShare(fromMs: number, untilMs: number): number {
  let sum = 0;
  for (let t = fromMs; t < untilMs; t += 10) {
    const weight = Math.min(1, Math.max(0.1, t / RAMP_MS));
    sum += weight / (NAMES.length - 1 + weight);
  }
  return (sum * 10) / (untilMs - fromMs);
}

/** Requests to `a` for each window of its slow start, and then for one after it. */
function afterItsReturn(policy: string): { readonly during: readonly number[]; readonly after: number } {
  const made = bench(`${fleet}default to tier "t" ${policy}`);
  made.set({ a: { state: 'asleep' } });
  const traffic = new Traffic(made);
  expect(traffic.run(5000)['a']).toBe(0);
  made.set({ a: { state: 'ready' } });
  const during: number[] = [];
  for (let fromMs = 0; fromMs < RAMP_MS; fromMs += WINDOW_MS) during.push(traffic.run(WINDOW_MS)['a'] ?? 0);
  const after = traffic.run(RAMP_MS)['a'] ?? 0;
  made.core.close();
  return { during, after };
}

const due = (window: number): number =>
  dueShare(window * WINDOW_MS, (window + 1) * WINDOW_MS) * (WINDOW_MS / REQUEST_EVERY_MS);

describe('one of four endpoints that comes back gets the share that its weight is of all', () => {
  test.each([
    'by round_robin',
    'by random',
    'by weighted_random',
    'by least_connections',
    'by least_requests',
    'by smallest_batch',
    'by least_loaded',
    'by least_tokens',
    'by peak_ewma',
    'by least_queue then least_requests',
    'by least_running then random',
    'by rendezvous',
    'by lowest(inflight_tokens)',
    'by 0.5 * least_requests + 0.5 * least_tokens',
    'by least_tokens pick power_of_two',
    'by least_requests pick weighted',
    'by least_requests pick softmax(temperature: 0.3)',
  ])('%s', (policy) => {
    const { during, after } = afterItsReturn(policy);
    during.forEach((count, window) => {
      expect(count, `window ${window} of ${during.join(', ')}`).toBeLessThan(1.25 * due(window) + 8);
      expect(count, `window ${window} of ${during.join(', ')}`).toBeGreaterThan(0.7 * due(window) - 8);
    });
    // Its own share, when it has started.
    expect(after).toBeGreaterThan(0.75 * 0.25 * (RAMP_MS / REQUEST_EVERY_MS));
  });

  test.each(['by declared_order', 'by least_cost then declared_order', 'by highest(weight) then declared_order'])(
    'and no more, where the strategy would give it all (%s)',
    (policy) => {
      const { during, after } = afterItsReturn(policy);
      during.forEach((count, window) => {
        expect(count).toBeLessThan(1.25 * due(window) + 8);
      });
      expect(after).toBe(RAMP_MS / REQUEST_EVERY_MS);
    },
  );

  test('least_latency, which learns what an endpoint is worth, is held to the share too', () => {
    const { during, after } = afterItsReturn('by least_latency');
    during.forEach((count, window) => {
      expect(count).toBeLessThan(1.25 * due(window) + 8);
    });
    expect(after).toBeGreaterThan(0);
  });

  test('by affinity: keys come back to it one by one, and stay', () => {
    const made = bench(`${fleet}default to tier "t" with affinity(session, bound: 4)`);
    made.set({ a: { state: 'asleep' } });
    const traffic = new Traffic(made);
    traffic.run(1000);
    made.set({ a: { state: 'ready' } });
    const shares: number[] = [];
    const mine = new Set<string>();
    for (let t = 0; t <= RAMP_MS; t += 1000) {
      const here = new Set<string>();
      for (let i = 0; i < 997; i++) {
        const session = `s-${i}`;
        if (made.send({ headers: { 'x-session-id': session } }) === 'a') here.add(session);
      }
      for (const session of mine) expect(here).toContain(session);
      for (const session of here) mine.add(session);
      shares.push(here.size / 997);
      made.time.advance(1000);
    }
    shares.forEach((share, second) => {
      const weight = Math.min(1, Math.max(0.1, second / 30));
      expect(share).toBeCloseTo(weight / (3 + weight), 1);
    });
    expect(shares[0]).toBeLessThan(0.06);
  });
});

test('it begins when the request that ends an ejection succeeds', async () => {
  await inBothModes(`${fleet}default to tier "t" by declared_order with retry 0`, (made) => {
    for (let i = 0; i < 5; i++) {
      const forward = made.forward();
      expect(forward.attempt.endpoint).toBe('a');
      forward.next(failure('connect'));
      forward.finish({ ...DONE, outcome: 'upstream_error', status: 502, upstreamStatus: 0 });
    }
    expect(made.send()).toBe('b');
    made.time.advance(12_000);
    const probe = made.forward();
    expect(probe.attempt.endpoint).toBe('a');
    probe.finish(DONE);
    const picks = Array.from({ length: 320 }, () => made.send());
    // 0.1 ÷ 3.1 of 320.
    expect(picks.filter((name) => name === 'a')).toHaveLength(10);
    expect(made.records.at(-1)?.dropped).toEqual({ slow_start: 1 });
    const { candidates, endpoint } = made.explain();
    expect(endpoint).toBe('b');
    expect(candidates.map(({ verdict }) => verdict)).toEqual(['slow_start', 'picked', 'eligible', 'eligible']);
    made.time.advance(30_000);
    expect(made.send()).toBe('a');
  });
});

test('the first fleet starts at once, and so does one that is all there is', async () => {
  await inBothModes(`${fleet}default to tier "t" by declared_order`, (made) => {
    expect(made.send()).toBe('a');
    made.set({ b: { cordoned: true }, c: { cordoned: true }, d: { cordoned: true }, a: { state: 'asleep' } });
    made.set({ a: { state: 'ready' } });
    expect(Array.from({ length: 5 }, () => made.send())).toEqual(['a', 'a', 'a', 'a', 'a']);
    made.set({ b: { cordoned: false } });
    expect(made.send()).toBe('b');
  });
});
