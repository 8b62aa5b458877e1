import type { Value, ValueType } from '@signalbox/plugin-api';
import type { RefArgument } from '@signalbox/policy';
import { compilePolicy } from '@signalbox/policy';
import { describe, expect, test } from 'vitest';
import type { TestCore } from './program.fixture.ts';
import { destination, OK, ProgramBuilder, request, route, testCore, tier } from './program.fixture.ts';

/** A core with a policy as it is written. */
function written(text: string): TestCore {
  const { program, diagnostics } = compilePolicy({ path: 'p.route', text, manifests: [], checkOptions: () => [] });
  if (program === undefined) throw new Error(diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
  return testCore(program);
}

/** What a property is for each endpoint, as the record of a decision that reads it tells. */
function read(
  prepare: (t: TestCore) => void,
  key: string,
  type: ValueType,
  args: readonly RefArgument[] = [],
): (Value | null | undefined)[] {
  const b = new ProgramBuilder();
  const property = b.property(key, type, args);
  const t = testCore(
    b.program({
      tiers: [tier('A', 3, { model: 'm', throughput: 100, maxRequests: 8, price: 36, labels: { rack: 'r1' } })],
      routes: [
        route('default', [
          destination('A', [b.lowest('declared_order')], {
            where: {
              kind: 'or',
              operands: [
                { kind: 'exists', operand: property, type: 'bool', scope: 'candidate', span: property.span },
                { kind: 'constant', value: true, type: 'bool', scope: 'constant', span: property.span },
              ],
              type: 'bool',
              scope: 'candidate',
              span: property.span,
            },
          }),
        ]),
      ],
    }),
  );
  prepare(t);
  return t
    .forward({ body: { promptTokensExact: 100, maxTokens: 50 } })
    .decision.shortlist.map(
      (entry) => entry.properties[Object.keys(entry.properties).find((name) => name.startsWith(key)) ?? ''],
    );
}

const hold = (t: TestCore, slot: number, queued: number, decode: number, requests: number): void => {
  const { table } = t.core.fleet;
  table.queuedTokens[slot] = queued;
  table.decodeTokens[slot] = decode;
  table.inflightTokens[slot] = queued + decode;
  table.inflightRequests[slot] = requests;
  table.waitingRequests[slot] = queued > 0 ? 1 : 0;
};

describe('where no engine reports, the ledger speaks; where one does, it wins', () => {
  const prepare = (t: TestCore): void => {
    hold(t, 0, 500, 20, 4);
    hold(t, 1, 0, 60, 2);
    t.core.feed('A/2', { running: 9, queueDepth: 5, kvCacheUsed: 0.5 });
  };

  test.each([
    ['running', 'count', [4, 9, 0]],
    ['batch_size', 'count', [4, 9, 0]],
    ['queue_depth', 'count', [1, 5, 0]],
    ['kv_cache_used', 'percent', [null, 0.5, null]],
    ['inflight_requests', 'count', [4, 2, 0]],
    ['inflight_tokens', 'count', [520, 60, 0]],
    ['load', 'percent', [0.7, 0.6, 0]],
    ['age', 'duration', [null, 0, null]],
    ['predicted_wait', 'duration', [5.2, 0.6, 0]],
    ['predicted_latency', 'duration', [5.7, 1.1, 0.5]],
    ['predicted_tpot', 'duration', [0.01, 0.01, 0.01]],
    ['cost', 'money', [0.006, 0.006, 0.006]],
    ['error_rate', 'percent', [null, null, null]],
    ['prefix_hit', 'percent', [null, null, null]],
  ] as const)('%s', (key, type, expected) => {
    const seen = read(prepare, key, type);
    const rounded = seen.map((value) => (typeof value === 'number' ? Number(value.toFixed(6)) : value));
    expect(rounded).toEqual(expected);
  });

  test.each([
    ['name', 'string', ['A/1', 'A/2', 'A/3']],
    ['state', 'string', ['ready', 'ready', 'ready']],
    ['healthy', 'bool', [true, true, true]],
    ['draining', 'bool', [false, false, false]],
    ['has_model', 'bool', [true, true, true]],
    ['labels.rack', 'string', ['r1', 'r1', 'r1']],
    ['labels.none', 'string', [null, null, null]],
  ] as const)('%s', (key, type, expected) => {
    expect(read(prepare, key, type)).toEqual(expected);
  });
});

const ENDPOINTS = `define tier "A" { model: "m", endpoints: [${Array.from({ length: 8 }, (_, i) => `"http://10.0.0.${i}:8000"`).join(', ')}] }\n`;

test('`among` keeps to a stable subset of the key, which changes by one endpoint when one goes', () => {
  const t = written(`${ENDPOINTS}default to tier "A" where among(user, 3) by lowest(inflight_requests)`);
  const subset = (user: string): Set<string> =>
    new Set(Array.from({ length: 9 }, () => t.forward({ body: { user } }).attempt.endpoint));
  const before = subset('u-1');
  expect(before.size).toBe(3);
  expect(subset('u-1')).toEqual(before);
  const [gone = ''] = before;
  t.core.cordon(gone, true);
  const after = subset('u-1');
  expect(after.size).toBe(3);
  expect([...before].filter((name) => after.has(name))).toHaveLength(2);
  // An unknown key is unknown, and excludes.
  expect(t.refuse()).toMatchObject({ code: 'no_endpoint' });
});

test('nobody stands in for the full and the tried of a subset, unless it may grow', () => {
  const full = ENDPOINTS.replace('endpoints:', 'max_requests: 1, endpoints:');
  const t = written(`${full}default to tier "A" where among(user, 3) by lowest(inflight_requests)`);
  const body = { user: 'u-1' };
  const own = Array.from({ length: 3 }, () => t.forward({ body }));
  const subset = new Set(own.map((live) => live.attempt.endpoint));
  expect(subset.size).toBe(3);
  expect(t.refuse({ body })).toMatchObject({ code: 'no_endpoint' });
  const [first, ...others] = own;
  others.forEach((live) => live.finish(OK));
  const gone = { cause: 'connect', status: 0, retryAfterSeconds: Number.NaN, durationMs: 1 } as const;
  const tried = [first?.attempt.endpoint];
  for (let i = 0; i < 2; i++) {
    const next = first?.next(gone);
    tried.push(next?.kind === 'attempt' ? next.attempt.endpoint : next?.code);
  }
  expect(new Set(tried)).toEqual(subset);

  const grown = written(`${full}default to tier "A" where among(user, 3, grow: true) by lowest(inflight_requests)`);
  expect(new Set(Array.from({ length: 8 }, () => grown.forward({ body }).attempt.endpoint)).size).toBe(8);
});

test('with `grow` the subset widens while all in it are at their bound', () => {
  const grown = (policy: string): number => {
    const t = written(`${ENDPOINTS}default to tier "A" where among(user, 1${policy}) by lowest(inflight_requests)`);
    return new Set(Array.from({ length: 16 }, () => t.forward({ body: { user: 'u' } }).attempt.endpoint)).size;
  };
  expect(grown('')).toBe(1);
  // Sixteen requests under a bound of ⌈1.25 · 16 / 8⌉ = 3 need six endpoints.
  expect(grown(', grow: true')).toBe(6);
});

test('`under_bound` leaves out endpoints above their share', () => {
  const t = written(`${ENDPOINTS}default to tier "A" where under_bound(1.25) by highest(inflight_requests)`);
  const counts = new Map<string, number>();
  for (let i = 1; i <= 80; i++) {
    const name = t.forward().attempt.endpoint;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(Math.ceil((1.25 * i) / 8));
  }
});

test('policies as they are written: groups, splits, aggregates, queues and limits run', () => {
  const t = written(`
define tier "A" { model: "m", endpoints: ["http://a-1", "http://a-2"], max_requests: 1 }
define tier "B" { model: "m2", endpoints: ["http://b-1"] }
define tenant "gold" { keys: [], region: "eu" }
define limit "plan" { key: tenant.id, requests: 2/min }
reject "over" when over_limit("plan") with status 429, message "used up"
group "eu" when tenant.region == "eu" {
  route "big" when prompt_tokens > 1k to tier "B"
}
route "busy" when sum(inflight_requests, tier "A") >= 2 to tier "A" else queue with max_wait 1s else to tier "B"
default to tier "A" with sticky session
`);
  const big = t.forward({ tenant: 'gold', body: { promptTokensExact: 2000 } });
  expect([big.attempt.tier, big.decision.route, big.attempt.model]).toEqual(['B', 'big', 'm2']);
  const first = t.forward({ tenant: 'gold' });
  expect(first.attempt.tier).toBe('A');
  expect(t.refuse({ tenant: 'gold' })).toMatchObject({ status: 429, message: 'used up' });
  expect(t.forward().attempt.tier).toBe('A');
  const waiting = t.core.router.route(request());
  expect(waiting).toBeInstanceOf(Promise);
  first.finish(OK);
  return expect(
    Promise.resolve(waiting).then((outcome) => (outcome.kind === 'forward' ? outcome.attempt.tier : outcome.code)),
  ).resolves.toBe('A');
});
