import { createEngine } from '../../packages/simulator/src/index.ts';
import type { Engine } from '../../packages/simulator/src/index.ts';
import type { ReplayEndpoint } from './fleet.ts';
import type { Outcome } from './outcome.ts';
import type { TraceRequest } from './trace.ts';

/** What a dispatcher without delay and with perfect memory knows of one engine: that which it has sent there and not had back. */
export interface Ledger {
  readonly endpoint: ReplayEndpoint;
  inflightRequests: number;
  /** Prompt tokens of requests without a first token. */
  queuedTokens: number;
  /** Output tokens of all requests in flight, by `predictedOutput`. */
  decodeTokens: number;
  /** Prompt and output tokens of all requests in flight. */
  inflightTokens: number;
}

/** Chooses an engine by its position in `ledgers`. */
export type Chooser = (request: TraceRequest, ledgers: readonly Ledger[]) => number;

/**
 * Replays the requests in virtual time over engines without any gateway, network or timer: what a router with the same information could
 * get at best. Times are milliseconds of the trace's clock, of which `stretch` = 1.2 spreads the arrivals by a fifth.
 * @param predictedOutput output tokens that the dispatcher expects of a request
 */
export function simulate(
  endpoints: readonly ReplayEndpoint[],
  trace: readonly TraceRequest[],
  stretch: number,
  choose: Chooser,
  predictedOutput: (request: TraceRequest) => number,
): { readonly outcomes: readonly Outcome[]; readonly served: readonly number[] } {
  const engines = endpoints.map(toEngine);
  const ledgers: readonly Ledger[] = endpoints.map((endpoint) => ({
    endpoint,
    inflightRequests: 0,
    queuedTokens: 0,
    decodeTokens: 0,
    inflightTokens: 0,
  }));
  const outcomes: Outcome[] = [];
  const advanceTo = (nowMs: number): void => {
    for (;;) {
      let next: Engine | undefined;
      for (const engine of engines) {
        if ((engine.nextEventMs() ?? Infinity) < (next?.nextEventMs() ?? Infinity)) next = engine;
      }
      const nextMs = next?.nextEventMs();
      if (next === undefined || nextMs === undefined || nextMs > nowMs) return;
      next.advance(nextMs);
    }
  };
  for (const request of trace) {
    const atMs = request.atMs * stretch;
    advanceTo(atMs);
    const slot = choose(request, ledgers);
    const ledger = ledgers[slot];
    const engine = engines[slot];
    if (ledger === undefined || engine === undefined) throw new RangeError(`no engine ${slot}`);
    const { promptTokens, outputTokens } = request;
    const output = predictedOutput(request);
    ledger.inflightRequests++;
    ledger.queuedTokens += promptTokens;
    ledger.decodeTokens += output;
    ledger.inflightTokens += promptTokens + output;
    let firstMs = Number.NaN;
    engine.submit(
      {
        promptLength: promptTokens,
        outputTokens,
        onTokens(_count, nowMs) {
          if (firstMs === firstMs) return;
          firstMs = nowMs;
          ledger.queuedTokens -= promptTokens;
        },
        onEnd(_reason, nowMs) {
          ledger.inflightRequests--;
          ledger.decodeTokens -= output;
          ledger.inflightTokens -= promptTokens + output;
          outcomes.push({ index: request.index, ttftMs: firstMs - atMs, latencyMs: nowMs - atMs });
        },
      },
      atMs,
    );
  }
  advanceTo(Infinity);
  return { outcomes, served: engines.map(({ metrics }) => metrics.finished.stop) };
}

/**
 * Requests per second that one engine ends when its batch is always full: a closed loop of twice its batch through the trace, over and over, from
 * the 500th to the 1,500th end.
 */
export function capacityPerSecond(endpoint: ReplayEndpoint, trace: readonly TraceRequest[]): number {
  const engine = toEngine(endpoint);
  const [from, to] = [500, 1500];
  let submitted = 0;
  let ended = 0;
  let fromMs = Number.NaN;
  let toMs = Number.NaN;
  const submit = (nowMs: number): void => {
    const request = trace[submitted++ % trace.length];
    if (request === undefined) throw new RangeError('an empty trace');
    engine.submit(
      {
        promptLength: request.promptTokens,
        outputTokens: request.outputTokens,
        onEnd(_reason, endMs) {
          ended++;
          if (ended === from) fromMs = endMs;
          if (ended === to) toMs = endMs;
          if (ended < to) submit(endMs);
        },
      },
      nowMs,
    );
  };
  for (let i = 0; i < 2 * endpoint.maxBatch; i++) submit(0);
  for (let next = engine.nextEventMs(); next !== undefined && ended < to; next = engine.nextEventMs())
    engine.advance(next);
  return (1000 * (to - from)) / (toMs - fromMs);
}

function toEngine({ profile, maxBatch, kvBlocks }: ReplayEndpoint): Engine {
  return createEngine({ latency: profile, maxBatch, kvBlocks });
}
