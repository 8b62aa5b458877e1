import type { Plugin } from '@signalbox/plugin-api';
import { admissionContract } from './admission-contract.ts';
import type { AdmissionContractOptions } from './admission-contract.ts';
import type { Check } from './check.ts';
import { filterContract } from './filter-contract.ts';
import { pickerContract } from './picker-contract.ts';
import { propertyContract } from './property-contract.ts';
import { scorerContract } from './scorer-contract.ts';
import { signalContract } from './signal-contract.ts';

/** The contracts of everything that a plugin provides, each name with its default options. */
export function pluginContract(plugin: Plugin, contract: AdmissionContractOptions = {}): readonly Check[] {
  const suites = {
    signal: signalContract,
    property: propertyContract,
    filter: filterContract,
    scorer: scorerContract,
    picker: pickerContract,
    admission: admissionContract,
  } as const;
  return Object.entries(suites).flatMap(([kind, suite]) =>
    Object.keys(plugin.provides[kind as keyof typeof suites] ?? {}).flatMap((name) => suite(plugin, name, contract)),
  );
}
