import { expect } from 'vitest';
import { createOptionChecker } from '../../../packages/config/src/index.ts';
import { createCore } from '../../../packages/core/src/index.ts';
import type {
  AttemptFailure,
  Core,
  EngineSample,
  Explanation,
  Forward,
  RequestEnd,
  RouteOutcome,
  RouteRequest,
} from '../../../packages/core/src/index.ts';
import { toManifest } from '../../../packages/plugin-api/src/index.ts';
import type { Plugin, PluginManifest } from '../../../packages/plugin-api/src/index.ts';
import { compilePolicy } from '../../../packages/policy/src/index.ts';
import type { CompileInput, CompileResult, FailureCause, PolicyProgram } from '../../../packages/policy/src/index.ts';
import type { DecisionRecord } from '../../../packages/telemetry/src/index.ts';
import { parsedRequest } from '../../../packages/testkit/src/index.ts';
import type { ParsedRequestParts } from '../../../packages/testkit/src/index.ts';
import admission from '../../../plugins/admission/src/index.ts';
import latency from '../../../plugins/latency/src/index.ts';
import pickers from '../../../plugins/pickers/src/index.ts';
import signals from '../../../plugins/signals/src/index.ts';
import strategies from '../../../plugins/strategies/src/index.ts';
import tokenAware from '../../../plugins/token-aware/src/index.ts';
import { fakeTime } from './fake-time.fixture.ts';
import type { FakeTime } from './fake-time.fixture.ts';

export const plugins: readonly Plugin[] = [strategies, tokenAware, latency, pickers, admission, signals];
export const manifests: readonly PluginManifest[] = plugins.map((plugin) => toManifest(plugin));
const checkOptions = createOptionChecker();

/** Both ways in which a policy is evaluated; every decision of these tests is made in each. */
export const MODES = ['generated', 'interpreted'] as const;
export type Mode = (typeof MODES)[number];

/** What a test says of its request beyond the body: the rest is the parsed body. */
export interface TestRequest extends ParsedRequestParts {
  readonly headers?: { readonly [name: string]: string };
  readonly tenant?: string;
  readonly apiKeyName?: string;
  /** The body names no model. */
  readonly nameless?: boolean;
  /** Milliseconds from now; none unless given. */
  readonly deadlineMs?: number;
}

/** What an endpoint holds and reports before the request comes. */
export interface EndpointState extends EngineSample {
  readonly inflightRequests?: number;
  readonly inflightTokens?: number;
  readonly queuedTokens?: number;
  readonly decodeTokens?: number;
  readonly ejected?: boolean;
  readonly cordoned?: boolean;
}

export interface FleetState {
  readonly [endpoint: string]: EndpointState;
}

export interface BenchOptions {
  readonly mode?: Mode;
  readonly fleet?: FleetState;
  readonly epochMs?: number;
  readonly environment?: { readonly [name: string]: string };
  readonly files?: { readonly [path: string]: string };
  readonly seed?: number;
  readonly plugins?: readonly Plugin[];
  /** What `policy` was compiled to already. */
  readonly compiled?: PolicyProgram;
}

/** One policy in force over a fleet; real compiler, real core, first-party plugins. */
export interface Bench {
  readonly core: Core;
  readonly time: FakeTime;
  readonly records: readonly DecisionRecord[];
  /** Routes a request and leaves it under way. */
  route(request?: TestRequest): RouteOutcome | Promise<RouteOutcome>;
  /** The same, expected to be forwarded at once. */
  forward(request?: TestRequest): Forward;
  /** Routes a request and ends it at once; gives `a/1`, `503 no_endpoint` or `queued`. */
  send(request?: TestRequest): string;
  /** Sends a request and lets its first attempt fail so; gives where it goes then, as `send` does. */
  failOver(cause: FailureCause, request?: TestRequest, more?: Partial<AttemptFailure>): string;
  explain(request?: TestRequest): Explanation;
  set(fleet: FleetState): void;
  reload(policy: string): void;
}

export const DONE: RequestEnd = Object.freeze({
  outcome: 'ok',
  status: 200,
  upstreamStatus: 200,
  ttftMs: 1,
  durationMs: 2,
  promptTokens: 10,
  cachedTokens: 0,
  outputTokens: 20,
});

/** Ends a request without any trace in health or learning. */
export const LEFT: RequestEnd = Object.freeze({
  outcome: 'client_abort',
  status: 499,
  upstreamStatus: 0,
  ttftMs: Number.NaN,
  durationMs: 0,
  promptTokens: Number.NaN,
  cachedTokens: Number.NaN,
  outputTokens: Number.NaN,
});

export function compile(policy: string, more: Partial<CompileInput> = {}): CompileResult {
  return compilePolicy({ path: 'test.route', text: policy, manifests, checkOptions, ...more });
}

/** The codes of all findings, in the order of the text. */
export function codes(policy: string, more: Partial<CompileInput> = {}): readonly string[] {
  return compile(policy, more).diagnostics.map(({ code }) => code);
}

/** The codes of the errors alone. */
export function errors(policy: string, more: Partial<CompileInput> = {}): readonly string[] {
  return compile(policy, more).diagnostics.flatMap(({ code, severity }) => (severity === 'error' ? [code] : []));
}

/** The program; throws with all errors if there are any. */
export function program(policy: string, more: Partial<CompileInput> = {}): PolicyProgram {
  const result = compile(policy, more);
  if (result.program !== undefined) return result.program;
  throw new Error(result.diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n') + `\n${policy}`);
}

/** Puts a policy in force. */
export function bench(policy: string, options: BenchOptions = {}): Bench {
  const { mode = 'generated', files, environment = {} } = options;
  const time = fakeTime(options.epochMs);
  const records: DecisionRecord[] = [];
  const all = [...plugins, ...(options.plugins ?? [])];
  const core = createCore({
    clock: time,
    scheduler: time,
    capacity: 64,
    seed: options.seed ?? 7,
    evaluators: mode,
    environment: (name) => environment[name],
    onDecision: (record) => records.push(record),
  });
  const reload = (text: string): void =>
    core.activate(
      core.prepare(
        text === policy && options.compiled !== undefined
          ? options.compiled
          : program(text, {
              ...(files === undefined ? {} : { readFile: (path: string) => files[path] }),
              manifests: all.map((plugin) => toManifest(plugin)),
            }),
        all,
      ),
    );
  const built = ({
    headers = {},
    tenant,
    apiKeyName,
    deadlineMs,
    nameless,
    ...parts
  }: TestRequest = {}): RouteRequest => ({
    id: 'test',
    parsed: parsedRequest({ ...(nameless === true ? {} : { model: 'm' }), messages: 'hello there', ...parts }),
    headers,
    ...(tenant === undefined ? {} : { tenant }),
    ...(apiKeyName === undefined ? {} : { apiKeyName }),
    receivedAtMs: time.now(),
    deadlineMs: deadlineMs === undefined ? Infinity : time.now() + deadlineMs,
  });
  const route = (request?: TestRequest): RouteOutcome | Promise<RouteOutcome> => core.router.route(built(request));
  const made: Bench = {
    core,
    time,
    records,
    route,
    reload,
    explain: (request) => core.explain(built(request)),
    forward(request) {
      const outcome = route(request);
      if (outcome instanceof Promise) throw new Error('the request is queued');
      if (outcome.kind === 'refuse') throw new Error(`refused: ${outcome.status} ${outcome.code}`);
      return outcome;
    },
    send(request) {
      const outcome = route(request);
      if (outcome instanceof Promise) return 'queued';
      if (outcome.kind === 'refuse') {
        outcome.finish();
        return `${outcome.status} ${outcome.code}`;
      }
      const { endpoint } = outcome.attempt;
      outcome.finish(LEFT);
      return endpoint;
    },
    failOver(cause, request, more) {
      const forward = made.forward(request);
      const step = forward.next({ ...failure(cause), ...more });
      const place = step.kind === 'attempt' ? step.attempt.endpoint : `${step.status} ${step.code}`;
      forward.finish(LEFT);
      return place;
    },
    set(fleet) {
      for (const [endpoint, state] of Object.entries(fleet)) setEndpoint(core, time, endpoint, state);
    },
  };
  reload(policy);
  made.set(options.fleet ?? {});
  return made;
}

/** A failure before the commit point, as the data plane reports it. */
export function failure(cause: FailureCause): AttemptFailure {
  const status = { saturated: 503, rate_limited: 429, error: 500, context_exceeded: 400 }[cause as string] ?? 0;
  return { cause, status, retryAfterSeconds: Number.NaN, durationMs: 1 };
}

function setEndpoint(core: Core, time: FakeTime, endpoint: string, state: EndpointState): void {
  const slot = core.fleet.slotOf(endpoint);
  if (slot === undefined) throw new Error(`no endpoint ${endpoint}`);
  const { table } = core.fleet;
  for (const column of ['inflightRequests', 'inflightTokens', 'queuedTokens', 'decodeTokens'] as const) {
    const value = state[column];
    if (value !== undefined) table[column][slot] = value;
  }
  const { queueDepth, running, kvCacheUsed, loras, loraSlotsFree, state: phase } = state;
  if ([queueDepth, running, kvCacheUsed, loras, loraSlotsFree, phase].some((value) => value !== undefined)) {
    core.feed(endpoint, state);
  }
  if (state.cordoned !== undefined) core.cordon(endpoint, state.cordoned);
  if (state.ejected === true) {
    for (let n = 0; n < 5; n++) core.fleet.health.failed(slot, time.now(), table.ejections[slot] ?? 0);
    expect(core.endpoints().find(({ name }) => name === endpoint)?.healthy, `${endpoint} is ejected`).toBe(false);
  }
}

/** Runs a scenario with a bench in each mode, one after the other. */
export async function inBothModes(
  policy: string,
  run: (made: Bench) => void | Promise<void>,
  options: BenchOptions = {},
): Promise<void> {
  for (const mode of MODES) {
    const made = bench(policy, { ...options, mode });
    try {
      await run(made);
    } catch (error) {
      if (error instanceof Error) error.message = `(${mode}) ${error.message}`;
      throw error;
    } finally {
      made.core.close();
    }
  }
}

/** Where a policy sends a request: `a/1`, `503 no_endpoint`, `queued`. Decided in both modes, which must agree. */
export function decide(policy: string, request: TestRequest = {}, options: BenchOptions = {}): string {
  const [generated, interpreted] = MODES.map((mode) => {
    const made = bench(policy, { ...options, mode });
    const explained = JSON.stringify(made.explain(request), undefined, 1);
    const result = made.send(request);
    made.core.close();
    return { result, explained };
  });
  expect(interpreted?.result, `the modes agree\n${interpreted?.explained}`).toBe(generated?.result);
  return generated?.result ?? '';
}

/** `decide`, expected; a failure shows why the request went elsewhere. */
export function expectDecision(
  policy: string,
  expected: string,
  request: TestRequest = {},
  options: BenchOptions = {},
): void {
  const result = decide(policy, request, options);
  if (result === expected) return;
  const explained = bench(policy, options).explain(request);
  expect(result, `${policy}\n${JSON.stringify(explained, undefined, 1)}`).toBe(expected);
}

/** Tiers of so many endpoints each, named `a/1`, `a/2` …, with facts for all endpoints of the tier. */
export function tiers(counts: { readonly [name: string]: number }, facts: string = ''): string {
  return Object.entries(counts)
    .map(([name, count], t) => {
      const list = Array.from({ length: count }, (_, i) => `"http://10.0.${t}.${i + 1}:8000"`);
      return `define tier ${JSON.stringify(name)} { model: "m", endpoints: [${list.join(', ')}]${facts === '' ? '' : `, ${facts}`} }\n`;
    })
    .join('');
}

/** One tier `t` with endpoints of their own names and facts: `{ x: 'zone: "z"' }`. */
export function endpoints(named: { readonly [name: string]: string }, tier: string = 't'): string {
  const list = Object.entries(named).map(
    ([name, facts], i) =>
      `{ name: ${JSON.stringify(name)}, url: "http://10.1.0.${i + 1}:8000"${facts === '' ? '' : `, ${facts}`} }`,
  );
  return `define tier ${JSON.stringify(tier)} { model: "m", endpoints: [${list.join(', ')}] }\n`;
}

/** Kleene's three values of a condition on the request, in both modes. `definitions` stand before the rules. */
export function truth(
  condition: string,
  request: TestRequest = {},
  options: BenchOptions & { readonly definitions?: string } = {},
): 'true' | 'false' | 'unknown' {
  const policy = `${endpoints({ true: '', false: '', unknown: '' })}${options.definitions ?? ''}
route when ${condition} to endpoint "true"
route when not (${condition}) to endpoint "false"
default to endpoint "unknown"`;
  return decide(policy, request, options) as 'true' | 'false' | 'unknown';
}

/** Kleene's three values of a condition on one endpoint, `x`, which has these facts and this state; in both modes. */
export function candidateTruth(
  condition: string,
  facts: string = '',
  options: BenchOptions & { readonly definitions?: string; readonly request?: TestRequest } = {},
): 'true' | 'false' | 'unknown' {
  const policy = `${endpoints({ x: facts })}${endpoints({ true: '', false: '', unknown: '' }, 'outcome').replaceAll('10.1.', '10.2.')}${options.definitions ?? ''}
route when any(${condition}, tier "t") to endpoint "true"
route when not any(${condition}, tier "t") to endpoint "false"
default to endpoint "unknown"`;
  const byAggregate = decide(policy, options.request, options) as 'true' | 'false' | 'unknown';
  const byWhere = decide(
    `${endpoints({ x: facts })}${options.definitions ?? ''}
default to tier "t" where ${condition} else to tier "t" where not (${condition}) with model "false" else reject`,
    options.request,
    options,
  );
  // `where` lets in what is known true; the second step what is known false.
  expect(byWhere, 'where lets a known endpoint in').toBe(byAggregate === 'unknown' ? '429 rejected' : 'x');
  return byAggregate;
}

/** The value of a request expression, canonical (seconds, fractions …); undefined where it is unknown. In both modes. */
export function value(
  expression: string,
  request: TestRequest = {},
  options: BenchOptions & { readonly definitions?: string } = {},
): unknown {
  const policy = `${tiers({ a: 1 })}${options.definitions ?? ''}
default to tier "a" with set "v" (${expression})`;
  const [generated, interpreted] = MODES.map((mode) => {
    const made = bench(policy, { ...options, mode });
    const forward = made.forward(request);
    const [field] = forward.attempt.set;
    forward.finish(LEFT);
    made.core.close();
    return field === undefined ? undefined : (JSON.parse(field.json) as unknown);
  });
  expect(interpreted, 'the modes agree').toEqual(generated);
  return generated;
}
