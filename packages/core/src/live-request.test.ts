import { definePlugin } from '@signalbox/plugin-api';
import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import type { Modifiers } from '@signalbox/policy';
import type { AttemptFailure, Forward, NextStep } from './router.ts';
import type { TestCore } from './program.fixture.ts';
import {
  compare,
  constant,
  destination,
  OK,
  ProgramBuilder,
  route,
  SPAN,
  testCore,
  tier,
  toTier,
  verdict,
} from './program.fixture.ts';

const failure = (cause: AttemptFailure['cause'], more: Partial<AttemptFailure> = {}): AttemptFailure => ({
  cause,
  status: 0,
  retryAfterSeconds: Number.NaN,
  durationMs: 5,
  ...more,
});

function build(count: number, modifiers: Modifiers = {}, more: { readonly elseTier?: boolean } = {}): TestCore {
  const b = new ProgramBuilder();
  return testCore(
    b.program({
      tiers: [tier('A', count, { model: 'm' }), tier('B', 1, { model: 'small' }), tier('C', 1, { model: 'm' })],
      routes: [
        route('default', [
          destination('A', [b.lowest('queued_tokens'), b.lowest('declared_order')], { with: modifiers }),
          ...(more.elseTier === true ? [destination('C', [b.leastTokens()])] : []),
        ]),
      ],
    }),
  );
}

const attemptOf = (step: NextStep): Extract<NextStep, { kind: 'attempt' }> => {
  if (step.kind !== 'attempt') throw new Error(`expected an attempt, got ${step.code}`);
  return step;
};

test('a failed attempt is repeated down the shortlist, on an endpoint not yet tried, after a back-off that grows', () => {
  const t = build(3);
  const one = t.forward();
  expect(one.attempt).toMatchObject({ endpoint: 'A/1', number: 1 });
  const second = attemptOf(one.next(failure('connect')));
  expect(second.attempt).toMatchObject({ endpoint: 'A/2', number: 2 });
  expect(second.waitMs).toBeLessThanOrEqual(50);
  const third = attemptOf(one.next(failure('connect')));
  expect(third.attempt).toMatchObject({ endpoint: 'A/3', number: 3 });
  expect(third.waitMs).toBeLessThanOrEqual(100);
  expect(one.attempt).toBe(third.attempt);
  expect(t.core.endpoints().map((row) => row.inflightRequests)).toEqual([0, 0, 1, 0, 0]);
  expect(one.next(failure('connect'))).toMatchObject({ kind: 'refuse', status: 502, code: 'upstream_error' });
  one.finish({ ...OK, outcome: 'upstream_error', status: 502 });
  expect(t.records[0]).toMatchObject({ code: 'upstream_error', status: 502, reasons: ['default', 'retried'] });
  expect(t.records[0]?.attempts.map((attempt) => [attempt.endpoint, attempt.outcome])).toEqual([
    ['A/1', 'connect'],
    ['A/2', 'connect'],
    ['A/3', 'connect'],
  ]);
  expect(t.core.status()).toMatchObject({ leasesOpen: 0, leaseFaults: 0 });
});

test('a redirect and a plain 500 are repeated only where the policy says so; an error event before any output is', () => {
  for (const status of [301, 302, 308, 500])
    expect([status, build(2).forward().next(failure('error', { status }))]).toMatchObject([
      status,
      { kind: 'refuse', status: 502, code: 'upstream_error' },
    ]);
  expect(
    build(2)
      .forward()
      .next(failure('error', { status: 200 })).kind,
  ).toBe('attempt');
  expect(
    build(2, { retry: { attempts: 1, on: ['error'] } })
      .forward()
      .next(failure('error', { status: 500 })).kind,
  ).toBe('attempt');
  expect(
    build(2, { retry: { attempts: 1, on: ['error'] } })
      .forward()
      .next(failure('error', { status: 302 })).kind,
  ).toBe('attempt');
  expect(
    build(2, { retry: { attempts: 0, on: ['connect'] } })
      .forward()
      .next(failure('connect')).kind,
  ).toBe('refuse');
});

test('with one endpoint the same is tried again, after the wait that it asked for; 0 means at once', () => {
  const t = build(1);
  const one = t.forward();
  const step = attemptOf(one.next(failure('saturated', { status: 503, retryAfterSeconds: 2 })));
  expect([step.attempt.endpoint, step.waitMs]).toEqual(['A/1', 2000]);
  const zero = attemptOf(
    build(1)
      .forward()
      .next(failure('rate_limited', { status: 429, retryAfterSeconds: 0 })),
  );
  expect(zero.waitMs).toBe(0);
});

test('an endpoint that asked to be left alone is, until the time is over', () => {
  const t = build(2);
  const one = t.forward();
  one.next(failure('saturated', { status: 503, retryAfterSeconds: 10 }));
  one.finish(OK);
  expect(Array.from({ length: 3 }, () => t.forward().attempt.endpoint)).toEqual(['A/2', 'A/2', 'A/2']);
  t.time.advance(10_000);
  expect(t.forward().attempt.endpoint).toBe('A/1');
});

test('after the retries come fallbacks for the cause, then `else`', () => {
  const fallbacks: Modifiers['fallbacks'] = [{ target: toTier('B'), on: ['first_token'], span: SPAN }];
  const t = build(1, { retry: { attempts: 0, on: [] }, fallbacks }, { elseTier: true });
  const one = t.forward();
  const step = attemptOf(one.next(failure('first_token')));
  expect([step.attempt.tier, step.attempt.model]).toEqual(['B', 'small']);
  const other = build(1, { fallbacks }, { elseTier: true }).forward();
  expect(attemptOf(other.next(failure('connect'))).attempt.tier).toBe('C');
  // The last tier has one endpoint: its own retries go there again.
  expect(attemptOf(other.next(failure('connect'))).attempt.tier).toBe('C');
});

test('an endpoint that an `else` gave, after a failure or for want of another, is told as a fallback', () => {
  const after = build(1, { retry: { attempts: 0, on: ['connect'] } }, { elseTier: true });
  const one = after.forward();
  expect(one.decision.reasons).toEqual(['default']);
  expect(attemptOf(one.next(failure('connect'))).attempt.tier).toBe('C');
  expect(one.decision.reasons).toEqual(['default', 'fallback']);
  one.finish(OK);
  expect(after.records[0]).toMatchObject({ reasons: ['default', 'fallback'], tier: 'C' });
  expect(after.records[0]?.attempts.map(({ tier: at }) => at)).toEqual(['A', 'C']);

  const without = build(1, {}, { elseTier: true });
  without.core.cordon('A/1', true);
  const other = without.forward();
  other.finish(OK);
  expect(without.records[0]).toMatchObject({ reasons: ['default', 'fallback'], tier: 'C' });
});

test('a context that is too long goes nowhere unless a fallback names it', () => {
  expect(
    build(3)
      .forward()
      .next(failure('context_exceeded', { status: 400 })),
  ).toMatchObject({ kind: 'refuse', status: 400, code: 'context_length_exceeded' });
  const t = build(3, { fallbacks: [{ target: toTier('B'), on: ['context_exceeded'], span: SPAN }] });
  expect(attemptOf(t.forward().next(failure('context_exceeded', { status: 400 }))).attempt.tier).toBe('B');
});

test('when every endpoint said 429 the client is told 429, with the smallest wait', () => {
  const t = build(2, { retry: { attempts: 1, on: ['rate_limited', 'connect'] } });
  const one = t.forward();
  one.next(failure('rate_limited', { status: 429, retryAfterSeconds: 7 }));
  expect(one.next(failure('rate_limited', { status: 429, retryAfterSeconds: 3 }))).toMatchObject({
    status: 429,
    code: 'rate_limited',
    retryAfterSeconds: 3,
  });
  t.time.advance(20_000);
  const mixed = t.forward();
  mixed.next(failure('connect'));
  expect(mixed.next(failure('rate_limited', { status: 429 }))).toMatchObject({ status: 503, code: 'no_endpoint' });
});

describe('Retry-After where no endpoint is left', () => {
  const once: Modifiers = { retry: { attempts: 0, on: [] } };
  const asks = (retryAfterSeconds: number): AttemptFailure => failure('saturated', { status: 503, retryAfterSeconds });

  test('is what is left of the smallest wait that the servers asked for, to the request after them too', () => {
    const t = build(2, once);
    expect(t.forward().next(asks(20))).toMatchObject({ code: 'no_endpoint', retryAfterSeconds: 20 });
    t.time.advance(5500);
    // The first has 14.5 s left, the second asks for 40 s.
    expect(t.forward().next(asks(40))).toMatchObject({ code: 'no_endpoint', retryAfterSeconds: 15 });
    expect(t.refuse()).toMatchObject({ status: 503, code: 'no_endpoint', retryAfterSeconds: 15 });
    t.time.advance(14_400);
    expect(t.refuse()).toMatchObject({ retryAfterSeconds: 1 });
    t.time.advance(100);
    expect(t.forward().attempt.endpoint).toBe('A/1');
  });

  test('is 1 where an endpoint is up and merely full, and where none is up', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [{ ...tier('A', 2), endpoints: tier('A', 2).endpoints.map((one) => ({ ...one, maxRequests: 1 })) }],
        routes: [route('default', [destination('A', [b.lowest('declared_order')], { with: once })])],
      }),
    );
    t.forward().next(asks(20));
    t.forward();
    expect(t.refuse()).toMatchObject({ retryAfterSeconds: 1 });
    t.core.cordon('A/2', true);
    expect(t.refuse()).toMatchObject({ retryAfterSeconds: 20 });
    t.core.cordon('A/1', true);
    expect(t.refuse()).toMatchObject({ retryAfterSeconds: 1 });
  });

  test('is the time until the first ejection ends, where nobody healthy is left and health may not be ignored', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [tier('A', 2), tier('B', 1)].map((one) => ({
          ...one,
          endpoints: one.endpoints.map((member) => ({ ...member, maxRequests: 1, ejection: { max_share: 1 } })),
        })),
        routes: [
          route('default', [
            destination('A', [b.lowest('declared_order')]),
            destination('B', [b.lowest('declared_order')]),
          ]),
        ],
      }),
    );
    const { fleet } = t.core;
    for (const [name, at] of [
      ['A/1', 0],
      ['A/2', 3000],
    ] as const) {
      t.time.advance(at);
      const slot = fleet.slotOf(name) ?? -1;
      for (let i = 0; i < 5; i++) fleet.health.failed(slot, t.time.nowMs, 0);
    }
    fleet.health.askedToWait(fleet.slotOf('B/1') ?? -1, t.time.nowMs + 100_000);
    const leftMs = (fleet.table.ejectedUntil[fleet.slotOf('A/1') ?? -1] ?? 0) - t.time.nowMs;
    expect(leftMs).toBeGreaterThan(6000);
    expect(t.refuse()).toMatchObject({ code: 'no_endpoint', retryAfterSeconds: Math.ceil(leftMs / 1000) });
  });
});

test('a keep-alive race repeats the attempt once, at once, free of charge and of blame', () => {
  const t = build(1, { retry: { attempts: 0, on: [] } });
  const one = t.forward();
  const again = attemptOf(one.next(failure('connect', { keepAliveRace: true })));
  expect([again.attempt.endpoint, again.waitMs, t.core.endpoints()[0]?.errorRate]).toEqual(['A/1', 0, Number.NaN]);
  expect(one.next(failure('connect', { keepAliveRace: true })).kind).toBe('refuse');
});

test('nothing is tried beyond the deadline, and nothing after the commit point', () => {
  const t = build(2, { timeout: constant(1) });
  const one = t.forward();
  expect(one.deadlineMs).toBe(1000);
  t.time.advance(1000);
  expect(one.next(failure('first_token'))).toMatchObject({ kind: 'refuse', status: 504, code: 'upstream_timeout' });
  const two = t.forward();
  two.commit(3);
  expect(two.next(failure('connect'))).toMatchObject({ kind: 'refuse', status: 500 });
  expect(t.core.status().leasesOpen).toBe(1);
  two.finish({ ...OK, outcome: 'upstream_disconnected' });
  expect(t.core.status().leasesOpen).toBe(0);
});

test('the retry budget of a tier runs dry and fills again', () => {
  const t = build(2, { retry: { attempts: 1, on: ['connect'] } });
  // Blame is taken back each time, so that nothing is ejected.
  const kinds = (count: number): string[] =>
    Array.from({ length: count }, () => {
      const one = t.forward();
      const step = one.next(failure('connect', { keepAliveRace: false }));
      one.finish(OK);
      return step.kind;
    });
  const first = kinds(40);
  expect(first.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'attempt'));
  expect(first.filter((kind) => kind === 'attempt').length).toBeLessThan(16);
  t.time.advance(5000);
  expect(kinds(5).filter((kind) => kind === 'attempt').length).toBeGreaterThanOrEqual(4);
});

test('no retry is made unless the deadline leaves the median time to the first token of the tier', () => {
  const t = build(2, { retry: { attempts: 1, on: ['connect'] } });
  for (let i = 0; i < 9; i++) {
    const one = t.forward({ body: { stream: true } });
    t.time.advance(400);
    one.commit(400);
    one.finish(OK);
  }
  const stepFor = (deadlineMs: number): string => {
    const one = t.forward({ deadlineMs: t.time.nowMs + deadlineMs });
    const { kind } = one.next(failure('connect'));
    one.finish({ ...OK, outcome: 'client_abort' });
    return kind;
  };
  expect(stepFor(380)).toBe('refuse');
  expect(stepFor(500)).toBe('attempt');
});

test('an attempt carries the timeouts, model, headers and fields that the policy writes, else the defaults', () => {
  const plain = build(1).forward({ body: { text: 'x'.repeat(4000 * 4) } }).attempt;
  expect(plain).toMatchObject({
    attemptTimeoutMs: Infinity,
    firstTokenMs: 50_000,
    idleMs: 60_000,
    connectMs: 2000,
    set: [],
    drop: [],
    headers: [],
  });
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 1, { model: 'served' })],
      routes: [
        route('default', [
          destination('A', [b.leastTokens()], {
            with: {
              attemptTimeout: constant(9),
              firstToken: constant(2),
              idle: constant(3),
              model: constant('rewritten'),
              headers: [
                { name: 'x-tier', value: constant('gold') },
                { name: 'x-user', value: b.signal('user') },
              ],
              set: [{ field: 'temperature', value: constant(0.5) }],
              drop: ['logprobs'],
            },
          }),
        ]),
      ],
      definitions: {
        gateway: {
          ...new ProgramBuilder().program({ tiers: [], routes: [] }).definitions.gateway,
          unknownModel: 'route',
        },
      },
    }),
  );
  expect(t.forward().attempt).toMatchObject({
    attemptTimeoutMs: 9000,
    firstTokenMs: 2000,
    idleMs: 3000,
    model: 'rewritten',
    headers: [{ name: 'x-tier', value: 'gold' }],
    set: [{ field: 'temperature', json: '0.5' }],
    drop: ['logprobs'],
  });
});

test('five refused connections eject an endpoint, one request tries it later, and client aborts never count', () => {
  const t = build(4, { retry: { attempts: 0, on: [] } });
  for (let i = 0; i < 20; i++) t.forward().finish({ ...OK, outcome: 'client_abort', status: 499, upstreamStatus: 0 });
  for (let i = 0; i < 5; i++) {
    const one = t.forward();
    expect(one.attempt.endpoint).toBe('A/1');
    one.next(failure('connect'));
    one.finish({ ...OK, outcome: 'upstream_error' });
  }
  expect(t.core.endpoints()[0]).toMatchObject({ name: 'A/1', healthy: false, ejections: 1 });
  expect(t.forward().attempt.endpoint).toBe('A/2');
  t.time.advance(12_001);
  const trial = t.forward();
  expect(trial.attempt.endpoint).toBe('A/1');
  expect(t.forward().attempt.endpoint).not.toBe('A/1');
  trial.finish(OK);
  expect(t.core.endpoints()[0]).toMatchObject({ healthy: true, halfOpen: false });
});

test('the record tells what was decided and how it ended', () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 2, { model: 'served', zone: 'z1' }), tier('B', 1, { model: 'm' })],
      routes: [
        route(
          'long',
          [
            destination('A', [b.lowest('queued_tokens')], {
              where: compare('==', b.property('zone', 'string'), constant('z1')),
            }),
          ],
          compare('>', b.signal('prompt_tokens', 'count'), constant(1)),
        ),
      ],
    }),
  );
  const session = b.signal('session');
  expect(session.kind).toBe('signal');
  const one = t.forward({ id: 'r-1', tenant: 'acme', body: { stream: true } });
  one.commit(12);
  one.finish({ ...OK, ttftMs: 12, promptTokens: 3, cachedTokens: 1, outputTokens: 2 });
  one.finish({ ...OK, status: 500 });
  expect(t.records).toHaveLength(1);
  expect(t.records[0]).toMatchObject({
    v: 1,
    requestId: 'r-1',
    tenant: 'acme',
    model: 'm',
    path: '/v1/chat/completions',
    stream: true,
    policy: 'feedfacecafe',
    generation: 1,
    verdict: 'routed',
    route: 'long',
    reasons: ['matched'],
    signals: { prompt_tokens: 3 },
    servedModel: 'served',
    tier: 'A',
    status: 200,
    code: '',
    ttftMs: 12,
    inputTokens: 3,
    cachedTokens: 1,
    outputTokens: 2,
  });
  expect(t.records[0]?.shortlist.map((entry) => entry.properties)).toEqual([
    { queued_tokens: 0, zone: 'z1' },
    { queued_tokens: 0, zone: 'z1' },
  ]);
});

test('whatever fails and in whatever order, every lease is given back and every request has one record', () => {
  const cause = fc.constantFrom<AttemptFailure['cause']>(
    'connect',
    'saturated',
    'error',
    'timeout',
    'first_token',
    'rate_limited',
    'context_exceeded',
  );
  const life = fc.record({
    failures: fc.array(
      fc.record({
        cause,
        status: fc.constantFrom(0, 200, 429, 500, 503),
        race: fc.boolean(),
        wait: fc.constantFrom(Number.NaN, 0, 1, 30),
      }),
      { maxLength: 6 },
    ),
    commits: fc.boolean(),
    end: fc.constantFrom(
      'ok' as const,
      'client_abort' as const,
      'upstream_disconnected' as const,
      'upstream_timeout' as const,
      'upstream_error' as const,
    ),
    pauseMs: fc.nat(4000),
  });
  fc.assert(
    fc.property(fc.array(life, { maxLength: 25 }), (lives) => {
      const t = build(
        2,
        { fallbacks: [{ target: toTier('B'), on: ['error', 'saturated'], span: SPAN }] },
        { elseTier: true },
      );
      const open: { readonly forward: Forward; readonly life: (typeof lives)[number] }[] = [];
      let sent = 0;
      for (const one of lives) {
        const outcome = t.send();
        sent++;
        if (outcome.kind === 'refuse') outcome.finish();
        else open.push({ forward: outcome, life: one });
        t.time.advance(one.pauseMs);
        if (open.length < 3) continue;
        end(open.shift());
      }
      while (open.length > 0) end(open.pop());
      expect(t.records).toHaveLength(sent);
      expect(t.core.status()).toMatchObject({ leasesOpen: 0, leaseFaults: 0, queued: 0 });
      for (const row of t.core.endpoints())
        expect([row.inflightRequests, row.inflightTokens, row.queuedTokens, row.decodeTokens]).toEqual([0, 0, 0, 0]);
    }),
    { numRuns: 100 },
  );

  function end(
    one:
      | {
          readonly forward: Forward;
          readonly life: {
            readonly failures: readonly {
              readonly cause: AttemptFailure['cause'];
              readonly status: number;
              readonly race: boolean;
              readonly wait: number;
            }[];
            readonly commits: boolean;
            readonly end: 'ok' | 'client_abort' | 'upstream_disconnected' | 'upstream_timeout' | 'upstream_error';
          };
        }
      | undefined,
  ): void {
    if (one === undefined) return;
    for (const { cause: why, status, race, wait } of one.life.failures) {
      const step = one.forward.next(failure(why, { status, keepAliveRace: race, retryAfterSeconds: wait }));
      if (step.kind === 'refuse') break;
    }
    if (one.life.commits) one.forward.commit(1);
    one.forward.finish({ ...OK, outcome: one.life.end });
    one.forward.finish(OK);
  }
});

test('a scorer is told of an ending for each endpoint that was picked, whatever became of the attempt', () => {
  const counts = { picked: 0, ended: 0 };
  const counting = definePlugin({
    name: 'counting',
    apiVersion: 1,
    provides: {
      scorer: {
        counts: {
          doc: 'Counts what it is told.',
          setup: () => ({
            score: (_request, candidates, out) => void out.fill(0, 0, candidates.length),
            picked: () => void counts.picked++,
            ended: () => void counts.ended++,
          }),
        },
      },
    },
  });
  const scorer = {
    kind: 'function',
    name: 'counts',
    provider: { kind: 'plugin', plugin: 'counting' },
    options: {},
    cost: false,
    instance: 'policy',
    reads: [],
    span: SPAN,
  } as const;
  // A second is too short to wait for the only endpoint when it asks for more.
  const to = destination('A', [{ span: SPAN, terms: [{ weight: 1, scorer }] }], { with: { timeout: constant(1) } });
  const attempts = fc.array(
    fc.record({ race: fc.boolean(), wait: fc.constantFrom(Number.NaN, 0, 30), pauseMs: fc.nat(300) }),
    { minLength: 1, maxLength: 4 },
  );
  let givenBack = 0;
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 }), attempts, (endpoints, failures) => {
      const t = testCore(new ProgramBuilder().program({ tiers: [tier('A', endpoints)], routes: [route('r', [to])] }), {
        plugins: [counting],
      });
      Object.assign(counts, { picked: 0, ended: 0 });
      const live = t.forward();
      let sent = 1;
      for (const { race, wait, pauseMs } of failures) {
        t.time.advance(pauseMs);
        const step = live.next(failure('connect', { keepAliveRace: race, retryAfterSeconds: wait }));
        if (step.kind === 'refuse') break;
        sent++;
      }
      live.finish(OK);
      expect(counts.ended).toBe(counts.picked);
      expect(counts.picked).toBeGreaterThanOrEqual(sent);
      givenBack += counts.picked - sent;
    }),
  );
  expect(givenBack).toBeGreaterThan(5);
});

test('a verdict among the `else` parts ends a request whose attempts failed', () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      routes: [
        route('default', [
          destination('A', [b.leastTokens()], { with: { retry: { attempts: 0, on: ['connect'] } } }),
          verdict('reject', { status: 503, message: constant('sorry') }),
        ]),
      ],
    }),
  );
  expect(t.forward().next(failure('connect'))).toMatchObject({
    kind: 'refuse',
    status: 503,
    code: 'rejected',
    message: 'sorry',
  });
});

test('records hold sessions and users as hashes, and prompts not at all', () => {
  const b = new ProgramBuilder();
  b.signal('session');
  b.signal('user');
  b.signal('prompt');
  b.signal('header', 'string', [{ kind: 'value', value: 'x-session-id' }]);
  b.signal('header', 'string', [{ kind: 'value', value: 'x-tier' }]);
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
  );
  const one = t.forward({
    headers: { 'x-session-id': 'secret-1', 'x-tier': 'gold' },
    body: { user: 'secret-2', text: 'secret-3' },
  });
  one.commit(1);
  one.finish(OK);
  expect(JSON.stringify(t.records)).not.toContain('secret');
  const { signals = {} } = t.records[0] ?? {};
  expect(Object.keys(signals)).toEqual(['session', 'user', 'header["x-session-id"]', 'header["x-tier"]']);
  expect(signals['session']).toMatch(/^[0-9a-f]{16}$/);
  expect(signals['header["x-session-id"]']).toBe(signals['session']);
  expect(signals['header["x-tier"]']).toBe('gold');
});

test('behind the commit point a stream holds no frame: the next request takes it, and each keeps the record of its own', () => {
  const b = new ProgramBuilder();
  const from = b.signal('header', 'string', [{ kind: 'value', value: 'x-tier' }]);
  expect(from.kind).toBe('signal');
  const t = testCore(
    b.program({
      tiers: [tier('A', 1), tier('B', 1)],
      routes: [
        route('gold', [destination('A', [b.leastTokens()])], compare('==', from, constant('gold'))),
        route('default', [destination('B', [b.leastTokens()])]),
      ],
    }),
  );
  const version = t.core.active;
  let made = 0;
  const enter = version?.enter.bind(version);
  const frames = new Set<unknown>();
  if (version !== undefined && enter !== undefined)
    version.enter = () => {
      made++;
      const frame = enter();
      frames.add(frame);
      return frame;
    };
  const streams = ['gold', 'iron', 'gold'].map((name) => {
    const stream = t.forward({ headers: { 'x-tier': name }, body: { stream: true } });
    stream.commit(5);
    return stream;
  });
  expect([made, frames.size, version?.requests]).toEqual([3, 1, 3]);
  for (const stream of streams.toReversed()) {
    expect(stream.decision.attempts).toHaveLength(1);
    expect(t.core.limitHeaders(stream.decision)).toEqual([]);
    stream.finish(OK);
  }
  expect(t.records.map(({ route: label, reasons, signals }) => [label, reasons, signals])).toEqual([
    ['gold', ['matched'], { 'header["x-tier"]': 'gold' }],
    ['default', ['default'], { 'header["x-tier"]': 'iron' }],
    ['gold', ['matched'], { 'header["x-tier"]': 'gold' }],
  ]);
  expect(version?.requests).toBe(0);
});
