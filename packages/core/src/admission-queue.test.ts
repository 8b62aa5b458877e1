import type { Modifiers, OrderKey, PolicyProgram } from '@signalbox/policy';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AdmissionQueues } from './admission-queue.ts';
import type { QueueEntry, QueueRefusal } from './admission-queue.ts';
import type { BoundQueue } from './bound-policy.ts';
import type { Frame } from './frame.ts';
import type { RequestState } from './request-state.ts';
import type { Forward, Refusal, RouteOutcome, RouteRequest } from './router.ts';
import type { TestCore } from './program.fixture.ts';
import {
  admission,
  compare,
  constant,
  destination,
  OK,
  ProgramBuilder,
  request,
  route,
  testCore,
  tier,
  verdict,
} from './program.fixture.ts';

interface Waiting {
  readonly request: RouteRequest;
  outcome: RouteOutcome | undefined;
}

/** Routes a request and notes its outcome when it comes. */
function ask(t: TestCore, more: Parameters<typeof request>[0] = {}): Waiting {
  const asked = request({ receivedAtMs: t.time.nowMs, ...more });
  const waiting: Waiting = { request: asked, outcome: undefined };
  const outcome = t.core.router.route(asked);
  if (outcome instanceof Promise) void outcome.then((settled) => (waiting.outcome = settled));
  else waiting.outcome = outcome;
  return waiting;
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await Promise.resolve();
};

const forwarded = (waiting: Waiting): Forward => {
  if (waiting.outcome?.kind !== 'forward') throw new Error(`not forwarded: ${JSON.stringify(waiting.outcome ?? null)}`);
  return waiting.outcome;
};
const refused = (waiting: Waiting): Refusal => {
  if (waiting.outcome?.kind !== 'refuse') throw new Error('not refused');
  return waiting.outcome;
};

/** One endpoint with room for one request; `else queue`. */
function elseQueue(
  modifiers: Modifiers = {},
  more: { readonly afterwards?: boolean; readonly by?: readonly OrderKey[] } = {},
): TestCore {
  const b = new ProgramBuilder();
  b.signal('tenant.id');
  const queue = verdict('queue', modifiers);
  return testCore(
    b.program({
      tiers: [tier('A', 1, { maxRequests: 1 }), tier('B', 1)],
      routes: [
        route('default', [
          destination('A', [b.leastTokens()]),
          { ...queue, ...(more.by === undefined ? {} : { by: more.by }) } as typeof queue,
          ...(more.afterwards === true ? [destination('B', [b.leastTokens()])] : []),
        ]),
      ],
    }),
  );
}

test('a request that waits goes when the lease before it ends', async () => {
  const t = elseQueue();
  const first = ask(t);
  const second = ask(t);
  await settle();
  expect(second.outcome).toBeUndefined();
  expect(t.core.status()).toMatchObject({ queued: 1, leasesOpen: 1 });
  t.time.advance(40);
  forwarded(first).finish(OK);
  await settle();
  const one = forwarded(second);
  one.finish(OK);
  expect(t.records[1]).toMatchObject({ queuedMs: 40, reasons: ['default', 'queued'] });
  expect(t.core.status()).toMatchObject({ queued: 0, leasesOpen: 0 });
  t.time.advance(100);
  expect(t.time.timers).toBe(0);
});

test('at max_wait it takes the next `else`, and without one 503 queue_timeout', async () => {
  const t = elseQueue({ maxWait: constant(2) }, { afterwards: true });
  ask(t);
  const second = ask(t);
  t.time.advance(1999);
  await settle();
  expect(second.outcome).toBeUndefined();
  t.time.advance(1);
  await settle();
  expect(forwarded(second).attempt.tier).toBe('B');

  const bare = elseQueue({ maxWait: constant(2) });
  ask(bare);
  const late = ask(bare);
  bare.time.advance(2000);
  await settle();
  expect(refused(late)).toMatchObject({
    status: 503,
    code: 'queue_timeout',
    retryAfterSeconds: 1,
    decision: { reasons: ['queue_timeout', 'queued'] },
  });
  refused(late).finish();
  expect(bare.records[0]).toMatchObject({ verdict: 'refused', code: 'queue_timeout', queuedMs: 2000 });
});

test('a wait may be longer than timers can be set for', async () => {
  const t = elseQueue({ maxWait: constant(60 * 86_400) });
  forwarded(ask(t));
  const waiting = ask(t);
  t.time.advance(86_400_000);
  await settle();
  expect(waiting.outcome).toBeUndefined();
});

test("a caller's deadline ends the wait with 504", async () => {
  const t = elseQueue();
  ask(t);
  const second = ask(t, { deadlineMs: 500 });
  t.time.advance(500);
  await settle();
  expect(refused(second)).toMatchObject({ status: 504, code: 'upstream_timeout' });
});

test('a client that goes away is taken out of line', async () => {
  const t = elseQueue();
  ask(t);
  const second = ask(t);
  second.request.onAbort?.();
  await settle();
  expect(refused(second).status).toBe(499);
  refused(second).finish();
  expect(t.core.status()).toMatchObject({ queued: 0, leasesOpen: 1 });
  t.time.advance(1000);
  expect(t.time.timers).toBe(0);
});

test('a full queue refuses, or displaces by `overflow`', async () => {
  const outcomes = async (
    overflow: 'oldest' | 'newest' | 'lowest' | 'refuse',
    priorities: readonly string[],
  ): Promise<(string | undefined)[]> => {
    const t = elseQueue({ maxDepth: 2, overflow });
    ask(t);
    const waiting = priorities.map((priority) => ask(t, { headers: { 'x-priority': priority } }));
    await settle();
    return waiting.map(({ outcome }) => (outcome?.kind === 'refuse' ? outcome.code : undefined));
  };
  expect(await outcomes('refuse', ['normal', 'normal', 'normal'])).toEqual([undefined, undefined, 'queue_full']);
  expect(await outcomes('oldest', ['normal', 'normal', 'normal'])).toEqual(['queue_full', undefined, undefined]);
  expect(await outcomes('newest', ['normal', 'normal', 'normal'])).toEqual([undefined, 'queue_full', undefined]);
  expect(await outcomes('lowest', ['low', 'normal', 'normal'])).toEqual(['queue_full', undefined, undefined]);
  expect(await outcomes('lowest', ['normal', 'normal', 'normal'])).toEqual([undefined, undefined, 'queue_full']);
});

test('classes go first, then the earliest deadline; past half full the newest', async () => {
  const order = async (maxDepth: number): Promise<string[]> => {
    const t = elseQueue({ maxDepth });
    let current = forwarded(ask(t));
    const waiting = [
      ask(t, { id: 'low', headers: { 'x-priority': 'low' } }),
      ask(t, { id: 'late', deadlineMs: 9e6 }),
      ask(t, { id: 'early', deadlineMs: 5e6 }),
      ask(t, { id: 'last' }),
    ];
    const ids: string[] = [];
    for (let i = 0; i < waiting.length; i++) {
      current.finish(OK);
      await settle();
      const next = waiting.find((one) => one.outcome?.kind === 'forward' && !ids.includes(one.request.id));
      if (next === undefined) throw new Error('nobody went');
      ids.push(next.request.id);
      current = forwarded(next);
    }
    return ids;
  };
  expect(await order(100)).toEqual(['early', 'late', 'last', 'low']);
  expect((await order(4))[0]).toBe('last');
});

test('a fair queue serves the key that has had the fewest weighted tokens', async () => {
  const by: readonly OrderKey[] = [
    {
      key: 'weighted_fair',
      provider: { kind: 'builtin' },
      arguments: [
        {
          kind: 'expression',
          name: 'key',
          expression: {
            kind: 'signal',
            index: 0,
            type: 'string',
            scope: 'request',
            span: { file: '', start: 0, end: 0 },
          },
        },
      ],
    },
  ];
  const t = elseQueue({}, { by });
  let current = forwarded(ask(t, { tenant: 'greedy' }));
  const waiting = [
    ...Array.from({ length: 6 }, () => ask(t, { tenant: 'greedy' })),
    ...Array.from({ length: 3 }, () => ask(t, { tenant: 'modest' })),
  ];
  const served: string[] = [];
  const done = new Set<Waiting>();
  for (let i = 0; i < waiting.length; i++) {
    current.finish(OK);
    await settle();
    const next = waiting.find((one) => one.outcome?.kind === 'forward' && !done.has(one));
    if (next === undefined) throw new Error('nobody went');
    done.add(next);
    served.push(next.request.tenant ?? '');
    current = forwarded(next);
  }
  // Both waited from the start: they alternate until one has nothing left.
  expect(served.slice(0, 6).filter((name) => name === 'modest')).toHaveLength(3);
});

/** A queue by `weighted_fair(key: tenant.id)` in front of one endpoint that takes `batch` requests at a time. */
function fairQueue(batch: number): TestCore {
  const b = new ProgramBuilder();
  b.signal('tenant.id');
  const span = { file: '', start: 0, end: 0 };
  const key = { kind: 'signal', index: 0, type: 'string', scope: 'request', span } as const;
  const by: readonly OrderKey[] = [
    {
      key: 'weighted_fair',
      provider: { kind: 'builtin' },
      arguments: [{ kind: 'expression', name: 'key', expression: key }],
    },
  ];
  return testCore(
    b.program({
      tiers: [tier('A', 1, { maxRequests: batch })],
      routes: [
        route('default', [
          destination('A', [b.leastTokens()]),
          { ...verdict('queue', { maxDepth: 1000, maxWait: constant(1e6) }), by } as ReturnType<typeof verdict>,
        ]),
      ],
    }),
  );
}

test('two keys that always wait are never further apart than 2·max(w_in·L_in, w_out·M) weighted tokens', async () => {
  const LONGEST_PROMPT = 2000;
  const LONGEST_OUTPUT = 300;
  const size = fc.record({
    prompt: fc.integer({ min: 1, max: LONGEST_PROMPT }),
    output: fc.integer({ min: 1, max: LONGEST_OUTPUT }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 2, max: 4 }),
      fc.array(fc.record({ size, skew: fc.nat(3), which: fc.nat(10) }), { minLength: 20, maxLength: 80 }),
      async (batch, keys, steps) => {
        const t = fairQueue(batch);
        const bound = 2 * Math.max(LONGEST_PROMPT, 2 * batch * LONGEST_OUTPUT);
        const holders = Array.from({ length: batch }, () => ask(t, { tenant: 'before' }));
        const names = Array.from({ length: keys }, (_, i) => `tenant-${i}`);
        const served = new Map(names.map((name) => [name, 0]));
        const waiting = new Set<Waiting>();
        const inFlight = new Set<Waiting>();
        let turn = 0;
        const topUp = (): void => {
          for (const [i, name] of names.entries()) {
            let mine = [...waiting].filter((one) => one.request.tenant === name).length;
            for (; mine <= batch; mine++) {
              const { size: of, skew } = steps[turn++ % steps.length] ?? { size: { prompt: 1, output: 1 }, skew: 0 };
              // Some keys send far more than others.
              const prompt = Math.max(1, i === 0 ? of.prompt : of.prompt >> skew);
              waiting.add(ask(t, { tenant: name, body: { promptTokensExact: prompt, maxTokens: LONGEST_OUTPUT } }));
            }
          }
        };
        const collect = (): void => {
          for (const one of waiting) {
            if (one.outcome === undefined) continue;
            waiting.delete(one);
            inFlight.add(one);
            const name = one.request.tenant ?? '';
            served.set(name, (served.get(name) ?? 0) + one.request.parsed.promptTokensExact);
          }
        };
        topUp();
        for (const one of holders) forwarded(one).finish(OK);
        await settle();
        collect();
        for (const { size: of, which } of steps) {
          topUp();
          const one = [...inFlight][which % inFlight.size];
          if (one === undefined) throw new Error('nothing is in flight while keys wait');
          inFlight.delete(one);
          const name = one.request.tenant ?? '';
          served.set(name, (served.get(name) ?? 0) + 2 * of.output);
          forwarded(one).finish({ ...OK, promptTokens: one.request.parsed.promptTokensExact, outputTokens: of.output });
          await settle();
          collect();
          const totals = [...served.values()];
          expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(bound);
        }
      },
    ),
    { numRuns: 60 },
  );
});

test('a key that comes back after a rest is served level with those that waited, not for all that it missed', async () => {
  const t = fairQueue(1);
  const order: string[] = [];
  const waiting: Waiting[] = [];
  let current = forwarded(ask(t, { tenant: 'steady' }));
  const step = async (): Promise<void> => {
    current.finish({ ...OK, promptTokens: 100, outputTokens: 50 });
    await settle();
    const at = waiting.findIndex((one) => one.outcome !== undefined);
    const [next] = waiting.splice(at, 1);
    if (next === undefined) throw new Error('nobody went');
    order.push(next.request.tenant ?? '');
    current = forwarded(next);
  };
  const body = { promptTokensExact: 100, maxTokens: 50 };
  const send = (tenant: string, count: number): void => {
    for (let i = 0; i < count; i++) waiting.push(ask(t, { tenant, body }));
  };
  send('resting', 1);
  send('steady', 40);
  for (let i = 0; i < 20; i++) await step();
  order.length = 0;
  send('resting', 20);
  for (let i = 0; i < 20; i++) await step();
  expect(order.filter((name) => name === 'resting').length).toBeGreaterThanOrEqual(9);
  expect(order.filter((name) => name === 'resting').length).toBeLessThanOrEqual(11);
});

/** A fair queue on its own, with requests of which it sees the key alone. */
function fairLine(): {
  readonly queues: AdmissionQueues;
  readonly place: BoundQueue;
  enqueue(key: string, tokens?: number): QueueEntry;
} {
  const queues = new AdmissionQueues(Infinity);
  const place = {
    key: 'route:r:1',
    label: 'r',
    admission: -1,
    maxDepth: 1000,
    overflow: 'refuse',
    order: { kind: 'weighted_fair', key: (host) => (host as Frame).tenant?.name, inputWeight: 1, outputWeight: 1 },
    with: {},
  } as BoundQueue;
  return {
    queues,
    place,
    enqueue(key, tokens = 1) {
      const frame = { tenant: { name: key, weight: 1 }, promptTokens: tokens, outputTokens: 0 };
      const entry = queues.enqueue({ frame } as unknown as RequestState, place, 0, Infinity, () => {});
      if ('kind' in entry) throw new Error(`refused: ${entry.kind}`);
      return entry;
    },
  };
}

test('a fair queue remembers a bounded number of keys, however many come, and those that wait whatever their number', () => {
  const { queues, place, enqueue } = fairLine();
  // None of these waits: an endpoint was free for each.
  for (let i = 0; i < 20_000; i++) queues.serve(place, `passing ${i}`, 1, 0, 1);
  expect(queues.fairKeys).toBeLessThanOrEqual(4096);
  const waiting = ['a', 'b'].map((key) => enqueue(key));
  queues.serve(place, 'a', 10, 0, 1);
  // Each is lifted to the least served that waits, goes at once, and has had more than the level then.
  for (let i = 0; i < 20_000; i++) {
    const entry = enqueue(`new ${i}`);
    queues.remove(entry, 0);
    queues.serve(place, entry.fairKey, 1, 0, 1);
  }
  expect(queues.fairKeys).toBeLessThanOrEqual(4096);
  const order: string[] = [];
  queues.wake((entry) => order.push(entry.fairKey) > 0 && queues.remove(entry, 0));
  expect(order).toEqual(['b', 'a']);
  expect(waiting.every((entry) => !queues.remove(entry, 0))).toBe(true);
});

test('a queue from which nothing but empty requests has left knows no rate yet', () => {
  const { queues, enqueue } = fairLine();
  const entries = Array.from({ length: 5 }, () => enqueue('a', 0));
  for (const entry of entries) {
    queues.remove(entry, 1000);
    queues.dispatched(entry);
  }
  enqueue('a', 5);
  expect(queues.expectedWaitMs(enqueue('a', 5), 2000)).toBeNaN();
});

test('queues that no policy names any more are forgotten with what their keys were served', () => {
  const b = new ProgramBuilder();
  b.signal('tenant.id');
  const span = { file: '', start: 0, end: 0 };
  const key = { kind: 'signal', index: 0, type: 'string', scope: 'request', span } as const;
  const named = (label: string): PolicyProgram =>
    b.program({
      tiers: [tier('A', 1)],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      admission: [
        {
          ...admission('queue', label),
          by: [
            {
              key: 'weighted_fair',
              provider: { kind: 'builtin' },
              arguments: [{ kind: 'expression', name: 'key', expression: key }],
            },
          ],
        },
      ],
      hash: label,
    });
  const t = testCore(named('queue 0'));
  for (let i = 1; i <= 50; i++) {
    const live = t.forward({ tenant: 'a' });
    t.core.activate(t.core.prepare(named(`queue ${i}`)));
    // What it was off by comes in after its queue has gone.
    live.finish(OK);
  }
  expect(t.core.status().queues.length).toBeLessThanOrEqual(1);
});

/** One endpoint for one request at a time and a queue; each request that goes takes `ms`. Returns the forward that is under way. */
async function serve(t: TestCore, current: Forward, waiting: Waiting[], count: number, ms: number): Promise<Forward> {
  let under = current;
  for (let i = 0; i < count; i++) {
    t.time.advance(ms);
    under.finish(OK);
    await settle();
    const at = waiting.findIndex((one) => one.outcome?.kind === 'forward');
    const [next] = at < 0 ? [] : waiting.splice(at, 1);
    if (next === undefined) throw new Error('nobody went');
    under = forwarded(next);
  }
  return under;
}

test('whom a queue cannot serve in time is refused at the door, and told when to come back', async () => {
  const by: readonly OrderKey[] = [{ key: 'deadline', provider: { kind: 'builtin' }, arguments: [] }];
  const t = elseQueue({ maxWait: constant(5) }, { by });
  const body = { promptTokensExact: 100, maxTokens: 20 };
  const headers = { 'x-priority': 'low' };
  const waiting: Waiting[] = [];
  const current = forwarded(ask(t, { body, headers }));
  // Nothing has left yet: the rate is unknown, and nobody is refused for it.
  for (let i = 0; i < 12; i++) waiting.push(ask(t, { body, headers }));
  expect(waiting.every((one) => one.outcome === undefined)).toBe(true);
  await serve(t, current, waiting, 8, 400);
  // One leaves each 400 ms and four wait: the fifth would wait for some 1.6 s.
  expect(waiting).toHaveLength(4);
  const late = ask(t, { body, headers, deadlineMs: t.time.nowMs + 1000 });
  const inTime = ask(t, { body, headers, deadlineMs: t.time.nowMs + 2500 });
  await settle();
  // Earlier deadlines go first, so neither has anybody ahead.
  expect([late.outcome, inTime.outcome]).toEqual([undefined, undefined]);
  const patient: Waiting[] = [];
  for (let i = 0; i < 20; i++) patient.push(ask(t, { body, headers }));
  await settle();
  const turnedAway = patient.filter((one) => one.outcome !== undefined);
  // Five seconds are room for some 12, six of whom are there.
  expect(patient.length - turnedAway.length).toBeGreaterThanOrEqual(6);
  expect(patient.length - turnedAway.length).toBeLessThanOrEqual(8);
  for (const one of turnedAway) {
    expect(refused(one)).toMatchObject({ status: 503, code: 'shed' });
    expect(refused(one).retryAfterSeconds).toBeGreaterThanOrEqual(5);
    expect(refused(one).retryAfterSeconds).toBeLessThanOrEqual(6);
    refused(one).finish();
  }
  expect(t.records.at(-1)).toMatchObject({ code: 'shed', shed: { class: 'low' } });
  // A class that goes before them is not kept waiting by them.
  const normal = ask(t, { body });
  await settle();
  expect(normal.outcome).toBeUndefined();
});

/** A line of its own, into which requests of 100 tokens come and from which they leave by hand. */
function measuredLine(): {
  readonly rate: (nowMs: number) => number;
  readonly come: (nowMs: number, patienceMs?: number) => QueueEntry | QueueRefusal;
  readonly leave: (nowMs: number) => void;
} {
  const queues = new AdmissionQueues(Infinity);
  const place = {
    key: 'route:r:1',
    label: 'r',
    admission: -1,
    maxDepth: 1000,
    overflow: 'refuse',
    order: { kind: 'deadline' },
    with: {},
  } as BoundQueue;
  const line: QueueEntry[] = [];
  return {
    rate: (nowMs) => queues.status(nowMs)[0]?.tokensPerSecond ?? Number.NaN,
    come(nowMs, patienceMs = Infinity) {
      const frame = { promptTokens: 80, outputTokens: 20 };
      const state = { frame, deadlineMs: Infinity } as unknown as RequestState;
      const entry = queues.enqueue(state, place, nowMs, patienceMs, () => {});
      if (!('kind' in entry)) line.push(entry);
      return entry;
    },
    leave(nowMs) {
      const entry = line.shift();
      if (entry === undefined || !queues.remove(entry, nowMs)) throw new Error('nobody waits');
      queues.dispatched(entry);
    },
  };
}

describe('the drain rate behind an expected wait', () => {
  test('is unknown before four have left, and nobody is refused for it', () => {
    const { rate, come, leave } = measuredLine();
    for (let i = 0; i < 10; i++) come(0);
    for (let i = 1; i <= 3; i++) leave(i * 1000);
    expect(rate(3000)).toBeNaN();
    expect(come(3000, 1)).not.toHaveProperty('kind');
    leave(4000);
    expect(rate(4000)).toBeGreaterThan(0);
    expect(come(4000, 1)).toMatchObject({ kind: 'too_long' });
  });

  test('is tokens that left by the time somebody waited, newer ones weighing more', () => {
    const { rate, come, leave } = measuredLine();
    for (let i = 0; i < 10; i++) come(0);
    for (let i = 1; i <= 6; i++) leave(i * 500);
    const weights = (age: number): number => Math.exp(-age / 10);
    const tokens = [0, 0.5, 1, 1.5, 2, 2.5].reduce((sum, age) => sum + 100 * weights(age), 0);
    expect(rate(3000)).toBeCloseTo(tokens / (10 * (1 - weights(3))), 9);
    // Seven wait: as many hundred tokens, at some 200 a second.
    come(3000);
    come(3000);
    come(3000);
    const refusal = come(3000, 0);
    expect(refusal).toMatchObject({ kind: 'too_long' });
    expect('waitMs' in refusal && refusal.waitMs).toBeCloseTo((700 / rate(3000)) * 1000, 6);
  });

  test('falls in a stall, by half each seven seconds, and is not forgotten; the next departures raise it again', () => {
    const { rate, come, leave } = measuredLine();
    for (let i = 0; i < 200; i++) come(0);
    for (let i = 1; i <= 100; i++) leave(i * 500);
    const before = rate(50_000);
    expect(Math.abs(before - 200)).toBeLessThan(10);
    expect(rate(57_000)).toBeCloseTo(before * Math.exp(-0.7), 0);
    expect(rate(80_000)).toBeCloseTo(before * Math.exp(-3), 0);
    expect(rate(80_000)).toBeGreaterThan(0);
    for (let i = 1; i <= 40; i++) leave(80_000 + i * 500);
    expect(rate(100_000)).toBeGreaterThan(0.8 * before);
  });

  test('is not changed by a pause in which nobody waits, and forgotten after a minute of it', () => {
    const { rate, come, leave } = measuredLine();
    for (let i = 0; i < 20; i++) come(0);
    for (let i = 1; i <= 20; i++) leave(i * 500);
    const before = rate(10_000);
    expect(before).toBeGreaterThan(100);
    // Looks from outside are no use of it.
    for (let t = 10_000; t < 69_000; t += 1000) expect(rate(t)).toBe(before);
    expect(rate(70_000)).toBeNaN();
    come(69_000);
    expect(rate(69_000)).toBe(before);
    leave(69_100);
    come(200_000);
    expect(rate(200_000)).toBeNaN();
  });
});

test('a deadline that the queue cannot meet is refused at the door; where an `else` follows, only then', async () => {
  const by: readonly OrderKey[] = [{ key: 'deadline', provider: { kind: 'builtin' }, arguments: [] }];
  for (const afterwards of [false, true]) {
    const t = elseQueue({ maxWait: constant(3) }, { by, afterwards });
    const waiting: Waiting[] = [];
    const current = forwarded(ask(t));
    for (let i = 0; i < 13; i++) waiting.push(ask(t, { deadlineMs: 1e6 }));
    await serve(t, current, waiting, 5, 300);
    expect(waiting).toHaveLength(8);
    // Some 2.4 s ahead: too long for 2 s, and for nobody else.
    const first = ask(t, { deadlineMs: 1e6 + 1 });
    await settle();
    expect(first.outcome).toBeUndefined();
    for (let i = 0; i < 4; i++) ask(t, { deadlineMs: 1e6 + 2 });
    await settle();
    const more = ask(t, { deadlineMs: 1e6 + 3 });
    await settle();
    expect(more.outcome?.kind === 'refuse' ? more.outcome.code : 'waits').toBe(afterwards ? 'waits' : 'shed');
  }
});

test('a long line for one tier turns nobody away who goes to another', async () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 1, { maxRequests: 1 }), tier('B', 1)],
      admission: [admission('queue', 'all', undefined, { with: { maxWait: constant(2) } })],
      routes: [
        route(
          'long',
          [destination('B', [b.leastTokens()])],
          compare('>', b.signal('prompt_tokens', 'count'), constant(1000)),
        ),
        route('default', [destination('A', [b.leastTokens()])]),
      ],
    }),
  );
  const waiting: Waiting[] = [];
  const current = forwarded(ask(t));
  for (let i = 0; i < 17; i++) waiting.push(ask(t));
  await serve(t, current, waiting, 5, 300);
  const same = ask(t);
  const other = ask(t, { body: { promptTokensExact: 2000 } });
  await settle();
  expect(refused(same).code).toBe('shed');
  expect(forwarded(other).attempt.tier).toBe('B');
});

test('a refusal frees nothing, and so costs no look at those who wait: overload does not make work of its own', async () => {
  const t = elseQueue({ maxDepth: 20, maxWait: constant(60) });
  const current = forwarded(ask(t));
  for (let i = 0; i < 20; i++) ask(t);
  await settle();
  let looks = 0;
  const now = t.time.now.bind(t.time);
  t.time.now = () => {
    looks++;
    return now();
  };
  const one = ask(t);
  await settle();
  refused(one).finish();
  expect(looks).toBeLessThan(8);
  // A release is what those who wait are looked at for.
  looks = 0;
  current.finish(OK);
  expect(looks).toBeGreaterThan(8);
});

test('the bodies of all that wait are bounded in bytes', async () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 1, { maxRequests: 1 })],
      routes: [route('default', [destination('A', [b.leastTokens()]), verdict('queue')])],
    }),
    { maxQueuedBytes: 1000 },
  );
  const first = forwarded(ask(t));
  const small = [ask(t, { body: { bodyBytes: 400 } }), ask(t, { body: { bodyBytes: 400 } })];
  const large = ask(t, { body: { bodyBytes: 201 } });
  await settle();
  expect(refused(large)).toMatchObject({ status: 503, code: 'queue_full', retryAfterSeconds: 1 });
  small[0]?.request.onAbort?.();
  first.finish(OK);
  await settle();
  expect(small.map((one) => one.outcome?.kind)).toEqual(['refuse', 'forward']);
  const fits = ask(t, { body: { bodyBytes: 1000 } });
  await settle();
  expect(fits.outcome).toBeUndefined();
});

test('a timer that is early by part of a millisecond ends the wait with the reason that it was set for', async () => {
  const t = elseQueue();
  ask(t);
  const setTimer = t.time.setTimer.bind(t.time);
  t.time.setTimer = (delayMs, run) => setTimer(Math.floor(delayMs), run);
  const second = ask(t, { deadlineMs: 500.7 });
  t.time.advance(500);
  await settle();
  expect(refused(second)).toMatchObject({ status: 504, code: 'upstream_timeout' });
});

test('one whose deadline passed while the timers were held up is not dispatched', async () => {
  const t = elseQueue();
  const first = forwarded(ask(t));
  const late = ask(t, { deadlineMs: 500 });
  await settle();
  t.time.nowMs = 600;
  first.finish(OK);
  await settle();
  expect(refused(late)).toMatchObject({ status: 504, code: 'upstream_timeout' });
  expect(t.core.status()).toMatchObject({ queued: 0, leasesOpen: 0 });
});

test('a queue rule with a condition holds requests while it is true; one without, while there is no room', async () => {
  const b = new ProgramBuilder();
  const hot = compare('>', b.signal('cluster.inflight_requests', 'count'), constant(1));
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      admission: [admission('queue', 'brown-out', hot, { with: { maxWait: constant(5) } })],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
    }),
  );
  const first = ask(t);
  const second = ask(t);
  const third = ask(t);
  expect([first, second].map((one) => one.outcome?.kind)).toEqual(['forward', 'forward']);
  t.time.advance(300);
  await settle();
  expect(third.outcome).toBeUndefined();
  forwarded(first).finish(OK);
  await settle();
  expect(third.outcome?.kind).toBe('forward');

  const c = new ProgramBuilder();
  const always = testCore(
    c.program({
      tiers: [tier('A', 1, { maxRequests: 1 })],
      admission: [admission('queue', 'all')],
      routes: [route('default', [destination('A', [c.leastTokens()])])],
    }),
  );
  const now = ask(always);
  expect(now.outcome?.kind).toBe('forward');
  const later = ask(always);
  await settle();
  expect(later.outcome).toBeUndefined();
  forwarded(now).finish(OK);
  await settle();
  expect(later.outcome?.kind).toBe('forward');
});

test('a request whose targets are all gone is refused at once, in line or at the door', async () => {
  const t = elseQueue();
  ask(t);
  const waiting = ask(t);
  t.core.cordon('A/1', true);
  await settle();
  expect(refused(waiting)).toMatchObject({ code: 'no_endpoint' });
  expect(ask(t).outcome).toMatchObject({ kind: 'refuse', code: 'no_endpoint' });
});

test('a waiting request ends on the version that it came with', async () => {
  const t = elseQueue();
  const first = ask(t);
  const second = ask(t);
  const b = new ProgramBuilder();
  t.core.activate(
    t.core.prepare(
      b.program({
        tiers: [tier('A', 1, { maxRequests: 1 }), tier('B', 1)],
        routes: [route('new', [destination('B', [b.leastTokens()])])],
        hash: 'another',
      }),
    ),
  );
  expect(forwarded(ask(t)).attempt.tier).toBe('B');
  expect(t.core.status().versions).toBe(2);
  forwarded(first).finish(OK);
  await settle();
  expect(forwarded(second).attempt.tier).toBe('A');
  forwarded(second).finish(OK);
  expect(t.records.map((record) => record.policy)).toEqual(['feedfacecafe', 'feedfacecafe']);
  expect(t.core.status().versions).toBe(1);
});

test('however requests come, wait, leave and end, nothing is lost and nothing is held at rest', async () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constant('ask' as const),
      priority: fc.constantFrom('critical', 'high', 'normal', 'low'),
      deadline: fc.integer({ min: 1, max: 4000 }),
    }),
    fc.record({ do: fc.constant('finish' as const), which: fc.nat(30) }),
    fc.record({ do: fc.constant('abort' as const), which: fc.nat(30) }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.nat(700) }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60 }),
      fc.constantFrom('oldest' as const, 'newest' as const, 'lowest' as const, 'refuse' as const),
      async (steps, overflow) => {
        const t = elseQueue({ maxWait: constant(1), maxDepth: 3, overflow }, { afterwards: false });
        const all: Waiting[] = [];
        const live = (): Waiting[] => all.filter((one) => one.outcome?.kind === 'forward');
        for (const one of steps) {
          if (one.do === 'ask')
            all.push(ask(t, { headers: { 'x-priority': one.priority }, deadlineMs: t.time.nowMs + one.deadline }));
          else if (one.do === 'wait') t.time.advance(one.ms);
          else if (one.do === 'abort') all[one.which]?.request.onAbort?.();
          else {
            const forwards = live();
            const chosen = forwards[one.which % Math.max(1, forwards.length)];
            if (chosen !== undefined) forwarded(chosen).finish(OK);
          }
          await settle();
          expect(t.core.status().queued).toBeLessThanOrEqual(3);
          expect(t.core.endpoints()[0]?.inflightRequests).toBeLessThanOrEqual(1);
        }
        // As requests end, those behind them go.
        for (let round = 0; round <= all.length; round++) {
          for (const one of live()) forwarded(one).finish(OK);
          t.time.advance(1000);
          await settle();
        }
        for (const one of all) if (one.outcome?.kind === 'refuse') one.outcome.finish();
        expect(all.every((one) => one.outcome !== undefined)).toBe(true);
        expect(t.records).toHaveLength(all.length);
        expect(t.core.status()).toMatchObject({ queued: 0, leasesOpen: 0, leaseFaults: 0 });
        t.time.advance(1000);
        expect(t.time.timers).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
});
