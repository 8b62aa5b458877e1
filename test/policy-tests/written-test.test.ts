import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCore, runPolicyTests, writtenTest } from '../../packages/core/src/index.ts';
import type { Core, RouteRequest } from '../../packages/core/src/index.ts';
import { parsedRequest } from '../../packages/testkit/src/index.ts';
import { plugins } from '../semantics/support/bench.fixture.ts';
import { compileChecked } from './support/checked-policy.fixture.ts';

const HEAD = `define gateway { models: ["auto"] }
define tier "a" { model: "x", gpu: "L4", max_requests: 8, endpoints: ["http://10.0.0.1:1", "http://10.0.0.2:1", "http://10.0.0.3:1"] }
define tier "b" { model: "y", zone: "z1", price: $4, throughput: 400/s, endpoints: ["http://10.0.1.1:1", "http://10.0.1.2:1"] }
define tier "c" { model: "z", max_tokens_in_flight: 4k, endpoints: ["http://10.0.2.1:1"] }
let wordy = words > 5
`;

const leaf = fc.constantFrom(
  'stream',
  'wordy',
  'questions >= 1',
  'complexity > 20',
  'prompt_tokens in 3..9',
  'user == "u1"',
  'user exists',
  'session == "s1"',
  'header["x-tier"] in ["gold", "silver"]',
  'metadata["team"] contains "a"',
  'priority == "low"',
  'model == "auto"',
  'tools > 0',
  'max_tokens < 50',
  'output_tokens > 100',
  'turns <= 1',
  'prompt matches r"stack|trace"i',
  'hour >= 12',
  'weekday in ["sat", "sun"]',
  'within("10:00-14:00")',
  'cluster.saturation > 50%',
  'cluster.inflight_requests > 4',
  'min(queued_tokens, tier "a") < 1k',
  'any(kv_cache_used < 50%)',
  'count(healthy, tier "b") > 1',
);
const condition: fc.Arbitrary<string> = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 2 },
    leaf,
    fc.tuple(tie('condition'), fc.constantFrom('and', 'or'), tie('condition')).map(([l, op, r]) => `(${l} ${op} ${r})`),
    tie('condition').map((inner) => `not (${inner})`),
  ),
})).condition;
const where = fc.constantFrom(
  '',
  '',
  ' where kv_cache_used < 90%',
  ' where load < 200%',
  ' where under_load(95%)',
  ' where zone == "z1"',
  ' where queue_depth ?? 0 < 3',
  ' where predicted_ttft < 2s',
  ' where running < 4 or healthy',
);
const by = fc.constantFrom(
  '',
  ' by least_tokens',
  ' by lowest(queued_tokens)',
  ' by 0.5 * least_requests + 0.5 * least_kv_cache',
  ' by round_robin',
  ' by random',
  ' by lowest(price) then declared_order',
  ' by least_latency',
);
const pick = fc.constantFrom('', '', ' pick power_of_two', ' pick weighted');
const modifier = fc.constantFrom(
  '',
  '',
  ' with affinity session',
  ' with affinity(user, bound: 1.5)',
  ' with fallback tier "b" (on: [saturated])',
  ' with sticky user',
);
const target = fc.constantFrom(
  'tier "a"',
  'tier "b"',
  'tier "c"',
  'any',
  'tier "a", tier "c"',
  '50% tier "a", 50% tier "b"',
  '5% tier "c", 95% tier "a"',
  'endpoint "a/2"',
);
const destination = fc.tuple(target, where, by, pick, modifier).map((parts) => `to ${parts.join('')}`);
const ending = fc.constantFrom('next', 'reject with status 503', 'queue with max_wait 2s');
const route = fc
  .tuple(condition, destination, fc.array(destination, { maxLength: 1 }), fc.array(ending, { maxLength: 1 }))
  .map(
    ([when, to, elses, last]) =>
      ` when ${when}\n  ${to}${[...elses, ...last].map((part) => `\n  else ${part}`).join('')}`,
  );
const admission = fc
  .tuple(fc.constantFrom('reject', 'queue', 'admit'), condition)
  .map(([verb, when]) => ({ verb, when }));
const policyText = fc
  .tuple(fc.array(admission, { maxLength: 2 }), fc.array(route, { minLength: 1, maxLength: 4 }), destination)
  .map(
    ([rules, routes, last]) =>
      `${HEAD}${rules.map(({ verb, when }, index) => `${verb} "rule ${index}" when ${when}\n`).join('')}${routes
        .map((text, index) => `route "r${index}"${text}\n`)
        .join('')}default ${last}\n`,
  );

const request = fc.record({
  messages: fc.constantFrom('Is it?', 'a stack trace of some seven or eight words', 'hello', 'Why? Where? When?', ''),
  model: fc.constantFrom('auto', 'x'),
  stream: fc.boolean(),
  user: fc.constantFrom(undefined, 'u1', 'u2'),
  maxTokens: fc.constantFrom(Number.NaN, 10, 200),
  promptTokensExact: fc.constantFrom(Number.NaN, 4, 5000),
  toolNames: fc.constantFrom([], ['search']),
  metadata: fc.constantFrom({}, { team: 'abc' }),
  headers: fc.constantFrom(
    {},
    { 'x-tier': 'gold', 'x-priority': 'low' },
    { 'x-session-id': 's1' },
    { 'x-session-id': 's2' },
  ),
});
const endpointState = fc.record({
  inflightRequests: fc.integer({ min: 0, max: 9 }),
  inflightTokens: fc.integer({ min: 0, max: 5000 }),
  queuedTokens: fc.integer({ min: 0, max: 2000 }),
  decodeTokens: fc.integer({ min: 0, max: 2000 }),
  fed: fc.option(
    fc.record({
      queueDepth: fc.nat(5),
      running: fc.nat(6),
      kvCacheUsed: fc.integer({ min: 0, max: 100 }).map((n) => n / 100),
    }),
    { nil: undefined },
  ),
  state: fc.constantFrom('ready', 'ready', 'ready', 'cordoned', 'loading', 'asleep'),
});
type Value<A> = A extends fc.Arbitrary<infer T> ? T : never;
type EndpointState = Value<typeof endpointState>;
type Ask = Value<typeof request>;
const ENDPOINTS = ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'c/1'];
/** Thursday, 4 June 2026, 13:00 UTC, and Saturday at midnight. */
const moment = fc.constantFrom(Date.UTC(2026, 5, 4, 13), Date.UTC(2026, 5, 6));

function put(core: Core, name: string, state: EndpointState): void {
  const slot = core.fleet.slotOf(name) ?? 0;
  const { table } = core.fleet;
  table.inflightRequests[slot] = state.inflightRequests;
  table.inflightTokens[slot] = state.inflightTokens;
  table.queuedTokens[slot] = state.queuedTokens;
  table.decodeTokens[slot] = state.decodeTokens;
  if (state.fed !== undefined) core.feed(name, state.fed);
  if (state.state === 'cordoned') core.cordon(name, true);
  else core.fleet.setState(slot, state.state, 60_000);
}

/** A live core's decision as a test: the text, and what a test of it came to. */
function written(text: string, epochMs: number, ask: Ask, states: readonly EndpointState[]): string {
  const { program } = compileChecked(text);
  const core = createCore({
    clock: { now: () => 60_000, epochMs: () => epochMs },
    scheduler: { setTimer: () => () => {} },
    capacity: 8,
  });
  try {
    core.activate(core.prepare(program, plugins));
    ENDPOINTS.forEach((name, index) => put(core, name, states[index] as EndpointState));
    const { headers, ...body } = ask;
    const { user, ...rest } = body;
    const parsed = parsedRequest({ ...rest, ...(user === undefined ? {} : { user }) });
    const asked: RouteRequest = { id: 'r', parsed, headers, receivedAtMs: 60_000, deadlineMs: Infinity };
    return writtenTest({
      label: 'as decided',
      request: asked,
      program,
      explanation: core.explain(asked),
      endpoints: core.endpoints(),
      epochMs,
    });
  } finally {
    core.close();
  }
}

test('a decision of a live core, written as a test, passes; with an expectation turned round it fails', () => {
  let forwarded = 0;
  fc.assert(
    fc.property(
      policyText,
      moment,
      request,
      fc.tuple(...ENDPOINTS.map(() => endpointState)),
      (text, epochMs, ask, states) => {
        const body = written(text, epochMs, ask, states);
        if (body.includes('expect to endpoint')) forwarded++;
        const turned = body.replaceAll(/expect (not )?/g, (_, not?: string) =>
          not === undefined ? 'expect not ' : 'expect ',
        );
        const { tests } = runPolicyTests({
          ...compileChecked(text + body + turned.replace('as decided', 'turned')),
          plugins,
        });
        const [asDecided, negated] = tests;
        expect([asDecided?.unmet.map((one) => `${one.expected} ≠ ${one.actual}`), asDecided?.error]).toEqual([
          [],
          undefined,
        ]);
        expect(negated?.unmet.length).toBe([...body.matchAll(/expect /g)].length);
      },
    ),
    { numRuns: 150 },
  );
  expect(forwarded).toBeGreaterThan(40);
});
