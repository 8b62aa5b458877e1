import { expect, test } from 'vitest';
import { percentile, runOverload } from './overload-run.ts';
import type { OverloadResult } from './overload-run.ts';

const RULES = 'default to tier "A" by least_tokens else queue with max_wait 4s, max_depth 200';
const MEASURED_MS = 300_000;

interface Run {
  readonly result: OverloadResult;
  /** Limits of the four endpoints, one list for each second. */
  readonly limits: readonly (readonly number[])[];
}

/** Far more requests than can be served, over engines that work on so many at once and queue the rest themselves. */
async function overload(room: string, maxBatch: number): Promise<Run> {
  const limits: number[][] = [];
  const result = await runOverload({
    rules: RULES,
    topPerSecond: 0.8,
    othersPerSecond: 20,
    measuredMs: MEASURED_MS,
    room,
    maxBatch,
    eachSecond: (core) => limits.push(core.endpoints().map(({ maxRequests }) => maxRequests)),
  });
  return { result, limits };
}

const ttft99 = ({ byClass }: OverloadResult): number => percentile(byClass.critical.ttftMs, 0.99);

test.each([8, 16])(
  'the limits settle near the batch of engines that work on %i at once, and the queue stands in the gateway',
  async (maxBatch) => {
    const adaptive = await overload('adaptive_limit: true', maxBatch);
    const open = await overload('max_requests: 200', maxBatch);
    // A round of answers takes some ten seconds, so that the way from 20 down to 8 takes three minutes.
    const settled = adaptive.limits.slice(200).flat();
    const mean = settled.reduce((sum, limit) => sum + limit, 0) / settled.length;
    console.info(
      `engines of ${maxBatch}: limits ${mean.toFixed(1)} on the mean, ${percentile(settled, 0.05)} to ${percentile(settled, 0.95)}; ` +
        `${adaptive.result.goodput.toFixed(2)}/s useful (${open.result.goodput.toFixed(2)}/s with 200 each); ` +
        `p99 of the top class's first token ${ttft99(adaptive.result).toFixed(0)} ms (${ttft99(open.result).toFixed(0)} ms)`,
    );
    expect(mean).toBeGreaterThan(0.8 * maxBatch);
    expect(mean).toBeLessThan(1.35 * maxBatch + 2);
    // Without a limit the engines queue, where classes mean nothing.
    expect(ttft99(adaptive.result)).toBeLessThan(0.5 * ttft99(open.result));
    expect(adaptive.result.goodput).toBeGreaterThan(open.result.goodput);
  },
  60_000,
);
