import { afterEach, expect } from 'vitest';
import { createOptionChecker } from '../../../packages/config/src/index.ts';
import { createCore, type Core, type PolicyVersion } from '../../../packages/core/src/index.ts';
import { BUILTIN_PLUGINS } from '../../../packages/gateway/src/plugins/builtin-plugins.ts';
import { toManifest } from '../../../packages/plugin-api/src/index.ts';
import { compilePolicy } from '../../../packages/policy/src/index.ts';
import { RawClient } from '../../../packages/proxy/src/client.fixture.ts';
import { createProxy, type Proxy, type ProxyOptions, type UnroutedEnd } from '../../../packages/proxy/src/index.ts';
import { ManualTime } from '../../../packages/proxy/src/manual-time.fixture.ts';
import type { DecisionRecord } from '../../../packages/telemetry/src/index.ts';
import { FaultUpstream } from './fault-upstream.fixture.ts';

/** The real data plane over the real core, with model servers and clients at the level of bytes and a clock that is moved by hand. */
export interface FaultBed {
  readonly core: Core;
  readonly proxy: Proxy;
  readonly port: number;
  readonly time: ManualTime;
  readonly upstreams: readonly FaultUpstream[];
  /** The first of them. */
  readonly upstream: FaultUpstream;
  readonly decisions: readonly DecisionRecord[];
  readonly unrouted: readonly UnroutedEnd[];
  readonly client: () => RawClient;
  readonly reload: (policy: string) => PolicyVersion;
  /** Moves no time, looks at the sockets, until the condition holds. */
  readonly until: (condition: () => boolean, what: string) => Promise<void>;
  /** Moves time, in steps of 20 ms, until the promise is settled. */
  readonly run: <T>(promise: Promise<T>) => Promise<T>;
  /** Waits until nothing is under way, moving time, and holds the ledger to zero. */
  readonly quiet: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export interface FaultBedOptions {
  /** How many model servers. Default 1. */
  readonly upstreams?: number;
  /** Default: all of them in one tier that serves the model `m`. */
  readonly policy?: (origins: readonly string[]) => string;
  readonly proxy?: Partial<ProxyOptions>;
  readonly seed?: number;
  /** In place of a clock of its own. */
  readonly time?: ManualTime;
}

/** One tier named `tier` with the model `m` over the servers; `keys` are more lines of its definition, `rule` the end of the policy. */
export const oneTier =
  (keys = '', rule = 'default to tier "tier"') =>
  (origins: readonly string[]): string =>
    `define tier "tier" { model: "m", endpoints: ${JSON.stringify(origins)} ${keys} }\n${rule}`;

/** Each server a tier of its own, named `t1`, `t2` …, all with the model `m`. */
export const tierEach =
  (rule: string, keys = '') =>
  (origins: readonly string[]): string =>
    origins.map((origin, i) => `define tier "t${i + 1}" { model: "m", endpoints: ["${origin}"] ${keys} }\n`).join('') +
    rule;

const checkOptions = createOptionChecker();
const manifests = BUILTIN_PLUGINS.map((plugin) => toManifest(plugin));
const open: FaultBed[] = [];

afterEach(async () => {
  for (const bed of open.splice(0).toReversed()) await bed.stop();
});

/** A bed that is stopped when the test ends, and whose ledger is then held to zero. */
export async function faultBed(options: FaultBedOptions = {}): Promise<FaultBed> {
  const bed = await startFaultBed(options);
  open.push(bed);
  return bed;
}

async function startFaultBed({
  upstreams: count = 1,
  policy = oneTier(),
  proxy: proxyOptions = {},
  seed = 1,
  time = new ManualTime(),
}: FaultBedOptions): Promise<FaultBed> {
  const upstreams = Array.from({ length: count }, () => new FaultUpstream());
  const origins = await Promise.all(upstreams.map((upstream) => upstream.listen()));
  const decisions: DecisionRecord[] = [];
  const unrouted: UnroutedEnd[] = [];
  const core = createCore({
    clock: time,
    scheduler: {
      setTimer(delayMs, run) {
        const handle = time.setTimeout(run, delayMs);
        return () => time.clearTimeout(handle);
      },
    },
    seed,
    onDecision: (record) => decisions.push(record),
    environment: () => undefined,
    resolveSecret: () => 'upstream-secret',
  });
  const reload = (text: string): PolicyVersion => {
    const { program, diagnostics } = compilePolicy({ path: 'faults.route', text, manifests, checkOptions });
    if (program === undefined) throw new Error(diagnostics.map(({ code, message }) => `${code} ${message}`).join('\n'));
    const version = core.prepare(program, BUILTIN_PLUGINS);
    core.activate(version);
    return version;
  };
  reload(policy(origins));
  const { hooks, ...rest } = proxyOptions;
  const proxy = createProxy({
    router: core.router,
    clock: time,
    timers: time,
    hooks: { limitHeaders: (decision) => core.limitHeaders(decision), unrouted: (end) => unrouted.push(end), ...hooks },
    ...rest,
  });
  const { port } = await proxy.listen({ host: '127.0.0.1', port: 0 });
  const clients: RawClient[] = [];
  const [upstream] = upstreams;
  if (upstream === undefined) throw new Error('a bed needs a model server');

  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const until = async (condition: () => boolean, what: string): Promise<void> => {
    const giveUpMs = performance.now() + 20_000;
    while (!condition()) {
      if (performance.now() > giveUpMs) throw new Error(`not within 20 s: ${what}`);
      await turn();
    }
  };
  const run = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false;
    const watched = promise.finally(() => (settled = true));
    // Whoever awaits the result sees the rejection.
    watched.catch(() => undefined);
    const giveUpMs = performance.now() + 20_000;
    while (!settled) {
      if (performance.now() > giveUpMs) throw new Error('not settled within 20 s');
      await time.advance(20);
    }
    return watched;
  };
  const quiet = async (): Promise<void> => {
    const giveUpMs = performance.now() + 20_000;
    while (!isQuiet(core, proxy) && performance.now() < giveUpMs) await time.advance(50);
    // Whatever timer is left over from a request would still be armed after the longest of all limits.
    if (isQuiet(core, proxy)) await time.advance(3_700_000);
    expect(ledgerOf(core, proxy, time)).toEqual(ZERO);
    expectStartedIsEnded(core, decisions);
  };
  const stop = async (): Promise<void> => {
    for (const client of clients) client.destroy();
    try {
      await quiet();
    } finally {
      const closed = proxy.close({ forceMs: 0 });
      await time.advance(1_000);
      await closed;
      core.close();
      // What was never read does not see its end either.
      for (const { sockets } of upstreams) for (const socket of sockets) socket.resume();
      await until(
        () => upstreams.every(({ sockets }) => sockets.size === 0),
        'no connection to a model server is left',
      ).finally(() => {
        for (const server of upstreams) server.close();
      });
    }
    for (const server of upstreams) expect(server.misframed).toEqual([]);
  };
  return {
    core,
    proxy,
    port,
    time,
    upstreams,
    upstream,
    decisions,
    unrouted,
    reload,
    until,
    run,
    quiet,
    stop,
    client: () => {
      const client = new RawClient(port);
      clients.push(client);
      return client;
    },
  };
}

/** Everything that is counted while a request is under way. */
export interface Ledger {
  readonly leases: number;
  /** Releases that would have made a counter negative. */
  readonly faults: number;
  readonly queued: number;
  readonly concurrentCharges: number;
  readonly live: number;
  readonly requestTimers: number;
  /** Armed timers of the whole process under the manual clock. */
  readonly timers: number;
  readonly versions: number;
  /** What endpoints hold, summed over all of their counters. */
  readonly held: number;
}

const ZERO: Ledger = {
  leases: 0,
  faults: 0,
  queued: 0,
  concurrentCharges: 0,
  live: 0,
  requestTimers: 0,
  timers: 0,
  versions: 1,
  held: 0,
};

export function ledgerOf(core: Core, proxy: Proxy, time: ManualTime): Ledger {
  const status = core.status();
  let held = 0;
  for (const endpoint of core.endpoints()) {
    held += Math.abs(endpoint.inflightRequests) + Math.abs(endpoint.inflightTokens);
    held += Math.abs(endpoint.queuedTokens) + Math.abs(endpoint.decodeTokens);
  }
  return {
    leases: status.leasesOpen,
    faults: status.leaseFaults,
    queued: status.queued,
    concurrentCharges: status.concurrentCharges,
    live: proxy.stats.live,
    requestTimers: proxy.stats.timers,
    timers: time.pending,
    versions: status.versions,
    held,
  };
}

function isQuiet(core: Core, proxy: Proxy): boolean {
  return core.status().leasesOpen === 0 && core.status().queued === 0 && proxy.stats.live === 0;
}

/** Every lease that was taken is one attempt of one record, and every attempt has a reason why it ended. */
function expectStartedIsEnded(core: Core, decisions: readonly DecisionRecord[]): void {
  const attempts = decisions.flatMap((record) => record.attempts);
  const byReason = new Map<string, number>();
  for (const { outcome } of attempts) byReason.set(outcome, (byReason.get(outcome) ?? 0) + 1);
  expect(byReason.has('')).toBe(false);
  expect([...byReason.values()].reduce((sum, count) => sum + count, 0)).toBe(core.status().leasesStarted);
}
