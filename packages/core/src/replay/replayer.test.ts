import { definePlugin, toManifest } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { compilePolicy } from '@signalbox/policy';
import type { FailureCause, PolicyProgram } from '@signalbox/policy';
import { auditLine, readAuditLine } from '@signalbox/telemetry';
import type { DecisionRecord } from '@signalbox/telemetry';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OK, request, testCore } from '../program.fixture.ts';
import type { TestCore } from '../program.fixture.ts';
import type { RouteOutcome } from '../router.ts';
import { isLaterPlacement, recordedOutcome } from './replay-outcome.ts';
import { createReplayer, replayDecision } from './replayer.ts';

/** Pickers and a scorer of their own, so that all doors to an order are tried. */
const PLUGIN: Plugin = definePlugin({
  name: 'orders',
  apiVersion: 1,
  provides: {
    picker: {
      two: {
        doc: 'Two at random.',
        setup: () => ({
          sample: (candidates, random, out) => {
            out[0] = Math.floor(random.next() * candidates.length);
            out[1] = Math.floor(random.next() * candidates.length);
            return 2;
          },
        }),
      },
      anyone: {
        doc: 'Any order.',
        setup: () => ({
          pick: (_scores, candidates, random, k, out) => {
            const order = Array.from({ length: candidates.length }, (_, i) => i);
            order.sort(() => random.next() - 0.5);
            for (let i = 0; i < Math.min(k, order.length); i++) out[i] = order[i] ?? 0;
            return Math.min(k, order.length);
          },
        }),
      },
    },
    scorer: {
      declared_late: {
        doc: 'The later it is declared the better.',
        reads: ['declared_order'],
        setup: () => ({
          score: (_request, candidates, out) => {
            for (let i = 0; i < candidates.length; i++) out[i] = i / candidates.length;
          },
        }),
      },
    },
  },
});

function compile(text: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'p.route', text, manifests: [toManifest(PLUGIN)] });
  if (program === undefined) throw new Error(`${text}\n${diagnostics.map(({ message }) => message).join('\n')}`);
  return program;
}

const TIERS = ['A', 'B', 'C'] as const;
const HEAD = `
define tenant "acme" { region: "eu" }
${TIERS.map(
  (name, t) =>
    `define tier "${name}" { model: "m", region: "${t === 0 ? 'eu' : 'us'}", endpoints: [${Array.from({ length: 2 + t }, (_, i) => `"http://${name.toLowerCase()}${i}.test:80"`).join(', ')}] }`,
).join('\n')}
`;

// --- random policies

const pickOf = <T>(...items: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...items);

const leaf = pickOf(
  'prompt_tokens > 8',
  'prompt_tokens in 4..12',
  'complexity > 15',
  'questions >= 1',
  'stream',
  'tools > 0',
  'header["x-tier"] == "gold"',
  'header["x-tier"] exists',
  'number(header["x-n"]) > 5',
  '(header["x-tier"] ?? "gold") == "gold"',
  'session exists',
  'session != "s1"',
  'user exists',
  'tenant.id == "acme"',
  'tenant.region == "eu"',
  'priority == "low"',
  'prompt matches r"stack"',
  'model in ["m", "other"]',
  'min(queue_depth, tier "A") > 2',
  'cluster.inflight_requests > 2',
  'hour >= 0',
);
const condition: fc.Arbitrary<string> = fc.letrec<{ readonly node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(${a} and ${b})`),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(${a} or ${b})`),
    tie('node').map((a) => `not (${a})`),
  ),
})).node;

const scorer = pickOf('lowest(queue_depth)', 'highest(running)', 'lowest(inflight_requests)', 'declared_late');
const sum = fc.oneof(
  scorer,
  fc.tuple(scorer, scorer).map(([a, b]) => `0.7 * ${a} + 0.3 * ${b}`),
);
const order = fc.oneof(
  sum,
  fc.tuple(sum, scorer).map(([a, b]) => `${a} then ${b}`),
);
const tierName = pickOf(...TIERS);
const where = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  pickOf(
    ' where queue_depth < 3',
    ' where running < 4 and region == "eu"',
    ' where region == "us"',
    ' where healthy',
    ' where stream or queue_depth < 2',
  ),
);
const destination = fc
  .record({
    target: fc.oneof(
      tierName.map((name) => `tier "${name}"`),
      fc.constant('tier "A", tier "C"'),
      fc.constant('any'),
      fc.constant('60% tier "A", 40% tier "B"'),
    ),
    where,
    order,
    pick: pickOf('', '', '', ' pick two', ' pick anyone'),
    more: fc.subarray(['affinity session', 'fallback tier "B"', 'retry 4 (on: [connect])', 'sticky user'], {
      maxLength: 2,
    }),
  })
  .map(({ target, where: filter, order: by, pick, more }) => {
    const modifiers = more.filter((modifier) => modifier !== 'sticky user' || target.includes('%'));
    const written = modifiers.length === 0 ? '' : ` with ${modifiers.join(', ')}`;
    return `to ${target}${filter} by ${by}${pick}${written}`;
  });
const elses = fc
  .tuple(
    fc.array(
      fc.oneof(
        destination.map((text) => ` else ${text}`),
        fc.constant(' else queue with max_wait 1s'),
      ),
      {
        maxLength: 2,
      },
    ),
    pickOf('', '', ' else reject', ' else next'),
  )
  .map(([others, last]) => [...others, last]);
const routes = fc
  .array(fc.tuple(condition, destination, elses), { maxLength: 4 })
  .map((list) => list.map(([when, to, others], i) => `route "r${i}" when ${when} ${to}${others.join('')}`).join('\n'));
const admission = fc
  .array(fc.tuple(pickOf('reject', 'admit', 'queue'), condition), { maxLength: 2 })
  .map((list) => list.map(([verb, when], i) => `${verb} "a${i}" when ${when}`).join('\n'));
const policyText = fc
  .record({
    gateway: pickOf('', 'define gateway { unknown_model: "route" }\n'),
    admission,
    routes,
    closing: fc.option(fc.tuple(destination, elses), { freq: 5 }),
  })
  .map(
    (parts) =>
      `${parts.gateway}${HEAD}${parts.admission}\n${parts.routes}\n${parts.closing === null ? '' : `default ${parts.closing[0]}${parts.closing[1].join('')}`}`,
  );

// --- random traffic and fleets

const traffic = fc.array(
  fc.record({
    text: pickOf('hi', 'is it? is it? why?', 'a long question about the stack trace of a crash', ''),
    stream: fc.boolean(),
    tools: pickOf(0, 0, 2),
    model: pickOf('m', 'm', 'zzz'),
    user: pickOf(undefined, 'u1', 'u2'),
    headers: fc.record(
      {
        'x-tier': pickOf('gold', 'iron'),
        'x-n': pickOf('9', 'two'),
        'x-session-id': pickOf('s1', 's2'),
        'x-priority': pickOf('low'),
      },
      { requiredKeys: [] },
    ),
    tenant: pickOf(undefined, 'acme'),
    failures: fc.array(pickOf<FailureCause>('connect', 'error', 'saturated', 'rate_limited'), { maxLength: 4 }),
    fleet: fc.array(
      fc.record({
        slot: fc.nat(8),
        change: pickOf('cordon', 'uncordon', 'fill', 'empty', 'feed', 'hold'),
        amount: fc.nat(5),
      }),
      { maxLength: 4 },
    ),
    after: pickOf(0, 20, 700),
  }),
  { minLength: 1, maxLength: 6 },
);
type Sent = typeof traffic extends fc.Arbitrary<readonly (infer One)[]> ? One : never;

function changeFleet({ core }: TestCore, changes: Sent['fleet']): void {
  for (const { slot, change, amount } of changes) {
    const name = core.fleet.texts.name[slot] ?? 'A/1';
    const { table } = core.fleet;
    if (change === 'cordon' || change === 'uncordon') core.cordon(name, change === 'cordon');
    else if (change === 'feed') core.feed(name, { queueDepth: amount, running: 5 - amount });
    else if (change === 'hold') table.busyUntil[slot] = amount * 100;
    else {
      table.maxRequests[slot] = change === 'fill' ? 0 : 1000;
      Atomics.add(table.control, 0, 1);
    }
  }
}

async function send(t: TestCore, sent: Sent): Promise<void> {
  changeFleet(t, sent.fleet);
  const { text, stream, tools, model, user, headers, tenant } = sent;
  const routed: RouteOutcome | Promise<RouteOutcome> = t.core.router.route(
    request({
      body: { text, stream, tools, model, user },
      headers,
      receivedAtMs: t.time.nowMs,
      ...(tenant === undefined ? {} : { tenant }),
    }),
  );
  t.time.advance(sent.after);
  if (routed instanceof Promise) t.time.advance(40_000);
  const outcome = await routed;
  if (outcome.kind === 'refuse') {
    outcome.finish();
    return;
  }
  for (const cause of sent.failures) {
    const next = outcome.next({ cause, status: 0, retryAfterSeconds: Number.NaN, durationMs: 1 });
    if (next.kind === 'refuse') {
      outcome.finish({ ...OK, outcome: 'upstream_error', status: next.status, upstreamStatus: 0 });
      return;
    }
  }
  outcome.finish(OK);
}

function throughAudit(record: DecisionRecord): DecisionRecord {
  const read = readAuditLine(auditLine(record, 'read'));
  if (read.kind === 'problem') throw new Error(read.problem);
  return read.record;
}

describe('on the version that made it', () => {
  test('a recorded decision comes out as it was: verdict, rule, part, tier, order and pick, or it is said what was not recorded', async () => {
    const seen = { all: 0, decided: 0, endpoints: 0, notDecidable: 0, later: 0, assumed: 0 };
    const verdicts = new Set<string>();
    const missing = new Set<string>();
    await fc.assert(
      fc.asyncProperty(policyText, traffic, async (text, requests) => {
        const program = compile(text);
        const t = testCore(program, { plugins: [PLUGIN] });
        // One after another: what one does to the fleet the next one sees.
        for (const one of requests) await send(t, one);
        t.core.close();
        const replayer = createReplayer({ program, plugins: [PLUGIN], evaluators: 'interpreted' });
        for (const record of t.records.map(throughAudit)) {
          seen.all++;
          const was = recordedOutcome(record);
          const replayed = replayer.replay(record);
          if (was === undefined) {
            expect(replayed.kind).not.toBe('decided');
            continue;
          }
          verdicts.add(was.verdict);
          if (replayed.kind !== 'decided') {
            seen.notDecidable++;
            expect(replayed).toMatchObject({
              kind: 'not_decidable',
              missing: expect.arrayContaining([expect.any(String)]),
            });
            if (replayed.kind === 'not_decidable') for (const name of replayed.missing) missing.add(name);
            continue;
          }
          seen.decided++;
          if (replayed.assumed.length > 0) seen.assumed++;
          expect(replayed.outcome).toEqual(was);
          if (replayed.endpoints?.kind !== 'decided') continue;
          seen.endpoints++;
          expect(replayed.endpoints.shortlist).toEqual(record.shortlist.map(({ endpoint }) => endpoint));
          if (isLaterPlacement(record)) seen.later++;
          else expect(replayed.endpoints.pick).toBe(record.attempts[0]?.endpoint);
        }
        replayer.close();
      }),
      { numRuns: 1000 },
    );
    expect([...verdicts].toSorted()).toEqual([
      'forward',
      'model_not_found',
      'no_endpoint',
      'no_route',
      'queue',
      'reject',
    ]);
    expect(seen.all).toBeGreaterThan(3000);
    // What is not decidable hangs on few things, and each is named.
    const reasons = [
      /^session \(its hash is\)$/,
      /^prompt$/,
      /^min\(queue_depth, tier "A"\)$/,
      /^declared_late of [ABC]\/\d$/,
      /^the scores of all \d candidates, of which `pick` draws$/,
      /^the load of the other \d candidates$/,
      // Signals of the text, where a rule was passed over by something that is not recorded.
      /^(?:questions|complexity)$/,
    ];
    expect([...missing].filter((name) => !reasons.some((reason) => reason.test(name)))).toEqual([]);
    expect(seen.decided / seen.all).toBeGreaterThan(0.75);
    expect(seen.endpoints / seen.all).toBeGreaterThan(0.3);
    expect(seen.later).toBeGreaterThan(300);
  }, 120_000);

  const one = async (
    text: string,
    sent: Partial<Sent> = {},
  ): Promise<{ record: DecisionRecord; program: PolicyProgram }> => {
    const program = compile(HEAD + text);
    const t = testCore(program, { plugins: [PLUGIN] });
    await send(t, {
      text: 'is it? is it?',
      stream: false,
      tools: 0,
      model: 'm',
      user: undefined,
      headers: {},
      tenant: undefined,
      failures: [],
      fleet: [],
      after: 0,
      ...sent,
    });
    t.core.close();
    const [record] = t.records;
    if (record === undefined) throw new Error('no record');
    return { record: throughAudit(record), program };
  };

  test.for([
    [
      'the text of a prompt',
      'route "r" when prompt matches r"stack" to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)',
      {},
      ['prompt'],
    ],
    [
      'an aggregate',
      'route "r" when min(queue_depth, tier "A") > 2 to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)',
      {},
      ['min(queue_depth, tier "A")'],
    ],
    [
      'what a session is beyond what the policy writes',
      'route "r" when lower(session) == "s1" to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)',
      { headers: { 'x-session-id': 's1' } },
      ['session (its hash is)'],
    ],
  ] as const)('%s is not guessed at', async ([, text, sent, missing]) => {
    const { record, program } = await one(text, sent);
    expect(replayDecision(record, program)).toEqual({ kind: 'not_decidable', missing });
  });

  test('what was not recorded is of no matter where the rest decides', async () => {
    const { record, program } = await one(
      'route "r" when prompt matches r"stack" and stream to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)',
    );
    expect(replayDecision(record, program)).toMatchObject({ kind: 'decided', outcome: { rule: 'default', tier: 'B' } });
  });

  test('a session is told by its hash from those that the policy names', async () => {
    const text =
      'route "r" when session in ["s0", "s1"] to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)';
    for (const [session, tier] of [
      ['s1', 'A'],
      ['s2', 'B'],
    ] as const) {
      const { record, program } = await one(text, { headers: { 'x-session-id': session } });
      expect(JSON.stringify(record)).not.toContain(`"${session}"`);
      expect(replayDecision(record, program)).toMatchObject({ kind: 'decided', outcome: { tier } });
    }
  });

  test('an order that was drawn from candidates that are not all recorded is not decidable, the rule and the tier are', async () => {
    const text = 'default to tier "C" by lowest(queue_depth) pick anyone with retry 1 (on: [connect])';
    const { record, program } = await one(text);
    expect(replayDecision(record, program, { plugins: [PLUGIN] })).toEqual({
      kind: 'decided',
      outcome: { verdict: 'forward', rule: 'default', step: 0, fallback: -1, tier: 'C' },
      endpoints: { kind: 'not_decidable', missing: ['the scores of all 4 candidates, of which `pick` draws'] },
      assumed: [],
    });
  });

  test('a record that was changed by hand does not come out as it says', async () => {
    const { record, program } = await one(
      'route "r" when complexity > 10 to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)',
    );
    const changed = { ...record, signals: { ...record.signals, complexity: 3 } };
    expect(recordedOutcome(changed)).toMatchObject({ rule: 'r' });
    expect(replayDecision(changed, program)).toMatchObject({ outcome: { rule: 'default' } });
  });

  test('what no rule had a say in stays so', async () => {
    const { record, program } = await one('default to tier "B" by lowest(queue_depth)');
    expect(
      replayDecision({ ...record, verdict: 'refused', code: 'invalid_api_key', seed: Number.NaN }, program),
    ).toEqual({
      kind: 'not_by_policy',
      code: 'invalid_api_key',
    });
    expect(replayDecision({ ...record, verdict: 'refused', code: 'rate_limited' }, program)).toEqual({
      kind: 'not_decidable',
      missing: ['what was used of the limits of its tenant'],
    });
  });
});

describe('under another policy', () => {
  const OLD = `route "hard" when complexity > 10 to tier "A" by lowest(queue_depth)
    default to tier "B" where queue_depth < 9 by lowest(queue_depth)`;
  const under = (record: DecisionRecord, text: string): ReturnType<typeof replayDecision> =>
    replayDecision(record, compile(HEAD + text), { plugins: [PLUGIN] });
  const record = async (sent: {
    readonly text: string;
    readonly headers?: Sent['headers'];
  }): Promise<DecisionRecord> => {
    const t = testCore(compile(HEAD + OLD));
    const forward = t.forward({ body: { text: sent.text }, headers: sent.headers ?? {} });
    forward.finish(OK);
    t.core.close();
    const [made] = t.records;
    if (made === undefined) throw new Error('no record');
    return throughAudit(made);
  };

  test('a rule that no longer holds sends it on, to a tier of which nothing is recorded; that it was up is assumed and said', async () => {
    const hard = await record({ text: 'is it? is it?' });
    expect(hard).toMatchObject({ route: 'hard', tier: 'A' });
    const easier = under(
      hard,
      'route "hard" when complexity > 50 to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)',
    );
    expect(easier).toEqual({
      kind: 'decided',
      outcome: { verdict: 'forward', rule: 'default', step: 0, fallback: -1, tier: 'B' },
      endpoints: { kind: 'not_decidable', missing: ['the endpoints of tier "B"'] },
      assumed: ['an endpoint of tier "B" was up and had room'],
    });
  });

  test('recorded endpoints are weighed by the new `where`, others by what their definitions say', async () => {
    const easy = await record({ text: 'no' });
    expect(under(easy, 'default to tier "B" where queue_depth < 5 by lowest(queue_depth)')).toMatchObject({
      outcome: { tier: 'B' },
      endpoints: { kind: 'decided' },
      assumed: [],
    });
    expect(
      under(
        easy,
        'default to tier "B" where queue_depth > 5 by lowest(queue_depth) else to tier "C" where region == "us" by lowest(queue_depth)',
      ),
    ).toMatchObject({ outcome: { rule: 'default', step: 1, tier: 'C' } });
    expect(
      under(easy, 'default to tier "A" where region == "us" by lowest(queue_depth) else reject with status 503'),
    ).toMatchObject({ outcome: { verdict: 'reject', rule: 'default', step: 1 } });
    expect(under(easy, 'default to tier "C" where running < 5 by lowest(queue_depth)')).toEqual({
      kind: 'not_decidable',
      missing: ['running of C/1', 'running of C/2', 'running of C/3', 'running of C/4'],
    });
  });

  test('a signal that the old policy did not read is not guessed at', async () => {
    const easy = await record({ text: 'no' });
    expect(under(easy, 'reject "tools" when tools > 0\ndefault to tier "B" by lowest(queue_depth)')).toEqual({
      kind: 'not_decidable',
      missing: ['tools'],
    });
  });

  test('refusals and queues come and go', async () => {
    const hard = await record({ text: 'is it? is it?' });
    expect(under(hard, 'reject "no" when complexity > 10\ndefault to tier "B" by lowest(queue_depth)')).toMatchObject({
      outcome: { verdict: 'reject', rule: 'no' },
    });
    expect(under(hard, 'queue "slow" when complexity > 10\ndefault to tier "B" by lowest(queue_depth)')).toMatchObject({
      outcome: { verdict: 'queue', rule: 'slow' },
    });
    expect(under(hard, 'route "none" when complexity > 99 to tier "A" by lowest(queue_depth)')).toMatchObject({
      outcome: { verdict: 'no_route' },
    });
  });

  test('a split that the old policy did not have falls as it would have fallen: by the sticky value, else by the seed where there was no session', async () => {
    const old = `route "r" when user exists or session exists or header["x-tier"] == "gold" to tier "A" by lowest(queue_depth)
      default to tier "B" by lowest(queue_depth)`;
    const arms = 'to 50% tier "B", 50% tier "C" by lowest(queue_depth)';
    const outcomes = new Map<string, Set<string>>();
    for (let i = 0; i < 40; i++) {
      const tier = i % 2 === 0 ? { 'x-tier': `t${i}` } : {};
      for (const [name, rule] of [
        ['seed', `default ${arms}`],
        ['sticky', `default ${arms} with sticky (header["x-tier"])`],
      ] as const) {
        const send = (text: string): DecisionRecord => {
          const t = testCore(compile(HEAD + text), { seed: i });
          t.forward({ headers: tier }).finish(OK);
          t.core.close();
          const [made] = t.records;
          if (made === undefined) throw new Error('no record');
          return throughAudit(made);
        };
        const replayed = under(send(old), rule);
        if (replayed.kind !== 'decided') throw new Error(JSON.stringify(replayed));
        expect(replayed.outcome.tier).toBe(send(rule).tier);
        outcomes.set(name, (outcomes.get(name) ?? new Set()).add(replayed.outcome.tier));
      }
    }
    for (const tiers of outcomes.values()) expect([...tiers].toSorted()).toEqual(['B', 'C']);
  });

  test('a split by a session of which only the hash is recorded is not guessed at', async () => {
    const t = testCore(
      compile(
        `${HEAD}route "r" when session exists to tier "A" by lowest(queue_depth)\ndefault to tier "B" by lowest(queue_depth)`,
      ),
    );
    t.forward({ headers: { 'x-session-id': 's' } }).finish(OK);
    const [made] = t.records;
    if (made === undefined) throw new Error('no record');
    expect(under(throughAudit(made), 'default to 50% tier "B", 50% tier "C" by lowest(queue_depth)')).toEqual({
      kind: 'not_decidable',
      missing: ['the session, which is the key of the split'],
    });
  });
});
