import { md5Modulo } from '@signalbox/chwbl';
import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import type { Affinity, Destination, Expression, ScoreSum } from '@signalbox/policy';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TestCore } from './program.fixture.ts';
import {
  admission,
  compare,
  constant,
  destination,
  lowest,
  OK,
  ProgramBuilder,
  request,
  route,
  SPAN,
  split,
  testCore,
  tier,
  toTier,
  verdict,
} from './program.fixture.ts';

const MODEL = { model: 'm' };

/** What an endpoint holds, set as a load that is already there. */
function load(t: TestCore, name: string, tokens: number, requests = 1): void {
  const slot = t.core.fleet.slotOf(name) ?? -1;
  t.core.fleet.table.inflightRequests[slot] = requests;
  t.core.fleet.table.queuedTokens[slot] = tokens;
  t.core.fleet.table.inflightTokens[slot] = tokens;
}

describe('admission', () => {
  test('a rejection carries status, message and Retry-After as written, 429 and 1 unless written', () => {
    const b = new ProgramBuilder();
    const big = compare('>', b.signal('prompt_tokens', 'count'), constant(100));
    const tools = compare('>', b.signal('tools', 'number'), constant(0));
    const t = testCore(
      b.program({
        tiers: [tier('A', 1, MODEL)],
        admission: [
          admission('reject', 'big', big, { with: { status: 413, message: constant('too big') } }),
          admission('reject', 'tools', tools),
        ],
        routes: [route('default', [destination('A', [b.leastTokens()])])],
      }),
    );
    expect(t.refuse({ body: { text: 'x'.repeat(2000) } })).toMatchObject({
      status: 413,
      code: 'rejected',
      message: 'too big',
      retryAfterSeconds: undefined,
    });
    const second = t.refuse({ body: { tools: 1 } });
    expect(second).toMatchObject({ status: 429, code: 'rejected', retryAfterSeconds: 1 });
    second.finish();
    expect(t.records.map((record) => [record.verdict, record.code, record.status])).toEqual([
      ['rejected', 'rejected', 429],
    ]);
    expect(t.forward().attempt.endpoint).toBe('A/1');
  });

  test('`admit` ends the phase', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [tier('A', 1, MODEL)],
        admission: [admission('admit', 'streams', b.signal('stream', 'bool')), admission('reject', 'all')],
        routes: [route('default', [destination('A', [b.leastTokens()])])],
      }),
    );
    expect(t.send({ body: { stream: true } }).kind).toBe('forward');
    expect(t.send().kind).toBe('refuse');
  });

  test('a condition that is unknown does not fire', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [tier('A', 1, MODEL)],
        admission: [
          admission('reject', 'x', {
            kind: 'not',
            operand: compare('==', b.signal('session'), constant('s')),
            type: 'bool',
            scope: 'request',
            span: SPAN,
          }),
        ],
        routes: [route('default', [destination('A', [b.leastTokens()])])],
      }),
    );
    expect(t.send().kind).toBe('forward');
    expect(t.send({ headers: { 'x-session-id': 'other' } }).kind).toBe('refuse');
  });
});

describe('models', () => {
  test('a model that nothing names is unknown; literals, adapters and listed models are known', () => {
    const b = new ProgramBuilder();
    const program = b.program({
      tiers: [tier('A', 1, MODEL)],
      routes: [
        route('code', [destination('A', [b.leastTokens()])], compare('==', b.signal('model'), constant('coder'))),
        route('default', [destination('A', [b.leastTokens()])]),
      ],
    });
    const t = testCore(program);
    expect(t.refuse({ body: { model: 'nobody' } })).toMatchObject({ status: 404, code: 'model_not_found' });
    expect(t.forward({ body: { model: 'coder' } }).attempt.model).toBe('m');
    expect(t.forward().attempt.model).toBeUndefined();
    t.core.feed('A/1', { loras: ['sql'] });
    expect(t.forward({ body: { model: 'sql' } }).attempt.model).toBeUndefined();
    expect(t.core.router.models().map((model) => model.id)).toEqual(['coder', 'm', 'sql']);
  });

  test('a literal is known wherever in a condition the model is compared with it', () => {
    const b = new ProgramBuilder();
    const model = b.signal('model');
    const bool = { type: 'bool', scope: 'request', span: SPAN } as const;
    const list = (...members: readonly string[]): Expression => ({ ...constant(members), type: { list: 'string' } });
    const when: Expression = {
      kind: 'or',
      operands: [
        { kind: 'contains', value: list('one', 'two'), part: model, ...bool },
        { kind: 'in', value: model, list: list('three'), ...bool },
        {
          kind: 'exists',
          operand: {
            kind: 'in',
            value: constant('x'),
            list: {
              kind: 'call',
              function: 'list',
              arguments: [
                {
                  kind: 'coalesce',
                  left: b.signal('user'),
                  right: constant(''),
                  type: 'string',
                  scope: 'request',
                  span: SPAN,
                },
                constant(','),
              ],
              type: { list: 'string' },
              scope: 'request',
              span: SPAN,
            },
            ...bool,
          },
          ...bool,
        },
        { kind: 'exists', operand: compare('==', constant('four'), model), ...bool },
        { kind: 'contains', value: constant('a text with five'), part: model, ...bool },
      ],
      ...bool,
    };
    const t = testCore(
      b.program({
        tiers: [tier('A', 1, MODEL)],
        routes: [route('some', [destination('A', [b.leastTokens()])], when)],
      }),
    );
    expect(t.core.router.models().map((known) => known.id)).toEqual(['four', 'm', 'one', 'three', 'two']);
  });

  test('a tier that states no model serves whatever is asked', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
    );
    expect(t.forward({ body: { model: 'anything' } }).attempt.model).toBeUndefined();
  });
});

describe('routing', () => {
  test('without a matching rule the answer is 503 no_route', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [tier('A', 1)],
        routes: [route('never', [destination('A', [b.leastTokens()])], b.signal('stream', 'bool'))],
      }),
    );
    expect(t.refuse()).toMatchObject({ status: 503, code: 'no_route', retryAfterSeconds: 1 });
  });

  test('a route without a candidate takes its `else` and never a later rule, unless it says `else next`', () => {
    const b = new ProgramBuilder();
    const none = compare('==', b.property('zone', 'string'), constant('nowhere'));
    const streams = b.signal('stream', 'bool');
    const tools = compare('>', b.signal('tools', 'number'), constant(0));
    const t = testCore(
      b.program({
        tiers: [tier('A', 1), tier('B', 1), tier('C', 1)],
        routes: [
          route(
            'first',
            [destination('A', [b.leastTokens()], { where: none }), destination('B', [b.leastTokens()])],
            streams,
          ),
          route('second', [destination('A', [b.leastTokens()], { where: none }), { kind: 'next', span: SPAN }], tools),
          route(
            'third',
            [destination('A', [b.leastTokens()], { where: none })],
            compare('==', b.signal('user'), constant('u')),
          ),
          route('default', [destination('C', [b.leastTokens()])]),
        ],
      }),
    );
    expect(t.forward({ body: { stream: true } }).attempt.tier).toBe('B');
    expect(t.forward({ body: { tools: 1 } }).attempt.tier).toBe('C');
    expect(t.refuse({ body: { user: 'u' } })).toMatchObject({ status: 503, code: 'no_endpoint' });
  });

  test('an `else reject` at the end refuses as written', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [],
        routes: [
          route('default', [
            destination('gone', [b.leastTokens()]),
            verdict('reject', { status: 503, retryAfter: constant(4.2) }),
          ]),
        ],
      }),
    );
    expect(t.refuse()).toMatchObject({ status: 503, code: 'rejected', retryAfterSeconds: 5 });
  });

  test('a fallback for `saturated` takes what the destination has no room for', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({
        tiers: [tier('A', 1, { maxRequests: 1 }), tier('B', 1)],
        routes: [
          route('default', [
            destination('A', [b.leastTokens()], {
              with: { fallbacks: [{ target: toTier('B'), on: ['saturated', 'connect'], span: SPAN }] },
            }),
          ]),
        ],
      }),
    );
    const first = t.forward();
    const second = t.forward();
    expect([first.attempt.tier, second.attempt.tier]).toEqual(['A', 'B']);
    second.finish(OK);
    expect(t.records[0]?.reasons).toEqual(['default', 'fallback']);
  });

  test('a tier with none healthy is passed over while something else remains, and tried all the same if not', () => {
    const b = new ProgramBuilder();
    const program = b.program({
      tiers: [tier('A', 1), tier('B', 1)],
      routes: [
        route(
          'with',
          [destination('A', [b.leastTokens()]), destination('B', [b.leastTokens()])],
          b.signal('stream', 'bool'),
        ),
        route('default', [destination('A', [b.leastTokens()])]),
      ],
    });
    const t = testCore(program);
    t.core.fleet.table.flags[0] = (t.core.fleet.table.flags[0] ?? 0) | 16;
    Atomics.add(t.core.fleet.table.control, 0, 1);
    expect(t.forward({ body: { stream: true } }).attempt.tier).toBe('B');
    expect(t.forward().attempt.tier).toBe('A');
  });

  test('a cordoned endpoint takes nothing', () => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({ tiers: [tier('A', 2)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
    );
    t.core.cordon('A/1', true);
    expect(Array.from({ length: 4 }, () => t.forward().attempt.endpoint)).toEqual(['A/2', 'A/2', 'A/2', 'A/2']);
  });
});

describe('scores', () => {
  const picked = (sums: (b: ProgramBuilder) => readonly ScoreSum[], loads: readonly number[]): string => {
    const b = new ProgramBuilder();
    const t = testCore(
      b.program({ tiers: [tier('A', loads.length)], routes: [route('default', [destination('A', sums(b))])] }),
    );
    loads.forEach((tokens, i) => load(t, `A/${i + 1}`, tokens));
    return t.forward().attempt.endpoint;
  };

  test('a lone scorer compares raw values, unknown ones last', () => {
    expect(picked((b) => [b.lowest('queued_tokens')], [5000, 2000, 8000])).toBe('A/2');
    expect(
      picked(
        (b) => [
          {
            span: SPAN,
            terms: [
              {
                weight: 1,
                scorer: {
                  kind: 'expression',
                  name: 'highest',
                  expression: b.property('queued_tokens'),
                  direction: 'highest',
                  span: SPAN,
                },
              },
            ],
          },
        ],
        [5, 2, 8],
      ),
    ).toBe('A/3');
    expect(picked((b) => [b.lowest('kv_cache_used'), b.lowest('queued_tokens')], [5000, 2000, 8000])).toBe('A/2');
  });

  test('a sum weighs normalised scores', () => {
    const sum = (b: ProgramBuilder, weights: readonly [number, number]): ScoreSum => ({
      span: SPAN,
      terms: [
        {
          weight: weights[0],
          scorer: {
            kind: 'expression',
            name: 'a',
            expression: b.property('queued_tokens'),
            direction: 'lowest',
            span: SPAN,
          },
        },
        {
          weight: weights[1],
          scorer: {
            kind: 'expression',
            name: 'b',
            expression: b.property('queued_tokens'),
            direction: 'highest',
            span: SPAN,
          },
        },
      ],
    });
    expect(picked((b) => [sum(b, [0.7, 0.3])], [10, 20, 30])).toBe('A/1');
    expect(picked((b) => [sum(b, [0.3, 0.7])], [10, 20, 30])).toBe('A/3');
    // Equal weights make every sum 1/2 up to rounding: `then` decides.
    expect(picked((b) => [sum(b, [0.5, 0.5]), b.lowest('declared_order')], [10, 17, 30])).toBe('A/1');
  });

  test('`then` breaks ties among the best only', () => {
    expect(
      picked(
        (b) => [
          b.lowest('queued_tokens'),
          {
            span: SPAN,
            terms: [
              {
                weight: 1,
                scorer: {
                  kind: 'expression',
                  name: 'x',
                  expression: b.property('declared_order'),
                  direction: 'highest',
                  span: SPAN,
                },
              },
            ],
          },
        ],
        [1, 1, 2],
      ),
    ).toBe('A/2');
  });

  test('last ties spread evenly over requests and repeat for the same seed', () => {
    const b = new ProgramBuilder();
    const program = b.program({
      tiers: [tier('A', 4)],
      routes: [
        route('default', [
          destination(
            'A',
            [b.lowest('declared_order')].map(() => lowest(constant(1))),
          ),
        ]),
      ],
    });
    const run = (seed: number): string[] => {
      const t = testCore(program, { seed });
      return Array.from({ length: 2000 }, () => {
        const one = t.forward();
        one.finish(OK);
        return one.attempt.endpoint;
      });
    };
    const first = run(7);
    expect(run(7)).toEqual(first);
    for (const name of ['A/1', 'A/2', 'A/3', 'A/4']) {
      const share = first.filter((one) => one === name).length;
      expect(share).toBeGreaterThan(400);
      expect(share).toBeLessThan(600);
    }
  });

  test('the shortlist is the head of the whole order, whatever the loads', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5), { minLength: 1, maxLength: 12 }), fc.nat(4), (loads, retries) => {
        const b = new ProgramBuilder();
        const t = testCore(
          b.program({
            tiers: [tier('A', loads.length)],
            routes: [
              route('default', [
                destination('A', [b.lowest('queued_tokens'), b.lowest('declared_order')], {
                  with: { retry: { attempts: retries, on: ['connect'] } },
                }),
              ]),
            ],
          }),
        );
        loads.forEach((tokens, i) => load(t, `A/${i + 1}`, tokens));
        const one = t.forward();
        const order = loads.map((tokens, i) => ({ tokens, i })).toSorted((x, y) => x.tokens - y.tokens || x.i - y.i);
        expect(one.decision.shortlist.slice(0, retries + 1).map((entry) => entry.endpoint)).toEqual(
          order.slice(0, retries + 1).map(({ i }) => `A/${i + 1}`),
        );
        expect(one.decision.shortlist[0]?.parts).toEqual({ queued_tokens: order[0]?.tokens });
      }),
      { numRuns: 60 },
    );
  });
});

describe('split', () => {
  const shares = (t: TestCore, count: number): { readonly [tier: string]: number } => {
    const seen: { [tier: string]: number } = {};
    for (let i = 0; i < count; i++) {
      const one = t.forward({ headers: { 'x-session-id': `s-${i}` } });
      seen[one.attempt.tier] = (seen[one.attempt.tier] ?? 0) + 1;
      one.finish(OK);
    }
    return seen;
  };
  const build = (): TestCore => {
    const b = new ProgramBuilder();
    return testCore(
      b.program({
        tiers: [tier('A', 1), tier('B', 1), tier('C', 1)],
        routes: [
          route('default', [
            split(
              [
                [0.6, 'A'],
                [0.3, 'B'],
                [0.1, 'C'],
              ],
              [b.leastTokens()],
            ),
          ]),
        ],
      }),
    );
  };

  test('arms get their shares, by the session, the same each time', () => {
    const t = build();
    const seen = shares(t, 3000);
    expect(Math.abs((seen['A'] ?? 0) / 3000 - 0.6)).toBeLessThan(0.04);
    expect(Math.abs((seen['B'] ?? 0) / 3000 - 0.3)).toBeLessThan(0.04);
    const again = Array.from({ length: 5 }, () => t.forward({ headers: { 'x-session-id': 'x' } }).attempt.tier);
    expect(new Set(again).size).toBe(1);
  });

  test('an arm that is empty gives its share to the others in proportion, and no other key moves', () => {
    const t = build();
    const before = Array.from(
      { length: 1000 },
      (_, i) => t.forward({ headers: { 'x-session-id': `s-${i}` } }).attempt.tier,
    );
    t.core.cordon('B/1', true);
    const after = Array.from(
      { length: 1000 },
      (_, i) => t.forward({ headers: { 'x-session-id': `s-${i}` } }).attempt.tier,
    );
    expect(after.filter((_, i) => before[i] !== 'B')).toEqual(before.filter((was) => was !== 'B'));
    const moved = after.filter((_, i) => before[i] === 'B');
    const toA = moved.filter((name) => name === 'A').length / moved.length;
    expect(Math.abs(toA - 6 / 7)).toBeLessThan(0.08);
    expect(moved).not.toContain('B');
    t.core.cordon('A/1', true);
    t.core.cordon('C/1', true);
    expect(t.refuse()).toMatchObject({ code: 'no_endpoint' });
  });
});

describe('affinity', () => {
  const affinity = (b: ProgramBuilder, more: Partial<Affinity> = {}): Affinity => ({
    key: [b.signal('session')],
    method: 'bounded_rendezvous',
    bound: 1.25,
    unit: 'requests',
    span: SPAN,
    ...more,
  });
  const build = (count: number, more: Partial<Affinity> = {}): TestCore => {
    const b = new ProgramBuilder();
    return testCore(
      b.program({
        tiers: [tier('gpu', count)],
        routes: [route('default', [destination('gpu', [b.leastTokens()], { with: { affinity: affinity(b, more) } })])],
      }),
    );
  };
  const of = (t: TestCore, session: string, tenant?: string): string => {
    const one = t.forward({ headers: { 'x-session-id': session }, ...(tenant === undefined ? {} : { tenant }) });
    one.finish(OK);
    return one.attempt.endpoint;
  };

  test('a session stays where it is while there is room, and keys of different tenants differ', () => {
    const t = build(8);
    for (let s = 0; s < 20; s++) expect(new Set([of(t, `s-${s}`), of(t, `s-${s}`), of(t, `s-${s}`)]).size).toBe(1);
    const moved = Array.from({ length: 40 }, (_, s) => of(t, `s-${s}`, 'a') !== of(t, `s-${s}`, 'b')).filter(
      Boolean,
    ).length;
    expect(moved).toBeGreaterThan(20);
    expect(t.records.at(-1)?.reasons).toEqual(['default', 'affinity_hit']);
    expect(t.records.at(-1)?.keys.affinity).toMatch(/^[0-9a-f]{16}$/);
  });

  test('when an endpoint goes, only its sessions move', () => {
    const t = build(4);
    const before = Array.from({ length: 200 }, (_, s) => of(t, `s-${s}`));
    t.core.cordon('gpu/3', true);
    const after = Array.from({ length: 200 }, (_, s) => of(t, `s-${s}`));
    expect(after.filter((_, s) => before[s] !== 'gpu/3')).toEqual(before.filter((was) => was !== 'gpu/3'));
    expect(after).not.toContain('gpu/3');
  });

  test('the bound is never passed at assignment, in requests', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.array(fc.nat(5), { maxLength: 80 }), (count, sessions) => {
        const t = build(count);
        let held = 0;
        for (const session of sessions) {
          t.forward({ headers: { 'x-session-id': `s-${session}` } });
          held++;
          const most = Math.max(...t.core.endpoints().map((row) => row.inflightRequests));
          expect(most).toBeLessThanOrEqual(Math.ceil((1.25 * held) / count));
        }
      }),
      { numRuns: 40 },
    );
  });

  test('in tokens an endpoint takes one more while it holds no more than its bound', () => {
    const t = build(2, { unit: 'tokens' });
    const endpoints = Array.from(
      { length: 4 },
      () => t.forward({ headers: { 'x-session-id': 'one' } }).attempt.endpoint,
    );
    expect(new Set(endpoints).size).toBe(2);
    const rows = t.core.endpoints().map((row) => row.inflightTokens);
    expect(Math.max(...rows)).toBeLessThanOrEqual(1.25 * 0.5 * (rows[0] ?? 0) + 1.25 * 0.5 * (rows[1] ?? 0) + 600);
  });

  test('an unknown key leaves the decision to `by`', () => {
    const t = build(3);
    load(t, 'gpu/1', 1000);
    load(t, 'gpu/3', 1000);
    expect(t.forward().attempt.endpoint).toBe('gpu/2');
  });

  test('modulo_md5 agrees with md5(session) mod n in declared order', () => {
    const t = build(3, { method: 'modulo_md5' });
    const sessions = ['user-123-conv-456', 'user-100', 'user-200', 'user-300'];
    expect(sessions.map((session) => of(t, session))).toEqual(['gpu/1', 'gpu/1', 'gpu/2', 'gpu/1']);
    for (const session of sessions) expect(of(t, session)).toBe(`gpu/${md5Modulo(session, 3) + 1}`);
    t.core.cordon('gpu/1', true);
    expect(of(t, 'user-100')).not.toBe('gpu/1');
  });
});

describe('functions of plugins', () => {
  const plugin: Plugin = definePlugin({
    name: 'probe',
    apiVersion: 1,
    provides: {
      scorer: {
        turn: {
          doc: 'Rotates.',
          cost: true,
          scope: 'rule',
          setup() {
            const last = new Map<number, number>();
            let turns = 0;
            return {
              score(_request, candidates, out) {
                for (let i = 0; i < candidates.length; i++)
                  out[i] = last.get(candidates.slots[i] ?? -1) ?? (candidates.slots[i] ?? 0) - 100;
              },
              picked(slot) {
                last.set(slot, ++turns);
              },
            };
          },
        },
        by_name: {
          doc: 'Prefers the endpoint whose name the header says.',
          reads: ['candidate.name', 'request.user', 'candidate.queued_tokens', 'request.prompt_tokens'],
          setup() {
            return {
              score(request, candidates, out) {
                const names = candidates.values('candidate.name');
                const tokens = candidates.column('candidate.queued_tokens');
                for (let i = 0; i < candidates.length; i++) {
                  const slot = candidates.slots[i] ?? 0;
                  out[i] =
                    names[slot] === request.value('request.user') &&
                    request.number('request.prompt_tokens') > 0 &&
                    tokens[slot] === 0
                      ? 1
                      : 0;
                }
              },
            };
          },
        },
        broken: {
          doc: 'Throws.',
          setup() {
            return {
              score() {
                throw new Error('boom');
              },
            };
          },
        },
        garbage: {
          doc: 'Gives nonsense.',
          setup() {
            return {
              score(_request, candidates, out) {
                for (let i = 0; i < candidates.length; i++) out[i] = i === 0 ? Number.NaN : i === 1 ? -Infinity : 7;
              },
            };
          },
        },
      },
      property: {
        distance: {
          doc: 'Distance from the third endpoint.',
          type: 'number',
          setup() {
            return {
              fill(_request, candidates, out) {
                for (let i = 0; i < candidates.length; i++) out[i] = Math.abs((candidates.slots[i] ?? 0) - 2);
              },
            };
          },
        },
      },
      picker: {
        worst: {
          doc: 'Worst first.',
          setup() {
            return {
              pick(scores, candidates, _random, k, out) {
                const order = Array.from({ length: candidates.length }, (_, i) => i).toSorted(
                  (a, b) => (scores[a] ?? 0) - (scores[b] ?? 0),
                );
                const count = Math.min(k, order.length);
                for (let j = 0; j < count; j++) out[j] = order[j] ?? 0;
                return count;
              },
            };
          },
        },
        pair: {
          doc: 'Two at random.',
          setup() {
            return {
              sample(candidates, random, out) {
                out[0] = Math.floor(random.next() * candidates.length);
                out[1] = (out[0] + 1) % candidates.length;
                return 2;
              },
            };
          },
        },
      },
    },
  });

  const provider = { kind: 'plugin', plugin: 'probe' } as const;
  const scorer = (name: string, more: { readonly cost?: boolean; readonly on_error?: string } = {}): ScoreSum => ({
    span: SPAN,
    terms: [
      {
        weight: 1,
        scorer: {
          kind: 'function',
          name,
          provider,
          options: more.on_error === undefined ? {} : { on_error: more.on_error },
          cost: more.cost ?? false,
          instance: name === 'turn' ? 'rule' : 'policy',
          reads: [],
          span: SPAN,
        },
      },
    ],
  });
  const pick = (name: string): Destination['pick'] => ({ name, provider, options: {}, span: SPAN });
  const build = (by: readonly ScoreSum[], more: Partial<Destination> = {}, b = new ProgramBuilder()): TestCore =>
    testCore(b.program({ tiers: [tier('A', 3)], routes: [route('default', [{ ...destination('A', by), ...more }])] }), {
      plugins: [plugin],
    });

  test('a stateful scorer is told of real picks, so it rotates; explain advances nothing', () => {
    const t = build([scorer('turn', { cost: true })]);
    const next = (): string => {
      t.core.explain(request());
      t.forward().finish(OK);
      return t.records.at(-1)?.endpoint ?? '';
    };
    expect(Array.from({ length: 6 }, next)).toEqual(['A/1', 'A/2', 'A/3', 'A/1', 'A/2', 'A/3']);
  });

  test('a scorer sees the signals and properties that it declared', () => {
    const t = build([scorer('by_name')]);
    expect(t.forward({ body: { user: 'A/3' } }).attempt.endpoint).toBe('A/3');
    expect(t.forward({ body: { user: 'A/2' } }).attempt.endpoint).toBe('A/2');
  });

  test('one that throws is neutral and counted; with on_error: fail the request is refused', () => {
    const b = new ProgramBuilder();
    const t = build([scorer('broken'), b.lowest('declared_order')], {}, b);
    expect(t.forward().attempt.endpoint).toBe('A/1');
    expect(t.core.status().pluginFailures.get('probe/broken')).toBe(1);
    expect(build([scorer('broken', { on_error: 'fail' })]).refuse()).toMatchObject({
      status: 500,
      code: 'plugin_failed',
    });
  });

  test('values that are not numbers count as 0 and are reported, others are clamped', () => {
    const t = build([scorer('garbage')]);
    expect(t.forward().attempt.endpoint).toBe('A/3');
    expect(t.core.status().pluginInvalidValues.get('probe/garbage')).toBe(2);
  });

  test('a property by function is filled for the candidates', () => {
    const b = new ProgramBuilder();
    b.properties.push({ key: 'distance', type: 'number', provider, arguments: [] });
    const t = build([lowest({ kind: 'property', index: 0, type: 'number', scope: 'candidate', span: SPAN })], {}, b);
    const one = t.forward();
    expect(one.attempt.endpoint).toBe('A/3');
    expect(one.decision.shortlist.map((entry) => entry.properties)).toEqual([
      { distance: 0 },
      { distance: 1 },
      { distance: 2 },
    ]);
  });

  const FAIL = { on_error: 'fail' };
  /** A signal of type bool that holds until the first request is under way, and then fails. */
  const fragile = (reads: readonly string[]): Plugin => {
    let evaluated = 0;
    return definePlugin({
      name: 'fragile',
      apiVersion: 1,
      provides: {
        signal: {
          shaky: {
            doc: 'Works twice.',
            type: 'bool',
            reads,
            onError: 'fail',
            setup: () => ({
              evaluate() {
                if (++evaluated > 2) throw new Error('boom');
                return true;
              },
            }),
          },
        },
        admission: {
          shaky_too: {
            doc: 'Never works.',
            arguments: [],
            onError: 'fail',
            setup: () => ({
              holds() {
                throw new Error('boom');
              },
            }),
          },
        },
      },
    });
  };
  const from = { kind: 'plugin', plugin: 'fragile' } as const;

  test('one that fails with on_error: fail in the middle of a life refuses that request, and nothing is held', async () => {
    const b = new ProgramBuilder();
    b.signals.push({ key: 'shaky', type: 'bool', known: 'maybe', provider: from, arguments: [] });
    const t = testCore(
      b.program({
        tiers: [tier('A', 1, { maxRequests: 1 })],
        routes: [route('default', [destination('A', [b.leastTokens()]), verdict('queue', { maxWait: constant(9) })])],
      }),
      { plugins: [fragile([])] },
    );
    const first = t.forward();
    const waiting = [1, 2].map(async () => t.core.router.route(request()));
    t.time.advance(200);
    first.finish(OK);
    const refused = await Promise.all(waiting);
    expect(refused).toMatchObject([{ code: 'plugin_failed' }, { code: 'plugin_failed' }]);
    for (const one of refused) if (one.kind === 'refuse') one.finish();
    expect(t.core.status()).toMatchObject({ queued: 0, leasesOpen: 0 });
    t.time.advance(200);
    expect(t.time.timers).toBe(0);
  });

  test('one that fails when another endpoint is sought refuses the request, in `else` parts and fallbacks too', () => {
    const b = new ProgramBuilder();
    const bad = destination('B', [scorer('broken', FAIL)]);
    const to = (more: Partial<Destination>, ...rest: readonly Destination[]): TestCore =>
      testCore(
        b.program({
          tiers: [tier('A', 1), tier('B', 2)],
          routes: [route('default', [{ ...destination('A', [b.leastTokens()]), ...more }, ...rest])],
        }),
        { plugins: [plugin] },
      );
    const gone = { cause: 'connect', status: 0, retryAfterSeconds: Number.NaN, durationMs: 1 } as const;
    const elsewhere = to({ with: { retry: { attempts: 0 } } }, bad);
    const live = elsewhere.forward();
    expect(live.next(gone)).toMatchObject({ kind: 'refuse', code: 'plugin_failed', status: 500 });
    live.finish({ ...OK, outcome: 'upstream_error', status: 500 });
    expect(elsewhere.core.status()).toMatchObject({ leasesOpen: 0 });
  });

  test('where no request is there to be refused, a value that fails is unknown, and an explanation says what failed', () => {
    const b = new ProgramBuilder();
    const shaky = { key: 'shaky_too', type: 'bool', known: 'maybe', provider: from, arguments: [] } as const;
    b.signals.push(shaky);
    const when = { kind: 'signal', index: 0, type: 'bool', scope: 'request', span: SPAN } as const;
    const t = testCore(
      b.program({
        tiers: [tier('A', 1)],
        routes: [route('default', [destination('A', [b.leastTokens()])])],
        definitions: { alarms: [{ name: 'hot', when, for: 0, span: SPAN }] },
      }),
      { plugins: [fragile([])] },
    );
    t.time.advance(1000);
    expect(t.core.status().alarms.get('hot')).toBe(false);
    expect(t.time.timers).toBe(1);
    expect(t.refuse()).toMatchObject({ code: 'plugin_failed' });
    expect(() => t.core.explain(request())).toThrow(/requests like this are refused: plugin fragile\/shaky_too failed/);
  });

  test('what a property came to is not taken for what it comes to later, when a request that waits is offered anew', async () => {
    let price = 5;
    const market = definePlugin({
      name: 'market',
      apiVersion: 1,
      provides: {
        property: {
          spot: {
            doc: 'The price now.',
            type: 'number',
            setup: () => ({ fill: (_request, candidates, out) => void out.fill(price, 0, candidates.length) }),
          },
        },
      },
    });
    const b = new ProgramBuilder();
    b.properties.push({
      key: 'spot',
      type: 'number',
      provider: { kind: 'plugin', plugin: 'market' },
      arguments: [],
    });
    const body = { kind: 'property', index: 0, type: 'number', scope: 'candidate', span: SPAN } as const;
    const least = { kind: 'aggregate', function: 'min', body, type: 'number', scope: 'request', span: SPAN } as const;
    const t = testCore(
      b.program({
        tiers: [tier('A', 1)],
        admission: [{ ...admission('queue', 'dear', compare('>', least, constant(3))) }],
        routes: [route('default', [destination('A', [b.lowest('declared_order')])])],
      }),
      { plugins: [market] },
    );
    const waiting = t.core.router.route(request());
    t.time.advance(100);
    price = 2;
    t.time.advance(100);
    await expect(waiting).resolves.toMatchObject({ kind: 'forward' });
  });

  test('a picker orders the shortlist; one that samples narrows what is scored', () => {
    const b = new ProgramBuilder();
    const worst = build([b.lowest('declared_order')], { pick: pick('worst') }, b);
    expect(worst.forward().decision.shortlist.map((entry) => entry.endpoint)).toEqual(['A/3', 'A/2', 'A/1']);
    const c = new ProgramBuilder();
    const pair = build([c.lowest('declared_order')], { pick: pick('pair') }, c);
    const seen = Array.from({ length: 60 }, () => {
      const one = pair.forward();
      expect(one.decision.shortlist).toHaveLength(2);
      return one.attempt.endpoint;
    });
    expect(new Set(seen)).toEqual(new Set(['A/1', 'A/2']));
  });

  test('instances survive a reload that keeps them, and are closed when nobody holds them', () => {
    const t = build([scorer('turn', { cost: true })]);
    const first = t.forward();
    const b = new ProgramBuilder();
    const again = b.program({
      tiers: [tier('A', 3)],
      routes: [route('default', [destination('A', [scorer('turn', { cost: true })])])],
      hash: 'second-version',
    });
    t.core.activate(t.core.prepare(again, [plugin]));
    const second = t.forward();
    expect(second.attempt.endpoint).toBe('A/2');
    expect(t.core.status()).toMatchObject({ versions: 2, pluginInstances: 1 });
    first.finish(OK);
    expect(t.core.status()).toMatchObject({ versions: 1, pluginInstances: 1 });
    const c = new ProgramBuilder();
    t.core.activate(
      t.core.prepare(
        c.program({ tiers: [tier('A', 3)], routes: [route('default', [destination('A', [c.leastTokens()])])] }),
      ),
    );
    // The request that went to A/2 is still under way on the version before.
    expect(t.core.status()).toMatchObject({ versions: 2, pluginInstances: 1 });
    second.finish(OK);
    expect(t.core.status()).toMatchObject({ versions: 1, pluginInstances: 0 });
  });

  test('an endpoint that leaves is forgotten after its last request has ended, whoever asks for it then', () => {
    const told: string[] = [];
    const keeper = definePlugin({
      name: 'keeper',
      apiVersion: 1,
      provides: {
        scorer: {
          kept: {
            doc: 'Says what it is told.',
            setup: () => ({
              score: (_request, candidates, out) => void out.fill(0, 0, candidates.length),
              ended: (slot) => void told.push(`ended ${slot}`),
              forget: (slot) => void told.push(`forget ${slot}`),
            }),
          },
        },
        property: {
          seen: {
            doc: 'Fails to forget.',
            type: 'number',
            setup: () => ({
              fill: (_request, candidates, out) => void out.fill(0, 0, candidates.length),
              forget() {
                throw new Error('boom');
              },
            }),
          },
        },
      },
    });
    const from = { kind: 'plugin', plugin: 'keeper' } as const;
    const kept = {
      kind: 'function',
      name: 'kept',
      provider: from,
      options: {},
      cost: false,
      instance: 'policy',
      reads: [],
      span: SPAN,
    } as const;
    const program = (name: string): ReturnType<ProgramBuilder['program']> => {
      const b = new ProgramBuilder();
      b.properties.push({ key: 'seen', type: 'number', provider: from, arguments: [] });
      const seen = lowest({ kind: 'property', index: 0, type: 'number', scope: 'candidate', span: SPAN });
      const by = [{ span: SPAN, terms: [{ weight: 1, scorer: kept }] }, seen];
      return b.program({ tiers: [tier(name, 1)], routes: [route('default', [destination(name, by)])], hash: name });
    };
    const t = testCore(program('A'), { plugins: [keeper] });
    const live = t.forward();
    t.core.activate(t.core.prepare(program('B'), [keeper]));
    expect(told).toEqual([]);
    live.finish(OK);
    expect(told).toEqual(['ended 0', 'forget 0']);
  });

  test('a version that cannot be bound changes nothing', () => {
    const t = build([scorer('turn', { cost: true })]);
    const b = new ProgramBuilder();
    const bad = b.program({
      tiers: [tier('A', 3)],
      routes: [route('default', [destination('A', [scorer('turn'), scorer('missing')])])],
    });
    expect(() => t.core.prepare(bad, [plugin])).toThrow(/provides no scorer "missing"/);
    expect(t.core.status()).toMatchObject({ versions: 1, pluginInstances: 1 });
    expect(() => t.core.prepare(bad, [])).toThrow(/not loaded/);
  });
});
