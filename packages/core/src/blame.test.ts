import { describe, expect, test } from 'vitest';
import type { AttemptFailure, Forward, RequestEnd } from './router.ts';
import { destination, OK, ProgramBuilder, route, testCore, tier, type TestCore } from './program.fixture.ts';

/** Four endpoints, taken in order while they are healthy, and no retries. */
function build(): TestCore {
  const b = new ProgramBuilder();
  const by = b.lowest('declared_order');
  return testCore(
    b.program({
      tiers: [tier('A', 4, { model: 'm' })],
      routes: [route('default', [destination('A', [by], { with: { retry: { attempts: 0, on: [] } } })])],
    }),
  );
}

const first = (t: TestCore) => t.core.endpoints()[0];

/** Before the commit point. */
function fails(cause: AttemptFailure['cause'], status: number) {
  return (one: Forward): void => {
    one.next({ cause, status, retryAfterSeconds: Number.NaN, durationMs: 5 });
    one.finish({ ...OK, outcome: 'upstream_error', status: 502 });
  };
}

/** After it. */
function ends(end: Partial<RequestEnd>) {
  return (one: Forward): void => {
    one.commit(3);
    one.finish({ ...OK, ...end });
  };
}

const DEADLINE_MS = 1000;
const lateBy =
  (ms: number) =>
  (one: Forward, t: TestCore): void => {
    one.commit(3);
    t.time.advance(DEADLINE_MS + ms);
    one.finish({ ...OK, outcome: 'upstream_timeout' });
  };

describe('five in a row eject the endpoint', () => {
  test.each<readonly [name: string, ejects: boolean, act: (one: Forward, t: TestCore) => void]>([
    ['no connection', true, fails('connect', 0)],
    ['no first token in time', true, fails('first_token', 0)],
    ['a redirect', true, fails('error', 302)],
    ['a 500', true, fails('error', 500)],
    ['a 502', true, fails('error', 502)],
    ['a 504', true, fails('error', 504)],
    ['an error event before any output', true, fails('error', 200)],
    ['a 503', false, fails('saturated', 503)],
    ['a 429', false, fails('rate_limited', 429)],
    ['a 408', false, fails('error', 408)],
    ['a prompt that is too long', false, fails('context_exceeded', 400)],
    ['no time left before the answer', false, fails('timeout', 0)],
    ['a 400 that is relayed', false, ends({ status: 400, upstreamStatus: 400 })],
    ['an answer cut short', true, ends({ outcome: 'upstream_disconnected' })],
    ['an error event after output', true, ends({ outcome: 'upstream_error' })],
    ['silence after output', true, lateBy(-1)],
    ['no time left after output', false, lateBy(0)],
    ['a client that leaves', false, ends({ outcome: 'client_abort', status: 499 })],
  ])('%s: %s', (_name, ejects, act) => {
    const t = build();
    for (let i = 0; i < 4; i++) act(t.forward({ deadlineMs: t.time.nowMs + DEADLINE_MS }), t);
    expect(first(t)).toMatchObject({ healthy: true, ejections: 0 });
    act(t.forward({ deadlineMs: t.time.nowMs + DEADLINE_MS }), t);
    expect(first(t)).toMatchObject({ healthy: !ejects, ejections: ejects ? 1 : 0 });
  });
});

describe('a request that the server refuses as wrong', () => {
  const refused = ends({ status: 404, upstreamStatus: 404 });

  test('excuses no failure', () => {
    const t = build();
    for (let i = 0; i < 4; i++) {
      fails('error', 500)(t.forward());
      refused(t.forward());
    }
    fails('error', 500)(t.forward());
    expect(first(t)?.healthy).toBe(false);
  });

  test('ends no trial: the next request is one too', () => {
    const t = build();
    for (let i = 0; i < 5; i++) fails('connect', 0)(t.forward());
    t.time.advance(12_001);
    refused(t.forward());
    const trial = t.forward();
    expect(trial.attempt.endpoint).toBe('A/1');
    expect(t.forward().attempt.endpoint).toBe('A/2');
    trial.finish(OK);
    expect(first(t)).toMatchObject({ healthy: true, halfOpen: false });
  });
});
