import type { OptionSchema } from './json-schema.ts';
import type { AdmissionArgument, Plugin, PluginKind } from './plugin.ts';
import { PLUGIN_KINDS } from './define-plugin.ts';
import type { ValueType } from './value.ts';

/** One provided name as data: what the checker, the editor and the playground know of it without running the plugin. */
export interface ManifestEntry {
  readonly kind: PluginKind;
  readonly name: string;
  readonly doc: string;
  readonly options?: OptionSchema;
  readonly positional?: readonly string[];
  readonly reads?: readonly string[];
  readonly type?: ValueType;
  readonly known?: 'always' | 'maybe';
  readonly cost?: boolean;
  readonly scope?: 'rule' | 'policy';
  readonly expression?: string;
  readonly arguments?: readonly AdmissionArgument[];
}

/** A plugin as data, JSON-serialisable, named in `package.json#signalbox` and generated from the code by `toManifest`. */
export interface PluginManifest {
  readonly manifestVersion: 1;
  readonly name: string;
  readonly apiVersion: number;
  readonly doc?: string;
  readonly options?: OptionSchema;
  readonly entries: readonly ManifestEntry[];
}

const COPIED = [
  'doc',
  'options',
  'positional',
  'reads',
  'type',
  'known',
  'cost',
  'scope',
  'expression',
  'arguments',
] as const;

/** The manifest of a plugin, entries sorted by kind and name so that generated files are stable. */
export function toManifest(plugin: Plugin): PluginManifest {
  const entries: ManifestEntry[] = [];
  for (const kind of PLUGIN_KINDS) {
    for (const [name, definition] of Object.entries(plugin.provides[kind] ?? {}).toSorted(([a], [b]) =>
      a < b ? -1 : 1,
    )) {
      const entry: { [key: string]: unknown } = { kind, name };
      for (const field of COPIED) {
        const value = (definition as unknown as { [key: string]: unknown })[field];
        if (value !== undefined) entry[field] = value;
      }
      entries.push(entry as unknown as ManifestEntry);
    }
  }
  return {
    manifestVersion: 1,
    name: plugin.name,
    apiVersion: plugin.apiVersion,
    ...(plugin.doc === undefined ? {} : { doc: plugin.doc }),
    ...(plugin.options === undefined ? {} : { options: plugin.options }),
    entries,
  };
}
