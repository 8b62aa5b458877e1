import { chainHash, rootHash } from './block-hash.ts';
import type { FinishReason } from './engine-metrics.ts';

/** What a request asks of an engine. Callbacks run inside `advance`, `submit` or `cancel`; they may submit and cancel. */
export interface EngineRequest {
  /** Token ids of the prompt; or `promptLength` with `blockHashes` where only hashes are known, as in traces. */
  readonly promptTokens?: ArrayLike<number>;
  readonly promptLength?: number;
  /** One id for each of the engine's blocks that the prompt fills; equal ids after equal ids mean equal contents. */
  readonly blockHashes?: ArrayLike<number>;
  /** Tokens to generate; 0 ends the sequence when its prompt is computed (embeddings). */
  readonly outputTokens: number;
  /** Id of the i-th generated token, so that a later prompt can share its block; absent = shared with nobody. */
  readonly outputTokenAt?: (index: number) => number;
  /** How the sequence ends when all tokens are out; default `stop`. */
  readonly finishReason?: 'stop' | 'length';
  /** Adapter name: only so many at once in the batch, and prefixes are shared within an adapter alone. */
  readonly adapter?: string;
  /** Keeps the cached prefixes of different salts apart. */
  readonly cacheSalt?: string;
  /** What the caller set as limit, for the metrics alone. */
  readonly maxTokens?: number;
  readonly onTokens?: (count: number, nowMs: number) => void;
  readonly onEnd?: (reason: FinishReason, nowMs: number) => void;
}

/** One request inside an engine. */
export interface Sequence {
  readonly order: number;
  readonly request: EngineRequest;
  readonly promptLength: number;
  readonly arrivalMs: number;
  readonly blocks: number[];
  /** Hash of each full block so far, grown on demand. */
  readonly hashes: number[];
  state: 'waiting' | 'running' | 'ended';
  /** Tokens whose KV entries exist. */
  computed: number;
  generated: number;
  /** Blocks of this sequence that are findable by hash. */
  named: number;
  /** Tokens that the step under way computes. */
  scheduled: number;
  cachedTokens: number;
  startMs: number;
  firstTokenMs: number;
  lastTokenMs: number;
}

export function createSequence(request: EngineRequest, order: number, nowMs: number): Sequence {
  const promptLength = request.promptTokens?.length ?? request.promptLength ?? 0;
  if (!Number.isInteger(promptLength) || promptLength < 1)
    throw new RangeError(`a prompt needs at least one token, got ${promptLength}`);
  if (!Number.isInteger(request.outputTokens) || request.outputTokens < 0) {
    throw new RangeError(`outputTokens must be a whole number from 0 up, got ${request.outputTokens}`);
  }
  return {
    order,
    request,
    promptLength,
    arrivalMs: nowMs,
    blocks: [],
    hashes: [],
    state: 'waiting',
    computed: 0,
    generated: 0,
    named: 0,
    scheduled: 0,
    cachedTokens: -1,
    startMs: Number.NaN,
    firstTokenMs: Number.NaN,
    lastTokenMs: Number.NaN,
  };
}

/** Prompt and generated tokens: what must be computed before the next token can be sampled. */
export const tokensOf = (sequence: Sequence): number => sequence.promptLength + sequence.generated;

/** The hash of the sequence's block `index`, whose tokens must all be known. */
export function blockHashOf(sequence: Sequence, index: number, blockSize: number): number {
  const { request, hashes, promptLength, order } = sequence;
  const tokenAt = (position: number): number => {
    if (position < promptLength)
      return request.promptTokens?.[position] ?? request.blockHashes?.[Math.floor(position / blockSize)] ?? order;
    // An output that nobody can repeat: a number of its own for each sequence.
    return request.outputTokenAt?.(position - promptLength) ?? -1 - order;
  };
  for (let i = hashes.length; i <= index; i++) {
    const parent = hashes[i - 1] ?? rootHash(`${request.adapter ?? ''}\u0000${request.cacheSalt ?? ''}`);
    hashes.push(chainHash(parent, tokenAt, i * blockSize, blockSize));
  }
  return hashes[index] ?? 0;
}
