import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type {
  CandidateView,
  Closeable,
  Plugin,
  PluginKind,
  RandomSource,
  RequestView,
  SetupContext,
  Value,
} from '@signalbox/plugin-api';
import { silentLogger } from '@signalbox/plugin-api';
import { parseRequest } from '@signalbox/openai-wire';
import { seededRandom } from './marshal.ts';
import { DEFAULT_LIMITS, importIsolated } from './isolated-plugin.ts';
import type { IsolationLimits } from './messages.ts';

/** Generous where a test is not about the limit, since a busy machine is late. */
const PATIENT: IsolationLimits = { ...DEFAULT_LIMITS, callMs: 5000, firstCallMs: 5000, setupMs: 10_000, backOffMs: 1 };
const STRICT: IsolationLimits = { ...PATIENT, callMs: 100, firstCallMs: 100 };

let folder: string;
let opened: Closeable[] = [];
let count = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-isolated-'));
});
afterEach(() => {
  for (const instance of opened.splice(0)) instance.close?.();
  rmSync(folder, { recursive: true, force: true });
});

function entryOf(provides: string, before = ''): string {
  const entry = join(folder, `plugin-${count++}.mjs`);
  writeFileSync(entry, `${before}\nexport default { name: 'mine', apiVersion: 1, provides: { ${provides} } };`);
  return entry;
}

const load = async (entry: string, limits = PATIENT): Promise<Plugin> => {
  const plugin = await importIsolated('mine', entry, limits);
  if (plugin === undefined) throw new Error('no default export');
  return plugin;
};
/** As an import in process gives it. */
const inProcess = async (entry: string): Promise<Plugin> =>
  ((await import(entry)) as { readonly default: Plugin }).default;

const contextOf = (options: SetupContext['options'] = {}): SetupContext => ({
  options,
  logger: silentLogger,
  clock: { now: () => 0, epochMs: () => 0 },
  random: seededRandom(7),
  signal: new AbortController().signal,
});

function setUp<T extends Closeable>(plugin: Plugin, kind: PluginKind, options: SetupContext['options'] = {}): T {
  const definitions = plugin.provides[kind] as unknown as { readonly x: { setup(context: SetupContext): T } };
  const instance = definitions.x.setup(contextOf(options));
  opened.push(instance);
  return instance;
}

interface Scores extends Closeable {
  score(request: RequestView, candidates: CandidateView, out: Float64Array): void;
  picked?(slot: number): void;
  ended?: unknown;
}

const READS = "['request.prompt_tokens', 'request.tier', 'candidate.power', 'candidate.zone']";

function viewsOf(random: RandomSource): { readonly request: RequestView; readonly candidates: CandidateView } {
  const integer = (below: number): number => Math.floor(random.next() * below);
  const length = integer(12);
  const slots = Int32Array.from({ length: 20 }, (_, i) => i).toSorted(() => random.next() - 0.5);
  const power = Float64Array.from({ length: 20 }, () => (random.next() < 0.2 ? Number.NaN : random.next()));
  const zone = Array.from({ length: 20 }, () => ['a', 'b', undefined][integer(3)]);
  const values = new Map<string, Value>();
  if (random.next() < 0.8) values.set('request.prompt_tokens', integer(5000));
  if (random.next() < 0.8) values.set('request.tier', ['gold', 'iron'][integer(2)] ?? '');
  return {
    request: {
      seed: integer(2 ** 32),
      number: (key) => {
        const value = values.get(key);
        return typeof value === 'number' ? value : Number.NaN;
      },
      value: (key) => values.get(key),
    },
    candidates: {
      length,
      slots: slots.slice(0, length),
      column: (key) => (key === 'candidate.power' ? power : new Float64Array(20).fill(Number.NaN)),
      values: (key) => (key === 'candidate.power' ? power : key === 'candidate.zone' ? zone : []),
    },
  };
}

const one = viewsOf({ next: () => 0.5 });
const score = (instance: Scores): readonly number[] => {
  const out = new Float64Array(one.candidates.length);
  instance.score(one.request, one.candidates, out);
  return [...out];
};
const scorer = (body: string, more = ''): string =>
  `scorer: { x: { doc: 'x', setup: () => ({ score(request, candidates, out) { ${body} } ${more} }) } }`;

const EXPRESSION = `(request.number('request.prompt_tokens') || 3) * candidates.column('candidate.power')[slot]
  + (request.value('request.tier') === 'gold' ? 5 : 1) + (candidates.values('candidate.zone')[slot] === 'a' ? 9 : 0)
  + request.seed % 7 + bias`;
const FILL = `for (let i = 0; i < candidates.length; i++) { const slot = candidates.slots[i]; out[i] = ${EXPRESSION}; }`;
const WELL_BEHAVED = `
  scorer: { x: { doc: 'x', reads: ${READS}, setup: ({ options: { bias = 0 } }) => {
    const picks = {};
    return { score(request, candidates, out) { ${FILL} for (let i = 0; i < out.length && i < candidates.length; i++) out[i] += picks[candidates.slots[i]] ?? 0; },
      picked(slot) { picks[slot] = (picks[slot] ?? 0) + 1; }, forget(slot) { delete picks[slot]; } };
  } } },
  property: { x: { doc: 'x', type: 'number', reads: ${READS}, setup: ({ options: { bias = 0 } }) => {
    let total = 0;
    return { fill(request, candidates, out) { ${FILL} for (let i = 0; i < candidates.length; i++) out[i] += total; }, ended(slot, outcome) { total += slot + outcome.ttftMs; } };
  } } },
  filter: { x: { doc: 'x', reads: ${READS}, setup: ({ options: { bias = 0 } }) => ({ filter(request, candidates, out) {
    for (let i = 0; i < candidates.length; i++) { const slot = candidates.slots[i]; const v = ${EXPRESSION}; if (v === v) out[i] = v > 9 ? 1 : 0; }
  } }) } },
  picker: { x: { doc: 'x', reads: ${READS}, setup: () => ({
    sample(candidates, random, out) { let n = 0; for (let i = 0; i < candidates.length; i++) if (random.next() < 0.6) out[n++] = i; return n; },
    pick(scores, candidates, random, k, out) { let n = 0; for (let i = 0; i < candidates.length && n < k; i++) if (scores[i] > random.next()) out[n++] = i; return n; },
  }) } },
  admission: { x: { doc: 'x', arguments: [], reads: ${READS}, setup: () => ({ holds(request, candidates, args) {
    const tokens = request.number('request.prompt_tokens'); return tokens === tokens ? tokens * candidates.length > args.slo.ttft * 1e4 : undefined;
  } }) } },
  signal: { x: { doc: 'x', type: 'string', reads: ['request.tier'], setup: () => ({ evaluate(request, view) {
    return JSON.stringify([request.model, request.kind, request.bodyBytes, request.maxTokens, request.tools, request.prompt(), request.systemPrompt(), request.firstUserMessage(),
      request.lastUserMessage(), request.messages(), request.toolNames(), request.metadata('team'), request.metadata('none'), view.value('request.tier'), view.seed]);
  } }) } }`;

const OUTCOME = {
  ok: true,
  reason: 'ok',
  status: 200,
  ttftMs: 12,
  durationMs: 30,
  promptTokens: 4,
  cachedTokens: 0,
  outputTokens: 5,
};

/** All that a plugin of every kind answers to 150 random requests, with what it learns in between. */
async function answersOf(plugin: Plugin, seed: number): Promise<readonly unknown[]> {
  type Every = Scores & {
    fill(request: RequestView, candidates: CandidateView, out: Float64Array): void;
    filter(request: RequestView, candidates: CandidateView, out: Uint8Array): void;
    sample(candidates: CandidateView, random: RandomSource, out: Int32Array): number;
    pick(scores: Float64Array, candidates: CandidateView, random: RandomSource, k: number, out: Int32Array): number;
    holds(request: RequestView, candidates: CandidateView, args: object): boolean | undefined;
    evaluate(request: object, view: RequestView): Value | undefined;
    picked(slot: number): void;
    ended(slot: number, outcome: object): void;
    forget(slot: number): void;
  };
  const of = (kind: PluginKind): Every => setUp<Every>(plugin, kind, { bias: 2 });
  const [scores, property, filter] = [of('scorer'), of('property'), of('filter')];
  const [picker, admission, signal] = [of('picker'), of('admission'), of('signal')];
  const random = seededRandom(seed);
  const answers: unknown[] = [];
  for (let i = 0; i < 150; i++) {
    const { request, candidates } = viewsOf(random);
    const { length } = candidates;
    const numbers = new Float64Array(length);
    scores.score(request, candidates, numbers);
    const filled = new Float64Array(length).fill(Number.NaN);
    property.fill(request, candidates, filled);
    const passed = new Uint8Array(length).fill(2);
    filter.filter(request, candidates, passed);
    const draws = seededRandom(i);
    const sampled = new Int32Array(length);
    const picked = new Int32Array(length);
    const shares = Float64Array.from({ length }, () => random.next());
    const sample = picker.sample(candidates, draws, sampled);
    const pick = picker.pick(shares, candidates, draws, 3, picked);
    const body = {
      model: `m${i}`,
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: `u${i}` },
      ],
      metadata: { team: 'a', n: 1 },
    };
    answers.push(
      [...numbers],
      [...filled],
      [...passed],
      Array.from(sampled.subarray(0, sample)),
      Array.from(picked.subarray(0, pick)),
      admission.holds(request, candidates, { slo: { ttft: random.next(), tpot: 1, latency: 1 } }),
      signal.evaluate(parseRequest('/v1/chat/completions', Buffer.from(JSON.stringify(body))), request),
    );
    if (length > 0) {
      scores.picked(candidates.slots[0]!);
      property.ended(candidates.slots[0]!, OUTCOME);
      if (i % 5 === 0) scores.forget(candidates.slots[0]!);
    }
  }
  return answers;
}

test('a plugin of every kind gives the same under isolation as in process, over random requests', async () => {
  const entry = entryOf(WELL_BEHAVED);
  const isolated = await answersOf(await load(entry), 1);
  expect(isolated).toEqual(await answersOf(await inProcess(entry), 1));
  // the comparison is of something
  expect(new Set(isolated.map((answer) => JSON.stringify(answer))).size).toBeGreaterThan(400);
});

test('an asynchronous signal is answered by message, and told of an abort', async () => {
  const plugin = await load(
    entryOf(
      `signal: { x: { doc: 'x', type: 'string', budgetMs: 50, setup: () => ({ evaluate(request, view, abort) {
        return request.model === 'quick' ? Promise.resolve('done')
          : new Promise((resolve) => abort.addEventListener('abort', () => resolve('aborted'))); } }) } }`,
    ),
  );
  const signal = setUp<Closeable & { evaluate(...given: readonly unknown[]): Promise<unknown> }>(plugin, 'signal');
  const ask = (model: string, abort: AbortSignal): Promise<unknown> =>
    signal.evaluate(
      parseRequest(
        '/v1/chat/completions',
        Buffer.from(`{"model":"${model}","messages":[{"role":"user","content":"hi"}]}`),
      ),
      one.request,
      abort,
    );
  const abort = new AbortController();
  await expect(ask('quick', abort.signal)).resolves.toBe('done');
  const slow = ask('slow', abort.signal);
  abort.abort();
  await expect(slow).resolves.toBe('aborted');
});

describe('what a plugin does wrong is its own failure', () => {
  test.each([
    ['an endless loop', 'while (true);', STRICT, /no answer within 100 ms/],
    ['a gigabyte in one array', 'new Array(134217728).fill(1);', PATIENT, /its process ended with SIG/],
    [
      'a gigabyte of small objects',
      'const all = []; for (;;) all.push({ x: [1, 2, 3] });',
      PATIENT,
      /its process ended with SIG/,
    ],
    ['an exit', 'process.exit(0);', PATIENT, /its process ended with 0/],
    ['an abort', 'process.abort();', PATIENT, /its process ended with SIGABRT/],
  ])('%s ends its process, which comes back with the instance', async (_name, body, limits, message) => {
    const once = join(folder, 'once');
    const before = `import { existsSync, writeFileSync } from 'node:fs';`;
    const entry = entryOf(
      scorer(
        `if (!existsSync(${JSON.stringify(once)})) { writeFileSync(${JSON.stringify(once)}, ''); ${body} } out.fill(0.25);`,
      ),
      before,
    );
    const instance = setUp<Scores>(await load(entry, limits), 'scorer');
    expect(() => score(instance)).toThrow(message);
    expect(existsSync(once)).toBe(true);
    await vi.waitFor(() => expect(score(instance)[0]).toBe(0.25), { timeout: 20_000, interval: 20 });
  });

  test.runIf(process.platform === 'linux')('a gigabyte outside the heap', async () => {
    const body =
      'globalThis.kept ??= []; for (let i = 0; i < 1024; i++) kept.push(Buffer.alloc(1 << 20, 1)); while (true);';
    const instance = setUp<Scores>(await load(entryOf(scorer(body)), PATIENT), 'scorer');
    expect(() => score(instance)).toThrow(/it took more than 256 MB/);
  });

  test('what it throws and what is no number come back as they are, and its process stays', async () => {
    const before = 'let calls = 0;';
    const instance = setUp<Scores>(
      await load(
        entryOf(
          scorer(`calls++; if (calls === 1) throw new Error('boom'); out.fill(calls === 2 ? NaN : calls);`),
          before,
        ),
      ),
      'scorer',
    );
    expect(() => score(instance)).toThrow('isolated plugin package "mine": boom');
    expect(score(instance)[0]).toBeNaN();
    expect(score(instance)[0]).toBe(3);
  });

  test('while its process is away, calls throw at once', async () => {
    const limits = { ...STRICT, backOffMs: 3_600_000, mostBackOffMs: 3_600_000 };
    const instance = setUp<Scores>(await load(entryOf(scorer('while (true);')), limits), 'scorer');
    expect(() => score(instance)).toThrow(/no answer within/);
    for (let i = 0; i < 1000; i++) expect(() => score(instance)).toThrow(/its process is away/);
  });

  test('an endless loop where nobody waits is noticed', async () => {
    const limits = { ...PATIENT, setupMs: 2000, backOffMs: 3_600_000, mostBackOffMs: 3_600_000 };
    const instance = setUp<Scores>(
      await load(entryOf(scorer('out.fill(1);', ', picked() { while (true); }')), limits),
      'scorer',
    );
    expect(score(instance)[0]).toBe(1);
    instance.picked?.(0);
    expect(() => score(instance)).toThrow(/silent for 2000 ms|its process is away/);
  });

  const SHORT: IsolationLimits = { ...PATIENT, setupMs: 2000 };
  test('an endless loop at its import fails the import', async () => {
    await expect(load(entryOf(scorer(''), 'while (true);'), SHORT)).rejects.toThrow(/no answer within 2000 ms/);
  });

  test('an exit at its import fails the import', async () => {
    await expect(load(entryOf(scorer(''), 'process.exit(3);'))).rejects.toThrow(/ended with 3/);
  });

  test('an endless loop in setup fails the setup', async () => {
    const plugin = await load(entryOf(`scorer: { x: { doc: 'x', setup() { while (true); } } }`), SHORT);
    expect(() => setUp(plugin, 'scorer')).toThrow(/no answer within 2000 ms/);
  });
});

test('messages of its own making are passed over', async () => {
  const forged = `for (const message of [null, 7, {}, { type: 'log', level: 'constructor', message: 'x' }, { type: 'log', level: 'info' }, { type: 'reply', seq: 'x' },
    { type: 'reply', seq: 1e9, ok: true }]) process.send(message);`;
  const instance = setUp<Scores>(await load(entryOf(scorer(`${forged} out.fill(0.5);`))), 'scorer');
  for (let i = 0; i < 3; i++) expect(score(instance)[0]).toBe(0.5);
});

test('it has no environment, and only the methods that it provides', async () => {
  const instance = setUp<Scores>(await load(entryOf(scorer('out.fill(Object.keys(process.env).length);'))), 'scorer');
  expect(score(instance)[0]).toBe(0);
  expect(instance.picked).toBeUndefined();
  expect(instance.ended).toBeUndefined();
});

test('its process ends with its last instance, and another starts for the next', async () => {
  const plugin = await load(entryOf(scorer('out.fill(process.pid);')));
  const [a, b] = [setUp<Scores>(plugin, 'scorer'), setUp<Scores>(plugin, 'scorer')];
  const [pid = 0] = score(a);
  expect(score(b)[0]).toBe(pid);
  a.close?.();
  expect(score(b)[0]).toBe(pid);
  b.close?.();
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 10_000 });
  expect(score(setUp<Scores>(plugin, 'scorer'))[0]).not.toBe(pid);
});

/** Whether there is such a process, a dead one that nobody has asked after not counted. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '');
  } catch {
    return false;
  }
}
