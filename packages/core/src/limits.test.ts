import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLimitLedger } from './limits.ts';
import { admission, destination, limit, OK, ProgramBuilder, route, SPAN, testCore, tier } from './program.fixture.ts';

const charge = (
  inputTokens: number,
  outputTokens = 0,
): { inputTokens: number; outputTokens: number; cost: number } => ({ inputTokens, outputTokens, cost: 0 });

const perMinute = limit('l', [], { requests: { amount: 10, windowSeconds: 60 } });

/** Steps of time that are often nothing, often just short of or past a slice or a window, and else anything. */
const uneven = fc.oneof(
  fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2_999, 3_000, 3_001, 56_999, 57_000, 59_999, 60_000, 60_001, 63_000),
  fc.nat(200),
  fc.nat(20_000),
);

test('a question about a later moment forgets nothing', () => {
  const ledger = createLimitLedger();
  for (let i = 0; i < 10; i++) ledger.charge(perMinute, 'k', charge(0), 0);
  expect(ledger.wouldExceed(perMinute, 'k', charge(0), 63_000)).toBe(false);
  expect(ledger.wouldExceed(perMinute, 'k', charge(0), 0)).toBe(true);
  expect(ledger.retryAfterSeconds(perMinute, 'k', charge(0), 0)).toBe(63);
});

test('however uneven the traffic, no stretch of one window lets more through than the amount, and room is back a twentieth late at most', () => {
  fc.assert(
    fc.property(fc.array(uneven, { minLength: 1, maxLength: 150 }), (gaps) => {
      const ledger = createLimitLedger();
      const admitted: number[] = [];
      let nowMs = 0;
      for (const gap of gaps) {
        nowMs += gap;
        const within = (windowMs: number): number => admitted.filter((at) => at > nowMs - windowMs).length;
        if (ledger.wouldExceed(perMinute, 'k', charge(0), nowMs)) {
          expect(within(63_000)).toBe(10);
          const waitMs = ledger.retryAfterSeconds(perMinute, 'k', charge(0), nowMs) * 1000;
          expect(ledger.wouldExceed(perMinute, 'k', charge(0), nowMs + waitMs)).toBe(false);
          continue;
        }
        ledger.charge(perMinute, 'k', charge(0), nowMs);
        ledger.settle(perMinute, 'k', charge(0), charge(0), nowMs);
        admitted.push(nowMs);
        expect(within(60_000)).toBeLessThanOrEqual(10);
      }
      expect(ledger.usage(perMinute, 'k', nowMs + 63_000)).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test('tokens of overlapping requests stay within the amount in any stretch of one window, but for what exceeds an estimate', () => {
  const tokens = limit('l', [], { tokens: { amount: 100, windowSeconds: 60 } });
  const step = fc.record({
    gapMs: uneven,
    estimate: fc.integer({ min: 1, max: 60 }),
    real: fc.nat(90),
    /** How long it runs, in steps. */
    steps: fc.nat(12),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), (steps) => {
      const ledger = createLimitLedger();
      const open: { estimate: number; real: number; endsAt: number }[] = [];
      const settled: { atMs: number; real: number; excess: number }[] = [];
      let nowMs = 0;
      steps.forEach(({ gapMs, estimate, real, steps: runs }, at) => {
        nowMs += gapMs;
        for (const ended of open.filter(({ endsAt }) => endsAt <= at)) {
          open.splice(open.indexOf(ended), 1);
          ledger.settle(tokens, 'k', charge(0, ended.estimate), charge(0, ended.real), nowMs);
          settled.push({ atMs: nowMs, real: ended.real, excess: Math.max(0, ended.real - ended.estimate) });
        }
        const recent = settled.filter(({ atMs }) => atMs > nowMs - 60_000);
        const held = open.reduce((sum, one) => sum + one.estimate, 0);
        const used = recent.reduce((sum, one) => sum + one.real, held);
        expect(used).toBeLessThanOrEqual(100 + recent.reduce((sum, one) => sum + one.excess, 0));
        if (ledger.wouldExceed(tokens, 'k', charge(0, estimate), nowMs)) return;
        ledger.charge(tokens, 'k', charge(0, estimate), nowMs);
        open.push({ estimate, real, endsAt: at + 1 + runs });
        expect(used + estimate).toBeLessThanOrEqual(100);
      });
      for (const ended of open) ledger.settle(tokens, 'k', charge(0, ended.estimate), charge(0, ended.real), nowMs);
      expect([ledger.concurrent(), ledger.usage(tokens, 'k', nowMs + 63_000)]).toEqual([0, 0]);
    }),
    { numRuns: 300 },
  );
});

test('an estimate is held for as long as the request runs, then what was used counts for a window', () => {
  const tokens = limit('l', [], { tokens: { amount: 100, windowSeconds: 60 } });
  const ledger = createLimitLedger();
  ledger.charge(tokens, 'k', charge(20, 60), 0);
  expect(ledger.wouldExceed(tokens, 'k', charge(21), 3_600_000)).toBe(true);
  ledger.settle(tokens, 'k', charge(20, 60), charge(20, 30), 3_600_000);
  expect([ledger.usage(tokens, 'k', 3_659_000), ledger.usage(tokens, 'k', 3_663_000)]).toEqual([0.5, 0]);
});

test('keys are bounded: those long idle go first, those with a request under way stay', () => {
  const ledger = createLimitLedger({ mostKeys: 100 });
  ledger.charge(perMinute, 'busy', charge(0), 0);
  for (let i = 0; i < 9; i++) ledger.charge(perMinute, 'hot', charge(0), 0);
  for (let i = 0; i < 9; i++) ledger.settle(perMinute, 'hot', charge(0), charge(0), 0);
  for (let i = 0; i < 1000; i++) {
    ledger.charge(perMinute, `k${i}`, charge(0), i);
    ledger.settle(perMinute, `k${i}`, charge(0), charge(0), i);
    if (i === 50) {
      ledger.charge(perMinute, 'hot', charge(0), i);
      ledger.settle(perMinute, 'hot', charge(0), charge(0), i);
      expect(ledger.wouldExceed(perMinute, 'hot', charge(0), i)).toBe(true);
    }
    expect(ledger.size()).toBeLessThanOrEqual(100);
  }
  expect(ledger.usage(perMinute, 'busy', 1000)).toBe(0.1);
  expect(ledger.usage(perMinute, 'k999', 1000)).toBe(0.1);
  expect(ledger.usage(perMinute, 'k1', 1000)).toBe(0);
  ledger.charge(perMinute, 'much later', charge(0), 1e9);
  expect(ledger.size()).toBeLessThan(100);
});

test('an estimate is replaced by what was used, a place is given back, and keys do not mix', () => {
  const ledger = createLimitLedger();
  const both = limit('l', [], { tokens: { amount: 1000, windowSeconds: 60 }, concurrency: 1 });
  ledger.charge(both, 'a', charge(100, 500), 0);
  expect(ledger.usage(both, 'a', 0)).toBe(1);
  expect([ledger.wouldExceed(both, 'a', charge(1), 0), ledger.wouldExceed(both, 'b', charge(1), 0)]).toEqual([
    true,
    false,
  ]);
  ledger.settle(both, 'a', charge(100, 500), charge(100, 50), 10);
  expect(ledger.usage(both, 'a', 10)).toBeCloseTo(0.15);
  expect([
    ledger.wouldExceed(both, 'a', charge(850), 10),
    ledger.wouldExceed(both, 'a', charge(851), 10),
    ledger.concurrent(),
  ]).toEqual([false, true, 0]);
});

test('`charge: after` only settles', () => {
  const ledger = createLimitLedger();
  const after = limit('l', [], { outputTokens: { amount: 100, windowSeconds: 60 }, charge: 'after' });
  ledger.charge(after, 'a', charge(0, 90), 0);
  expect(ledger.usage(after, 'a', 0)).toBe(0);
  ledger.settle(after, 'a', charge(0, 90), charge(0, 40), 0);
  expect(ledger.usage(after, 'a', 0)).toBe(0.4);
});

test('a limit in a policy is charged once at dispatch, asked by over_limit and usage, and not charged for a refusal', () => {
  const b = new ProgramBuilder();
  const key = b.signal('tenant.id');
  const over = b.signal('over_limit', 'bool', [{ kind: 'definition', definition: 'limit', of: 'plan' }]);
  b.signal('usage', 'percent', [{ kind: 'definition', definition: 'limit', of: 'plan' }]);
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      admission: [admission('reject', 'over quota', over)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: { limits: [limit('plan', [key], { requests: { amount: 2, windowSeconds: 60 }, concurrency: 5 })] },
    }),
  );
  const first = t.forward({ tenant: 'a' });
  first.next({ cause: 'connect', status: 0, retryAfterSeconds: Number.NaN, durationMs: 1 });
  const second = t.forward({ tenant: 'a' });
  expect(t.refuse({ tenant: 'a' }).code).toBe('rejected');
  expect(t.send({ tenant: 'b' }).kind).toBe('forward');
  expect(t.send().kind).toBe('forward');
  expect(t.core.status().concurrentCharges).toBe(3);
  first.finish(OK);
  second.finish(OK);
  expect(t.records.map((record) => record.signals['usage("plan")'])).toEqual([0, 0.5]);
  t.time.advance(121_000);
  expect(t.send({ tenant: 'a' }).kind).toBe('forward');
});

test("a tenant's own limits refuse with 429 without a rule", () => {
  const b = new ProgramBuilder();
  const key = b.signal('tenant.id');
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: {
        limits: [limit('plan', [key], { requests: { amount: 1, windowSeconds: 60 } })],
        tenants: [{ name: 'a', keys: [], weight: 1, limits: ['plan'], fields: {}, span: SPAN }],
      },
    }),
  );
  expect(t.send({ tenant: 'a' }).kind).toBe('forward');
  expect(t.refuse({ tenant: 'a' })).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: 63 });
  expect(t.send({ tenant: 'b' }).kind).toBe('forward');
});

test('who has used up what its limit is a share of is told when there is room in that', () => {
  const b = new ProgramBuilder();
  const key = b.signal('tenant.id');
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: {
        limits: [
          limit('part', [key], { requests: { amount: 100, windowSeconds: 60 }, shareOf: 'whole' }),
          limit('whole', [], { requests: { amount: 1, windowSeconds: 60 } }),
        ],
        tenants: [{ name: 'a', keys: [], weight: 1, limits: ['part'], fields: {}, span: SPAN }],
      },
    }),
  );
  t.forward({ tenant: 'b' });
  expect(t.refuse({ tenant: 'a' })).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: 63 });
});

test('answers tell where the caller stands in the tightest limit, on refusals too', () => {
  const b = new ProgramBuilder();
  const key = b.signal('tenant.id');
  const over = b.signal('over_limit', 'bool', [{ kind: 'definition', definition: 'limit', of: 'burst' }]);
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      admission: [admission('reject', 'over', over)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: {
        limits: [
          limit('plan', [key], {
            requests: { amount: 100, windowSeconds: 60 },
            tokens: { amount: 10_000, windowSeconds: 60 },
          }),
          limit('burst', [key], { requests: { amount: 2, windowSeconds: 1 } }),
        ],
      },
    }),
  );
  t.time.advance(60_000);
  const one = t.forward({ tenant: 'a', body: { promptTokensExact: 100, maxTokens: 50 } });
  const headers = t.core.limitHeaders(one.decision);
  expect(headers.slice(0, 6)).toEqual([
    'x-ratelimit-limit-requests',
    '2',
    'x-ratelimit-remaining-requests',
    '1',
    'x-ratelimit-reset-requests',
    '2s',
  ]);
  expect(headers.slice(6)).toEqual([
    'x-ratelimit-limit-tokens',
    '10000',
    'x-ratelimit-remaining-tokens',
    '9850',
    'x-ratelimit-reset-tokens',
    '63s',
  ]);
  t.forward({ tenant: 'a' });
  expect(t.core.limitHeaders(t.refuse({ tenant: 'a' }).decision).slice(0, 4)).toEqual([
    'x-ratelimit-limit-requests',
    '2',
    'x-ratelimit-remaining-requests',
    '0',
  ]);
  expect(t.core.limitHeaders(t.forward().decision)).toEqual([]);
  one.finish(OK);
  expect(t.core.limitHeaders(t.records[0] ?? one.decision)).toEqual([]);
});

test('an answer that was begun and never told its usage costs its estimate, so that leaving early saves nothing; a failed request costs none', () => {
  const b = new ProgramBuilder();
  const key = b.signal('tenant.id');
  b.signal('usage', 'percent', [{ kind: 'definition', definition: 'limit', of: 'plan' }]);
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: { limits: [limit('plan', [key], { tokens: { amount: 1000, windowSeconds: 60 } })] },
    }),
  );
  const body = { promptTokensExact: 100, maxTokens: 50 };
  const unknown = { promptTokens: Number.NaN, cachedTokens: Number.NaN, outputTokens: Number.NaN };
  const left = t.forward({ tenant: 'a', body });
  left.commit(1);
  left.finish({ ...OK, ...unknown, outcome: 'client_abort', status: 499 });
  const refused = t.forward({ tenant: 'a', body });
  refused.commit(1);
  refused.finish({ ...OK, ...unknown, status: 400, upstreamStatus: 400 });
  const failed = t.forward({ tenant: 'a', body });
  failed.finish({ ...OK, ...unknown, outcome: 'upstream_error', status: 502, upstreamStatus: 0 });
  t.forward({ tenant: 'a', body }).finish(OK);
  expect(t.records.at(-1)?.signals['usage("plan")']).toBeCloseTo(0.15);
});

test('a rule that refuses with 429 for a used-up limit says when there is room, unless the policy says otherwise', () => {
  const b = new ProgramBuilder();
  const key = b.signal('tenant.id');
  const over = b.signal('over_limit', 'bool', [{ kind: 'definition', definition: 'limit', of: 'plan' }]);
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      admission: [admission('reject', 'over', over)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: { limits: [limit('plan', [key], { requests: { amount: 1, windowSeconds: 60 } })] },
    }),
  );
  t.forward({ tenant: 'a' }).finish(OK);
  t.time.advance(20_000);
  expect(t.refuse({ tenant: 'a' })).toMatchObject({ status: 429, code: 'rejected', retryAfterSeconds: 43 });
});

test('what a session took is not known to another tenant with a session of the same name', () => {
  const b = new ProgramBuilder();
  b.signal('session_tokens', 'number');
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
  );
  const headers = { 'x-session-id': 's-1' };
  for (const tenant of ['a', 'b', 'a']) t.forward({ tenant, headers }).finish(OK);
  expect(t.records.map(({ signals }) => signals['session_tokens'])).toEqual([null, null, 30]);
});
