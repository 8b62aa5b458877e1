import type { OptionSchema, PluginManifest } from '@signalbox/plugin-api';
import { keyDocs } from '../check/catalogue/key-docs.ts';
import type { KeyDoc } from '../check/catalogue/key-docs.ts';

/** The schema of an option at a path below that of a package. */
export const schemaAt = (manifest: PluginManifest | undefined, path: readonly string[]): OptionSchema | undefined => {
  let schema = manifest?.options;
  for (const part of path) {
    const extra: OptionSchema | undefined =
      typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    schema = part === '[]' ? schema?.items : (schema?.properties?.[part] ?? extra);
  }
  return schema;
};

/** What is known of the key of a definition at a path. */
export const keyDocAt = (kind: string, path: readonly string[]): KeyDoc | undefined => {
  let keys: { readonly [key: string]: KeyDoc } | undefined = keyDocs[kind];
  let found: KeyDoc | undefined;
  for (const part of path) {
    if (part === '[]') {
      // An endpoint in the list of a tier; else a member of what the key takes.
      if (kind === 'tier') keys = keyDocs['endpoint'];
      continue;
    }
    found = keys !== undefined && Object.hasOwn(keys, part) ? keys[part] : undefined;
    keys = found?.keys;
  }
  return found;
};

/** The keys that an object at a path below a definition may have. */
export const keysAt = (kind: string, path: readonly string[]): { readonly [key: string]: KeyDoc } | undefined => {
  if (path.length === 0) return keyDocs[kind];
  if (kind === 'tier' && path.length === 2 && path[0] === 'endpoints') {
    const { tier: _tier, ...keys } = keyDocs['endpoint'] ?? {};
    return keys;
  }
  return keyDocAt(kind, path)?.keys;
};
