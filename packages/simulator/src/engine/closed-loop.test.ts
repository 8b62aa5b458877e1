import { findProfile, measuredConfigurations, timePerOutputTokenMs } from '@signalbox/hardware-profiles';
import type { SteadyLoad } from '@signalbox/hardware-profiles';
import { expect, test } from 'vitest';
import { createEngine } from './engine.ts';

/** Mean milliseconds per output token of a closed loop run on the engine, start and end left out. */
function simulatedTpotMs(latency: Parameters<typeof createEngine>[0]['latency'], load: SteadyLoad): number {
  const engine = createEngine({ latency, kvBlocks: 2 ** 20 / 16, maxBatch: 1024, prefixCaching: false });
  const total = load.concurrency * 6;
  const spans: number[] = [];
  let started = 0;
  const submit = (nowMs: number): void => {
    if (started >= total) return;
    started++;
    let first = Number.NaN;
    engine.submit(
      {
        promptLength: load.promptTokens,
        outputTokens: load.outputTokens,
        onTokens(_, atMs) {
          if (Number.isNaN(first)) first = atMs;
        },
        onEnd(_, atMs) {
          spans.push((atMs - first) / (load.outputTokens - 1));
          submit(atMs);
        },
      },
      nowMs,
    );
  };
  // Staggered, as a loop is once it has run for a while: newcomers arrive one by one.
  const spreadMs = timePerOutputTokenMs(latency, load) * load.outputTokens;
  for (let i = 0; i < load.concurrency; i++) {
    const atMs = (i * spreadMs) / load.concurrency;
    while ((engine.nextEventMs() ?? Infinity) < atMs) engine.advance(engine.nextEventMs() ?? atMs);
    submit(Math.max(atMs, 0));
  }
  for (let next = engine.nextEventMs(); next !== undefined; next = engine.nextEventMs()) engine.advance(next);
  const steady = spans.slice(load.concurrency, total - load.concurrency);
  return steady.reduce((sum, span) => sum + span, 0) / steady.length;
}

test('a closed loop on the engine gives the time per output token that the profile was fitted to', () => {
  const configurations = measuredConfigurations.filter(
    ({ engine, modelSizeB, activeSizeB }) => engine === 'vllm' && modelSizeB === activeSizeB,
  );
  expect(configurations.length).toBeGreaterThan(10);
  const errors: number[] = [];
  for (const { gpu, gpuCount, model, precision, engine } of configurations) {
    const profile = findProfile({ gpu, gpuCount, modelName: model, precision, engine });
    if (profile === undefined) throw new Error(`no profile for ${gpu}`);
    for (const concurrency of [4, 16, 64]) {
      for (const [promptTokens, outputTokens] of [
        [1024, 256],
        [256, 512],
      ] as const) {
        const load = { concurrency, promptTokens, outputTokens };
        errors.push(100 * Math.abs(simulatedTpotMs(profile, load) / timePerOutputTokenMs(profile, load) - 1));
      }
    }
  }
  errors.sort((x, y) => x - y);
  const at = (share: number): number => errors[Math.floor(share * (errors.length - 1))] ?? Number.NaN;
  process.stdout.write(
    `closed loop against fitted time per output token, ${configurations.length} vLLM configurations: median ${at(0.5).toFixed(1)} %, p90 ${at(0.9).toFixed(1)} %, worst ${at(1).toFixed(1)} %\n`,
  );
  expect(at(0.5)).toBeLessThan(5);
  expect(at(0.9)).toBeLessThan(15);
});
