import { decodeStepMs, decodeTokensPerSecond, prefillMs } from '../../packages/hardware-profiles/src/index.ts';
import type { Chooser, Ledger } from './expected.ts';
import type { TraceRequest } from './trace.ts';

/** Tokens that a router expects of an answer: the caller's limit, at most the 256 that it starts from. */
export const predictedOutput = ({ outputTokens }: TraceRequest): number => Math.min(outputTokens, 256);

/**
 * The policies of the replay as plain formulas over a perfect ledger, for the virtual run that the live one is held against. Ties go to the first.
 */
export const choosers: Readonly<Record<string, () => Chooser>> = Object.freeze({
  round_robin: () => {
    let turn = 0;
    return (_request, ledgers) => turn++ % ledgers.length;
  },
  least_tokens: () => (request, ledgers) =>
    lowest(ledgers, (ledger) => {
      const work = 0.1 * (ledger.queuedTokens + request.promptTokens) + ledger.decodeTokens + predictedOutput(request);
      return work / throughput(ledger);
    }),
  least_latency: () => (request, ledgers) => lowest(ledgers, (ledger) => latencyMs(ledger, request)),
});

function throughput({ endpoint: { profile, maxBatch } }: Ledger): number {
  return decodeTokensPerSecond(profile, maxBatch, maxBatch * 1024);
}

/**
 * Wait for a place in the batch, prefill of all prompts ahead and of its own, then its decode steps, each with the batch as it would be and with
 * that share of prefill which a steady stream of such requests puts into each step.
 */
function latencyMs({ endpoint, ...held }: Ledger, request: TraceRequest): number {
  const { profile, maxBatch } = endpoint;
  const output = predictedOutput(request);
  const requests = held.inflightRequests + 1;
  const outputs = held.decodeTokens + output;
  const prompts = held.inflightTokens - held.decodeTokens + request.promptTokens;
  const batch = Math.min(requests, maxBatch);
  const batchShare = batch / requests;
  const tpotMs = decodeStepMs(profile, batch, batchShare * (prompts + outputs / 2), (batch * prompts) / outputs);
  const placeMs = ((requests - batch) * (outputs / requests) * tpotMs) / maxBatch;
  return (
    placeMs +
    held.queuedTokens * profile.prefill.perTokenMs +
    prefillMs(profile, request.promptTokens) +
    tpotMs * (output - 1)
  );
}

function lowest(ledgers: readonly Ledger[], cost: (ledger: Ledger) => number): number {
  let best = 0;
  let least = Infinity;
  for (const [index, ledger] of ledgers.entries()) {
    const value = cost(ledger);
    if (value < least) [best, least] = [index, value];
  }
  return best;
}
