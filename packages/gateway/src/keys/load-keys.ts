import { resolve } from 'node:path';
import { SignalboxError } from '@signalbox/plugin-api';
import type { Definitions, SecretRef } from '@signalbox/policy';
import { nameOfHash, parseKeyList } from './key-list.ts';
import type { KeyHolder, KeyRing } from './key-ring.ts';
import { createKeyRing } from './key-ring.ts';

/** Faults named in one message. */
const MOST_FAULTS = 5;

/**
 * The keys that a policy asks for: those of its tenants, and those of the list that `keys` in define gateway names. Undefined if it asks
 * for none, so that anyone may call. Throws a SignalboxError for a list that cannot be read, is wrong in any line, or holds no key, for a
 * tenant that the policy does not define, and for a key that stands twice: of a half-written list nothing takes effect.
 */
export function loadKeys(
  { gateway, tenants }: Definitions,
  readSecret: (ref: SecretRef) => string | undefined,
): KeyRing | undefined {
  const holders: (KeyHolder & { readonly place: string })[] = tenants.flatMap(({ name, keys }) =>
    keys.map((hash) => ({ hash, tenant: name, name: nameOfHash(hash), place: `tenant ${JSON.stringify(name)}` })),
  );
  const faults: string[] = [];
  let source = 'the policy';
  if (gateway.keys !== undefined) {
    const text = readSecret(gateway.keys);
    source = sourceName(gateway.keys);
    if (text === undefined) {
      throw new SignalboxError(
        `the API keys cannot be read: ${'env' in gateway.keys ? `${source} is not set` : `${source} is missing, empty or not readable`}; \`signalbox key new\` makes a key and its line of the list`,
        { code: 'keys_unreadable', source: 'gateway' },
      );
    }
    const known = new Set(tenants.map(({ name }) => name));
    const list = parseKeyList(text);
    for (const fault of list.faults) faults.push(fault);
    for (const { place, ...entry } of list.entries) {
      if (entry.tenant === undefined || known.has(entry.tenant)) holders.push({ ...entry, place });
      else faults.push(`${place} names a tenant that the policy does not define: ${JSON.stringify(entry.tenant)}`);
    }
  }
  const places = new Map<string, string>();
  for (const { hash, place } of holders) {
    const before = places.get(hash);
    if (before === undefined) places.set(hash, place);
    else faults.push(`${place} repeats the key of ${before}`);
  }
  if (faults.length > 0) {
    const more = faults.length - MOST_FAULTS;
    throw new SignalboxError(
      `the API keys of ${source} are not in order: ${faults.slice(0, MOST_FAULTS).join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
      { code: 'keys_invalid', source: 'gateway' },
    );
  }
  if (holders.length > 0) {
    const modelsOf = new Map(tenants.map(({ name, models }) => [name, models]));
    return createKeyRing(
      holders.map(({ hash, tenant, name }) => ({
        hash,
        tenant,
        name,
        models: tenant === undefined ? undefined : modelsOf.get(tenant),
      })),
    );
  }
  if (gateway.keys === undefined) return undefined;
  throw new SignalboxError(
    `the API keys of ${source} are none, so that nobody could call; add a line, which \`signalbox key new\` prints, or take \`keys\` out of define gateway`,
    { code: 'keys_invalid', source: 'gateway' },
  );
}

/** The file that holds the keys, to be watched; none if they stand elsewhere. */
export function keyFiles({ gateway }: Definitions, folder: string): readonly string[] {
  return gateway.keys !== undefined && 'file' in gateway.keys ? [resolve(folder, gateway.keys.file)] : [];
}

function sourceName(ref: SecretRef): string {
  return 'env' in ref ? `the environment variable ${ref.env}` : `the file ${ref.file}`;
}
