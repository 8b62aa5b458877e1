import type { ManifestEntry, PluginManifest } from '@signalbox/plugin-api';
import type { Provider } from '../../ir.ts';
import { builtInOrders, builtInPickers, builtInScorers } from './built-in-choices.ts';
import { builtInProperties } from './built-in-properties.ts';
import { builtInSignals } from './built-in-signals.ts';
import type {
  AdmissionEntry,
  CatalogueEntry,
  Parameter,
  PickerEntry,
  PropertyEntry,
  ScorerEntry,
  SignalEntry,
} from './entries.ts';

/** Names of one origin: the built-in catalogue with the first-party plugins, or one package that a policy uses. */
export interface NameTable {
  /** Signals, properties and filters. */
  readonly values: ReadonlyMap<string, SignalEntry | PropertyEntry>;
  readonly scorers: ReadonlyMap<string, ScorerEntry>;
  readonly pickers: ReadonlyMap<string, PickerEntry>;
  /** Orders of a queue. */
  readonly admissions: ReadonlyMap<string, AdmissionEntry>;
}

interface MutableTable {
  readonly values: Map<string, SignalEntry | PropertyEntry>;
  readonly scorers: Map<string, ScorerEntry>;
  readonly pickers: Map<string, PickerEntry>;
  readonly admissions: Map<string, AdmissionEntry>;
}

const createTable = (): MutableTable => ({
  values: new Map(),
  scorers: new Map(),
  pickers: new Map(),
  admissions: new Map(),
});

const common = (
  entry: ManifestEntry,
  provider: Provider,
): Pick<CatalogueEntry, 'name' | 'doc' | 'provider' | 'parameters' | 'options' | 'positional'> => ({
  name: entry.name,
  doc: entry.doc,
  provider,
  parameters: [],
  ...(entry.options === undefined ? {} : { options: entry.options }),
  ...(entry.positional === undefined ? {} : { positional: entry.positional }),
});

const admissionParameters = (entry: ManifestEntry): readonly Parameter[] =>
  (entry.arguments ?? []).map(({ name, kind, optional }): Parameter => ({
    name,
    kind: kind === 'value' ? 'expression' : kind,
    ...(optional === undefined ? {} : { optional }),
  }));

const addEntry = (table: MutableTable, entry: ManifestEntry, provider: Provider): void => {
  const base = common(entry, provider);
  const { name } = entry;
  switch (entry.kind) {
    case 'signal': {
      const before = table.values.get(name);
      const builtIn = before?.kind === 'signal' ? before : undefined;
      table.values.set(name, {
        ...base,
        kind: 'signal',
        type: entry.type ?? 'number',
        known: entry.known ?? 'maybe',
        origin: builtIn?.origin ?? 'caller',
        global: false,
        indexed: false,
        longText: builtIn?.longText ?? false,
      });
      return;
    }
    case 'property':
    case 'filter': {
      const before = table.values.get(name);
      table.values.set(name, {
        ...base,
        kind: 'property',
        type: entry.kind === 'filter' ? 'bool' : (entry.type ?? 'number'),
        better: before?.kind === 'property' ? before.better : 'low',
        ...(entry.expression === undefined ? {} : { expression: entry.expression }),
      });
      return;
    }
    case 'scorer':
      table.scorers.set(name, {
        ...base,
        kind: 'scorer',
        cost: entry.cost ?? false,
        instance: entry.scope ?? 'policy',
        reads: entry.reads ?? [],
        ...(entry.expression === undefined ? {} : { expression: entry.expression }),
      });
      return;
    case 'picker':
      table.pickers.set(name, { ...base, kind: 'picker' });
      return;
    case 'admission': {
      const parameters = admissionParameters(entry);
      const before = table.values.get(name);
      // A predicate takes the place of a condition only: `deadline` stays a duration.
      if (before === undefined || before.type === 'bool') {
        table.values.set(name, {
          ...base,
          kind: 'signal',
          parameters,
          type: 'bool',
          known: entry.known ?? (before?.kind === 'signal' ? before.known : 'maybe'),
          origin: 'gateway',
          global: false,
          indexed: false,
          longText: false,
        });
      }
    }
  }
};

/** The names that a package provides, each under its own name. `use` is the index of the `use` statement. */
export const tableOfManifest = (manifest: PluginManifest, use?: number): NameTable => {
  const table = createTable();
  const provider: Provider = { kind: 'plugin', plugin: manifest.name, ...(use === undefined ? {} : { use }) };
  for (const entry of manifest.entries) addEntry(table, entry, provider);
  return table;
};

/**
 * The names in scope without prefix: the built-in catalogue, over it the first-party plugins. `clashes` are names that two of the
 * manifests provide in the same kind; the first keeps them.
 */
export const createCatalogue = (
  manifests: readonly PluginManifest[],
): {
  readonly table: NameTable;
  readonly clashes: readonly { readonly name: string; readonly first: string; readonly second: string }[];
} => {
  const table = createTable();
  for (const entry of [...builtInSignals, ...builtInProperties]) table.values.set(entry.name, entry);
  for (const entry of builtInScorers) table.scorers.set(entry.name, entry);
  for (const entry of builtInPickers) table.pickers.set(entry.name, entry);
  for (const entry of builtInOrders) table.admissions.set(entry.name, entry);
  const owners = new Map<string, string>();
  const clashes: { name: string; first: string; second: string }[] = [];
  for (const manifest of manifests) {
    for (const entry of manifest.entries) {
      const key = `${entry.kind} ${entry.name}`;
      const first = owners.get(key);
      if (first !== undefined) {
        clashes.push({ name: entry.name, first, second: manifest.name });
        continue;
      }
      owners.set(key, manifest.name);
      addEntry(table, entry, { kind: 'plugin', plugin: manifest.name });
    }
  }
  return { table, clashes };
};

/** Names that every build knows, whichever plugins it has. */
export const builtInNames: ReadonlySet<string> = new Set(
  [...builtInSignals, ...builtInProperties, ...builtInScorers, ...builtInPickers].map((entry) => entry.name),
);

/** Every name of a table with what it is, for suggestions and completion. */
export const entriesOf = (table: NameTable): readonly CatalogueEntry[] => [
  ...table.values.values(),
  ...table.scorers.values(),
  ...table.pickers.values(),
  ...table.admissions.values(),
];
