import { createCore } from '../../packages/core/src/index.ts';
import type { Core, Forward, RouteOutcome, Scheduler } from '../../packages/core/src/index.ts';
import { findProfile } from '../../packages/hardware-profiles/src/index.ts';
import { toManifest } from '../../packages/plugin-api/src/index.ts';
import { compilePolicy } from '../../packages/policy/src/index.ts';
import { createEngine } from '../../packages/simulator/src/index.ts';
import type { Engine } from '../../packages/simulator/src/index.ts';
import { parsedRequest } from '../../packages/testkit/src/index.ts';
import strategies from '../../plugins/strategies/src/index.ts';

export const CLASSES = ['critical', 'high', 'normal', 'low'] as const;
export type Class = (typeof CLASSES)[number];

/** Shares of the classes among the requests that are not of the top class. */
const OTHERS: readonly (readonly [Class, number])[] = [
  ['high', 2 / 9],
  ['normal', 4 / 9],
  ['low', 3 / 9],
];
const ENDPOINTS = 4;
/** Requests that one model server holds at once, by policy and by its own batch limit. */
export const PLACES = 8;
const MODEL = 'llama2-70b';
const WARM_UP_MS = 30_000;
/** A request whose first token takes longer is of no use to its caller, and is not counted as good. */
export const USEFUL_TTFT_MS = 5000;

export interface OverloadOptions {
  /** Rules behind the definitions of tier and tenants. */
  readonly rules: string;
  /** Of the top class. The same seed and rate give the same requests at the same moments, whatever the others do. */
  readonly topPerSecond: number;
  readonly othersPerSecond: number;
  /** How long is measured, after a warm-up of 30 s. */
  readonly measuredMs: number;
  readonly seed?: number;
  /** Facts of the tier that say how much an endpoint takes; `max_requests: 8` unless given. */
  readonly room?: string;
  /** Requests that an engine works on at once; `PLACES` unless given. */
  readonly maxBatch?: number;
  /** Called each virtual second with the core. */
  readonly eachSecond?: (core: Core) => void;
}

export interface OverloadResult {
  /** Requests of the measured time that got their first token within `USEFUL_TTFT_MS` and ended, a second. */
  readonly goodput: number;
  readonly arrived: number;
  readonly ended: { readonly [outcome: string]: number };
  readonly byClass: {
    readonly [name in Class]: {
      readonly arrived: number;
      readonly good: number;
      /** From arrival to first token and to the end, of those answered. */
      readonly ttftMs: readonly number[];
      readonly latencyMs: readonly number[];
    };
  };
}

/**
 * Lets requests of four classes come at random times to a gateway's core over four simulated model servers (llama2-70b on four A100 each,
 * by its measured profile), in virtual time: the real compiler, core and queues, and nothing takes time but the servers' steps. The same
 * options give the same run. Throws if a lease, a queued request or a timer is left at the end.
 */
export async function runOverload({
  rules,
  topPerSecond,
  othersPerSecond,
  measuredMs,
  seed = 1,
  room = `max_requests: ${PLACES}`,
  maxBatch = PLACES,
  eachSecond,
}: OverloadOptions): Promise<OverloadResult> {
  let nowMs = 0;
  const timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();
  const scheduler: Scheduler = {
    setTimer(delayMs, run) {
      const timer = { dueMs: nowMs + delayMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const engines = new Map<string, Engine>();
  const latency = findProfile({ gpu: 'A100', gpuCount: 4, modelName: MODEL });
  if (latency === undefined) throw new Error('the profile is gone');
  for (let i = 1; i <= ENDPOINTS; i++) engines.set(`A/${i}`, createEngine({ latency, maxBatch, kvBlocks: 8192 }));
  const core = startCore(rules, room, { now: () => nowMs, epochMs: () => nowMs }, scheduler, seed);

  const exchanges: Exchange[] = [];
  const begin = (exchange: Exchange): void => {
    exchanges.push(exchange);
    const outcome = core.router.route({
      id: `r-${exchanges.length}`,
      parsed: parsedRequest({
        model: 'm',
        stream: true,
        messages: 'hello',
        promptTokensExact: exchange.promptTokens,
        maxTokens: 512,
      }),
      headers: {},
      tenant: exchange.priority,
      receivedAtMs: nowMs,
      deadlineMs: Infinity,
    });
    const go = (settled: RouteOutcome): void => proceed(exchange, settled, engines, () => nowMs);
    if (outcome instanceof Promise) void outcome.then(go);
    else go(outcome);
  };

  const untilMs = WARM_UP_MS + measuredMs;
  const arrivals = [
    ...arrivalsOf(mulberry(seed), topPerSecond, untilMs, () => 'critical'),
    ...arrivalsOf(mulberry(seed + 1), othersPerSecond, untilMs, pickOther),
  ].toSorted((a, b) => a.atMs - b.atMs);
  let arrived = 0;
  let nextSecondMs = 1000;
  for (;;) {
    const arrivalMs = arrivals[arrived]?.atMs ?? Infinity;
    let dueMs = arrivalMs;
    for (const engine of engines.values()) dueMs = Math.min(dueMs, engine.nextEventMs() ?? Infinity);
    for (const timer of timers) dueMs = Math.min(dueMs, timer.dueMs);
    if (dueMs === Infinity) break;
    nowMs = Math.max(nowMs, dueMs);
    for (; nextSecondMs <= nowMs; nextSecondMs += 1000) eachSecond?.(core);
    for (const timer of [...timers].filter((one) => one.dueMs <= nowMs)) if (timers.delete(timer)) timer.run();
    for (const engine of engines.values()) if ((engine.nextEventMs() ?? Infinity) <= nowMs) engine.advance(nowMs);
    // What was let out of the queue is on its way before anything else happens.
    await settled();
    const arrival = arrivalMs <= nowMs ? arrivals[arrived++] : undefined;
    if (arrival !== undefined) begin(arrival);
  }
  await settled();
  const { leasesOpen, leaseFaults, queued } = core.status();
  const open = exchanges.filter((one) => one.outcome === undefined || one.outcome === 'under way').length;
  core.close();
  if (leasesOpen + leaseFaults + queued + open + timers.size > 0)
    throw new Error(
      `left at the end: ${leasesOpen} leases, ${leaseFaults} faults, ${queued} queued, ${open} requests, ${timers.size} timers`,
    );
  return summed(
    exchanges.filter(({ atMs }) => atMs >= WARM_UP_MS),
    measuredMs,
  );
}

interface Exchange {
  readonly priority: Class;
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  outcome: string | undefined;
  ttftMs: number;
  latencyMs: number;
}

function arrivalsOf(
  random: () => number,
  perSecond: number,
  untilMs: number,
  pick: (random: () => number) => Class,
): Exchange[] {
  const made: Exchange[] = [];
  for (let atMs = 0; perSecond > 0;) {
    atMs += (-Math.log(1 - random()) * 1000) / perSecond;
    if (atMs >= untilMs) break;
    made.push(newExchange(random, atMs, pick(random)));
  }
  return made;
}

function pickOther(random: () => number): Class {
  let draw = random();
  return OTHERS.find(([, share]) => (draw -= share) < 0)?.[0] ?? 'low';
}

function newExchange(random: () => number, atMs: number, priority: Class): Exchange {
  const size = (median: number, spread: number, most: number): number =>
    Math.max(1, Math.min(most, Math.round(median * Math.exp(spread * normal(random)))));
  return {
    priority,
    atMs,
    promptTokens: size(400, 0.8, 4000),
    outputTokens: size(120, 0.6, 512),
    outcome: undefined,
    ttftMs: Number.NaN,
    latencyMs: Number.NaN,
  };
}

/** Sends a routed request to its engine; ends a refused one. */
function proceed(
  exchange: Exchange,
  outcome: RouteOutcome,
  engines: ReadonlyMap<string, Engine>,
  clock: () => number,
): void {
  if (outcome.kind === 'refuse') {
    exchange.outcome = outcome.code;
    outcome.finish();
    return;
  }
  exchange.outcome = 'under way';
  const forward: Forward = outcome;
  const engine = engines.get(forward.attempt.endpoint);
  if (engine === undefined) throw new Error(`no engine ${forward.attempt.endpoint}`);
  const { promptTokens, outputTokens, atMs } = exchange;
  engine.submit(
    {
      promptLength: promptTokens,
      outputTokens,
      onTokens(_count, nowMs) {
        if (!Number.isNaN(exchange.ttftMs)) return;
        exchange.ttftMs = nowMs - atMs;
        forward.commit(exchange.ttftMs);
      },
      onEnd(_reason, nowMs) {
        exchange.outcome = 'ok';
        exchange.latencyMs = nowMs - atMs;
        forward.finish({
          outcome: 'ok',
          status: 200,
          upstreamStatus: 200,
          ttftMs: exchange.ttftMs,
          durationMs: exchange.latencyMs,
          promptTokens,
          cachedTokens: 0,
          outputTokens,
        });
      },
    },
    clock(),
  );
}

function startCore(
  rules: string,
  room: string,
  clock: { now(): number; epochMs(): number },
  scheduler: Scheduler,
  seed: number,
): Core {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, i) => `"http://10.0.0.${i + 1}:8000"`).join(', ');
  const tenants = CLASSES.map((name) => `define tenant "${name}" { class: "${name}" }`).join('\n');
  const text = `define tier "A" { model: "m", gpu: "A100", gpu_count: 4, ${room}, endpoints: [${endpoints}] }
${tenants}
${rules}`;
  const { program, diagnostics } = compilePolicy({
    path: 'overload.route',
    text,
    manifests: [toManifest(strategies)],
    checkOptions: () => [],
  });
  if (program === undefined) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  const core = createCore({ clock, scheduler, seed, capacity: 16 });
  core.activate(core.prepare(program, [strategies]));
  return core;
}

function summed(exchanges: readonly Exchange[], measuredMs: number): OverloadResult {
  const isGood = ({ outcome, ttftMs }: Exchange): boolean => outcome === 'ok' && ttftMs <= USEFUL_TTFT_MS;
  const ended: { [outcome: string]: number } = {};
  for (const { outcome = '' } of exchanges) ended[outcome] = (ended[outcome] ?? 0) + 1;
  const of = (name: Class): OverloadResult['byClass'][Class] => {
    const mine = exchanges.filter(({ priority }) => priority === name);
    const answered = mine.filter(({ outcome }) => outcome === 'ok');
    return {
      arrived: mine.length,
      good: mine.filter(isGood).length,
      ttftMs: answered.map(({ ttftMs }) => ttftMs),
      latencyMs: answered.map(({ latencyMs }) => latencyMs),
    };
  };
  return {
    goodput: (exchanges.filter(isGood).length * 1000) / measuredMs,
    arrived: exchanges.length,
    ended,
    byClass: { critical: of('critical'), high: of('high'), normal: of('normal'), low: of('low') },
  };
}

/** Nearest rank; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await Promise.resolve();
};

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function mulberry(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
