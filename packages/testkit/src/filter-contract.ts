import type { FilterInstance, Plugin } from '@signalbox/plugin-api';
import { onlyManifest } from './check.ts';
import type { Check } from './check.ts';
import type { ContractOptions } from './contract-options.ts';
import { definitionOf, manifestCheck } from './manifest-checks.ts';
import { positionalChecks } from './positional-contract.ts';
import { contractContext } from './setup-context.ts';

/** The contract of one filter: as of a scorer, each value being 0 (out), 1 (in) or 2 (unknown). */
export function filterContract(plugin: Plugin, name: string, contract: ContractOptions = {}): readonly Check[] {
  const definition = definitionOf(plugin, 'filter', name);
  const manifest = manifestCheck(plugin, 'filter', name);
  if ('expression' in definition) return [manifest, onlyManifest('filter', name)];
  return [
    manifest,
    ...positionalChecks<FilterInstance, Uint8Array>(
      {
        kind: 'filter',
        name,
        createContext: () => contractContext(plugin, definition, contract),
        reads: definition.reads ?? [],
        setup: definition.setup,
        run: (instance, { request, candidates }, out) => instance.filter(request, candidates, out),
        createOutput: (length) => new Uint8Array(length),
        problemOf: (value) =>
          value === 0 || value === 1 || value === 2 ? undefined : 'none of 0 (out), 1 (in) and 2 (unknown)',
      },
      contract,
    ),
  ];
}
