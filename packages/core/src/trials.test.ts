import { definePlugin, toManifest } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { compilePolicy } from '@signalbox/policy';
import type { PolicyProgram } from '@signalbox/policy';
import { expect, test } from 'vitest';
import { createCore } from './core.ts';
import type { Core } from './core.ts';
import { FakeTime, OK, request } from './program.fixture.ts';
import type { Forward } from './router.ts';
import type { ShadowComparison } from './shadow.ts';

const FLEET = `
define tier "A" { model: "m", endpoints: ["http://a-1", "http://a-2"], max_requests: 100 }
define tier "B" { model: "m", endpoints: ["http://b-1", "http://b-2"] }
`;

function compile(text: string, plugins: readonly Plugin[] = []): PolicyProgram {
  const { program, diagnostics } = compilePolicy({
    path: 'p.route',
    text,
    manifests: plugins.map(toManifest),
    checkOptions: () => [],
  });
  if (program === undefined) throw new Error(diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
  return program;
}

interface Bed {
  readonly core: Core;
  readonly time: FakeTime;
  /** Routes a request and gives what was decided; it is finished at once unless it is to be kept. */
  ask(
    given?: Parameters<typeof request>[0],
    keep?: boolean,
  ): { readonly tier: string; readonly policy: string; readonly live: Forward };
}

function bed(text: string, plugins: readonly Plugin[] = []): Bed {
  const time = new FakeTime();
  const core = createCore({ clock: time, scheduler: time });
  core.activate(core.prepare(compile(text, plugins), plugins));
  return {
    core,
    time,
    ask(given, keep = false) {
      const live = core.router.route(request(given));
      if (live instanceof Promise || live.kind !== 'forward') throw new Error('expected a forward');
      const { tier } = live.attempt;
      const { policy } = live.decision;
      if (!keep) live.finish(OK);
      return { tier, policy, live };
    },
  };
}

const session = (id: string): Parameters<typeof request>[0] => ({ headers: { 'x-session-id': id } });

test('a canary gets its share of the sessions, each of which stays with one version', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  const version = core.prepare(compile(`${FLEET}default to tier "B"`));
  core.startCanary({ version, share: 0.2 });
  const first = Array.from({ length: 1000 }, (_, i) => ask(session(`s${i}`)).tier);
  const share = first.filter((tier) => tier === 'B').length / 1000;
  // Five standard deviations of a binomial of 1,000 at 20 %.
  expect(Math.abs(share - 0.2)).toBeLessThan(0.064);
  expect(Array.from({ length: 1000 }, (_, i) => ask(session(`s${i}`)).tier)).toEqual(first);
  for (let i = 0; i < 50; i++) {
    const { tier, policy } = ask(session(`s${i}`));
    expect(policy).toBe(tier === 'B' ? version.id : core.active?.id);
  }
});

test('without a session the user counts, and without either each request is drawn by itself', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  core.startCanary({ version: core.prepare(compile(`${FLEET}default to tier "B"`)), share: 0.5 });
  const byUser = Array.from({ length: 40 }, (_, i) => [0, 1, 2].map(() => ask({ body: { user: `u${i}` } }).tier));
  expect(byUser.every((tiers) => new Set(tiers).size === 1)).toBe(true);
  expect(new Set(byUser.map(([tier]) => tier)).size).toBe(2);
  const alone = Array.from({ length: 400 }, () => ask().tier);
  const share = alone.filter((tier) => tier === 'B').length / 400;
  expect(Math.abs(share - 0.5)).toBeLessThan(0.125);
});

test('another canary tries other sessions', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  const tried = (n: number): string[] => {
    core.startCanary({ version: core.prepare(compile(`${FLEET}# ${n}\ndefault to tier "B"`)), share: 0.3 });
    return Array.from({ length: 100 }, (_, i) => ask(session(`s${i}`)).tier);
  };
  expect(tried(1)).not.toEqual(tried(2));
  expect(core.versions()).toHaveLength(2);
});

test('a canary that ends leaves its requests to finish on it, and goes with the last of them', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  const version = core.prepare(compile(`${FLEET}default to tier "B"`));
  core.startCanary({ version, share: 1 });
  const { live } = ask({}, true);
  core.endCanary();
  expect(ask().tier).toBe('A');
  expect([version.retired, version.requests]).toEqual([false, 1]);
  live.finish(OK);
  expect(version.retired).toBe(true);
  expect(core.versions()).toEqual([core.active]);
});

test('a canary that is put in force takes all requests, and one that another version overtakes is over', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  const version = core.prepare(compile(`${FLEET}default to tier "B"`));
  core.startCanary({ version, share: 0.01 });
  core.activate(version);
  expect([core.canary, core.active]).toEqual([undefined, version]);
  expect(Array.from({ length: 50 }, () => ask().tier)).toEqual(Array.from({ length: 50 }, () => 'B'));
  const second = core.prepare(compile(`${FLEET}# 2\ndefault to tier "A"`));
  core.startCanary({ version: second, share: 1 });
  core.activate(core.prepare(compile(`${FLEET}# 3\ndefault to tier "B"`)));
  expect([core.canary, second.retired]).toEqual([undefined, true]);
});

test('versions that decide at the same time share one fleet', () => {
  const { core } = bed(`${FLEET}default to tier "A"`);
  const refused = (text: string): string => {
    const version = core.prepare(compile(text));
    try {
      core.startCanary({ version, share: 1 });
      return 'started';
    } catch (error) {
      core.discard(version);
      return (error as Error).message;
    }
  };
  expect(refused(`\n\n# moved\n${FLEET}default to tier "B"`)).toBe('started');
  expect(refused(`${FLEET}define tier "C" { model: "m", endpoints: ["http://c"] }\ndefault to tier "C"`)).toBe(
    'the policy cannot be a canary: it defines the tier "C", which the policy in force has not, and it decides on the fleet of the policy in force. Put the change of the fleet in force first, by an edit of the policy file.',
  );
  expect(refused(`${FLEET.replace('100', '200')}default to tier "A"`)).toMatch(/it defines the tier "A" differently/);
  expect(refused(`${FLEET.split('\n')[1]}\ndefault to tier "A"`)).toMatch(/it does not define the tier "B"/);
});

/** Counts what it is told of, and scores nothing. */
function countingScorer(told: string[], score: () => void = () => {}): Plugin {
  return definePlugin({
    name: 'counting',
    apiVersion: 1,
    provides: {
      scorer: {
        counted: {
          doc: 'counts',
          onError: 'fail',
          setup: () => ({
            score(_request, candidates, out) {
              score();
              for (let i = 0; i < candidates.length; i++) out[i] = 0.5;
            },
            picked: () => void told.push('picked'),
            ended: () => void told.push('ended'),
          }),
        },
      },
    },
  });
}

test('a shadow decides the same requests on the same fleet, and changes nothing', () => {
  const told: string[] = [];
  const plugin = countingScorer(told);
  const limit = 'define limit "l" { key: model, requests: 1000/min }\nreject "over" when over_limit("l")\n';
  const { core, ask } = bed(
    `${FLEET}${limit}default to tier "A" by least_requests`.replace('least_requests', 'lowest(inflight_requests)'),
  );
  const seen: ShadowComparison[] = [];
  const shadow = core.prepare(
    compile(
      `${FLEET}${limit}route "big" when prompt_tokens > 100 to tier "B" by counted\ndefault to tier "A" by lowest(inflight_requests)`,
      [plugin],
    ),
    [plugin],
  );
  core.startShadow({ version: shadow, share: 1, onCompared: (comparison) => seen.push(comparison) });
  const before = core.status();
  for (let i = 0; i < 30; i++) ask({ id: `r${i}`, body: { promptTokensExact: i * 10 } });
  const after = core.status();
  expect(after).toMatchObject({ leasesOpen: 0, leaseFaults: 0, leasesStarted: before.leasesStarted + 30 });
  expect(told).toEqual([]);
  expect(
    core
      .endpoints()
      .filter(({ tier }) => tier === 'B')
      .every((row) => row.inflightRequests === 0),
  ).toBe(true);
  expect(seen).toHaveLength(30);
  expect(seen.map(({ requestId }) => requestId)).toEqual(Array.from({ length: 30 }, (_, i) => `r${i}`));
  seen.forEach(({ inForce, shadow: other }, i) => {
    expect(inForce).toMatchObject({ outcome: 'forward', rule: 'default', tier: 'A' });
    if (i * 10 > 100) expect(other).toMatchObject({ outcome: 'forward', rule: 'big', tier: 'B' });
    // The same rule on the same fleet gives the same endpoint: the shadow saw it without this request.
    else expect(other).toEqual(inForce);
  });
  expect(shadow.requests).toBe(0);
  core.endShadow();
  expect(shadow.retired).toBe(true);
  ask();
  expect(seen).toHaveLength(30);
});

test('limits are charged once however many versions look at them', () => {
  const limit = 'define limit "l" { key: model, requests: 5/min }\nreject "over" when over_limit("l")\n';
  const { core } = bed(`${FLEET}${limit}default to tier "A"`);
  const version = core.prepare(compile(`${FLEET}${limit}# shadow\ndefault to tier "A"`));
  const seen: ShadowComparison[] = [];
  core.startShadow({ version, share: 1, onCompared: (comparison) => seen.push(comparison) });
  const kinds = Array.from({ length: 8 }, () => {
    const outcome = core.router.route(request());
    if (outcome instanceof Promise) return 'queued';
    if (outcome.kind === 'refuse') outcome.finish();
    else outcome.finish(OK);
    return outcome.kind;
  });
  expect(kinds).toEqual([...Array.from({ length: 5 }, () => 'forward'), 'refuse', 'refuse', 'refuse']);
  expect(seen.every(({ inForce, shadow }) => JSON.stringify(inForce) === JSON.stringify(shadow))).toBe(true);
  expect(seen.at(-1)?.shadow).toEqual({ outcome: 'refuse', rule: 'over', tier: '', endpoint: '', code: 'rejected' });
});

test('a shadow that fails is told of and touches no request', () => {
  const plugin = countingScorer([], () => {
    throw new Error('broken');
  });
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  const failing = core.prepare(compile(`${FLEET}default to tier "B" by counted`, [plugin]), [plugin]);
  const seen: ShadowComparison[] = [];
  core.startShadow({ version: failing, share: 1, onCompared: (comparison) => seen.push(comparison) });
  expect(ask().tier).toBe('A');
  expect(seen).toHaveLength(1);
  expect(seen[0]?.shadow).toMatchObject({ outcome: 'refuse', code: 'plugin_failed' });
});

test('a shadow whose signals fail is told of with the reason, and touches no request', () => {
  const plugin = definePlugin({
    name: 'shaky',
    apiVersion: 1,
    provides: {
      signal: {
        shaky: {
          doc: 'Never works.',
          type: 'string',
          onError: 'fail',
          setup: () => ({
            evaluate() {
              throw new Error('boom');
            },
          }),
        },
      },
    },
  });
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  const seen: ShadowComparison[] = [];
  const version = core.prepare(compile(`${FLEET}default to tier "B" with header "x-shaky" (shaky)`, [plugin]), [
    plugin,
  ]);
  core.startShadow({ version, share: 1, onCompared: (comparison) => seen.push(comparison) });
  expect(ask().tier).toBe('A');
  expect(seen).toEqual([expect.objectContaining({ error: expect.stringContaining('shaky') as string })]);
  expect(seen[0]).not.toHaveProperty('shadow');
  expect(version.requests).toBe(0);
});

test('a sample bounds what a shadow costs, and another reload leaves it where the fleet is the same', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  let compared = 0;
  const shadow = (n: number): void =>
    core.startShadow({
      version: core.prepare(compile(`${FLEET}# shadow ${n}\ndefault to tier "B"`)),
      share: 0.1,
      onCompared: () => compared++,
    });
  shadow(1);
  for (let i = 0; i < 1000; i++) ask();
  expect(Math.abs(compared - 100)).toBeLessThan(48);
  core.activate(core.prepare(compile(`${FLEET}# reload\ndefault to tier "A"`)));
  expect(core.shadow).toBeDefined();
  core.activate(core.prepare(compile(`${FLEET.replace('100', '50')}default to tier "A"`)));
  expect(core.shadow).toBeUndefined();
  expect(core.versions()).toEqual([core.active]);
});

test('requests of a canary are not compared with the shadow of the version in force', () => {
  const { core, ask } = bed(`${FLEET}default to tier "A"`);
  let compared = 0;
  core.startShadow({
    version: core.prepare(compile(`${FLEET}# shadow\ndefault to tier "A"`)),
    share: 1,
    onCompared: () => compared++,
  });
  core.startCanary({ version: core.prepare(compile(`${FLEET}default to tier "B"`)), share: 0.5 });
  const own = Array.from({ length: 100 }, (_, i) => ask(session(`s${i}`)).tier).filter((tier) => tier === 'A').length;
  expect(compared).toBe(own);
});

test('alarms of a version on trial are looked at, and those of the version in force count where both have a name', () => {
  const alarm = (name: string, over: number): string =>
    `define alarm "${name}" { when: cluster.inflight_requests > ${over} }\n`;
  const { core } = bed(`${FLEET}${alarm('hot', 1000)}default to tier "A"`);
  core.startCanary({
    version: core.prepare(compile(`${FLEET}${alarm('hot', -1)}${alarm('cold', -1)}default to tier "A"`)),
    share: 0,
  });
  expect([...core.status().alarms]).toEqual([
    ['hot', false],
    ['cold', true],
  ]);
  core.endCanary();
  expect([...core.status().alarms.keys()]).toEqual(['hot']);
});
