import type { AttemptOutcome, Plugin, ScorerInstance } from '@signalbox/plugin-api';
import { check, demand, onlyManifest } from './check.ts';
import type { Check } from './check.ts';
import type { ContractOptions } from './contract-options.ts';
import { definitionOf, manifestCheck } from './manifest-checks.ts';
import { positionalChecks } from './positional-contract.ts';
import { sampleInput, viewsOf } from './sample-inputs.ts';
import { seededRandom } from './seeded-random.ts';
import { contractContext } from './setup-context.ts';

/** An attempt that went well, as a base for tests of `ended`. */
export function attemptOutcome(parts: Partial<AttemptOutcome> = {}): AttemptOutcome {
  return {
    ok: true,
    reason: 'ok',
    status: 200,
    ttftMs: 120,
    durationMs: 900,
    promptTokens: 400,
    cachedTokens: 0,
    outputTokens: 60,
    before: { inflightRequests: 2, queuedTokens: 300, decodeTokens: 200 },
    ...parts,
  };
}

/**
 * The contract of one scorer: manifest, range, determinism, independence of order, no mutation, empty list, unknown values, declared
 * reads, no state but by `picked` and `ended`, independent instances, idempotent close, time. A scorer that is an expression can be
 * checked in its manifest form only, since compiling it needs the policy compiler; the last check says so.
 */
export function scorerContract(plugin: Plugin, name: string, contract: ContractOptions = {}): readonly Check[] {
  const definition = definitionOf(plugin, 'scorer', name);
  const manifest = manifestCheck(plugin, 'scorer', name);
  if ('expression' in definition) return [manifest, onlyManifest('scorer', name)];
  const reads = definition.reads ?? [];
  const cost = definition.cost ?? false;
  const problemOf = (value: number): string | undefined => {
    if (Number.isNaN(value)) return undefined;
    if (!Number.isFinite(value)) return 'not finite';
    return cost || (value >= 0 && value <= 1)
      ? undefined
      : 'outside [0, 1]; scale it, or declare `cost: true` and give raw cost';
  };
  return [
    manifest,
    ...positionalChecks<ScorerInstance, Float64Array>(
      {
        kind: 'scorer',
        name,
        createContext: () => contractContext(plugin, definition, contract),
        reads,
        setup: definition.setup,
        run: (instance, { request, candidates }, out) => instance.score(request, candidates, out),
        createOutput: (length) => new Float64Array(length),
        problemOf,
      },
      contract,
    ),
    check(`scorer ${name}: takes picks and endings of any slot, and still gives values in range`, () => {
      const instance = definition.setup(contractContext(plugin, definition, contract));
      const random = seededRandom(21);
      for (let round = 0; round < 200; round++) {
        const slot = Math.floor(random.next() * 300);
        instance.picked?.(slot);
        const failed = { ok: false, reason: 'error', status: 503, ttftMs: Number.NaN, outputTokens: Number.NaN };
        instance.ended?.(slot, attemptOutcome(round % 5 === 0 ? failed : { ttftMs: 1000 * random.next() }));
        instance.forget?.(Math.floor(random.next() * 400));
      }
      const input = sampleInput(reads, 20, random, contract.samples);
      const views = viewsOf(input);
      const out = new Float64Array(20);
      instance.score(views.request, views.candidates, out);
      out.forEach((value, i) => {
        const problem = problemOf(value);
        demand(problem === undefined, () => `position ${i} is ${value}, ${problem}`);
      });
    }),
  ];
}
