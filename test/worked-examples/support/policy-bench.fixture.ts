import type { FakeClock, ParsedRequestParts } from '../../../packages/testkit/src/index.ts';
import { fakeClock, parsedRequest } from '../../../packages/testkit/src/index.ts';
import type { Core, RouteOutcome, Scheduler } from '../../../packages/core/src/index.ts';
import { createCore } from '../../../packages/core/src/index.ts';
import { toManifest } from '../../../packages/plugin-api/src/index.ts';
import type {
  CheckOptions,
  LogFields,
  Logger,
  ManifestEntry,
  Plugin,
  PluginManifest,
} from '../../../packages/plugin-api/src/index.ts';
import type { PolicyProgram } from '../../../packages/policy/src/index.ts';
import { compilePolicy } from '../../../packages/policy/src/index.ts';
import { createOptionChecker } from '../../../packages/config/src/index.ts';
import admission from '../../../plugins/admission/src/index.ts';
import latency from '../../../plugins/latency/src/index.ts';
import pickers from '../../../plugins/pickers/src/index.ts';
import signals from '../../../plugins/signals/src/index.ts';
import strategies from '../../../plugins/strategies/src/index.ts';
import tokenAware from '../../../plugins/token-aware/src/index.ts';

const plugins = [strategies, tokenAware, latency, pickers, admission, signals];
export const manifests: readonly PluginManifest[] = plugins.map((plugin) => toManifest(plugin));
export const checkOptions: CheckOptions = createOptionChecker();

/** Everything that the first-party plugins provide. */
export const firstPartyEntries: readonly ManifestEntry[] = manifests.flatMap(({ entries }) => entries);

/** What an endpoint holds before the requests of an example come. */
interface HeldState {
  readonly inflightRequests?: number;
  readonly queuedTokens?: number;
  readonly decodeTokens?: number;
}

/** A request of an example. */
export interface ExampleRequest extends ParsedRequestParts {
  readonly headers?: { readonly [name: string]: string };
}

/** A policy in force over a fleet whose state the example sets; real compiler, real core, first-party plugins. */
export interface PolicyBench {
  readonly core: Core;
  readonly clock: FakeClock;
  hold(endpoint: string, state: HeldState): void;
  /** Routes one request and ends it at once, so that loads stay as they were set. Gives the endpoint's name, or `status code`. */
  send(request?: ExampleRequest): string;
  /** The same without ending it. */
  route(request?: ExampleRequest): RouteOutcome | Promise<RouteOutcome>;
  /** Puts another policy in force. */
  reload(policy: string): void;
  /** Warnings and errors that the core has logged. */
  readonly logged: readonly string[];
}

/** Compiles a policy; throws with its diagnostics if it has errors. */
export function compile(policy: string, more: readonly Plugin[] = []): PolicyProgram {
  const all = [...manifests, ...more.map((plugin) => toManifest(plugin))];
  const { program, diagnostics } = compilePolicy({ path: 'example.route', text: policy, manifests: all, checkOptions });
  if (program === undefined) throw new Error(diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
  return program;
}

function recordingLogger(logged: string[]): Logger {
  const record = (message: string, fields?: LogFields): void =>
    void logged.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const logger: Logger = { trace() {}, debug() {}, info() {}, warn: record, error: record, child: () => logger };
  return logger;
}

/** A bench with this policy in force. `more` are plugins beyond the first-party ones, whose names are in scope as theirs are. */
export function policyBench(policy: string, more: readonly Plugin[] = []): PolicyBench {
  const clock = fakeClock();
  const logged: string[] = [];
  const scheduler: Scheduler = { setTimer: () => () => {} };
  const core = createCore({ clock, scheduler, capacity: 64, seed: 7, logger: recordingLogger(logged) });
  const reload = (text: string): void => core.activate(core.prepare(compile(text, more), [...plugins, ...more]));
  reload(policy);
  const route: PolicyBench['route'] = ({ headers = {}, ...parts } = {}) =>
    core.router.route({
      id: 'example',
      parsed: parsedRequest({ model: 'm', ...parts }),
      headers,
      receivedAtMs: clock.now(),
      deadlineMs: Infinity,
    });
  return {
    core,
    clock,
    logged,
    reload,
    hold(endpoint, state) {
      const slot = core.fleet.slotOf(endpoint);
      if (slot === undefined) throw new Error(`no endpoint ${endpoint}`);
      const { table } = core.fleet;
      if (state.inflightRequests !== undefined) table.inflightRequests[slot] = state.inflightRequests;
      if (state.queuedTokens !== undefined) table.queuedTokens[slot] = state.queuedTokens;
      if (state.decodeTokens !== undefined) table.decodeTokens[slot] = state.decodeTokens;
    },
    route,
    send(request) {
      const outcome = route(request);
      if (outcome instanceof Promise) return 'queued';
      if (outcome.kind === 'refuse') {
        outcome.finish();
        return `${outcome.status} ${outcome.code}`;
      }
      const { endpoint } = outcome.attempt;
      outcome.finish({
        outcome: 'client_abort',
        status: 499,
        upstreamStatus: 0,
        ttftMs: Number.NaN,
        durationMs: 0,
        promptTokens: Number.NaN,
        cachedTokens: Number.NaN,
        outputTokens: Number.NaN,
      });
      return endpoint;
    },
  };
}

/** How many requests of a run went where. */
export function tally(bench: PolicyBench, requests: Iterable<ExampleRequest>): { readonly [endpoint: string]: number } {
  const counts: { [endpoint: string]: number } = {};
  for (const request of requests) {
    const endpoint = bench.send(request);
    counts[endpoint] = (counts[endpoint] ?? 0) + 1;
  }
  return counts;
}

/** A tier of endpoints named `gpu-0`, `gpu-1` …, each with the given facts. */
export function tier(name: string, endpoints: readonly string[]): string {
  const list = endpoints.map(
    (facts, i) => `{ name: "gpu-${i}", url: "http://10.0.0.${i + 1}:8000"${facts === '' ? '' : `, ${facts}`} }`,
  );
  return `define tier "${name}" { model: "m", endpoints: [${list.join(', ')}] }\n`;
}
