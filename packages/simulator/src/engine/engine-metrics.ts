import { createHistogram } from './histogram.ts';
import type { Histogram } from './histogram.ts';

/** Why a sequence ended, in vLLM's words. */
export type FinishReason = 'stop' | 'length' | 'abort';

/** Counters of an engine since its start, and histograms in seconds or tokens. Written by the engine alone. */
export interface EngineMetrics {
  promptTokens: number;
  generationTokens: number;
  /** Prompt tokens looked up in the prefix cache, and found there. */
  prefixCacheQueries: number;
  prefixCacheHits: number;
  preemptions: number;
  steps: number;
  /** Milliseconds spent in steps. */
  busyMs: number;
  readonly finished: Record<FinishReason, number>;
  readonly timeToFirstToken: Histogram;
  readonly interTokenLatency: Histogram;
  readonly timePerOutputToken: Histogram;
  readonly requestLatency: Histogram;
  readonly queueTime: Histogram;
  readonly prefillTime: Histogram;
  readonly decodeTime: Histogram;
  readonly inferenceTime: Histogram;
  readonly requestPromptTokens: Histogram;
  readonly requestGenerationTokens: Histogram;
  readonly requestMaxTokens: Histogram;
  readonly iterationTokens: Histogram;
}

const firstTokenSeconds = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const tokenSeconds = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const requestSeconds = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const tokenCounts = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
const stepTokens = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384];

/** Metrics of an engine that has done nothing, with vLLM's buckets. */
export function createEngineMetrics(): EngineMetrics {
  return {
    promptTokens: 0,
    generationTokens: 0,
    prefixCacheQueries: 0,
    prefixCacheHits: 0,
    preemptions: 0,
    steps: 0,
    busyMs: 0,
    finished: { stop: 0, length: 0, abort: 0 },
    timeToFirstToken: createHistogram(firstTokenSeconds),
    interTokenLatency: createHistogram(tokenSeconds),
    timePerOutputToken: createHistogram(tokenSeconds),
    requestLatency: createHistogram(requestSeconds),
    queueTime: createHistogram(requestSeconds),
    prefillTime: createHistogram(requestSeconds),
    decodeTime: createHistogram(requestSeconds),
    inferenceTime: createHistogram(requestSeconds),
    requestPromptTokens: createHistogram(tokenCounts),
    requestGenerationTokens: createHistogram(tokenCounts),
    requestMaxTokens: createHistogram(tokenCounts),
    iterationTokens: createHistogram(stepTokens),
  };
}
