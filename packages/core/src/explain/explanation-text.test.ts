import { compilePolicy } from '@signalbox/policy';
import type { PolicyProgram } from '@signalbox/policy';
import { auditLine, readAuditLine } from '@signalbox/telemetry';
import type { DecisionRecord } from '@signalbox/telemetry';
import { expect, test } from 'vitest';
import { OK, request, testCore } from '../program.fixture.ts';
import type { TestCore } from '../program.fixture.ts';
import { createReplayer } from '../replay/replayer.ts';
import { explainRecord } from './explain-record.ts';
import { explanationText } from './explanation-text.ts';

const POLICY = `
define tier "small" { model: "m", region: "us", endpoints: ["http://s1.test:80", "http://s2.test:80"] }
define tier "large" { model: "m", region: "eu", endpoints: ["http://l1.test:80", "http://l2.test:80", "http://l3.test:80"] }
define limit "free" { key: header["x-team"], requests: 4/min }

reject "no tools" when tools > 2 and not (stream or header["x-team"] exists)
queue "brown-out" when header["x-wait"] == "yes" with max_wait 5s

route "hard" when complexity > 15 and
    (header["x-tier"] == "gold" or header["x-tier"] == "silver")
  to tier "large" where queue_depth < 3
    by 0.75 * lowest(queue_depth) + 0.25 * highest(running) then lowest(inflight_requests)
  else to tier "small" by lowest(queue_depth)
  else reject
default to tier "small" by lowest(queue_depth)
`;

function compile(text: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'p.route', text });
  if (program === undefined) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  return { ...program, hash: 'c0ffee00c0ffee' };
}

function build(): TestCore {
  const t = testCore(compile(POLICY));
  t.core.feed('large/1', { queueDepth: 2, running: 4 });
  t.core.feed('large/2', { queueDepth: 1, running: 0 });
  t.core.feed('large/3', { queueDepth: 7, running: 9 });
  return t;
}

const hard = (headers: { readonly [name: string]: string }): Parameters<typeof request>[0] => ({
  body: { text: 'is it? is it?' },
  headers,
});

test('rules show the comparison that decided, and behind a … those on which nothing hung; sums their weights', () => {
  expect(explanationText(build().core.explain(request(hard({ 'x-tier': 'silver', 'x-team': 'a' }))))).toBe(`\
→ large/2 (tier "large") by route "hard"
  policy c0ffee00c0ff, generation 1, seed 821347078

signals
  header["x-team"] = "a"
  tools = 0
  stream = false
  header["x-wait"] = unknown
  complexity = 20.4
  header["x-tier"] = "silver"
  estimated tokens: 4 in, 256 out

limits
  "free" 0% used

rules
  ✗ reject "no tools" when tools > 2 and not (stream or header["x-team"] exists)
      false   tools > 2   (tools = 0)
      … false stream   (stream = false)
      … true  header["x-team"] exists   (header["x-team"] = "a")
  ✗ queue "brown-out" when header["x-wait"] == "yes"
      unknown header["x-wait"] == "yes"   (header["x-wait"] = unknown)
  ✓ route "hard" when complexity > 15 and (header["x-tier"] == "gold" or header["x-tier"] == "silver")
      true    complexity > 15   (complexity = 20.4)
      true    header["x-tier"] == "silver"   (header["x-tier"] = "silver")
      … false header["x-tier"] == "gold"   (header["x-tier"] = "silver")

candidates of "hard"
  by 0.75 × lowest(queue_depth) + 0.25 × highest(running), then lowest
  1. large/2  0.75 = 0.75 × lowest(queue_depth) 1 + 0.25 × highest(running) 0  picked
  2. large/1  0.25 = 0.75 × lowest(queue_depth) 0 + 0.25 × highest(running) 1
     large/3  where
       false   queue_depth < 3   (queue_depth = 7)
`);
});

test('each part of a route says why it gave the request on', () => {
  const t = build();
  t.core.cordon('large/1', true);
  t.core.feed('large/2', { queueDepth: 3 });
  const e = t.core.explain(request(hard({ 'x-tier': 'gold' })));
  expect(e.steps.map(({ step, result }) => [step, result])).toEqual([
    [0, 'no_candidate'],
    [1, 'taken'],
  ]);
  expect(explanationText(e)).toContain(`
parts of the route
  ✗ to tier "large" where queue_depth < 3: no candidate
       large/1  draining
       large/2  where
         false   queue_depth < 3   (queue_depth = 3)
       large/3  where
         false   queue_depth < 3   (queue_depth = 7)
  ✓ else to tier "small"

candidates of "hard" (else 1)
  1. small/1  lowest(queue_depth) 0  picked
  2. small/2  lowest(queue_depth) 0
`);
});

test('limits say what is used, and queues who is ahead', () => {
  const t = build();
  for (let i = 0; i < 4; i++) t.forward({ headers: { 'x-team': 'a' } }).finish(OK);
  expect(t.core.explain(request({ headers: { 'x-team': 'a' } })).limits).toEqual([
    { name: 'free', used: 1, exceeded: true },
  ]);
  expect(explanationText(t.core.explain(request({ headers: { 'x-team': 'a' } })))).toContain(
    '"free" 100% used, and over with this request',
  );
  expect(t.core.explain(request()).limits).toEqual([]);
  const first = t.core.router.route(request({ headers: { 'x-wait': 'yes' } }));
  expect(first).toBeInstanceOf(Promise);
  expect(explanationText(t.core.explain(request({ headers: { 'x-wait': 'yes' } })))).toMatch(
    /^⧗ waits in the queue "brown-out" behind 1\n/,
  );
  t.core.close();
});

test('an aggregate is shown with its value', () => {
  const t = testCore(
    compile(`
define tier "a" { model: "m", endpoints: ["http://a.test:80", "http://b.test:80"] }
route "idle" when min(queue_depth, tier "a") < 1 to tier "a" by lowest(queue_depth)
default to tier "a" by lowest(queue_depth)`),
  );
  t.core.feed('a/1', { queueDepth: 5 });
  t.core.feed('a/2', { queueDepth: 3 });
  expect(explanationText(t.core.explain(request()))).toContain(
    'false   min(queue_depth, tier "a") < 1   (min(queue_depth, tier "a") = 3)',
  );
});

test('colour marks and does not change the words', () => {
  const e = build().core.explain(request(hard({ 'x-tier': 'silver' })));
  const coloured = explanationText(e, { colour: true });
  expect(coloured).toContain('\u001b[32m✓\u001b[0m');
  // oxlint-disable-next-line no-control-regex -- the escapes are what is looked for
  expect(coloured.replaceAll(/\u001b\[\d+m/g, '')).toBe(explanationText(e));
});

// --- recorded decisions

function recorded(t: TestCore, more: Parameters<typeof request>[0], failures: number = 0): DecisionRecord {
  const forward = t.forward({ id: 'r-7', ...more });
  for (let i = 0; i < failures; i++)
    forward.next({ cause: 'connect', status: 0, retryAfterSeconds: Number.NaN, durationMs: 1 });
  forward.finish(OK);
  const read = readAuditLine(auditLine(t.records.at(-1) ?? t.records[0]!, 'read'));
  if (read.kind === 'problem') throw new Error(read.problem);
  return read.record;
}

test('a recorded decision is explained by its record, and by the rules of the policy that made it', () => {
  const t = build();
  const record = recorded(t, hard({ 'x-tier': 'silver' }));
  const replayer = createReplayer({ program: compile(POLICY) });
  expect(explanationText(replayer.explain(record))).toBe(`\
→ large/2 (tier "large") by route "hard"
  policy c0ffee00c0ff, seed ${record.seed}
  request r-7 of 2023-11-14T22:13:20.000Z, answered 200
  attempts: large/2 ok 200
  decided again by what was recorded, with the same outcome

signals
  header["x-team"] = unknown
  tools = 0
  stream = false
  header["x-wait"] = unknown
  header["x-tier"] = "silver"
  complexity = 20.4

rules
  ✗ reject "no tools" when tools > 2 and not (stream or header["x-team"] exists)
      false   tools > 2   (tools = 0)
      … false stream   (stream = false)
      … false header["x-team"] exists   (header["x-team"] = unknown)
  ✗ queue "brown-out" when header["x-wait"] == "yes"
      unknown header["x-wait"] == "yes"   (header["x-wait"] = unknown)
  ✓ route "hard" when complexity > 15 and (header["x-tier"] == "gold" or header["x-tier"] == "silver")
      true    complexity > 15   (complexity = 20.4)
      true    header["x-tier"] == "silver"   (header["x-tier"] = "silver")
      … false header["x-tier"] == "gold"   (header["x-tier"] = "silver")

candidates of "hard"
  by 0.75 × lowest(queue_depth) + 0.25 × highest(running)
  1. large/2  0.75 = 0.75 × lowest(queue_depth) 1 + 0.25 × highest(running) 0  picked
  2. large/1  0.25 = 0.75 × lowest(queue_depth) 0 + 0.25 × highest(running) 1
     left out: 1 where
`);
});

test('without the policy that made it, and under another, a record says so', () => {
  const t = build();
  const record = recorded(t, hard({ 'x-tier': 'silver' }), 1);
  const alone = explanationText(explainRecord(record));
  expect(alone).toContain('attempts: large/2 connect, then large/1 ok 200');
  expect(alone).toContain('its rules are not shown: no policy is given that made it');
  expect(alone).not.toContain('\nrules\n');
  const other = createReplayer({
    program: { ...compile(POLICY.replace('> 15', '> 50')), hash: 'decafbad00000000' },
  });
  const text = explanationText(other.explain(record));
  expect(text).toContain('the rules are those of policy decafbad0000, which did not make this decision');
  expect(text).toContain('decided again by what was recorded, it comes to tier "small" by "default"');
  expect(text).toContain('✗ route "hard" when complexity > 50');
});

test('what was not recorded stands in the rule as such', () => {
  const program = compile(`
define tier "a" { model: "m", endpoints: ["http://a.test:80"] }
route "code" when prompt matches r"stack" to tier "a" by lowest(queue_depth)
default to tier "a" by lowest(queue_depth)`);
  const t = testCore(program);
  const text = explanationText(createReplayer({ program }).explain(recorded(t, {})));
  expect(text).toContain(`
  ? route "code" when prompt matches r"stack"
      ?       prompt matches r"stack"   (not recorded: prompt)
`);
  expect(text).toContain('not decidable again: prompt was not recorded');
});

test('a `not` before a comparison is read as one with it', () => {
  const t = testCore(
    compile(`
define tier "a" { model: "m", endpoints: ["http://a.test:80"] }
route "whole" when not stream and not (tools > 0) to tier "a" by lowest(queue_depth)
default to tier "a" by lowest(queue_depth)`),
  );
  const text = explanationText(t.core.explain(request()));
  expect(text).toContain('true    not stream   (stream = false)\n      true    not (tools > 0)   (tools = 0)\n');
});

test('a request that no rule had a say in says why, and shows no rules', () => {
  const t = build();
  const record = {
    ...recorded(t, {}),
    verdict: 'refused',
    code: 'invalid_api_key',
    status: 401,
    seed: Number.NaN,
  } as const;
  const text = explanationText(createReplayer({ program: compile(POLICY) }).explain({ ...record, policy: 'another' }));
  expect(text).toMatch(/^✗ 401 invalid_api_key\n {2}policy another\n/);
  expect(text).toContain('no rule had a say: invalid_api_key');
  expect(text).not.toContain('did not make this decision');
  expect(text).not.toContain('\nrules\n');
});
