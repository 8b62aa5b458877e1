import type { LatencyModel } from '@signalbox/hardware-profiles';
import { createBlockPool } from './block-pool.ts';
import { createEngineMetrics } from './engine-metrics.ts';
import type { EngineMetrics, FinishReason } from './engine-metrics.ts';
import { blockHashOf, createSequence, tokensOf } from './sequence.ts';
import type { EngineRequest, Sequence } from './sequence.ts';
import { stepMs } from './step-time.ts';

/** How an engine is built. */
export interface EngineOptions {
  /** Times of prefill and decode: a hardware profile, or `latencyFromRates`. */
  readonly latency: LatencyModel;
  /** Tokens in a KV block; default 16. */
  readonly blockSize?: number;
  /** KV blocks; default 4096. */
  readonly kvBlocks?: number;
  /** Most sequences in the batch; default 256. */
  readonly maxBatch?: number;
  /** Most tokens computed in one step, prompts and decodes together; default 8192. */
  readonly maxBatchTokens?: number;
  /**
   * `continuous`: sequences join and leave at every step. `static`: a batch is formed when the engine is idle, runs until its last
   * sequence ends, and the places of ended sequences go on costing time. Default continuous.
   */
  readonly batching?: 'continuous' | 'static';
  /** How long an idle static engine waits for a batch to gather, ms; default 0. */
  readonly batchWaitMs?: number;
  /** Default true. */
  readonly prefixCaching?: boolean;
  /** Most adapters in one batch; default 8. */
  readonly maxAdapters?: number;
  /** Spread of step times as a share: each is multiplied by 1 ± jitter, evenly. Default 0; needs `random`. */
  readonly jitter?: number;
  /** Random source in [0, 1), for jitter alone. */
  readonly random?: () => number;
}

/** A request in the engine. */
export interface SequenceHandle {
  /** Ends the sequence and frees its blocks; nothing happens if it has ended. */
  cancel(nowMs: number): void;
  /** Prompt tokens found in the prefix cache when the sequence was first admitted; 0 while it waits. */
  cachedTokens(): number;
}

/** What an engine holds at this moment. */
export interface EngineState {
  readonly running: number;
  readonly waiting: number;
  /** Share of blocks held by sequences, 0 to 1. */
  readonly kvUsage: number;
  readonly freeBlocks: number;
  readonly cachedBlocks: number;
  readonly runningAdapters: readonly string[];
  readonly waitingAdapters: readonly string[];
}

/**
 * A model server as vLLM's scheduler works, without a model: pure, driven by the caller's clock. Each step computes one token for each
 * decoding sequence and as many prompt tokens as the budget leaves, and takes the time that the latency model says. All times are
 * milliseconds on the caller's clock and must not go back.
 */
export interface Engine {
  /** Puts a request in the queue. Throws RangeError if the engine could never hold it; see `capacityTokens`. */
  submit(request: EngineRequest, nowMs: number): SequenceHandle;
  /** Ends all steps due by `nowMs`, in order, and starts the next. */
  advance(nowMs: number): void;
  /** When the step under way ends; undefined when idle. */
  nextEventMs(): number | undefined;
  state(): EngineState;
  readonly metrics: EngineMetrics;
  /** Prompt and output tokens that one sequence can hold. */
  readonly capacityTokens: number;
  readonly blockSize: number;
  readonly kvBlocks: number;
  readonly maxAdapters: number;
  /** Empties the prefix cache of all that no sequence holds. */
  resetPrefixCache(): void;
}

/** An idle engine. */
export function createEngine(options: EngineOptions): Engine {
  const {
    latency,
    blockSize = 16,
    kvBlocks = 4096,
    maxBatch = 256,
    maxBatchTokens = 8192,
    batching = 'continuous',
  } = options;
  const { batchWaitMs = 0, prefixCaching = true, maxAdapters = 8, jitter = 0, random } = options;
  for (const [name, value] of Object.entries({ blockSize, kvBlocks, maxBatch, maxBatchTokens, maxAdapters })) {
    if (!Number.isInteger(value) || value < 1)
      throw new RangeError(`${name} must be a whole number from 1 up, got ${value}`);
  }
  if (jitter > 0 && random === undefined) throw new TypeError('jitter needs a random source: pass random');
  const pool = createBlockPool(kvBlocks);
  const metrics = createEngineMetrics();
  const waiting: Sequence[] = [];
  let running: Sequence[] = [];
  let submitted = 0;
  let stepEndMs: number | undefined;
  let stepDurationMs = 0;
  /** Places of the static batch under way, ended ones too. */
  let staticPlaces = 0;
  /** True inside `advance`, whose callbacks may submit and cancel. */
  let advancing = false;

  function advance(nowMs: number): void {
    endSteps((endMs) => endMs <= nowMs);
  }

  function endSteps(isDue: (endMs: number) => boolean): void {
    if (advancing) return;
    advancing = true;
    try {
      while (stepEndMs !== undefined && isDue(stepEndMs)) {
        const endMs = stepEndMs;
        endStep(endMs);
        startStep(endMs);
      }
    } finally {
      advancing = false;
    }
  }

  function endStep(nowMs: number): void {
    if (stepDurationMs > 0) {
      metrics.steps++;
      metrics.busyMs += stepDurationMs;
    }
    for (const sequence of running.slice()) {
      if (sequence.state !== 'running' || sequence.scheduled === 0) continue;
      sequence.computed += sequence.scheduled;
      sequence.scheduled = 0;
      nameFullBlocks(sequence);
      if (sequence.computed < tokensOf(sequence)) continue;
      if (sequence.generated < sequence.request.outputTokens) addToken(sequence, nowMs);
      // A callback may have cancelled it.
      if ((sequence.state as Sequence['state']) === 'running' && sequence.generated >= sequence.request.outputTokens) {
        end(sequence, sequence.request.finishReason ?? 'stop', nowMs);
      }
    }
    running = running.filter((sequence) => sequence.state === 'running');
  }

  function addToken(sequence: Sequence, nowMs: number): void {
    sequence.generated++;
    metrics.generationTokens++;
    if (Number.isNaN(sequence.firstTokenMs)) {
      sequence.firstTokenMs = nowMs;
      metrics.timeToFirstToken.observe((nowMs - sequence.arrivalMs) / 1000);
    } else {
      metrics.interTokenLatency.observe((nowMs - sequence.lastTokenMs) / 1000);
    }
    sequence.lastTokenMs = nowMs;
    sequence.request.onTokens?.(1, nowMs);
  }

  function end(sequence: Sequence, reason: FinishReason, nowMs: number): void {
    sequence.state = 'ended';
    releaseBlocks(sequence);
    metrics.finished[reason]++;
    metrics.requestLatency.observe((nowMs - sequence.arrivalMs) / 1000);
    if (!Number.isNaN(sequence.startMs)) observeEnd(sequence, nowMs);
    sequence.request.onEnd?.(reason, nowMs);
  }

  function observeEnd(sequence: Sequence, nowMs: number): void {
    metrics.requestPromptTokens.observe(sequence.promptLength);
    metrics.requestGenerationTokens.observe(sequence.generated);
    metrics.requestMaxTokens.observe(sequence.request.maxTokens ?? sequence.request.outputTokens);
    metrics.inferenceTime.observe((nowMs - sequence.startMs) / 1000);
    if (Number.isNaN(sequence.firstTokenMs)) return;
    metrics.prefillTime.observe((sequence.firstTokenMs - sequence.startMs) / 1000);
    metrics.decodeTime.observe((sequence.lastTokenMs - sequence.firstTokenMs) / 1000);
    if (sequence.generated > 1) {
      metrics.timePerOutputToken.observe(
        (sequence.lastTokenMs - sequence.firstTokenMs) / 1000 / (sequence.generated - 1),
      );
    }
  }

  function nameFullBlocks(sequence: Sequence): void {
    if (!prefixCaching) return;
    const full = Math.floor(sequence.computed / blockSize);
    for (; sequence.named < full; sequence.named++) {
      const block = sequence.blocks[sequence.named];
      if (block !== undefined) pool.name(block, blockHashOf(sequence, sequence.named, blockSize));
    }
  }

  function releaseBlocks(sequence: Sequence): void {
    // Last block first: the end of a prefix is evicted before its beginning.
    for (let i = sequence.blocks.length - 1; i >= 0; i--) pool.release(sequence.blocks[i] ?? 0);
    sequence.blocks.length = 0;
    sequence.named = 0;
    sequence.scheduled = 0;
  }

  function startStep(nowMs: number): void {
    let budget = maxBatchTokens;
    let decodeBatch = 0;
    let contextTokens = 0;
    let prefillTokens = 0;
    let beginsPrompt = false;
    const plan = (sequence: Sequence): void => {
      const remaining = tokensOf(sequence) - sequence.computed;
      sequence.scheduled = Math.min(remaining, budget);
      budget -= sequence.scheduled;
      if (remaining === 1 && sequence.generated > 0) {
        decodeBatch++;
        contextTokens += sequence.computed;
      } else prefillTokens += sequence.scheduled;
    };

    for (let i = 0; i < running.length && budget > 0; i++) {
      const sequence = running[i];
      if (sequence !== undefined && sequence.state === 'running' && reserve(sequence)) plan(sequence);
    }
    running = running.filter((sequence) => sequence.state === 'running');

    if (batching === 'continuous' || running.length === 0) {
      admit(
        nowMs,
        () => budget > 0,
        (sequence) => {
          plan(sequence);
          beginsPrompt = true;
        },
      );
      staticPlaces = running.length;
    }

    if (running.length === 0) {
      stepEndMs = undefined;
      stepDurationMs = 0;
      return;
    }
    metrics.iterationTokens.observe(maxBatchTokens - budget);
    if (batching === 'static' && decodeBatch > 0)
      decodeBatch = Math.max(decodeBatch, staticPlaces - (running.length - decodeBatch));
    const meanMs = stepMs(latency, { decodeBatch, contextTokens, prefillTokens, beginsPrompt });
    stepDurationMs = random === undefined || jitter === 0 ? meanMs : meanMs * (1 + jitter * (2 * random() - 1));
    stepEndMs = nowMs + stepDurationMs;
  }

  /** Makes room for a running sequence's next tokens; the youngest sequences are preempted when there is none. False if it was preempted itself. */
  function reserve(sequence: Sequence): boolean {
    const needed = Math.ceil(tokensOf(sequence) / blockSize);
    while (sequence.blocks.length < needed) {
      const block = pool.take();
      if (block !== undefined) {
        sequence.blocks.push(block);
        continue;
      }
      const youngest = running.findLast(({ state }) => state === 'running');
      if (youngest === undefined) return false;
      preempt(youngest);
      if (youngest === sequence) return false;
    }
    return true;
  }

  function preempt(sequence: Sequence): void {
    metrics.preemptions++;
    releaseBlocks(sequence);
    sequence.computed = 0;
    sequence.state = 'waiting';
    const at = waiting.findIndex(({ order }) => order > sequence.order);
    waiting.splice(at < 0 ? waiting.length : at, 0, sequence);
  }

  /** Moves waiting sequences into the batch in order of arrival; one whose adapter has no place is passed over, one without memory stops the line. */
  function admit(nowMs: number, hasBudget: () => boolean, admitted: (sequence: Sequence) => void): void {
    const adapters = new Set(
      running.flatMap(({ request }) => (request.adapter === undefined ? [] : [request.adapter])),
    );
    for (let i = 0; i < waiting.length && running.length < maxBatch && hasBudget();) {
      const sequence = waiting[i];
      if (sequence === undefined) break;
      const { adapter } = sequence.request;
      if (adapter !== undefined && !adapters.has(adapter) && adapters.size >= maxAdapters) {
        i++;
        continue;
      }
      if (!allocate(sequence, nowMs)) break;
      if (adapter !== undefined) adapters.add(adapter);
      waiting.splice(i, 1);
      sequence.state = 'running';
      // Kept in order of arrival, so that the last is the youngest and no older one is preempted for it.
      const at = running.findLastIndex(({ order }) => order < sequence.order) + 1;
      running.splice(at, 0, sequence);
      admitted(sequence);
    }
  }

  /** Takes cached blocks for the known prefix and free ones for the rest of what must be computed; false and nothing taken if they do not suffice. */
  function allocate(sequence: Sequence, nowMs: number): boolean {
    const tokens = tokensOf(sequence);
    // At least one token is computed, since its logits give the next.
    const cacheable = prefixCaching ? Math.floor((tokens - 1) / blockSize) : 0;
    const hits: number[] = [];
    let freeHits = 0;
    for (let i = 0; i < cacheable; i++) {
      const block = pool.find(blockHashOf(sequence, i, blockSize));
      if (block === undefined) break;
      if (pool.isFree(block)) freeHits++;
      hits.push(block);
    }
    const needed = Math.ceil(tokens / blockSize) - hits.length;
    if (needed > pool.free() - freeHits) return false;
    for (const block of hits) {
      pool.share(block);
      sequence.blocks.push(block);
    }
    for (let i = 0; i < needed; i++) {
      const block = pool.take();
      if (block !== undefined) sequence.blocks.push(block);
    }
    sequence.computed = hits.length * blockSize;
    sequence.named = hits.length;
    if (sequence.cachedTokens < 0) {
      sequence.cachedTokens = sequence.computed;
      sequence.startMs = nowMs;
      metrics.promptTokens += sequence.promptLength;
      metrics.prefixCacheQueries += prefixCaching ? sequence.promptLength : 0;
      metrics.prefixCacheHits += sequence.computed;
      metrics.queueTime.observe((nowMs - sequence.arrivalMs) / 1000);
    }
    return true;
  }

  function cancel(sequence: Sequence, nowMs: number): void {
    advance(nowMs);
    if (sequence.state === 'ended') return;
    if (sequence.state === 'waiting') waiting.splice(waiting.indexOf(sequence), 1);
    end(sequence, 'abort', nowMs);
    running = running.filter(({ state }) => state === 'running');
  }

  const capacityTokens = kvBlocks * blockSize;
  return {
    submit(request, nowMs) {
      const sequence = createSequence(request, submitted++, nowMs);
      if (sequence.promptLength + request.outputTokens > capacityTokens) {
        throw new RangeError(
          `${sequence.promptLength} prompt and ${request.outputTokens} output tokens exceed the KV cache of ${capacityTokens} tokens`,
        );
      }
      // A step that is due this very moment but not begun is left to `advance`, so that all requests of one moment join it.
      endSteps((endMs) => endMs < nowMs || (endMs === nowMs && stepDurationMs > 0));
      waiting.push(sequence);
      if (stepEndMs === undefined && !advancing) {
        stepEndMs = nowMs + (batching === 'static' ? batchWaitMs : 0);
        stepDurationMs = 0;
      }
      // a full batch has nothing to wait for
      if (stepDurationMs === 0 && !advancing && running.length === 0 && waiting.length >= maxBatch) stepEndMs = nowMs;
      return { cancel: (atMs) => cancel(sequence, atMs), cachedTokens: () => Math.max(0, sequence.cachedTokens) };
    },
    advance,
    nextEventMs: () => stepEndMs,
    state() {
      const adaptersOf = (sequences: readonly Sequence[]): string[] => [
        ...new Set(sequences.flatMap(({ request }) => (request.adapter === undefined ? [] : [request.adapter]))),
      ];
      return {
        running: running.length,
        waiting: waiting.length,
        kvUsage: 1 - pool.free() / kvBlocks,
        freeBlocks: pool.free(),
        cachedBlocks: pool.cached(),
        runningAdapters: adaptersOf(running),
        waitingAdapters: adaptersOf(waiting),
      };
    },
    metrics,
    capacityTokens,
    blockSize,
    kvBlocks,
    maxAdapters,
    resetPrefixCache: () => pool.clearCache(),
  };
}
