import type { DecisionRecord } from '@signalbox/telemetry';
import { expect, test } from 'vitest';
import type { CanaryFault, CanaryJudge, CanaryRules } from './canary-judge.ts';
import { createCanaryJudge, DEFAULT_CANARY_RULES } from './canary-judge.ts';

/** The mulberry32 generator, for requests that are the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function ended(more: Partial<DecisionRecord> = {}): DecisionRecord {
  return { status: 200, code: '', stream: true, ttftMs: 100, ...more } as DecisionRecord;
}

interface Bench {
  readonly judge: CanaryJudge;
  nowMs: number;
}

function bench(rules: Partial<CanaryRules> = {}): Bench {
  const made: { judge: CanaryJudge | undefined; nowMs: number } = { judge: undefined, nowMs: 0 };
  made.judge = createCanaryJudge({ ...DEFAULT_CANARY_RULES, ...rules }, () => made.nowMs);
  return made as Bench;
}

/** Requests of both versions in turn, one canary request to `ratio` others, until a fault or the end. */
function trial(
  { judge }: Bench,
  {
    requests,
    ratio,
    inForce,
    canary,
    seed,
  }: {
    readonly requests: number;
    readonly ratio: number;
    readonly inForce: (next: () => number) => DecisionRecord;
    readonly canary: (next: () => number) => DecisionRecord;
    readonly seed: number;
  },
): { readonly after: number; readonly fault: CanaryFault | undefined } {
  const next = random(seed);
  for (let i = 1; i <= requests; i++) {
    for (let k = 0; k < ratio; k++) judge.observe('inForce', inForce(next));
    const fault = judge.observe('canary', canary(next));
    if (fault !== undefined) return { after: i, fault };
  }
  return { after: requests, fault: undefined };
}

const failing =
  (share: number) =>
  (next: () => number): DecisionRecord =>
    next() < share ? ended({ status: 503, code: 'no_endpoint', ttftMs: Number.NaN }) : ended();

/** Log-normal times to the first token, as they are: median and spread of the logarithm. */
const taking =
  (medianMs: number, sigma: number) =>
  (next: () => number): DecisionRecord => {
    const normal = Math.sqrt(-2 * Math.log(next() || 1e-9)) * Math.cos(2 * Math.PI * next());
    return ended({ ttftMs: medianMs * Math.exp(sigma * normal) });
  };

test('a canary that fails everything is found out as soon as there are requests enough, and no sooner', () => {
  const { after, fault } = trial(bench(), {
    requests: 100,
    ratio: 2,
    inForce: failing(0),
    canary: failing(1),
    seed: 1,
  });
  expect(after).toBe(DEFAULT_CANARY_RULES.minRequests);
  expect(fault).toEqual({
    reason: 'error_rate',
    text: '100.0 % of its 20 requests failed, against 0.0 % of 40 on the version in force: at least 63.9 % more, where 1.0 % is allowed',
  });
});

test('where the version in force fails as often, the canary is not at fault', () => {
  for (const share of [0, 0.05, 0.5, 1]) {
    const { fault } = trial(bench(), {
      requests: 500,
      ratio: 2,
      inForce: failing(share),
      canary: failing(share),
      seed: 7,
    });
    expect([share, fault]).toEqual([share, undefined]);
  }
});

test('equal versions are hardly ever told apart, though they are compared at every request', () => {
  let wrong = 0;
  for (let seed = 1; seed <= 200; seed++) {
    const same = (next: () => number): DecisionRecord => (next() < 0.03 ? failing(1)(next) : taking(200, 0.8)(next));
    const { fault } = trial(bench(), { requests: 300, ratio: 5, inForce: same, canary: same, seed });
    if (fault !== undefined) wrong++;
  }
  process.stdout.write(`equal versions told apart in ${wrong} of 200 trials of 300 canary requests\n`);
  expect(wrong).toBeLessThanOrEqual(6);
});

test('a canary with one failure in ten, against one in a hundred, is found out', () => {
  const afters: number[] = [];
  for (let seed = 1; seed <= 50; seed++) {
    const { after, fault } = trial(bench(), {
      requests: 2000,
      ratio: 10,
      inForce: failing(0.01),
      canary: failing(0.1),
      seed,
    });
    expect(fault?.reason).toBe('error_rate');
    afters.push(after);
  }
  afters.sort((a, b) => a - b);
  process.stdout.write(
    `one failure in ten against one in a hundred: found after ${afters[25]} canary requests (median of 50)\n`,
  );
  expect(afters[25]).toBeLessThan(400);
});

test('a canary whose first tokens take twice as long is found out, and one that takes a little longer is not', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const slow = trial(bench(), {
      requests: 2000,
      ratio: 5,
      inForce: taking(200, 0.7),
      canary: taking(400, 0.7),
      seed,
    });
    expect(slow.fault?.reason).toBe('ttft');
    const alike = trial(bench(), {
      requests: 400,
      ratio: 5,
      inForce: taking(200, 0.7),
      canary: taking(220, 0.7),
      seed,
    });
    expect(alike.fault).toBeUndefined();
  }
});

test('requests whose clients left, and answers that are no streams, say nothing of first tokens', () => {
  const { judge } = bench();
  for (let i = 0; i < 100; i++) {
    judge.observe('inForce', ended());
    judge.observe('canary', ended({ status: 499, code: 'client_abort' }));
    judge.observe('canary', ended({ stream: false, ttftMs: 60_000 }));
  }
  const { canary } = judge.figures();
  expect(canary).toMatchObject({ requests: 100, errors: 0, streams: 0 });
});

test('an answer that broke off counts as a failure though its status was 200', () => {
  const { judge } = bench();
  judge.observe('canary', ended({ status: 200, code: 'upstream_disconnected' }));
  expect(judge.figures().canary).toMatchObject({ requests: 1, errors: 1 });
});

test('the window slides: what is older than it counts no more', () => {
  const made = bench({ forMs: 20_000 });
  for (let i = 0; i < 15; i++)
    made.judge.observe(
      'canary',
      failing(1)(() => 0),
    );
  made.nowMs = 19_999;
  expect(made.judge.figures().canary.errors).toBe(15);
  made.nowMs = 20_000;
  expect(made.judge.figures().canary.errors).toBe(0);
  made.judge.observe('canary', ended());
  made.nowMs = 1e9;
  expect(made.judge.figures().canary.requests).toBe(0);
});

test('it has passed when the time is over and both versions had requests enough', () => {
  const made = bench({ forMs: 1000, minRequests: 2 });
  const both = (): void => {
    made.judge.observe('canary', ended());
    made.judge.observe('inForce', ended());
  };
  both();
  both();
  made.nowMs = 900;
  both();
  expect(made.judge.passed()).toBe(false);
  made.nowMs = 1000;
  expect(made.judge.passed()).toBe(false);
  both();
  expect(made.judge.passed()).toBe(true);
});
