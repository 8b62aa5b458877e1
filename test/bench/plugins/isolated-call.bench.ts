/** Prints what one call of an isolated scorer takes, in microseconds, next to the same call in process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin, ScorerInstance, SetupContext } from '../../../packages/plugin-api/src/index.ts';
import { silentLogger } from '../../../packages/plugin-api/src/index.ts';
import { DEFAULT_LIMITS, importIsolated } from '../../../packages/gateway/src/plugins/isolation/isolated-plugin.ts';

const CODE = `export default { name: 'mine', apiVersion: 1, provides: { scorer: { x: { doc: 'x', reads: ['candidate.power'], setup: () => ({
  score(request, candidates, out) {
    const power = candidates.column('candidate.power');
    for (let i = 0; i < candidates.length; i++) out[i] = power[candidates.slots[i]];
  } }) } } } };`;
const WARM_UP = 1000;
const CALLS = 5000;

function setUp(plugin: Plugin | undefined): ScorerInstance {
  const context: SetupContext = {
    options: {},
    logger: silentLogger,
    clock: { now: () => performance.now(), epochMs: () => Date.now() },
    random: { next: () => 0.5 },
    signal: new AbortController().signal,
  };
  const definition = plugin?.provides.scorer?.['x'];
  if (definition === undefined || !('setup' in definition)) throw new Error('the plugin has no scorer x');
  return (definition.setup as (context: SetupContext) => ScorerInstance)(context);
}

function measure(instance: ScorerInstance, length: number): string {
  const column = new Float64Array(length).fill(0.5);
  const slots = Int32Array.from({ length }, (_, i) => i);
  const candidates = { length, slots, column: () => column, values: () => column };
  const request = { seed: 1, number: () => Number.NaN, value: () => undefined };
  const out = new Float64Array(length);
  const times = new Float64Array(CALLS);
  for (let i = -WARM_UP; i < CALLS; i++) {
    const startedMs = performance.now();
    instance.score(request, candidates, out);
    if (i >= 0) times[i] = (performance.now() - startedMs) * 1000;
  }
  times.sort();
  const at = (share: number): string => times[Math.floor(share * CALLS)]!.toFixed(1);
  return `median ${at(0.5)} µs, p99 ${at(0.99)} µs`;
}

const folder = mkdtempSync(join(tmpdir(), 'signalbox-isolated-'));
try {
  const entry = join(folder, 'plugin.mjs');
  writeFileSync(entry, CODE);
  const limits = { ...DEFAULT_LIMITS, callMs: 1000, firstCallMs: 1000 };
  const isolated = setUp(await importIsolated('mine', entry, limits));
  const { default: plugin } = (await import(pathToFileURL(entry).href)) as { readonly default: Plugin };
  const inProcess = setUp(plugin);
  for (const length of [8, 100, 1000]) {
    process.stdout.write(`${length} endpoints: isolated ${measure(isolated, length)}; `);
    process.stdout.write(`in process ${measure(inProcess, length)}\n`);
  }
  isolated.close?.();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
