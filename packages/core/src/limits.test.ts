import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLimitLedger } from './limits.ts';
import { admission, destination, limit, OK, ProgramBuilder, route, SPAN, testCore, tier } from './program.fixture.ts';

const charge = (
  inputTokens: number,
  outputTokens = 0,
): { inputTokens: number; outputTokens: number; cost: number } => ({ inputTokens, outputTokens, cost: 0 });

test('a rate holds in any window of its unit, and room comes back as time passes', () => {
  const perMinute = limit('l', [], { requests: { amount: 10, windowSeconds: 60 } });
  fc.assert(
    fc.property(fc.array(fc.nat(20_000), { minLength: 1, maxLength: 80 }), (gaps) => {
      const ledger = createLimitLedger();
      const admitted: number[] = [];
      let nowMs = 0;
      for (const gap of gaps) {
        nowMs += gap;
        if (ledger.wouldExceed(perMinute, 'k', charge(0), nowMs)) continue;
        ledger.charge(perMinute, 'k', charge(0), nowMs);
        admitted.push(nowMs);
        const calendar = Math.floor(nowMs / 60_000);
        expect(admitted.filter((at) => Math.floor(at / 60_000) === calendar).length).toBeLessThanOrEqual(10);
        // The earlier window's share assumes that its requests came evenly, so a sliding minute may hold up to twice the amount.
        expect(admitted.filter((at) => at > nowMs - 60_000).length).toBeLessThanOrEqual(20);
      }
      expect(ledger.wouldExceed(perMinute, 'k', charge(0), nowMs + 120_000)).toBe(false);
    }),
  );
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
    ledger.concurrent,
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
  expect(t.refuse({ tenant: 'a' })).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: 60 });
  expect(t.send({ tenant: 'b' }).kind).toBe('forward');
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
    '120s',
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
