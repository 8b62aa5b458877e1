import { expect, test } from 'vitest';
import { CLASSES, percentile, PLACES, runOverload } from './overload-run.ts';
import type { OverloadResult } from './overload-run.ts';

const QUEUE = 'else queue with max_wait 4s, max_depth 200';
/** So many places of each server are left to the top class, which hardly ever waits for one then. */
const kept = (places: number): string =>
  `route "top class" when priority == "critical" to tier "A" by least_tokens ${QUEUE}
default to tier "A" where inflight_requests < ${PLACES - places} by least_tokens ${QUEUE}`;
const POLICIES = {
  'classes alone': `default to tier "A" by least_tokens ${QUEUE}`,
  'one place in eight kept': kept(1),
  'two places in eight kept': kept(2),
};
const TOP_PER_SECOND = 0.8;
const MEASURED_MS = 600_000;
const SEEDS = [1, 2, 3, 4, 5];

const run = (rules: string, othersPerSecond: number, seed: number): Promise<OverloadResult> =>
  runOverload({ rules, topPerSecond: TOP_PER_SECOND, othersPerSecond, measuredMs: MEASURED_MS, seed });

const p99 = (results: readonly OverloadResult[], of: 'ttftMs' | 'latencyMs'): number =>
  percentile(
    results.flatMap(({ byClass }) => byClass.critical[of]),
    0.99,
  );

test.each(Object.entries(POLICIES))(
  'at twice saturation goodput stays at 90 % of its peak at least (%s)',
  async (name, rules) => {
    // What ends a second when far more comes than can: the saturation.
    const most = await run(rules, 20, 1);
    const saturation = ((most.ended['ok'] ?? 0) * 1000) / MEASURED_MS;
    const sweep: (readonly [number, OverloadResult])[] = [];
    for (const load of [0.5, 0.75, 1, 1.25, 1.5, 2]) {
      sweep.push([load, await run(rules, load * saturation - TOP_PER_SECOND, 1)]);
    }
    const peak = Math.max(...sweep.map(([, { goodput }]) => goodput));
    const lines = sweep.map(([load, { goodput, byClass, ended }]) => {
      const shares = CLASSES.map((of) => `${of} ${((100 * byClass[of].good) / byClass[of].arrived).toFixed(0)} %`);
      return `  ${load.toFixed(2)} × saturation: ${goodput.toFixed(2)}/s useful; ${shares.join(', ')}; ${JSON.stringify(ended)}`;
    });
    console.info(`${name}: saturation ${saturation.toFixed(2)}/s\n${lines.join('\n')}`);
    const overload = sweep.at(-1)?.[1];
    if (overload === undefined) throw new Error('nothing was run');
    expect(overload.goodput).toBeGreaterThanOrEqual(0.9 * peak);
    // More came than could be served, and those of the lower classes gave way.
    expect((overload.ended['shed'] ?? 0) + (overload.ended['queue_timeout'] ?? 0)).toBeGreaterThan(
      0.4 * overload.arrived,
    );
    const good = CLASSES.map((of) => overload.byClass[of].good / overload.byClass[of].arrived);
    expect(good).toEqual(good.toSorted((a, b) => b - a));
    expect(good[0]).toBe(1);
  },
  60_000,
);

test('at twice saturation the top class, with two places of a server kept for it, has its p99 within 1.2 × of what it has alone', async () => {
  const figures: { [name: string]: { ttft: number; latency: number } } = {};
  for (const [name, rules] of Object.entries(POLICIES)) {
    const most = await run(rules, 20, 1);
    const saturation = ((most.ended['ok'] ?? 0) * 1000) / MEASURED_MS;
    const alone: OverloadResult[] = [];
    const loaded: OverloadResult[] = [];
    for (const seed of SEEDS) {
      alone.push(await run(rules, 0, seed));
      loaded.push(await run(rules, 2 * saturation - TOP_PER_SECOND, seed));
    }
    // The same requests at the same moments, all of them answered.
    const count = (results: readonly OverloadResult[]): number =>
      results.reduce((sum, { byClass }) => sum + byClass.critical.ttftMs.length, 0);
    expect(count(loaded)).toBe(count(alone));
    const ttft = p99(loaded, 'ttftMs') / p99(alone, 'ttftMs');
    const latency = p99(loaded, 'latencyMs') / p99(alone, 'latencyMs');
    figures[name] = { ttft, latency };
    console.info(
      `${name}, ${count(alone)} requests of the top class: p99 of the first token ${p99(alone, 'ttftMs').toFixed(0)} ms alone, ` +
        `${p99(loaded, 'ttftMs').toFixed(0)} ms at twice saturation (${ttft.toFixed(2)} ×); of the whole answer ` +
        `${p99(alone, 'latencyMs').toFixed(0)} and ${p99(loaded, 'latencyMs').toFixed(0)} ms (${latency.toFixed(2)} ×)`,
    );
  }
  expect(figures['two places in eight kept']?.ttft).toBeLessThanOrEqual(1.2);
  expect(figures['two places in eight kept']?.latency).toBeLessThanOrEqual(1.2);
}, 120_000);
