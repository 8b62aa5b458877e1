import { describe, expect, test } from 'vitest';
import {
  bench,
  codes,
  DONE,
  errors,
  failure,
  inBothModes,
  LEFT,
  tiers,
  truth,
  value,
} from './support/bench.fixture.ts';
import type { Forward } from '../../packages/core/src/index.ts';
import type { Bench, TestRequest } from './support/bench.fixture.ts';

const a = tiers({ a: 2 });
const limit = (keys: string, more: string = ''): string =>
  `${a}define limit "l" { key: user, ${keys} }\nreject when over_limit("l") with status 429\n${more}default to tier "a"`;
const ann: TestRequest = { user: 'ann', promptTokensExact: 10, maxTokens: 10 };
const bob: TestRequest = { ...ann, user: 'bob' };
const used = { ...DONE, promptTokens: 10, outputTokens: 10 };

describe('a limit', () => {
  test('of requests, for each key apart', async () => {
    await inBothModes(limit('requests: 3/min'), (made) => {
      expect(Array.from({ length: 5 }, () => made.send(ann)).map((end) => end.slice(0, 3))).toEqual(
        ['a/1', 'a/1', 'a/1', '429', '429'].map((_, i) => (i < 3 ? expect.stringMatching(/^a\//) : '429')),
      );
      expect(made.send(bob)).toMatch(/^a\//);
    });
  });

  test('lets requests in again as time goes by', async () => {
    await inBothModes(limit('requests: 3/min'), (made) => {
      for (let i = 0; i < 3; i++) made.send(ann);
      expect(made.send(ann)).toBe('429 rejected');
      made.time.advance(130_000);
      expect(made.send(ann)).toMatch(/^a\//);
    });
  });

  test('of tokens is charged with an estimate at dispatch and settled with what was used', async () => {
    await inBothModes(limit('tokens: 100/min'), (made) => {
      const big = { user: 'ann', promptTokensExact: 50, maxTokens: 40 };
      const forward = made.forward(big);
      // 90 are held, 20 more would be too many.
      expect(made.send(ann)).toBe('429 rejected');
      forward.finish({ ...DONE, promptTokens: 50, outputTokens: 1 });
      expect(made.send(ann)).toMatch(/^a\//);
    });
  });

  test('asks whether this request would exceed it', async () => {
    await inBothModes(limit('tokens: 100/min'), (made) => {
      expect(made.send({ ...ann, promptTokensExact: 91 })).toBe('429 rejected');
      expect(made.send({ ...ann, promptTokensExact: 90 })).toMatch(/^a\//);
    });
  });

  test('of input and output tokens counts each', async () => {
    await inBothModes(limit('input_tokens: 15/min'), (made) => {
      expect(made.forward(ann).attempt.number).toBe(1);
      expect(made.send(ann)).toBe('429 rejected');
      expect(made.send({ ...ann, promptTokensExact: 5 })).toMatch(/^a\//);
    });
    await inBothModes(limit('output_tokens: 15/min'), (made) => {
      made.forward(ann);
      expect(made.send(ann)).toBe('429 rejected');
      expect(made.send({ ...ann, maxTokens: 5 })).toMatch(/^a\//);
    });
  });

  test('of concurrency counts requests under way', async () => {
    await inBothModes(limit('concurrency: 2'), (made) => {
      const first = made.forward(ann);
      made.forward(ann);
      expect(made.send(ann)).toBe('429 rejected');
      expect(made.send(bob)).toMatch(/^a\//);
      first.finish(used);
      expect(made.send(ann)).toMatch(/^a\//);
    });
  });

  test('of cost is settled with the price of the endpoint’s time', async () => {
    const policy = `${tiers({ a: 1 }, 'price: $36, throughput: 100/s')}define limit "l" { key: user, cost: $1/h }
reject when over_limit("l")\ndefault to tier "a"`;
    await inBothModes(policy, (made) => {
      // 100 s of $36 an hour are $1.
      made.forward(ann).finish({ ...DONE, promptTokens: 0, outputTokens: 9_000 });
      expect(made.send(ann)).toMatch(/^a\//);
      made.forward(ann).finish({ ...DONE, promptTokens: 0, outputTokens: 2_000 });
      expect(made.send(ann)).toBe('429 rejected');
    });
  });

  test('of cost holds an estimate while the request is under way', async () => {
    const policy = `${tiers({ a: 1 }, 'price: $3600, throughput: 100/s')}define limit "l" { key: user, cost: $10/h }
reject when usage("l") > 15%\ndefault to tier "a"`;
    await inBothModes(policy, (made) => {
      // 200 tokens are 2 s of $1 a second: a fifth of the limit.
      const forward = made.forward({ ...ann, promptTokensExact: 0, maxTokens: 200 });
      expect(made.send(ann)).toBe('429 rejected');
      forward.finish({ ...DONE, promptTokens: 0, outputTokens: 10 });
      expect(made.send(ann)).toBe('a/1');
    });
  });

  test('of cost is asked with what the request costs at least, before it is known where it goes', async () => {
    const policy = `define tier "cheap" { model: "m", price: $36, throughput: 100/s, endpoints: ["http://10.0.0.1:8000"] }
define tier "dear" { model: "big", price: $3600, throughput: 100/s, endpoints: ["http://10.0.0.2:8000"] }
define limit "l" { key: user, cost: $1/h }
reject when over_limit("l")
route when model == "big" to tier "dear"
default to tier "cheap"`;
    const asked = (made: Bench, model: string, maxTokens: number): string =>
      made.send({ ...ann, model, promptTokensExact: 0, maxTokens });
    await inBothModes(policy, (made) => {
      // 200 tokens take 2 s: 2 cents of the cheap one, $2 of the dear one. Learning says 256 tokens at first.
      expect(asked(made, 'big', 200)).toBe('429 rejected');
      expect(asked(made, 'big', 90)).toBe('dear/1');
      expect(asked(made, 'm', 200)).toBe('cheap/1');
      // Held while under way: 90 cents leave 10, of which the cheap one takes 2.
      const held = made.forward({ ...ann, model: 'big', promptTokensExact: 0, maxTokens: 90 });
      expect(asked(made, 'm', 200)).toBe('cheap/1');
      expect(asked(made, 'big', 20)).toBe('429 rejected');
      expect(asked(made, 'big', 9)).toBe('dear/1');
      held.finish({ ...DONE, promptTokens: 0, outputTokens: 10 });
      expect(asked(made, 'big', 80)).toBe('dear/1');
    });
  });

  test('reserves the output that the model is known for, and never more than the caller allows', async () => {
    const policy = `${tiers({ a: 1 })}define limit "l" { key: user, output_tokens: 1k/min }
reject when over_limit("l")
default to tier "a"`;
    const open: TestRequest = { user: 'ann', promptTokensExact: 10 };
    const used = 'default to tier "a" with set "v" (usage("l"))';
    const usage = (made: Bench, request: TestRequest): unknown => {
      const held = made.forward(request);
      const probe = made.forward(ann);
      probe.finish(LEFT);
      held.finish(LEFT);
      return JSON.parse(probe.attempt.set[0]?.json ?? 'null');
    };
    await inBothModes(policy.replace('default to tier "a"', used), (made) => {
      expect(usage(made, open)).toBeCloseTo(0.256, 12);
      expect(usage(made, { ...open, maxTokens: 50 })).toBeCloseTo(0.05, 12);
      for (let i = 0; i < 200; i++) {
        made.forward({ ...open, user: `other-${i}` }).finish({ ...DONE, outputTokens: 40 });
      }
      expect(usage(made, open)).toBeCloseTo(0.041, 12);
      expect(usage(made, { ...open, maxTokens: 5 })).toBeCloseTo(0.005, 12);
      expect(usage(made, { ...open, maxTokens: 5000 })).toBeCloseTo(0.041, 12);
    });
  });

  test('of an unknown key does not apply', async () => {
    await inBothModes(limit('requests: 1/min'), (made) => {
      for (let i = 0; i < 5; i++) expect(made.send({ messages: 'x' })).toMatch(/^a\//);
    });
    expect(truth('over_limit("l")', {}, { definitions: 'define limit "l" { key: user, requests: 1/min }\n' })).toBe(
      'false',
    );
    expect(truth('usage("l") > 5%', {}, { definitions: 'define limit "l" { key: user, requests: 1/min }\n' })).toBe(
      'unknown',
    );
  });

  test('may have a key of several parts', async () => {
    await inBothModes(limit('requests: 1/min').replace('key: user', 'key: [user, model]'), (made) => {
      expect(made.send(ann)).toMatch(/^a\//);
      expect(made.send(ann)).toBe('429 rejected');
    });
  });

  test('applies to requests of its `when` only', async () => {
    await inBothModes(limit('requests: 1/min, when: stream'), (made) => {
      for (let i = 0; i < 3; i++) expect(made.send(ann)).toMatch(/^a\//);
      expect(made.send({ ...ann, stream: true })).toMatch(/^a\//);
      expect(made.send({ ...ann, stream: true })).toBe('429 rejected');
      expect(made.send(ann)).toMatch(/^a\//);
    });
  });
});

describe('charging', () => {
  test('a limit refuses nothing by itself', async () => {
    await inBothModes(
      `${a}define limit "l" { key: user, requests: 1/min }\nroute when usage("l") > 1000% to tier "a"\ndefault to tier "a"`,
      (made) => {
        for (let i = 0; i < 5; i++) expect(made.send(ann)).toMatch(/^a\//);
      },
    );
  });

  test('is once for a request, whatever rules ask for the limit and however often it is sent', async () => {
    const policy = `${a}define limit "l" { key: user, requests: 3/min }
reject when over_limit("l") or over_limit("l") and usage("l") > 5%
route when not over_limit("l") to tier "a" with retry 2\ndefault to tier "a"`;
    await inBothModes(policy, (made) => {
      const forward = made.forward(ann);
      forward.next(failure('connect'));
      forward.finish(used);
      made.send(ann);
      expect(made.send(ann)).toMatch(/^a\//);
      expect(made.send(ann)).toBe('429 rejected');
    });
  });

  test('a request that is refused is charged to none', async () => {
    await inBothModes(limit('requests: 3/min', 'reject when stream\n'), (made) => {
      for (let i = 0; i < 10; i++) expect(made.send({ ...ann, stream: true })).toBe('429 rejected');
      for (let i = 0; i < 3; i++) expect(made.send(ann)).toMatch(/^a\//);
      expect(made.send(ann)).toBe('429 rejected');
      expect(made.core.status().concurrentCharges).toBe(0);
    });
    await inBothModes(
      limit('requests: 1/min'),
      (made) => {
        expect(made.send(ann)).toBe('503 no_endpoint');
        made.set({ 'a/1': { cordoned: false } });
        expect(made.send(ann)).toBe('a/1');
      },
      { fleet: { 'a/1': { cordoned: true }, 'a/2': { cordoned: true } } },
    );
  });

  test('a request that waits is charged when it goes, and one that waits in vain is not', async () => {
    const policy = `${tiers({ a: 1 }, 'max_requests: 1')}define limit "l" { key: user, requests: 10/min }
route when usage("l") > 1000% to tier "a"
default to tier "a" else queue with max_wait 1s`;
    const remaining = (made: Bench, forward: Forward): string | undefined => {
      const headers = made.core.limitHeaders(forward.decision);
      return headers[headers.indexOf('x-ratelimit-remaining-requests') + 1];
    };
    await inBothModes(policy, async (made) => {
      const first = made.forward(ann);
      const inVain = made.route(ann);
      made.time.advance(1000);
      const refused = await inVain;
      expect(refused).toMatchObject({ kind: 'refuse', code: 'queue_timeout' });
      const later = made.route(ann);
      expect(remaining(made, first)).toBe('9');
      first.finish(used);
      const second = await later;
      if (second.kind !== 'forward') throw new Error(second.code);
      expect(remaining(made, second)).toBe('8');
    });
  });

  test('`charge: after` only settles', async () => {
    await inBothModes(limit('tokens: 100/min, charge: after'), (made) => {
      const forward = made.forward({ ...ann, promptTokensExact: 50, maxTokens: 40 });
      expect(made.send(ann)).toMatch(/^a\//);
      forward.finish({ ...DONE, promptTokens: 50, outputTokens: 40 });
      expect(made.send(ann)).toBe('429 rejected');
    });
  });

  test('what is not known at the end is not charged beyond the estimate of the prompt', async () => {
    await inBothModes(limit('tokens: 100/min'), (made) => {
      for (let i = 0; i < 10; i++) made.forward(ann).finish(LEFT);
      expect(made.send(ann)).toMatch(/^a\//);
    });
  });

  test('outlives a reload', async () => {
    await inBothModes(limit('requests: 2/min'), (made) => {
      made.send(ann);
      made.reload(limit('requests: 2/min', 'reject when stream\n'));
      made.send(ann);
      expect(made.send(ann)).toBe('429 rejected');
    });
  });
});

describe('usage', () => {
  test('is the used share, without the request itself', async () => {
    const made = bench(
      `${a}define limit "l" { key: user, requests: 4/min }\nroute when usage("l") > 70% to endpoint "a/2"\ndefault to endpoint "a/1"`,
    );
    expect(Array.from({ length: 4 }, () => made.send(ann))).toEqual(['a/1', 'a/1', 'a/1', 'a/2']);
    expect(value('usage("l")', ann, { definitions: 'define limit "l" { key: user, requests: 4/min }\n' })).toBe(0);
  });
});

describe('shares', () => {
  test('`share_of`: a limit that is a share of another is over when the other is', async () => {
    const policy = `${a}define limit "team" { key: header["team"], requests: 3/min }
define limit "own" { key: user, requests: 2/min, share_of: "team" }
reject when over_limit("own")\ndefault to tier "a"`;
    const of = (user: string): TestRequest => ({ ...ann, user, headers: { team: 't' } });
    await inBothModes(policy, (made) => {
      expect([of('a'), of('a'), of('a')].map((request) => made.send(request).slice(0, 3))).toEqual(
        ['a/1', 'a/2', '429'].map((end) => (end === '429' ? end : expect.stringMatching(/^a\//))),
      );
      expect(made.send(of('b'))).toMatch(/^a\//);
      // The team's three are used up, though b has one left.
      expect(made.send(of('b'))).toBe('429 rejected');
      expect(made.send({ ...of('c'), headers: { team: 'u' } })).toMatch(/^a\//);
    });
  });
});

describe('tenants', () => {
  const policy = `${a}define limit "plan" { key: tenant.id, requests: 2/min }
define tenant "free" { limits: ["plan"], region: "eu", seats: 5, class: "low", weight: 3 }
define tenant "paid" { region: "us" }
default to tier "a" where tenant.region == "eu" or stream else reject with status 403`;

  test('their own fields are strings unless typed, and unknown for others', () => {
    const definitions = policy.slice(policy.indexOf('define limit'), policy.indexOf('default'));
    const ask = (condition: string, tenant?: string): string =>
      truth(condition, tenant === undefined ? {} : { tenant }, { definitions });
    expect(ask('tenant.region == "eu"', 'free')).toBe('true');
    expect(ask('tenant.region == "eu"', 'paid')).toBe('false');
    expect(ask('tenant.region == "eu"')).toBe('unknown');
    expect(ask('tenant.seats > 4', 'free')).toBe('true');
    expect(ask('tenant.seats > 4', 'paid')).toBe('unknown');
    expect(ask('tenant.id == "free"', 'free')).toBe('true');
    expect(ask('tenant.weight == 3', 'free')).toBe('true');
    expect(ask('tenant.weight == 1', 'paid')).toBe('true');
    expect(ask('priority == "low"', 'free')).toBe('true');
  });

  test('the limits that a tenant names refuse it with 429', async () => {
    await inBothModes(policy, (made) => {
      const free = { ...ann, tenant: 'free' };
      expect([1, 2, 3].map(() => made.send(free).slice(0, 3))).toEqual([expect.any(String), expect.any(String), '429']);
      expect(made.send({ ...ann, tenant: 'paid', stream: true })).toMatch(/^a\//);
    });
  });
});

describe('definitions', () => {
  test.each([
    ['a limit without a key', 'define limit "l" { requests: 1/s }', 'E0512'],
    ['a limit of nothing', 'define limit "l" { key: user }', 'E0512'],
    ['a share of itself', 'define limit "l" { key: user, requests: 1/s, share_of: "l" }', 'E0222'],
    ['an unknown key', 'define limit "l" { key: user, requsts: 1/s }', 'E0209'],
    ['a rate of the wrong kind', 'define limit "l" { key: user, cost: 5/s }', 'E0511'],
    ['another unit', 'define limit "l" { key: user, requests: 5s }', 'E0511'],
    ['a key of an endpoint', 'define limit "l" { key: gpu, requests: 1/s }', 'E0306'],
    [
      'two of one name',
      'define limit "l" { key: user, requests: 1/s }\ndefine limit "l" { key: user, requests: 1/s }',
      'E0213',
    ],
  ])('%s is an error', (_what, definition, code) => {
    expect(errors(`${a}${definition}\ndefault to tier "a"`)).toContain(code);
  });

  test('a limit that nothing asks for is a warning', () => {
    expect(codes(`${a}define limit "l" { key: user, requests: 1/s }\ndefault to tier "a"`)).toEqual(['W0517']);
  });
});
