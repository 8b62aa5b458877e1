import { describe, expect, test } from 'vitest';
import type { RouteOutcome } from '../../packages/core/src/index.ts';
import { DONE, inBothModes, LEFT, tiers } from './support/bench.fixture.ts';
import type { Bench, TestRequest } from './support/bench.fixture.ts';

interface Waiting {
  outcome: RouteOutcome | undefined;
}

/** Sends a request that is expected to wait, and watches it. */
function wait(bench: Bench, request?: TestRequest): Waiting {
  const outcome = bench.route(request);
  if (!(outcome instanceof Promise))
    throw new Error(`did not wait: ${outcome.kind === 'forward' ? outcome.attempt.endpoint : outcome.code}`);
  const waiting: Waiting = { outcome: undefined };
  void watch(outcome, (settled) => {
    waiting.outcome = settled;
  });
  return waiting;
}

async function watch(outcome: Promise<RouteOutcome>, tell: (settled: RouteOutcome) => void): Promise<void> {
  tell(await outcome);
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await Promise.resolve();
};

const shown = ({ outcome }: Waiting): string =>
  outcome === undefined
    ? 'waits'
    : outcome.kind === 'forward'
      ? outcome.attempt.endpoint
      : `${outcome.status} ${outcome.code}`;

const one = tiers({ a: 1, b: 1 }, 'max_requests: 1');
const queued = (with_: string = 'max_wait 2s, max_depth 3', by: string = ''): string =>
  `${one}default to tier "a" else queue${by} with ${with_}`;

describe('a queue in an `else`', () => {
  test('waits for room and goes on when a lease is released', async () => {
    await inBothModes(queued(), async (bench) => {
      const first = bench.forward();
      const waiting = wait(bench);
      await settle();
      expect(shown(waiting)).toBe('waits');
      first.finish(DONE);
      await settle();
      expect(shown(waiting)).toBe('a/1');
    });
  });

  test('is woken by a tick of 100 ms too', async () => {
    await inBothModes(queued(), async (bench) => {
      bench.set({ 'a/1': { inflightRequests: 1 } });
      const waiting = wait(bench);
      bench.set({ 'a/1': { inflightRequests: 0 } });
      bench.time.advance(100);
      await settle();
      expect(shown(waiting)).toBe('a/1');
    });
  });

  test('at `max_wait` takes the next `else`, else is 503 queue_timeout', async () => {
    await inBothModes(queued(), async (bench) => {
      bench.forward();
      const waiting = wait(bench);
      bench.time.advance(1999);
      await settle();
      expect(shown(waiting)).toBe('waits');
      bench.time.advance(1);
      await settle();
      expect(shown(waiting)).toBe('503 queue_timeout');
    });
    await inBothModes(`${queued()} else to tier "b"`, async (bench) => {
      bench.forward();
      const waiting = wait(bench);
      bench.time.advance(2000);
      await settle();
      expect(shown(waiting)).toBe('b/1');
    });
    await inBothModes(`${queued()} else reject with status 429, retry_after 7s`, async (bench) => {
      bench.forward();
      const waiting = wait(bench);
      bench.time.advance(2000);
      await settle();
      expect(waiting.outcome).toMatchObject({ status: 429, code: 'rejected', retryAfterSeconds: 7 });
    });
    await inBothModes(
      `${one}route when stream to tier "a" else queue with max_wait 2s else next\ndefault to tier "b"`,
      async (bench) => {
        bench.forward({ stream: true });
        const waiting = wait(bench, { stream: true });
        bench.time.advance(2000);
        await settle();
        expect(shown(waiting)).toBe('b/1');
      },
    );
  });

  test('waits 30 s where no `max_wait` is written', async () => {
    await inBothModes(queued('max_depth 3'), async (bench) => {
      bench.forward();
      const waiting = wait(bench);
      bench.time.advance(29_999);
      await settle();
      expect(shown(waiting)).toBe('waits');
      bench.time.advance(1);
      await settle();
      expect(shown(waiting)).toBe('503 queue_timeout');
    });
  });

  test('`max_wait` may be an expression', async () => {
    await inBothModes(queued('max_wait (duration(header["x-wait"], ms) ?? 9s)'), async (bench) => {
      bench.forward();
      const waiting = wait(bench, { headers: { 'x-wait': '500' } });
      bench.time.advance(500);
      await settle();
      expect(shown(waiting)).toBe('503 queue_timeout');
    });
  });

  test('that is full answers 503 queue_full', async () => {
    await inBothModes(queued(), async (bench) => {
      bench.forward();
      const waiting = [wait(bench), wait(bench), wait(bench)];
      const refused = wait(bench);
      await settle();
      expect(refused.outcome).toMatchObject({ status: 503, code: 'queue_full', retryAfterSeconds: 1 });
      expect(waiting.map(shown)).toEqual(['waits', 'waits', 'waits']);
    });
  });

  test('status, message and retry_after of a queue are those of its refusals', async () => {
    await inBothModes(queued('max_wait 2s, max_depth 1, status 429, message "busy", retry_after 9s'), async (bench) => {
      bench.forward();
      const waiting = wait(bench);
      const full = wait(bench);
      bench.time.advance(2000);
      await settle();
      const told = { status: 429, message: 'busy', retryAfterSeconds: 9 };
      expect(full.outcome).toMatchObject({ code: 'queue_full', ...told });
      expect(waiting.outcome).toMatchObject({ code: 'queue_timeout', ...told });
    });
  });

  test('is refused at once if all its targets are gone', async () => {
    await inBothModes(
      queued(),
      (bench) => {
        expect(bench.send()).toBe('503 no_endpoint');
      },
      { fleet: { 'a/1': { cordoned: true } } },
    );
    await inBothModes(queued(), async (bench) => {
      bench.set({ 'a/1': { inflightRequests: 1 } });
      const waiting = wait(bench);
      bench.set({ 'a/1': { cordoned: true } });
      await settle();
      expect(shown(waiting)).toBe('503 no_endpoint');
    });
  });

  test('whose targets are gone leaves the request to the next `else`', async () => {
    await inBothModes(
      `${queued()} else to tier "b"`,
      (bench) => {
        expect(bench.send()).toBe('b/1');
      },
      { fleet: { 'a/1': { cordoned: true } } },
    );
  });

  test('waits for endpoints that are loading', async () => {
    await inBothModes(
      queued(),
      async (bench) => {
        const waiting = wait(bench);
        bench.set({ 'a/1': { state: 'ready' } });
        bench.time.advance(100);
        await settle();
        expect(shown(waiting)).toBe('a/1');
      },
      { fleet: { 'a/1': { state: 'loading' } } },
    );
  });

  test('goes by the caller’s deadline', async () => {
    await inBothModes(queued(), async (bench) => {
      bench.forward();
      const waiting = wait(bench, { deadlineMs: 500 });
      bench.time.advance(500);
      await settle();
      expect(shown(waiting)).toMatch(/^50[34] /);
    });
  });
});

describe('what is looked at again', () => {
  test('from the top: another rule may take the request', async () => {
    await inBothModes(
      `${tiers({ a: 1, b: 1 }, 'max_requests: 1')}route when max(queued_tokens, tier "b") > 100 to tier "b"\ndefault to tier "a" else queue with max_wait 9s`,
      async (bench) => {
        bench.forward();
        const waiting = wait(bench);
        bench.set({ 'b/1': { queuedTokens: 500 } });
        bench.time.advance(100);
        await settle();
        expect(shown(waiting)).toBe('b/1');
      },
    );
  });

  test('on the version that the request entered with', async () => {
    await inBothModes(queued('max_wait 9s'), async (bench) => {
      const first = bench.forward();
      const waiting = wait(bench);
      bench.reload(`${one}default reject`);
      first.finish(DONE);
      await settle();
      expect(shown(waiting)).toBe('a/1');
    });
  });

  test('admission too, without the queue’s own rule', async () => {
    await inBothModes(
      `${one}reject when max(queued_tokens, tier "b") > 100\nqueue when true with max_wait 9s\ndefault to tier "a"`,
      async (bench) => {
        const first = bench.forward();
        const [waiting, other] = [wait(bench), wait(bench)];
        first.finish(DONE);
        await settle();
        expect([shown(waiting), shown(other)]).toEqual(['a/1', 'waits']);
        bench.set({ 'b/1': { queuedTokens: 500 } });
        bench.time.advance(100);
        await settle();
        expect(shown(other)).toBe('429 rejected');
      },
    );
  });
});

describe('a queue of admission', () => {
  const brownOut = (with_: string, by: string = ''): string =>
    `${tiers({ a: 1 }, 'max_requests: 4')}queue "brown-out" when cluster.saturation > 60%${by} with ${with_}\ndefault to tier "a"`;

  test('holds requests while its condition is known true', async () => {
    await inBothModes(brownOut('max_wait 3s'), async (bench) => {
      const under = [bench.forward(), bench.forward(), bench.forward()];
      const waiting = [wait(bench), wait(bench)];
      under[0]?.finish(DONE);
      await settle();
      // One goes, and the cluster is as saturated as before.
      expect(waiting.map(shown).toSorted()).toEqual(['a/1', 'waits']);
    });
  });

  test('at `max_wait` is 503 queue_timeout', async () => {
    await inBothModes(brownOut('max_wait 3s'), async (bench) => {
      for (let i = 0; i < 3; i++) bench.forward();
      const waiting = wait(bench);
      bench.time.advance(3000);
      await settle();
      expect(shown(waiting)).toBe('503 queue_timeout');
    });
  });

  test('an unknown condition does not queue', async () => {
    await inBothModes(`${tiers({ a: 1 })}queue when cluster.saturation > 1%\ndefault to tier "a"`, (bench) => {
      expect(bench.send()).toBe('a/1');
    });
  });
});

describe('order', () => {
  /** Who is served first, one release after another. */
  async function order(
    policy: string,
    requests: readonly TestRequest[],
    tell: (outcome: RouteOutcome) => string = tellUser,
  ): Promise<readonly string[]> {
    let served: string[] = [];
    await inBothModes(policy, async (bench) => {
      const sequence: string[] = [];
      let current = bench.forward();
      for (const request of requests) {
        const outcome = bench.route(request);
        if (!(outcome instanceof Promise)) throw new Error('did not wait');
        void watch(outcome, (settled) => {
          sequence.push(tell(settled));
          if (settled.kind === 'forward') current = settled;
        });
      }
      for (let i = 0; i < requests.length + 1; i++) {
        current.finish({ ...DONE, promptTokens: Number.NaN, outputTokens: Number.NaN });
        await settle();
      }
      if (served.length > 0) expect(sequence).toEqual(served);
      served = sequence;
    });
    return served;
  }
  const tellUser = (outcome: RouteOutcome): string =>
    String(outcome.kind === 'forward' && outcome.attempt.headers[0]?.value);
  const mark = ', header "x-user" (user ?? "-")';
  const line = (by: string = '', depth: number = 100): string =>
    `${tiers({ a: 1 }, 'max_requests: 1')}default to tier "a" with idle 60s${mark} else queue${by} with max_wait 60s, max_depth ${depth}`;
  const of = (user: string, more: TestRequest = {}): TestRequest => ({ ...more, user });

  test('the earliest deadline first, else as they came', async () => {
    expect(
      await order(line(), [
        of('a', { deadlineMs: 9000 }),
        of('b', { deadlineMs: 5000 }),
        of('c'),
        of('d', { deadlineMs: 7000 }),
      ]),
    ).toEqual(['b', 'd', 'a', 'c']);
    expect(await order(line(), [of('a'), of('b'), of('c')])).toEqual(['a', 'b', 'c']);
  });

  test('newest first past half full, and earliest deadline again below', async () => {
    expect(await order(line('', 4), [of('a'), of('b'), of('c'), of('d')])).toEqual(['d', 'c', 'a', 'b']);
  });

  test('a written `by deadline` keeps to deadlines however full', async () => {
    expect(
      await order(line(' by deadline', 4), [
        of('a', { deadlineMs: 9000 }),
        of('b', { deadlineMs: 5000 }),
        of('c', { deadlineMs: 7000 }),
        of('d'),
      ]),
    ).toEqual(['b', 'c', 'a', 'd']);
  });

  test('classes before all else: critical, high, normal, low', async () => {
    const policy = `define tenant "gold" { class: "critical" }\ndefine tenant "silver" { class: "high" }\n${line()}`;
    expect(
      await order(policy, [
        of('low', { headers: { 'x-priority': 'low' }, deadlineMs: 1000 }),
        of('normal', { deadlineMs: 9000 }),
        of('high', { tenant: 'silver' }),
        of('critical', { tenant: 'gold' }),
      ]),
    ).toEqual(['critical', 'high', 'normal', 'low']);
  });

  test('a caller may lower its class and never raise it', async () => {
    const policy = `define tenant "gold" { class: "high" }\n${line()}`;
    expect(
      await order(policy, [
        of('asks', { headers: { 'x-priority': 'critical' } }),
        of('lowered', { tenant: 'gold', headers: { 'x-priority': 'low' } }),
        of('gold', { tenant: 'gold' }),
      ]),
    ).toEqual(['gold', 'asks', 'lowered']);
  });

  test('`priority` of the queue, of an `admit` or of the destination sets the class', async () => {
    const base = (admission: string, destination: string, queue: string): string =>
      `${tiers({ a: 1 }, 'max_requests: 1')}${admission}\ndefault to tier "a" with idle 60s${destination}${mark} else queue with max_wait 60s${queue}`;
    const requests = [of('plain'), of('vip', { stream: true })];
    expect(await order(base('admit when stream with priority high', '', ''), requests)).toEqual(['vip', 'plain']);
    expect(
      await order(
        `${tiers({ a: 1 }, 'max_requests: 1')}route when stream to tier "a" with priority critical${mark} else queue with max_wait 60s\ndefault to tier "a" with idle 60s${mark} else queue with max_wait 60s`,
        [of('vip', { stream: true }), of('plain')],
      ),
    ).toEqual(['vip', 'plain']);
    expect(
      await order(base('', '', ', priority (header["p"] ?? "normal")'), [
        of('plain'),
        of('late', { headers: { p: 'low' } }),
        of('soon', { headers: { p: 'high' } }),
      ]),
    ).toEqual(['soon', 'plain', 'late']);
  });

  test('`weighted_fair` serves the key with the fewest weighted tokens', async () => {
    const heavy = { maxTokens: 100, promptTokensExact: 10 };
    const requests = [
      ...['a1', 'a2', 'a3', 'a4'].map((user) => of(user, { ...heavy, headers: { team: 'a' } })),
      ...['b1', 'b2'].map((user) => of(user, { ...heavy, headers: { team: 'b' } })),
    ];
    expect(await order(line(' by weighted_fair(key: header["team"])'), requests)).toEqual([
      'a1',
      'b1',
      'a2',
      'b2',
      'a3',
      'a4',
    ]);
  });

  test('by the weights of the tokens and of the tenant', async () => {
    const policy = `define tenant "big" { weight: 2 }\ndefine tenant "small" { }\n${line(' by weighted_fair(key: tenant.id)')}`;
    const of_ = (user: string, tenant: string): TestRequest =>
      of(user, { tenant, maxTokens: 100, promptTokensExact: 10 });
    const requests = ['b1', 'b2', 'b3', 'b4']
      .map((user) => of_(user, 'big'))
      .concat(['s1', 's2', 's3'].map((user) => of_(user, 'small')));
    const served = await order(policy, requests);
    // Of the first six, twice as many of the tenant of weight 2.
    expect(served.slice(0, 6).filter((user) => user.startsWith('b'))).toHaveLength(4);
  });
});

describe('overflow', () => {
  const policy = (overflow: string): string =>
    `define tenant "gold" { class: "high" }\n${tiers({ a: 1 }, 'max_requests: 1')}default to tier "a" else queue with max_wait 60s, max_depth 2${overflow}`;
  async function full(overflow: string, arrivals: readonly TestRequest[]): Promise<readonly string[]> {
    let found: readonly string[] = [];
    await inBothModes(policy(overflow), async (bench) => {
      bench.forward();
      const waiting = arrivals.map((request) => wait(bench, request));
      await settle();
      found = waiting.map(shown);
    });
    return found;
  }
  const low = { headers: { 'x-priority': 'low' } };

  test('without it a full queue refuses', async () => {
    expect(await full('', [low, low, { tenant: 'gold' }])).toEqual(['waits', 'waits', '503 queue_full']);
    expect(await full(', overflow refuse', [low, low, {}])).toEqual(['waits', 'waits', '503 queue_full']);
  });

  test('`oldest` and `newest` displace the one that came first or last', async () => {
    expect(await full(', overflow oldest', [{}, {}, {}])).toEqual(['503 queue_full', 'waits', 'waits']);
    expect(await full(', overflow newest', [{}, {}, {}])).toEqual(['waits', '503 queue_full', 'waits']);
  });

  test('`lowest` displaces from the lowest class, and refuses one that is no higher', async () => {
    expect(await full(', overflow lowest', [low, {}, { tenant: 'gold' }])).toEqual([
      '503 queue_full',
      'waits',
      'waits',
    ]);
    expect(await full(', overflow lowest', [{}, {}, {}])).toEqual(['waits', 'waits', '503 queue_full']);
    expect(await full(', overflow lowest', [{ tenant: 'gold' }, {}, low])).toEqual([
      'waits',
      'waits',
      '503 queue_full',
    ]);
  });
});

test('nothing is left behind', async () => {
  await inBothModes(queued(), async (bench) => {
    const first = bench.forward();
    const waiting = [wait(bench), wait(bench), wait(bench)];
    first.finish(DONE);
    for (let i = 0; i < 4; i++) {
      await settle();
      for (const { outcome } of waiting) if (outcome?.kind === 'forward') outcome.finish(LEFT);
    }
    await settle();
    expect(bench.core.status()).toMatchObject({ queued: 0, leasesOpen: 0, leaseFaults: 0, concurrentCharges: 0 });
  });
});
