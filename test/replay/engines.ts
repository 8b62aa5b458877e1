import { createEngine } from '../../packages/simulator/src/index.ts';
import type { Engine } from '../../packages/simulator/src/index.ts';
import type { ReplayEndpoint } from './fleet.ts';
import type { TraceRequest } from './trace.ts';

/** The engine of an endpoint without its server, driven by the caller's clock. */
export function toEngine({ profile, maxBatch, kvBlocks }: ReplayEndpoint): Engine {
  return createEngine({ latency: profile, maxBatch, kvBlocks });
}

/**
 * Requests per second that one engine ends when its batch is always full: a closed loop of twice its batch through the trace, over and
 * over, from the 500th to the 1,500th end.
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
