import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCore } from '../../packages/core/src/index.ts';
import type { Core, Forward, Scheduler } from '../../packages/core/src/index.ts';
import { BUILTIN_PLUGINS } from '../../packages/gateway/src/plugins/builtin-plugins.ts';
import { createPolicyLoader, findingsText } from '../../packages/gateway/src/policy/load-policy.ts';
import { parseRequest } from '../../packages/openai-wire/src/index.ts';
import type { Engine } from '../../packages/simulator/src/index.ts';
import { toEngine } from './engines.ts';
import { replayModel } from './fleet.ts';
import type { ReplayEndpoint } from './fleet.ts';
import { policyText } from './gateway-process.ts';
import type { Outcome } from './outcome.ts';
import type { Run } from './report.ts';
import type { TraceRequest } from './trace.ts';
import { chatBody, warmUp } from './workload.ts';

/** How a virtual run is made. */
export interface VirtualOptions {
  readonly endpoints: readonly ReplayEndpoint[];
  readonly stretch: number;
  /** How many times slower the core's clock runs than the engines', as in a live run; 1 = both tell the trace's time. Default 1. */
  readonly compression?: number;
  /** Seed of the core; default 1. */
  readonly seed?: number;
}

/**
 * Replays the trace under one policy in virtual time: the gateway's own compiler, core and plugins route over engines without servers, and nothing takes
 * time but the engines' steps. What a live run adds is the network, the timers and the measuring. The same options give the same run.
 */
export function runVirtual(
  policy: string,
  trace: readonly TraceRequest[],
  { endpoints, stretch, compression = 1, seed = 1 }: VirtualOptions,
): Run {
  const world = createWorld(endpoints);
  const core = startCore(policy, world, compression, seed);
  try {
    const warm = warmUp(trace).map((request) => createExchange(core, world, request, 0, compression));
    world.advanceTo(Infinity);
    for (const engine of world.engines) engine.resetPrefixCache();
    const before = world.engines.map(served);
    const startMs = world.nowMs() + 1;
    const exchanges = trace.map((request) => {
      const dueMs = startMs + request.atMs * stretch;
      world.advanceTo(dueMs);
      return createExchange(core, world, request, dueMs, compression);
    });
    world.advanceTo(Infinity);
    const { leasesOpen, leaseFaults } = core.status();
    if (leasesOpen !== 0 || leaseFaults !== 0)
      throw new Error(`the ledger is not at zero: ${leasesOpen} leases open, ${leaseFaults} faults`);
    if (warm.some((exchange) => exchange.outcome === undefined))
      throw new Error('a request of the warm-up did not end');
    const outcomes = exchanges.map(({ outcome, index }) => {
      if (outcome === undefined) throw new Error(`request ${index} did not end`);
      return outcome;
    });
    return { policy, round: 0, outcomes, served: world.engines.map((engine, i) => served(engine) - (before[i] ?? 0)) };
  } finally {
    core.close();
  }
}

const served = ({ metrics }: Engine): number => metrics.finished.stop + metrics.finished.length;

/** Engines and timers on one clock, in milliseconds of the trace's. */
interface World {
  readonly endpoints: readonly ReplayEndpoint[];
  readonly engines: readonly Engine[];
  nowMs(): number;
  /** Lets all that is due by then happen, in order. `Infinity`: until nothing is left but timers. */
  advanceTo(untilMs: number): void;
  /** Runs something at an instant, and returns how to call it off. */
  at(dueMs: number, run: () => void): () => void;
}

function createWorld(endpoints: readonly ReplayEndpoint[]): World {
  const engines = endpoints.map(toEngine);
  const timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();
  let nowMs = 0;
  return {
    endpoints,
    engines,
    nowMs: () => nowMs,
    advanceTo(untilMs) {
      for (;;) {
        let dueMs = Infinity;
        for (const engine of engines) dueMs = Math.min(dueMs, engine.nextEventMs() ?? Infinity);
        // Recurring timers go on for ever; without engine events they change nothing.
        if (untilMs === Infinity && dueMs === Infinity) return;
        const timer = [...timers].reduce<{ dueMs: number; run: () => void } | undefined>(
          (first, next) => (next.dueMs < (first?.dueMs ?? Infinity) ? next : first),
          undefined,
        );
        dueMs = Math.min(dueMs, timer?.dueMs ?? Infinity);
        if (dueMs > untilMs) break;
        nowMs = Math.max(nowMs, dueMs);
        if (timer?.dueMs === dueMs) {
          timers.delete(timer);
          timer.run();
        }
        for (const engine of engines) if ((engine.nextEventMs() ?? Infinity) <= nowMs) engine.advance(nowMs);
      }
      nowMs = untilMs;
    },
    at(dueMs, run) {
      const timer = { dueMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
}

function startCore(policy: string, world: World, compression: number, seed: number): Core {
  const scheduler: Scheduler = { setTimer: (delayMs, run) => world.at(world.nowMs() + delayMs * compression, run) };
  const core = createCore({
    clock: { now: () => world.nowMs() / compression, epochMs: () => world.nowMs() / compression },
    scheduler,
    seed,
  });
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-replay-'));
  try {
    const file = join(folder, 'replay.route');
    writeFileSync(
      file,
      policyText(
        policy,
        world.endpoints.map((endpoint, i) => ({ ...endpoint, url: `http://127.0.0.1:${8001 + i}` })),
        { listen: 8080, admin: 9901 },
      ),
    );
    const loaded = createPolicyLoader({ cwd: folder, allowPlugins: [] }).load(file);
    if (loaded.program === undefined) throw new Error(findingsText(loaded, false));
    core.activate(core.prepare(loaded.program, BUILTIN_PLUGINS));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return core;
}

interface Exchange {
  readonly index: number;
  readonly outcome: Outcome | undefined;
}

/** Routes one request at this moment and submits it to the engine that was chosen. */
function createExchange(core: Core, world: World, request: TraceRequest, dueMs: number, compression: number): Exchange {
  const { index, promptTokens, outputTokens } = request;
  const parsed = parseRequest('/v1/chat/completions', Buffer.from(chatBody(request, replayModel)));
  if ('status' in parsed) throw new Error(`the body of request ${index} does not parse: ${parsed.message}`);
  const routed = core.router.route({
    id: `replay-${index}`,
    parsed,
    headers: {},
    receivedAtMs: dueMs / compression,
    deadlineMs: Infinity,
  });
  if (routed instanceof Promise || routed.kind === 'refuse')
    throw new Error(`request ${index} was ${routed instanceof Promise ? 'queued' : `refused: ${routed.code}`}`);
  const forward: Forward = routed;
  const slot = world.endpoints.findIndex(({ name }) => name === forward.attempt.endpoint);
  const engine = world.engines[slot];
  if (engine === undefined) throw new Error(`no engine ${forward.attempt.endpoint}`);
  let firstMs = Number.NaN;
  const exchange: { index: number; outcome: Outcome | undefined } = { index, outcome: undefined };
  engine.submit(
    {
      promptLength: Math.max(4, promptTokens),
      outputTokens,
      onTokens(_count, nowMs) {
        if (firstMs === firstMs) return;
        firstMs = nowMs;
        forward.commit((nowMs - dueMs) / compression);
      },
      onEnd(_reason, nowMs) {
        exchange.outcome = { index, ttftMs: firstMs - dueMs, latencyMs: nowMs - dueMs };
        forward.finish({
          outcome: 'ok',
          status: 200,
          upstreamStatus: 200,
          ttftMs: (firstMs - dueMs) / compression,
          durationMs: (nowMs - dueMs) / compression,
          promptTokens,
          cachedTokens: 0,
          outputTokens,
        });
      },
    },
    dueMs,
  );
  return exchange;
}
