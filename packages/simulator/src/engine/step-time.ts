import { decodeStepMs, prefillMs } from '@signalbox/hardware-profiles';
import type { LatencyModel } from '@signalbox/hardware-profiles';

/** The work of one engine step. */
export interface StepWork {
  /** Sequences that get a token by decoding. */
  readonly decodeBatch: number;
  /** Context tokens of those sequences together. */
  readonly contextTokens: number;
  /** Prompt tokens computed in the step. */
  readonly prefillTokens: number;
  /** True if the step begins some prompt: the fixed part of prefill is paid once a prompt, not once a chunk. */
  readonly beginsPrompt: boolean;
}

/**
 * Milliseconds of a step. Prefill alone takes the prefill model's time; beside decoding it adds the interference term for each token,
 * or the prefill rate where a profile shows no interference.
 */
export function stepMs(model: LatencyModel, work: StepWork): number {
  const { decodeBatch, contextTokens, prefillTokens, beginsPrompt } = work;
  if (decodeBatch === 0) {
    return beginsPrompt ? prefillMs(model, prefillTokens) : model.prefill.perTokenMs * prefillTokens;
  }
  const interferenceMs = prefillTokens * (model.decode.pMs > 0 ? model.decode.pMs : model.prefill.perTokenMs);
  return decodeStepMs(model, decodeBatch, contextTokens) + interferenceMs;
}

/** A latency model of plain rates: every sequence decodes at `tokensPerSecond` whatever the batch, prompts at `prefillTokensPerSecond`. */
export function latencyFromRates(rates: {
  readonly prefillTokensPerSecond: number;
  readonly tokensPerSecond: number;
}): LatencyModel {
  const { prefillTokensPerSecond, tokensPerSecond } = rates;
  if (!(prefillTokensPerSecond > 0) || !(tokensPerSecond > 0)) {
    throw new RangeError(
      `rates must be positive tokens per second, got prefill ${prefillTokensPerSecond} and decode ${tokensPerSecond}`,
    );
  }
  const perTokenMs = 1000 / prefillTokensPerSecond;
  return {
    prefill: { fixedMs: 0, perTokenMs },
    decode: { aMs: 1000 / tokensPerSecond, bMs: 0, kMs: 0, pMs: perTokenMs },
  };
}
