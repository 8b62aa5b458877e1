import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import type { SimulatedEngine } from '../../packages/simulator/src/index.ts';
import type { ClientRecord, ReplayOrder } from './client.ts';
import { startReplayFleet } from './fleet.ts';
import type { ReplayEndpoint } from './fleet.ts';
import { startGatewayProcess } from './gateway-process.ts';
import { busyLagMs, sendLagP99Ms } from './report.ts';
import type { Run } from './report.ts';
import type { TraceRequest } from './trace.ts';
import { warmUp } from './workload.ts';

/** The policy name that stands for no gateway: the client takes the engines in turn. */
export const direct = 'direct';

/** What is run. */
export interface LiveOptions {
  readonly endpoints: readonly ReplayEndpoint[];
  readonly policies: readonly string[];
  readonly runs: number;
  readonly compression: number;
  readonly stretch: number;
  /** Told before each run. */
  readonly onRun: (policy: string, round: number, again: boolean) => void;
}

/**
 * Replays the trace once for each policy and round, the policies in an order that rotates from round to round. Each run has a fresh gateway and
 * engines with empty caches; before it, some requests that are not counted warm both up. A run in which the client sent its requests late, since the
 * machine was busy with other things, is made once more, and the one with less lateness counts, whatever came out. Throws if any answer is not whole.
 */
export async function runLive(trace: readonly TraceRequest[], options: LiveOptions): Promise<readonly Run[]> {
  const { policies, runs, compression, onRun } = options;
  const fleet = await startReplayFleet(options.endpoints, compression);
  const client = new Worker(new URL('client.ts', import.meta.url));
  const results: Run[] = [];
  try {
    for (let round = 0; round < runs; round++) {
      for (let turn = 0; turn < policies.length; turn++) {
        const policy = policies[(turn + round) % policies.length] ?? direct;
        onRun(policy, round, false);
        let run = await runOnce(policy, round, trace, fleet, client, options);
        if (sendLagP99Ms(run) > busyLagMs) {
          onRun(policy, round, true);
          const again = await runOnce(policy, round, trace, fleet, client, options);
          if (sendLagP99Ms(again) < sendLagP99Ms(run)) run = again;
        }
        results.push(run);
      }
    }
  } finally {
    await client.terminate();
    await Promise.all(fleet.map((engine) => engine.close()));
  }
  return results;
}

async function runOnce(
  policy: string,
  round: number,
  trace: readonly TraceRequest[],
  fleet: readonly SimulatedEngine[],
  client: Worker,
  { endpoints: declared, stretch, compression }: LiveOptions,
): Promise<Run> {
  const endpoints = declared.map((endpoint, i) => ({ ...endpoint, url: fleet[i]?.url ?? '' }));
  const gateway = policy === direct ? undefined : await startGatewayProcess(policy, endpoints);
  try {
    const targets = gateway === undefined ? endpoints.map(({ url }) => url) : [gateway.url];
    wholeOrThrow(policy, await replay(client, { targets, requests: warmUp(trace), realPerTraceMs: 1 }));
    for (const { engine } of fleet) engine.resetPrefixCache();
    const before = fleet.map(({ engine }) => served(engine));
    const enginesLag = monitorEventLoopDelay({ resolution: 1 });
    enginesLag.enable();
    const records = await replay(client, { targets, requests: trace, realPerTraceMs: stretch / compression });
    enginesLag.disable();
    wholeOrThrow(policy, records);
    return {
      policy,
      round,
      outcomes: records.map(({ index, ttftMs, latencyMs }) => ({
        index,
        ttftMs: ttftMs * compression,
        latencyMs: latencyMs * compression,
      })),
      served: fleet.map(({ engine }, i) => served(engine) - (before[i] ?? 0)),
      lag: {
        sendMs: records.map(({ lagMs }) => lagMs),
        // What the histogram counts is the time between two ticks of one millisecond.
        enginesP99Ms: enginesLag.percentile(99) / 1e6 - 1,
      },
    };
  } finally {
    await gateway?.stop();
  }
}

const served = (engine: SimulatedEngine['engine']): number =>
  engine.metrics.finished.stop + engine.metrics.finished.length;

async function replay(client: Worker, order: ReplayOrder): Promise<readonly ClientRecord[]> {
  client.postMessage(order, []);
  // `once` rejects when the thread fails.
  const [records] = (await once(client, 'message')) as [readonly ClientRecord[]];
  return records;
}

function wholeOrThrow(policy: string, records: readonly ClientRecord[]): void {
  const bad = records.filter(({ problem }) => problem !== undefined);
  if (bad.length > 0)
    throw new Error(
      `${policy}: ${bad.length} of ${records.length} answers were not whole; request ${bad[0]?.index}: ${bad[0]?.problem}`,
    );
}
