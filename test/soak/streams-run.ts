/** Many streams at once through a real gateway: that every byte comes, in order, and what it costs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { editAt, replaceFile, TIERS } from './policies.ts';
import { startDriver, startUpstreams, type DriverTask, type Tally } from './support/driver.ts';
import { startInspectedGateway, type InspectedGateway } from './support/gateway-under-test.ts';

export interface StreamsOptions {
  readonly streams: number;
  /** How long each stream lasts. */
  readonly seconds: number;
  /** Time between the tokens of a stream. */
  readonly paceMs: number;
  /** Connections opened each second. */
  readonly perSecond: number;
  /** From sources, for tests that need no build. */
  readonly fromSource?: boolean;
}

/** Times in milliseconds, memory in bytes. */
export interface StreamsResult {
  readonly tally: Tally;
  /** While all streams were open. */
  readonly steadySeconds: number;
  readonly steadyFrames: number;
  readonly cpuUs: number;
  readonly delay: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly rss: {
    /** Warmed and collected, no stream open. */
    readonly before: number;
    readonly open: number;
    readonly openCollected: number;
    /** All streams ended, and collected. */
    readonly after: number;
  };
}

const ENDPOINTS = 8;
const WARM_UP = { streams: 300, perSecond: 500, tokens: 200, paceMs: 20, firstSeed: 2_000_000_000 };
/** Of `monitorEventLoopDelay`; what it tells are intervals, of which this much is no delay. */
const RESOLUTION_MS = 10;
const MONITOR = `globalThis.soakDelays = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: ${RESOLUTION_MS} })`;
/** Connections to endpoints are closed after 4 s without use. */
const IDLE_MS = 6000;

export async function runStreams(options: StreamsOptions): Promise<StreamsResult> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-streams-'));
  const policyPath = join(folder, 'streams.route');
  // Half of them are of the tier that the policy sends nothing to.
  const upstreams = await startUpstreams(Array.from({ length: ENDPOINTS }, (_, i) => TIERS[i % 2] ?? TIERS[0]));
  let gateway: InspectedGateway | undefined;
  try {
    replaceFile(policyPath, editAt(0, upstreams.urls).text);
    gateway = await startInspectedGateway({ policyPath, fromSource: options.fromSource ?? false });
    return await measure(gateway, options);
  } finally {
    await gateway?.stop();
    await upstreams.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(gateway: InspectedGateway, options: StreamsOptions): Promise<StreamsResult> {
  const { port, inspector } = gateway;
  const { streams, seconds, paceMs, perSecond } = options;
  const task = (more: Omit<Extract<DriverTask, { kind: 'streams' }>, 'kind' | 'port' | 'again'>): DriverTask => ({
    kind: 'streams',
    port,
    again: false,
    ...more,
  });
  const warmUp = await startDriver(task(WARM_UP)).done;
  const before = await settledRss(gateway);
  await inspector.evaluate(`${MONITOR}; 0`);

  const tokens = Math.ceil((seconds * 1000) / paceMs);
  const driver = startDriver(task({ streams, perSecond, tokens, paceMs, firstSeed: 1 }));
  let report = await driver.nextReport();
  while (report.open < streams && report.faults === 0) report = await driver.nextReport();
  await inspector.evaluate('soakDelays.enable()');
  const from = { ...report, cpuUs: gateway.cpuUs(), atMs: performance.now() };
  let to = from;
  const untilMs = from.atMs + steadyMs(options);
  while (to.atMs < untilMs && report.open === streams) {
    to = { ...report, cpuUs: gateway.cpuUs(), atMs: performance.now() };
    report = await driver.nextReport();
  }
  const delay = (await inspector.evaluate(
    '({ p50: soakDelays.percentile(50) / 1e6, p99: soakDelays.percentile(99) / 1e6, max: soakDelays.max / 1e6 })',
  )) as StreamsResult['delay'];
  const open = gateway.residentBytes();
  await inspector.memoryAfterCollection();
  const openCollected = gateway.residentBytes();
  const tally = await driver.done;
  const after = await settledRss(gateway);
  const late = (intervalMs: number): number => Math.max(0, intervalMs - RESOLUTION_MS);
  return {
    tally: { ...tally, faults: tally.faults + warmUp.faults, faultTexts: [...warmUp.faultTexts, ...tally.faultTexts] },
    steadySeconds: (to.atMs - from.atMs) / 1000,
    steadyFrames: to.events - from.events,
    cpuUs: to.cpuUs - from.cpuUs,
    delay: { p50: late(delay.p50), p99: late(delay.p99), max: late(delay.max) },
    rss: { before, open, openCollected, after },
  };
}

/** How long all streams are open: from the last that opens to the first that ends, less two seconds for a collection. */
function steadyMs({ streams, seconds, perSecond }: StreamsOptions): number {
  return (seconds - streams / perSecond - 3) * 1000;
}

/** Resident memory when connections have become idle and were closed, after a full collection. */
async function settledRss(gateway: InspectedGateway): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  await gateway.inspector.memoryAfterCollection();
  return gateway.residentBytes();
}
