import { compilePolicy } from '@signalbox/policy';
import type { PolicyProgram } from '@signalbox/policy';
import { expect, test } from 'vitest';
import { createCore } from './core.ts';
import { FakeTime, OK, request } from './program.fixture.ts';
import type { Forward } from './router.ts';

function compile(text: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'p.route', text, manifests: [], checkOptions: () => [] });
  if (program === undefined) throw new Error(diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
  return program;
}

const policy = (n: number): PolicyProgram =>
  compile(
    `define tier "A" { model: "m", endpoints: ["http://a-1", "http://a-2"] }\nroute "r${n}" when prompt_tokens < ${n + 1}M to tier "A"\ndefault reject`,
  );

test('before the first policy nothing is ready, and an explanation says why', () => {
  const time = new FakeTime();
  const core = createCore({ clock: time, scheduler: time });
  expect(core.router.ready()).toBe(false);
  expect(core.router.models()).toEqual([]);
  expect(() => core.explain(request())).toThrow(/no policy is in force/);
  core.activate(core.prepare(policy(1)));
  expect(core.router.ready()).toBe(true);
  core.close();
  expect(core.router.ready()).toBe(false);
});

test('two hundred reloads under traffic: each request ends on its version, none is lost, and no version outlives its requests', () => {
  const time = new FakeTime();
  const policies: string[] = [];
  const core = createCore({
    clock: time,
    scheduler: time,
    capacity: 8,
    onDecision: (record) => policies.push(`${record.route} ${record.status}`),
  });
  const open: Forward[] = [];
  for (let n = 0; n < 200; n++) {
    core.activate(core.prepare(policy(n)));
    const outcome = core.router.route(request());
    if (outcome instanceof Promise || outcome.kind === 'refuse') throw new Error('not forwarded');
    open.push(outcome);
    if (open.length > 5) open.shift()?.finish(OK);
    expect(core.status().versions).toBeLessThanOrEqual(6);
  }
  for (const one of open) one.finish(OK);
  expect(policies).toEqual(Array.from({ length: 200 }, (_, n) => `r${n} 200`));
  expect(core.status()).toMatchObject({ versions: 1, leasesOpen: 0, leaseFaults: 0, leasesStarted: 200 });
  expect(core.endpoints().map((row) => row.slot)).toEqual([0, 1]);
});

test('a version that is put in force again while it is still needed stays when its requests have ended', () => {
  const time = new FakeTime();
  const core = createCore({ clock: time, scheduler: time });
  const [first, second] = [core.prepare(policy(1)), core.prepare(policy(2))];
  core.activate(first);
  const live = core.router.route(request());
  core.activate(second);
  core.activate(first);
  if (live instanceof Promise || live.kind !== 'forward') throw new Error('expected a forward');
  live.finish(OK);
  expect([first.retired, second.retired]).toEqual([false, true]);
  expect(core.status()).toMatchObject({ versions: 1, policy: { generation: first.generation } });
});

test('a version that was prepared and is not wanted can be let go, and not be put in force after that', () => {
  const time = new FakeTime();
  const core = createCore({ clock: time, scheduler: time });
  const first = core.prepare(policy(1));
  core.activate(first);
  const second = core.prepare(policy(2));
  core.discard(second);
  expect(core.status().versions).toBe(1);
  expect(() => core.activate(second)).toThrow(/discarded/);
  expect(core.active).toBe(first);
});

test('what a policy asks for and core does not act on is said', () => {
  const time = new FakeTime();
  const core = createCore({ clock: time, scheduler: time });
  const version = core.prepare(
    compile(
      'define tier "A" { model: "m", endpoints: ["http://a-1"] }\nroute "x" when stream to tier "A" where prefix_hit > 10% with mirror 1% tier "A"\ndefault to tier "A"',
    ),
  );
  expect(version.notices).toEqual([
    'route "x": `mirror` is not acted on; no copies are sent',
    '`prefix_hit` is unknown for every endpoint: nothing in this build feeds it',
  ]);
});

test('the interpreter decides as generated code does', () => {
  const decide = (evaluators: 'generated' | 'interpreted'): string[] => {
    const time = new FakeTime();
    const core = createCore({ clock: time, scheduler: time, evaluators });
    core.activate(
      core.prepare(
        compile(`
define tier "A" { model: "m", endpoints: ["http://a-1", "http://a-2", "http://a-3"], throughput: 100/s }
route "big" when prompt_tokens > 100 and not stream to tier "A" where load < 4000% by 0.5 * lowest(queued_tokens) + 0.5 * highest(inflight_requests)
default to tier "A"`),
      ),
    );
    return Array.from({ length: 60 }, (_, i) => {
      const outcome = core.router.route(request({ body: { promptTokensExact: i * 7, stream: i % 3 === 0 } }));
      return outcome instanceof Promise
        ? 'queued'
        : outcome.kind === 'refuse'
          ? outcome.code
          : `${outcome.decision.route} ${outcome.attempt.endpoint}`;
    });
  };
  expect(decide('interpreted')).toEqual(decide('generated'));
});
