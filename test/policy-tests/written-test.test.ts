import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCore, runPolicyTests, writtenTest } from '../../packages/core/src/index.ts';
import type { Core, RouteRequest } from '../../packages/core/src/index.ts';
import { parsedRequest } from '../../packages/testkit/src/index.ts';
import { plugins } from '../semantics/support/bench.fixture.ts';
import { policyText } from './support/arbitrary-policy.fixture.ts';
import { compileChecked } from './support/checked-policy.fixture.ts';

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
