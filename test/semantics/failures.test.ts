import { describe, expect, test } from 'vitest';
import { bench, DONE, errors, failure, inBothModes, LEFT, tiers } from './support/bench.fixture.ts';
import type { Bench } from './support/bench.fixture.ts';

const CAUSES = ['saturated', 'connect', 'error', 'timeout', 'first_token', 'rate_limited', 'context_exceeded'] as const;
const policy = (
  with_: string,
  more: string = '',
  counts: { readonly [tier: string]: number } = { a: 1, b: 1, c: 1 },
): string => `${tiers(counts)}default to tier "a" by declared_order${with_ === '' ? '' : ` with ${with_}`}${more}`;

/** Where each cause leads after the first attempt failed, or how the request ends. */
function table(
  with_: string,
  more: string = '',
  counts?: { readonly [tier: string]: number },
): { readonly [cause: string]: string } {
  return Object.fromEntries(CAUSES.map((cause) => [cause, bench(policy(with_, more, counts)).failOver(cause)]));
}

describe('fallbacks', () => {
  test('by default for saturated, connect, error, timeout and first_token', () => {
    expect(table('retry 0, fallback tier "b"')).toEqual({
      saturated: 'b/1',
      connect: 'b/1',
      error: 'b/1',
      timeout: 'b/1',
      first_token: 'b/1',
      rate_limited: '429 rate_limited',
      context_exceeded: '400 context_length_exceeded',
    });
  });

  test.each(CAUSES)('for the cause written, %s, and no other: causes are distinct', (cause) => {
    const found = table(`retry 0, fallback tier "b" (on: [${cause}])`);
    for (const other of CAUSES) {
      if (other === cause) expect(found[other]).toBe('b/1');
      else expect(found[other], other).toMatch(/^[45]\d\d /);
    }
  });

  test('several are tried in order for their causes', () => {
    expect(table('retry 0, fallback tier "b" (on: [connect]), fallback tier "c" (on: [connect, error])')).toMatchObject(
      {
        connect: 'b/1',
        error: 'c/1',
        timeout: '504 upstream_timeout',
      },
    );
  });

  test('one after another, each once', async () => {
    await inBothModes(policy('retry 0, fallback tier "b", fallback tier "c"'), (made) => {
      const forward = made.forward();
      expect(forward.next(failure('error'))).toMatchObject({ attempt: { endpoint: 'b/1' } });
      expect(forward.next(failure('timeout'))).toMatchObject({ attempt: { endpoint: 'c/1' } });
      expect(forward.next(failure('error'))).toMatchObject({ kind: 'refuse', status: 502, code: 'upstream_error' });
      forward.finish(LEFT);
    });
  });

  test('`saturated` covers a target without a candidate, before any `else`', async () => {
    const full = { fleet: { 'a/1': { cordoned: true } } };
    await inBothModes(
      policy('fallback tier "b"', ' else to tier "c"'),
      (made) => expect(made.send()).toBe('b/1'),
      full,
    );
    await inBothModes(
      policy('fallback tier "b" (on: [error])', ' else to tier "c"'),
      (made) => expect(made.send()).toBe('c/1'),
      full,
    );
  });

  test('keep `where`, `by`, `pick` and the other modifiers', async () => {
    await inBothModes(
      `${tiers({ a: 1, b: 3 })}default to tier "a" where name != "b/2" by highest(decode_tokens) with fallback tier "b", idle 7s`,
      (made) => {
        expect(made.forward().attempt).toMatchObject({ endpoint: 'b/3', idleMs: 7000 });
      },
      { fleet: { 'a/1': { cordoned: true }, 'b/2': { decodeTokens: 9 }, 'b/3': { decodeTokens: 5 } } },
    );
  });

  test('come after retries, and before `else`', async () => {
    const order = async (made: Bench): Promise<readonly string[]> => {
      const forward = made.forward();
      const places = [forward.attempt.endpoint];
      for (;;) {
        const step = forward.next(failure('connect'));
        places.push(step.kind === 'attempt' ? step.attempt.endpoint : `${step.status} ${step.code}`);
        if (step.kind !== 'attempt') break;
      }
      forward.finish(LEFT);
      return places;
    };
    await inBothModes(policy('retry 1, fallback tier "b"', ' else to tier "c"', { a: 3, b: 1, c: 1 }), async (made) => {
      const places = await order(made);
      expect(places.slice(0, 3)).toEqual(['a/1', 'a/2', 'b/1']);
      expect(places[3]).toBe('c/1');
      expect(places.at(-1)).toBe('502 upstream_error');
    });
  });

  test('an unknown cause or target is an error', () => {
    expect(errors(policy('fallback tier "b" (on: [satrated])'))).toEqual(['E0405']);
    expect(errors(policy('fallback tier "b" (on: [])'))).toEqual(['E0405']);
    expect(errors(policy('fallback tier "d"'))).toEqual(['E0202']);
    expect(errors(policy('fallback any, fallback endpoint "b/1"'))).toEqual([]);
  });
});

describe('retries', () => {
  const pair = { a: 3, b: 1 };

  test('unless written: two, for what is safe to repeat', () => {
    expect(table('', '', pair)).toEqual({
      saturated: 'a/2',
      connect: 'a/2',
      // A plain 500 is not repeated.
      error: '502 upstream_error',
      timeout: '504 upstream_timeout',
      first_token: 'a/2',
      rate_limited: 'a/2',
      context_exceeded: '400 context_length_exceeded',
    });
    // An error event before any output is.
    expect(bench(policy('', '', pair)).failOver('error', {}, { status: 200 })).toBe('a/2');
  });

  test('a number alone changes the number alone', () => {
    expect(table('retry 1', '', pair)).toEqual(table('', '', pair));
    expect(Object.values(table('retry 0', '', pair)).filter((place) => place.startsWith('a/'))).toEqual([]);
  });

  test('for the causes written and no other', () => {
    expect(table('retry 1 (on: [error, timeout])', '', pair)).toMatchObject({
      connect: '502 upstream_error',
      error: 'a/2',
      timeout: 'a/2',
      rate_limited: '429 rate_limited',
    });
  });

  test('as often as written, each on an endpoint that was not tried', async () => {
    await inBothModes(policy('retry 2 (on: [connect])', '', { a: 5 }), (made) => {
      const forward = made.forward();
      const places = [forward.attempt.endpoint];
      for (
        let step = forward.next(failure('connect'));
        step.kind === 'attempt';
        step = forward.next(failure('connect'))
      ) {
        places.push(step.attempt.endpoint);
        expect(step.attempt.number).toBe(places.length);
      }
      expect(places).toEqual(['a/1', 'a/2', 'a/3']);
      forward.finish(LEFT);
    });
  });

  test('a request that is too long goes elsewhere only by a fallback that names the cause', () => {
    expect(table('fallback tier "b" (on: [context_exceeded])', '', pair)['context_exceeded']).toBe('b/1');
    expect(table('retry 2', ' else to tier "b"', pair)['context_exceeded']).toBe('400 context_length_exceeded');
    expect(errors(policy('retry 2 (on: [context_exceeded])'))).toEqual(['E0405']);
  });

  test('stop at the deadline', async () => {
    await inBothModes(policy('retry 2, timeout 5s', '', pair), (made) => {
      const forward = made.forward();
      made.time.advance(5000);
      expect(forward.next(failure('connect'))).toMatchObject({ kind: 'refuse', status: 504 });
      forward.finish(LEFT);
    });
  });

  test('draw on a budget of a tenth of the requests and one a second', async () => {
    await inBothModes(policy('retry 1', '', pair), (made) => {
      const retried = Array.from({ length: 30 }, () => made.failOver('connect')).filter((place) =>
        place.startsWith('a/'),
      );
      // Ten saved up, and a tenth for each of the requests.
      expect(retried.length).toBeGreaterThanOrEqual(10);
      expect(retried.length).toBeLessThanOrEqual(13);
    });
  });

  test('a server’s Retry-After is obeyed, 0 too', async () => {
    await inBothModes(policy('retry 1', '', { a: 1 }), (made) => {
      const asked = made.forward();
      const step = asked.next({ ...failure('saturated'), retryAfterSeconds: 3 });
      expect(step.kind === 'attempt' && step.waitMs).toBeGreaterThanOrEqual(3000);
      asked.finish(LEFT);
      // Until then it takes nothing.
      expect(made.send()).toBe('503 no_endpoint');
      made.time.advance(3000);
      const none = made.forward();
      expect(none.next({ ...failure('saturated'), retryAfterSeconds: 0 })).toMatchObject({
        kind: 'attempt',
        waitMs: 0,
      });
      none.finish(LEFT);
    });
  });

  test('a reused connection that was closed before a byte came is repeated once, free of charge, on the same endpoint', async () => {
    await inBothModes(policy('retry 0', '', pair), (made) => {
      const forward = made.forward();
      const race = { ...failure('connect'), keepAliveRace: true };
      expect(forward.next(race)).toMatchObject({ kind: 'attempt', waitMs: 0, attempt: { endpoint: 'a/1' } });
      expect(forward.next(race)).toMatchObject({ kind: 'refuse' });
      forward.finish(LEFT);
    });
  });

  test('nothing is sent again after the commit point', async () => {
    await inBothModes(policy('retry 2, fallback tier "b"', '', pair), (made) => {
      const forward = made.forward();
      forward.commit(5);
      expect(forward.next(failure('connect'))).toMatchObject({ kind: 'refuse' });
      forward.finish(DONE);
    });
  });

  test('a number out of range is an error', () => {
    expect(errors(policy('retry 11'))).toEqual(['E0329']);
    expect(errors(policy('retry 1.5'))).toEqual(['E0329']);
    expect(errors(policy('retry many'))).not.toEqual([]);
  });
});

describe('health', () => {
  test('five failures in a row eject; the end of another request does not bring back; then one request decides', async () => {
    await inBothModes(policy('retry 0', '', { a: 2 }), (made) => {
      for (let i = 0; i < 5; i++) expect(made.failOver('connect')).toMatch(/^5/);
      expect(made.send()).toBe('a/2');
      made.time.advance(12_000);
      const probe = made.forward();
      expect(probe.attempt.endpoint).toBe('a/1');
      // One request at a time.
      expect(made.forward().attempt.endpoint).toBe('a/2');
      probe.finish(DONE);
      expect(made.core.endpoints()[0]).toMatchObject({ healthy: true, halfOpen: false });
      // Back, with a small share of the requests at first.
      expect(Array.from({ length: 20 }, () => made.send())).toContain('a/1');
    });
  });

  test('what the client does, a 4xx and a busy server speak against nobody', async () => {
    await inBothModes(policy('retry 0', '', { a: 2 }), (made) => {
      for (let i = 0; i < 10; i++) {
        made.send();
        made.failOver('rate_limited');
        made.failOver('saturated');
        made.failOver('context_exceeded');
      }
      expect(made.core.endpoints().every(({ healthy }) => healthy)).toBe(true);
    });
  });
});
