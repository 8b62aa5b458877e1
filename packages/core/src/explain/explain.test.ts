import { expect, test } from 'vitest';
import {
  admission,
  compare,
  constant,
  destination,
  ProgramBuilder,
  request,
  route,
  split,
  testCore,
  tier,
} from '../program.fixture.ts';
import type { TestCore } from '../program.fixture.ts';

function build(): TestCore {
  const b = new ProgramBuilder();
  const text = 'prompt_tokens > 100 and stream';
  const span = { file: 'p.route', start: 0, end: text.length };
  const long = {
    ...compare('>', b.signal('prompt_tokens', 'count'), constant(100)),
    span: { file: 'p.route', start: 0, end: 19 },
  };
  const stream = { ...b.signal('stream', 'bool'), span: { file: 'p.route', start: 24, end: 30 } };
  const program = b.program({
    tiers: [tier('A', 4, { model: 'm', zone: 'z1' }), tier('B', 1, { model: 'm' })],
    admission: [admission('reject', 'tools', compare('>', b.signal('tools', 'number'), constant(0)))],
    routes: [
      route('long', [destination('B', [b.leastTokens()])], {
        kind: 'and',
        operands: [long, stream],
        type: 'bool',
        scope: 'request',
        span,
      }),
      route('default', [
        destination('A', [b.lowest('queued_tokens'), b.lowest('declared_order')], {
          where: compare('==', b.property('zone', 'string'), constant('z1')),
        }),
      ]),
    ],
  });
  return testCore({ ...program, files: [{ path: 'p.route', text }] });
}

test('it says which rules failed at which comparison, what removed each candidate, and what each score was', () => {
  const t = build();
  t.core.cordon('A/1', true);
  t.core.fleet.texts.zone[1] = 'z2';
  t.core.fleet.table.maxRequests[2] = 0;
  Atomics.add(t.core.fleet.table.control, 0, 1);
  const e = t.core.explain(request({ body: { text: 'x'.repeat(1000) } }));
  expect(e).toMatchObject({
    outcome: 'forward',
    route: 'default',
    step: 0,
    endpoint: 'A/4',
    tier: 'A',
    refusal: null,
    queue: null,
  });
  expect(e.admission).toMatchObject([
    { label: 'tools', kind: 'reject', matched: false, when: { leaves: [{ result: false, reads: { tools: 0 } }] } },
  ]);
  expect(e.routes.map((rule) => [rule.label, rule.matched])).toEqual([
    ['long', false],
    ['default', true],
  ]);
  expect(e.routes[0]?.when).toEqual({
    text: 'prompt_tokens > 100 and stream',
    result: false,
    leaves: [
      { text: 'prompt_tokens > 100', result: true, reads: { prompt_tokens: 250 }, decided: false },
      { text: 'stream', result: false, reads: { stream: false }, decided: true },
    ],
  });
  expect(e.candidates.map((one) => [one.endpoint, one.verdict])).toEqual([
    ['A/1', 'draining'],
    ['A/2', 'where'],
    ['A/3', 'capacity'],
    ['A/4', 'picked'],
  ]);
  expect(e.candidates[1]?.where?.leaves[0]).toMatchObject({ result: false, reads: { zone: 'z2' } });
  expect(e.candidates[3]).toMatchObject({ rank: 1, score: 0, parts: { queued_tokens: 0 } });
  expect(JSON.parse(JSON.stringify(e))).toEqual(e);
});

test('it foretells the decision that follows and changes nothing', () => {
  const t = build();
  for (let i = 0; i < 20; i++) {
    const before = JSON.stringify([t.core.status().leasesStarted, t.core.endpoints()]);
    const foretold = t.core.explain(request());
    expect(t.core.explain(request())).toEqual(foretold);
    expect(JSON.stringify([t.core.status().leasesStarted, t.core.endpoints()])).toBe(before);
    const real = t.forward();
    expect(real.attempt.endpoint).toBe(foretold.endpoint);
    expect(real.decision.seed).toBe(foretold.seed);
  }
});

test('every endpoint that was scored is ranked', () => {
  const t = build();
  expect(t.core.explain(request()).candidates.map((one) => one.rank)).toEqual([1, 2, 3, 4]);
});

test('refusals say which', () => {
  const t = build();
  expect(t.core.explain(request({ body: { tools: 1 } }))).toMatchObject({
    outcome: 'refuse',
    route: null,
    endpoint: null,
    refusal: { status: 429, code: 'rejected' },
  });
  expect(t.core.explain(request({ body: { model: 'nobody' } }))).toMatchObject({
    outcome: 'refuse',
    refusal: { code: 'model_not_found' },
    routes: [],
  });
});

test('a split lists the endpoints of all arms', () => {
  const b = new ProgramBuilder();
  const t = testCore(
    b.program({
      tiers: [tier('A', 1), tier('B', 2)],
      routes: [
        route('default', [
          split(
            [
              [0.5, 'A'],
              [0.5, 'B'],
            ],
            [b.leastTokens()],
          ),
        ]),
      ],
    }),
  );
  const e = t.core.explain(request({ headers: { 'x-session-id': 's' } }));
  expect(e.candidates.map((one) => one.endpoint)).toEqual(['A/1', 'B/1', 'B/2']);
  expect(e.candidates.filter((one) => one.verdict === 'picked')).toHaveLength(1);
});
