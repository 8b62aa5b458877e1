import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findProfile } from './find-profile.ts';
import { findGpu, knownGpus, suggestGpus } from './gpu-names.ts';
import {
  decodeStepMs,
  decodeTokensPerSecond,
  predictRequest,
  prefillMs,
  requestThroughput,
  tokensToMs,
} from './latency.ts';
import { modelSizeFromName, parseModelSize } from './model-size.ts';
import { measuredConfigurations } from './profiles.generated.ts';
import { predictSecondsTextbook, textbookProfiles, textbookTokensPerSecond } from './textbook.ts';

describe('worked examples', () => {
  test('example 7: 100 tokens take 100 ms at 1,000 tok/s and 333 ms at 300 tok/s', () => {
    expect(tokensToMs(100, 1000)).toBe(100);
    expect(Math.round(tokensToMs(100, 300))).toBe(333);
  });

  test('example 8: the textbook table gives tokens ÷ rate', () => {
    const table: [string, string | undefined, number][] = [
      ['H100', '7B', 500],
      ['H100', '13B', 300],
      ['H100', '70B', 50],
      ['A100', '7B', 150],
      ['L4', '13B', 80],
      ['anything', '70B', 15],
      ['H100', '34B', 100],
      ['A100', undefined, 100],
      ['A100', 'huge', 100],
    ];
    for (const [gpu, size, rate] of table) {
      expect(textbookTokensPerSecond(gpu, size)).toBe(rate);
      expect(predictSecondsTextbook(1000, gpu, size)).toBe(1000 / rate);
    }
    expect(textbookTokensPerSecond('h100_sxm', 70e9)).toBe(50);
    expect(textbookProfiles['textbook:h100'].tokensPerSecond).toEqual({ '7B': 500, '13B': 300, '70B': 50 });
  });
});

describe('look-up', () => {
  test('a measured configuration is found by GPU, count, size and precision, and says so', () => {
    const profile = findProfile({ gpu: 'H100', gpuCount: 4, modelSize: '70B', precision: 'fp8' });
    expect(profile).toMatchObject({
      provenance: 'measured',
      engine: 'vllm',
      gpu: 'H100-80GB-SXM',
      powerW: 2800,
      fitsMemory: true,
    });
    expect(profile?.sources.length).toBeGreaterThan(0);
    expect(profile?.fit?.heldOutRows).toBeGreaterThan(0);
  });

  test('every measured configuration is found by its own facts', () => {
    for (const configuration of measuredConfigurations) {
      const { gpu, gpuCount, model, precision, engine } = configuration;
      expect(findProfile({ gpu, gpuCount, modelName: model, precision, engine })?.id).toBe(configuration.id);
    }
  });

  test('an unmeasured configuration is estimated from neighbours and names them', () => {
    const profile = findProfile({ gpu: 'L4', modelSize: 8e9, precision: 'fp8' });
    expect(profile).toMatchObject({ provenance: 'estimated', gpu: 'L4-24GB', fitsMemory: true });
    const large = findProfile({ gpu: 'A100', gpuCount: 8, modelSize: 65e9 });
    expect(large?.provenance).toBe('estimated');
    expect(large?.basis).toContain('scaled from');
  });

  test('a part unlike all measured ones is estimated from its specification sheet', () => {
    const profile = findProfile({ gpu: 'T4', modelSize: '7B' });
    expect(profile).toMatchObject({ provenance: 'estimated', basis: expect.stringContaining('roofline') as string });
  });

  test('a model that does not fit the memory says so', () => {
    expect(findProfile({ gpu: 'L4', modelSize: '70B' })).toMatchObject({
      fitsMemory: false,
      kvTokensCapacity: 0,
      maxBatch: 1,
    });
  });

  test('an unknown GPU, precision, size or count gives undefined, and suggestions name the closest', () => {
    expect(findProfile({ gpu: 'H1000', modelSize: '7B' })).toBeUndefined();
    expect(findProfile({ gpu: 'H100', modelSize: '7B', precision: 'fp3' })).toBeUndefined();
    expect(findProfile({ gpu: 'H100' })).toBeUndefined();
    expect(findProfile({ gpu: 'H100', modelSize: 'seven' })).toBeUndefined();
    expect(findProfile({ gpu: 'H100', modelSize: '7B', gpuCount: 0 })).toBeUndefined();
    expect(suggestGpus('H1000')[0]).toBe('H100-80GB-SXM');
    expect(knownGpus()).toContain('L4-24GB');
  });

  test('GPU names are read in their usual spellings', () => {
    const names = ['H100', 'h100_sxm', 'NVIDIA-H100-80GB-HBM3', 'nvidia h100 80gb', 'H100-80GB-SXM'];
    expect(names.map((name) => findGpu(name)?.id)).toEqual(names.map(() => 'H100-80GB-SXM'));
    expect(findGpu('Tesla T4')?.id).toBe('T4-16GB');
    expect(findGpu('AMD Instinct MI300X')?.id).toBe('MI300X-192GB');
    expect(findGpu('a100')?.id).toBe('A100-80GB-SXM');
  });

  test('model sizes are read from names and from text', () => {
    expect(modelSizeFromName('meta-llama/Llama-3.1-70B-Instruct')?.parameters).toBe(70e9);
    expect(modelSizeFromName('Qwen/Qwen3-235B-A22B-FP8')).toEqual({ parameters: 235e9, activeParameters: 22e9 });
    expect(modelSizeFromName('Qwen2.5-0.5B')?.parameters).toBe(0.5e9);
    expect(modelSizeFromName('deepseek-ai/DeepSeek-R1-Distill-Llama-8B')?.parameters).toBe(8e9);
    expect(modelSizeFromName('gpt-4o')).toBeUndefined();
    expect(parseModelSize('350M')).toBe(350e6);
    expect(parseModelSize('-1B')).toBeUndefined();
  });
});

describe('predictions', () => {
  const anyProfile = fc.record({
    gpu: fc.constantFrom(...knownGpus()),
    gpuCount: fc.constantFrom(1, 2, 4, 8),
    modelSize: fc.constantFrom(0.5e9, 7e9, 13e9, 32e9, 70e9, 405e9),
    precision: fc.constantFrom('fp16', 'fp8', 'int8', 'fp4', 'awq'),
  });

  test('every known GPU, count, size and precision gives finite positive times', () => {
    fc.assert(
      fc.property(anyProfile, (query) => {
        const profile = findProfile(query);
        if (profile === undefined) throw new Error('expected a profile');
        const prediction = predictRequest(profile, { promptTokens: 1000, outputTokens: 100, batch: 8 });
        expect(prediction.prefillMs).toBeGreaterThan(0);
        expect(prediction.decodeMs).toBeGreaterThan(0);
        expect(Number.isFinite(prediction.totalMs)).toBe(true);
      }),
    );
  });

  test('more uncached prompt, output, batch or context never takes less time', () => {
    const profile = findProfile({ gpu: 'H100', gpuCount: 2, modelName: 'Qwen/Qwen3-32B' });
    if (profile === undefined) throw new Error('expected a profile');
    const tokens = fc.nat({ max: 50_000 });
    fc.assert(
      fc.property(
        tokens,
        tokens,
        fc.integer({ min: 1, max: 256 }),
        fc.nat({ max: 64 }),
        (prompt, more, batch, moreBatch) => {
          expect(prefillMs(profile, prompt + more)).toBeGreaterThanOrEqual(prefillMs(profile, prompt));
          expect(decodeStepMs(profile, batch + moreBatch, prompt + more)).toBeGreaterThanOrEqual(
            decodeStepMs(profile, batch, prompt),
          );
        },
      ),
    );
  });

  test('a cached prompt costs the prefill of one token', () => {
    const profile = findProfile({ gpu: 'H100', gpuCount: 2, modelName: 'Qwen/Qwen3-32B' });
    if (profile === undefined) throw new Error('expected a profile');
    const cached = predictRequest(profile, { promptTokens: 4096, cachedTokens: 4096, outputTokens: 1 });
    expect(cached.prefillMs).toBe(prefillMs(profile, 1));
    expect(cached.decodeMs).toBe(0);
  });

  test('a bigger batch gives more tokens per second, each at a slower pace', () => {
    const profile = findProfile({ gpu: 'A100', gpuCount: 8, modelName: 'llama2-70b' });
    if (profile === undefined) throw new Error('expected a profile');
    expect(decodeTokensPerSecond(profile, 64, 64 * 500)).toBeGreaterThan(10 * decodeTokensPerSecond(profile, 1, 500));
    const one = requestThroughput(profile, { concurrency: 1, promptTokens: 512, outputTokens: 128 });
    const many = requestThroughput(profile, { concurrency: 32, promptTokens: 512, outputTokens: 128 });
    expect(many.requestsPerSecond).toBeGreaterThan(5 * one.requestsPerSecond);
    expect(many.totalTokensPerSecond / many.requestsPerSecond).toBeCloseTo(640, 6);
  });
});
