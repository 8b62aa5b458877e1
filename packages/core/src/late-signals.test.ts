import { definePlugin } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { Expression } from '@signalbox/policy';
import { expect, test } from 'vitest';
import {
  admission,
  compare,
  constant,
  destination,
  OK,
  ProgramBuilder,
  request,
  route,
  SPAN,
  testCore,
  tier,
} from './program.fixture.ts';
import type { TestCore } from './program.fixture.ts';

/** How often each signal was worked out, and a plugin of signals that count. `depth` is 1 for requests with tools, else 0. */
function counted(): { readonly calls: { [name: string]: number }; readonly plugin: ReturnType<typeof definePlugin> } {
  const calls: { [name: string]: number } = {};
  const counting = (name: string, reads: readonly string[] = []) => ({
    doc: `Counts ${name}.`,
    type: 'number' as const,
    reads,
    setup: () => ({
      evaluate(body: { readonly tools: number }): number {
        calls[name] = (calls[name] ?? 0) + 1;
        return body.tools > 0 ? 1 : 0;
      },
    }),
  });
  const signal = { depth: counting('depth'), reader: counting('reader', ['request.depth']) };
  return { calls, plugin: definePlugin({ name: 'counts', apiVersion: 1, provides: { signal } }) };
}

const and = (...operands: readonly Expression[]): Expression => ({
  kind: 'and',
  operands,
  type: 'bool',
  scope: 'request',
  span: SPAN,
});

class Policy extends ProgramBuilder {
  plugged(key: string): Expression {
    const provider = { kind: 'plugin', plugin: 'counts' } as const;
    const index = this.signals.push({ key, type: 'number', known: 'maybe', provider, arguments: [] }) - 1;
    return { kind: 'signal', index, type: 'number', scope: 'request', span: SPAN };
  }

  /** A core whose rule "deep" has this condition, beside a default. */
  core(
    when: Expression,
    plugin: ReturnType<typeof definePlugin>,
    more: Partial<Parameters<ProgramBuilder['program']>[0]> = {},
  ): TestCore {
    const to = destination('A', [this.leastTokens()]);
    const routes = [route('deep', [to], when), route('default', [to])];
    return testCore(this.program({ tiers: [tier('A', 2)], routes, ...more }), { plugins: [plugin] });
  }
}

const isDeep = (depth: Expression): Expression => compare('>', depth, constant(0));

test('a costly signal is worked out when the cheap parts of a condition hold, once, and stands in the records that needed it', () => {
  const { calls, plugin } = counted();
  const policy = new Policy();
  const depth = policy.plugged('depth');
  const t = policy.core(and(isDeep(depth), compare('==', policy.signal('path'), constant('/v1/embeddings'))), plugin, {
    admission: [
      admission(
        'reject',
        'never',
        and(compare('==', policy.signal('path'), constant('/v1/embeddings')), compare('>', depth, constant(7))),
      ),
    ],
  });
  const signalsOf = (path: string): { readonly [name: string]: Value | null } => {
    t.forward({ body: { path, tools: 1 } }).finish(OK);
    return t.records.at(-1)?.signals ?? {};
  };
  expect(signalsOf('/v1/completions')).toEqual({ path: '/v1/completions' });
  expect(calls).toEqual({});
  expect(signalsOf('/v1/embeddings')).toEqual({ path: '/v1/embeddings', depth: 1 });
  expect(calls).toEqual({ depth: 1 });
  expect(t.records.map(({ route: taken }) => taken)).toEqual(['default', 'deep']);
  expect(signalsOf('/v1/completions')).toEqual({ path: '/v1/completions' });
});

test('a condition of costly signals alone works them out', () => {
  const { calls, plugin } = counted();
  const policy = new Policy();
  const t = policy.core(isDeep(policy.plugged('depth')), plugin);
  t.forward({ body: { tools: 1 } }).finish(OK);
  t.forward({ body: { tools: 0 } }).finish(OK);
  expect(t.records.map((record) => [record.route, record.signals['depth']])).toEqual([
    ['deep', 1],
    ['default', 0],
  ]);
  expect(calls).toEqual({ depth: 2 });
});

test('a costly signal that anything but a condition reads is there for every request', () => {
  const { calls, plugin } = counted();
  const policy = new Policy();
  const depth = policy.plugged('depth');
  const never = and(compare('==', policy.signal('path'), constant('')), isDeep(depth));
  const to = destination('A', [policy.leastTokens()], { with: { headers: [{ name: 'x-depth', value: depth }] } });
  const t = policy.core(never, plugin, { routes: [route('deep', [to], never), route('default', [to])] });
  expect(t.forward({ body: { tools: 1 } }).attempt.headers).toEqual([{ name: 'x-depth', value: '1' }]);
  expect(calls).toEqual({ depth: 1 });
});

test('a costly signal that a plugin reads is there when the plugin runs', () => {
  const { calls, plugin } = counted();
  const policy = new Policy();
  const when = and(
    compare('==', policy.signal('path'), constant('')),
    isDeep(policy.plugged('depth')),
    isDeep(policy.plugged('reader')),
  );
  const t = policy.core(when, plugin);
  t.forward();
  expect(calls).toEqual({ depth: 1 });
});

test('an explanation shows every signal', () => {
  const { plugin } = counted();
  const policy = new Policy();
  const t = policy.core(
    and(compare('==', policy.signal('path'), constant('')), isDeep(policy.plugged('depth'))),
    plugin,
  );
  expect(t.core.explain(request({ body: { tools: 1, path: '/v1/completions' } })).signals).toEqual({
    path: '/v1/completions',
    depth: 1,
  });
});
