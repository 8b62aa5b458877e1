import { definePlugin } from '@signalbox/plugin-api';
import type { ParsedRequest, RequestView, SignalDefinition, Value, ValueType } from '@signalbox/plugin-api';
import type { RefArgument } from '@signalbox/policy';
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
} from '../program.fixture.ts';
import type { TestCore } from '../program.fixture.ts';
import { createZoneClock, parseTimeWindow } from './zone-clock.ts';

const value = (text: Value, name?: string): RefArgument => ({
  kind: 'value',
  value: text,
  ...(name === undefined ? {} : { name }),
});

/** What a signal came to for a request, by its record name. */
function read(
  key: string,
  type: ValueType,
  args: readonly RefArgument[] = [],
  given: Parameters<typeof request>[0] = {},
): Value | null | undefined {
  const b = new ProgramBuilder();
  b.signal(key, type, args);
  const t = testCore(
    b.program({
      tiers: [tier('A', 2, { maxRequests: 4 })],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: {
        tenants: [
          {
            name: 'acme',
            keys: [],
            class: 'high',
            weight: 2,
            limits: [],
            fields: { region: 'eu', seats: 5 },
            span: SPAN,
          },
        ],
      },
    }),
  );
  t.forward().finish(OK);
  t.forward();
  const one = t.core.explain(request(given));
  return Object.values(one.signals)[0];
}

test('signals of the body and the headers', () => {
  expect(read('model', 'string')).toBe('m');
  expect(read('prompt_chars', 'count', [], { body: { text: 'äöü€' } })).toBe(4);
  expect(read('max_tokens', 'count')).toBeNull();
  expect(read('max_tokens', 'count', [], { body: { maxTokens: 7 } })).toBe(7);
  expect(read('tools', 'number', [], { body: { tools: 2 } })).toBe(2);
  expect(read('questions', 'number', [], { body: { text: 'Is it? Or not? No.' } })).toBe(2);
  expect(read('words', 'number', [], { body: { text: 'Is Paris in France?' } })).toBe(4);
  expect(read('complexity.textbook', 'number', [], { body: { text: 'Is Paris in France?' } })).toBeCloseTo(10.4);
  expect(read('header', 'string', [value('X-Tier')], { headers: { 'x-tier': 'gold' } })).toBe('gold');
  expect(read('header', 'string', [value('x-other')], { headers: { 'x-tier': 'gold' } })).toBeNull();
  expect(read('metadata', 'string', [value('team')], { body: { fields: { team: 'red' } } })).toBe('red');
  expect(read('prefix', 'string', [value(4, 'chars')], { body: { text: 'abcdefgh' } })).toBe('abcd');
  expect(read('prefix', 'string', [value(1, 'tokens')], { body: { text: 'abcdefgh' } })).toBe('abcd');
  expect(read('deadline', 'duration')).toBeNull();
  expect(read('deadline', 'duration', [], { deadlineMs: 1500 })).toBe(1.5);
  expect(read('api_key.name', 'string', [], { apiKeyName: 'ci' })).toBe('ci');
});

test('session: header, else metadata, else prompt cache key', () => {
  const body = { promptCacheKey: 'c', fields: { session_id: 'b' } };
  expect(read('session', 'string', [], { headers: { 'x-session-id': 'a' }, body })).toBe('a');
  expect(read('session', 'string', [], { body })).toBe('b');
  expect(read('session', 'string', [], { body: { promptCacheKey: 'c' } })).toBe('c');
  expect(read('session', 'string')).toBeNull();
});

test('a conversation keeps its fingerprint as it grows', () => {
  const opening = { systemPrompt: () => 'You are terse.', firstUserMessage: () => 'Hi.' };
  const first = read('conversation', 'string', [], { body: opening });
  expect(first).toMatch(/^[0-9a-f]{16}$/);
  expect(read('conversation', 'string', [], { body: { ...opening, text: 'much more text' } })).toBe(first);
  expect(read('conversation', 'string', [], { body: { ...opening, firstUserMessage: () => 'Hello.' } })).not.toBe(
    first,
  );
});

test('tenant fields, and a priority that a header may lower but not raise', () => {
  expect(read('tenant.region', 'string', [], { tenant: 'acme' })).toBe('eu');
  expect(read('tenant.seats', 'number', [], { tenant: 'acme' })).toBe(5);
  expect(read('tenant.id', 'string', [], { tenant: 'other' })).toBe('other');
  expect(read('tenant.region', 'string', [], { tenant: 'other' })).toBeNull();
  expect(read('priority', 'string', [], { tenant: 'acme' })).toBe('high');
  expect(read('priority', 'string', [], { tenant: 'acme', headers: { 'x-priority': 'low' } })).toBe('low');
  expect(read('priority', 'string', [], { tenant: 'acme', headers: { 'x-priority': 'critical' } })).toBe('high');
  expect(read('priority', 'string', [], { headers: { 'x-priority': 'critical' } })).toBe('normal');
});

test('cluster values', () => {
  expect(read('cluster.inflight_requests', 'count')).toBe(1);
  expect(read('cluster.saturation', 'percent')).toBe(0.125);
  expect(read('cluster.healthy', 'percent')).toBe(1);
  expect(read('cluster.queue_depth', 'count')).toBe(1);
});

test('prompt tokens: exact for tokens, else code points over a rate that is learned per model', () => {
  const b = new ProgramBuilder();
  b.signal('prompt_tokens', 'count');
  b.signal('output_tokens', 'count');
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
  );
  const estimate = (body: NonNullable<Parameters<typeof request>[0]>['body'] = {}): unknown =>
    t.core.explain(request({ body: { text: 'x'.repeat(400), ...body } })).estimate;
  expect(estimate()).toEqual({ promptTokens: 100, outputTokens: 256 });
  expect(estimate({ promptTokensExact: 7 })).toMatchObject({ promptTokens: 7 });
  expect(estimate({ maxTokens: 16 })).toMatchObject({ outputTokens: 16 });
  expect(estimate({ kind: 'embedding' })).toMatchObject({ outputTokens: 0 });
  for (let i = 0; i < 200; i++)
    t.forward({ body: { text: 'x'.repeat(400) } }).finish({ ...OK, promptTokens: 200, outputTokens: 40 });
  expect(estimate()).toEqual({ promptTokens: 200, outputTokens: 41 });
  expect(estimate({ model: 'other' })).toEqual({ promptTokens: 100, outputTokens: 256 });
});

test('a session remembers what its last turn took', () => {
  const b = new ProgramBuilder();
  b.signal('session_tokens', 'count');
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
  );
  const headers = { 'x-session-id': 's' };
  t.forward({ headers }).finish({ ...OK, promptTokens: 30, outputTokens: 12 });
  expect(t.core.explain(request({ headers })).signals).toEqual({ session_tokens: 42 });
  expect(t.core.explain(request()).signals).toEqual({ session_tokens: null });
});

test('windows of time: days, hours, and nights that belong to the day on which they start', () => {
  const at = (text: string, weekday: number, clock: string): boolean | undefined => {
    const [hour = 0, minute = 0] = clock.split(':').map(Number);
    return parseTimeWindow(text)?.({ weekday, hour, minuteOfDay: hour * 60 + minute });
  };
  expect(at('mon-fri 22:00-06:00', 4, '23:00')).toBe(true);
  expect(at('mon-fri 22:00-06:00', 5, '05:59')).toBe(true);
  expect(at('mon-fri 22:00-06:00', 5, '06:00')).toBe(false);
  expect(at('mon-fri 22:00-06:00', 5, '22:00')).toBe(false);
  expect(at('mon-fri 22:00-06:00', 0, '05:00')).toBe(false);
  expect(at('sat,sun', 6, '12:00')).toBe(true);
  expect(at('fri-mon 08:00-12:00', 6, '08:00')).toBe(true);
  expect(at('08:00-12:00', 2, '12:00')).toBe(false);
  expect(parseTimeWindow('someday')).toBeUndefined();
  expect(parseTimeWindow('25:00-26:00')).toBeUndefined();
});

test('a zone has its own wall time, summer time included', () => {
  const berlin = createZoneClock('Europe/Berlin');
  expect(berlin(Date.UTC(2026, 6, 1, 22, 30))).toEqual({ weekday: 3, hour: 0, minuteOfDay: 30 });
  expect(berlin(Date.UTC(2026, 0, 1, 22, 30))).toEqual({ weekday: 3, hour: 23, minuteOfDay: 23 * 60 + 30 });
  expect(() => createZoneClock('Mars/Olympus')).toThrow(RangeError);
});

test('an alarm is unknown before its first sample, rises after its time and falls when `until` holds', () => {
  const b = new ProgramBuilder();
  const inflight = b.signal('cluster.inflight_requests', 'count');
  const t = testCore(
    b.program({
      tiers: [tier('A', 1)],
      admission: [admission('reject', 'hot', b.signal('alarm.hot', 'bool'))],
      routes: [route('default', [destination('A', [b.leastTokens()])])],
      definitions: {
        alarms: [
          {
            name: 'hot',
            when: compare('>=', inflight, constant(2)),
            until: compare('<', inflight, constant(1)),
            for: 1,
            span: SPAN,
          },
        ],
      },
    }),
  );
  const open = [t.forward(), t.forward()];
  t.time.advance(900);
  expect(t.send().kind).toBe('forward');
  t.time.advance(600);
  expect(t.send().kind).toBe('refuse');
  open[0]?.finish(OK);
  t.time.advance(500);
  expect(t.send().kind).toBe('refuse');
  t.core.close();
  expect(t.time.timers).toBe(0);
});

const plugin = definePlugin({
  name: 'facts',
  apiVersion: 1,
  provides: {
    signal: {
      shout: {
        doc: 'The prompt, louder.',
        type: 'string',
        reads: ['request.prompt_tokens'],
        setup: () => ({
          evaluate: (body: ParsedRequest, view: RequestView) =>
            `${body.prompt().toUpperCase()} ${view.number('request.prompt_tokens')}`,
        }),
      },
      output_tokens: { doc: 'Ten.', type: 'count', setup: () => ({ evaluate: () => 10 }) },
      slow: {
        doc: 'Comes when it comes.',
        type: 'number',
        budgetMs: 5,
        setup: () => ({
          evaluate: (body: ParsedRequest) =>
            body.stream
              ? new Promise<number>(() => {})
              : body.tools > 0
                ? Promise.reject(new Error('no'))
                : Promise.resolve(3),
        }),
      },
    },
    admission: {
      roomy: {
        doc: 'Whether some endpoint of the target is idle.',
        arguments: [{ name: 'target', kind: 'target', optional: true }],
        reads: ['candidate.inflight_requests'],
        setup: () => ({
          holds(_view, candidates) {
            const held = candidates.column('candidate.inflight_requests');
            for (let i = 0; i < candidates.length; i++) if (held[candidates.slots[i] ?? 0] === 0) return true;
            return false;
          },
        }),
      },
    },
  },
});
const provider = { kind: 'plugin', plugin: 'facts' } as const;

test('signals and admission predicates of plugins, and an estimate of a plugin in the lease', () => {
  const b = new ProgramBuilder();
  b.signals.push({ key: 'shout', type: 'string', known: 'maybe', provider, arguments: [] });
  b.signals.push({ key: 'output_tokens', type: 'count', known: 'maybe', provider, arguments: [] });
  b.signals.push({
    key: 'roomy',
    type: 'bool',
    known: 'maybe',
    provider,
    arguments: [{ kind: 'target', target: { kind: 'tier', name: 'A' } }],
  });
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
    { plugins: [plugin] },
  );
  const first = t.forward({ body: { text: 'hey you' } });
  expect(t.core.endpoints()[0]?.decodeTokens).toBe(10);
  const second = t.forward({ body: { text: 'hey you' } });
  expect([first, second].map((one) => Object.values(one.decision.signals))).toEqual([
    ['HEY YOU 2', 10, true],
    ['HEY YOU 2', 10, false],
  ]);
});

test('an asynchronous signal is waited for as long as its budget; late or failed it is unknown', async () => {
  const b = new ProgramBuilder();
  b.signals.push({ key: 'slow', type: 'number', known: 'maybe', provider, arguments: [] });
  const t = testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
    { plugins: [plugin] },
  );
  const ask = async (body: NonNullable<Parameters<typeof request>[0]>['body'], waitMs = 0): Promise<unknown> => {
    const outcome = t.core.router.route(request({ body: body ?? {} }));
    expect(outcome).toBeInstanceOf(Promise);
    t.time.advance(waitMs);
    const settled = await outcome;
    return settled.decision.signals['slow'];
  };
  expect(await ask({})).toBe(3);
  expect(await ask({ stream: true }, 5)).toBeNull();
  expect(await ask({ tools: 1 })).toBeNull();
  expect(t.core.status().pluginFailures.get('facts/slow')).toBe(1);
  expect(t.time.timers).toBe(0);
});

/** A policy of one endpoint whose records show these signals of a plugin, in this order. */
function showing(signals: { readonly [name: string]: SignalDefinition }, names: readonly string[]): TestCore {
  const b = new ProgramBuilder();
  for (const key of names)
    b.signals.push({
      key,
      type: 'number',
      known: 'maybe',
      provider: { kind: 'plugin', plugin: 'facts' },
      arguments: [],
    });
  return testCore(
    b.program({ tiers: [tier('A', 1)], routes: [route('default', [destination('A', [b.leastTokens()])])] }),
    { plugins: [definePlugin({ name: 'facts', apiVersion: 1, provides: { signal: signals } })] },
  );
}

test('asynchronous signals of requests that wait side by side each see their own, and nothing once the wait is over', async () => {
  const views: RequestView[] = [];
  const gates: (() => void)[] = [];
  const t = showing(
    {
      later: {
        doc: 'The prompt tokens, read after a wait.',
        type: 'number',
        budgetMs: 5,
        reads: ['request.prompt_tokens'],
        setup: () => ({
          async evaluate(_body: ParsedRequest, view: RequestView) {
            views.push(view);
            await new Promise<void>((resolve) => gates.push(resolve));
            return view.number('request.prompt_tokens');
          },
        }),
      },
    },
    ['later'],
  );
  const outcomes = [11, 22].map(async (promptTokensExact) =>
    t.core.router.route(request({ body: { promptTokensExact } })),
  );
  for (const open of gates) open();
  const seen = (await Promise.all(outcomes)).map(({ decision }) => decision.signals['later']);
  expect(seen).toEqual([11, 22]);
  expect(views.map((view) => view.number('request.prompt_tokens'))).toEqual([Number.NaN, Number.NaN]);
});

test('a signal that reads another comes after it, whichever the policy names first; a circle reads the unknown', () => {
  const reading = (of: string): SignalDefinition => ({
    doc: `One more than ${of}.`,
    type: 'number',
    reads: [`request.${of}`],
    setup: () => ({ evaluate: (_body: ParsedRequest, view: RequestView) => view.number(`request.${of}`) + 1 }),
  });
  const signals = { first: reading('second'), second: reading('prompt_tokens'), a: reading('b'), b: reading('a') };
  for (const names of [['first', 'second', 'a', 'b'], ['second', 'first'], ['first']]) {
    const t = showing(signals, names);
    for (const promptTokensExact of [10, 20]) {
      const live = t.forward({ body: { promptTokensExact } });
      expect(live.decision.signals['first']).toBe(promptTokensExact + 2);
      if (names.includes('a')) expect([live.decision.signals['a'], live.decision.signals['b']]).toEqual([null, null]);
      live.finish(OK);
    }
  }
});
