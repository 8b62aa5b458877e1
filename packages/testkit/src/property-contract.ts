import { isNumericType } from '@signalbox/plugin-api';
import type { Plugin, PropertyInstance } from '@signalbox/plugin-api';
import { check, demand, onlyManifest } from './check.ts';
import type { Check } from './check.ts';
import type { ContractOptions } from './contract-options.ts';
import { definitionOf, manifestCheck } from './manifest-checks.ts';
import { positionalChecks } from './positional-contract.ts';
import { sampleInput, viewsOf } from './sample-inputs.ts';
import { attemptOutcome } from './scorer-contract.ts';
import { seededRandom } from './seeded-random.ts';
import { contractContext } from './setup-context.ts';

/** The contract of one property: as of a scorer, each value being finite, or NaN where it is unknown. */
export function propertyContract(plugin: Plugin, name: string, contract: ContractOptions = {}): readonly Check[] {
  const definition = definitionOf(plugin, 'property', name);
  const manifest = manifestCheck(plugin, 'property', name);
  if ('expression' in definition) return [manifest, onlyManifest('property', name)];
  const reads = definition.reads ?? [];
  const problemOf = (value: number): string | undefined =>
    Number.isNaN(value) || Number.isFinite(value) ? undefined : 'not finite; NaN is unknown';
  return [
    manifest,
    check(`property ${name}: its type is numeric`, () => {
      demand(
        isNumericType(definition.type),
        `type ${JSON.stringify(definition.type)} is no number, and a property by function writes numbers`,
      );
    }),
    ...positionalChecks<PropertyInstance, Float64Array>(
      {
        kind: 'property',
        name,
        createContext: () => contractContext(plugin, definition, contract),
        reads,
        setup: definition.setup,
        run: (instance, { request, candidates }, out) => instance.fill(request, candidates, out),
        createOutput: (length) => new Float64Array(length),
        problemOf,
      },
      contract,
    ),
    check(`property ${name}: takes endings of any slot, and still gives values in range`, () => {
      const instance = definition.setup(contractContext(plugin, definition, contract));
      const random = seededRandom(23);
      const views = viewsOf(sampleInput(reads, 20, random, contract.samples));
      const out = new Float64Array(20);
      instance.fill(views.request, views.candidates, out);
      for (let slot = 0; slot < 300; slot++) {
        const failed = {
          ok: false,
          reason: 'connect',
          status: 0,
          ttftMs: Number.NaN,
          durationMs: Number.NaN,
          outputTokens: Number.NaN,
        };
        instance.ended?.(slot, attemptOutcome(slot % 5 === 0 ? failed : { durationMs: 5000 * random.next() }));
        instance.forget?.(Math.floor(random.next() * 400));
      }
      instance.fill(views.request, views.candidates, out);
      out.forEach((value, i) => {
        const problem = problemOf(value);
        demand(problem === undefined, () => `position ${i} is ${value}, ${problem}`);
      });
    }),
  ];
}
