import { hash, timingSafeEqual } from 'node:crypto';
import type { Identity, IdentityRefusal } from '@signalbox/proxy';

/** Whose key it is. */
export interface KeyHolder {
  /** SHA-256 of the key: 64 hexadecimal digits. */
  readonly hash: string;
  readonly tenant: string | undefined;
  readonly name: string;
  /** What it may see and use; absent: all models. */
  readonly models?: readonly string[] | undefined;
}

/** The API keys in force, by their hashes. Immutable; a rotation makes another. */
export interface KeyRing {
  readonly size: number;
  /** Tells whether two rings hold the same keys of the same holders. */
  readonly fingerprint: string;
  /**
   * The holder of a key. Only digests are compared, in constant time with all that share their first two bytes, so that what time tells
   * is at most a few bits of a digest, of which no key can be made.
   */
  identify(credential: string | undefined): Identity | IdentityRefusal;
}

const DECOY = Buffer.alloc(32);

/** One answer to a missing, a malformed and an unknown key. */
export const UNKNOWN_KEY: IdentityRefusal = Object.freeze({
  kind: 'refuse',
  status: 401,
  code: 'invalid_api_key',
  message: 'The API key is missing or not known. Send one as `Authorization: Bearer KEY`.',
});

export function createKeyRing(holders: readonly KeyHolder[]): KeyRing {
  const buckets = new Map<number, { readonly digest: Buffer; readonly identity: Identity }[]>();
  for (const holder of holders) {
    const digest = Buffer.from(holder.hash, 'hex');
    const models = holder.models === undefined ? undefined : new Set(holder.models);
    const identity: Identity = {
      kind: 'known',
      apiKeyName: holder.name,
      ...(models === undefined ? {} : { allows: (model) => models.has(model) }),
      ...(holder.tenant === undefined ? {} : { tenant: holder.tenant }),
    };
    const at = digest.readUInt16BE();
    const bucket = buckets.get(at);
    if (bucket === undefined) buckets.set(at, [{ digest, identity }]);
    else bucket.push({ digest, identity });
  }
  const lines = holders.map((holder) =>
    JSON.stringify([holder.hash, holder.tenant ?? null, holder.name, holder.models ?? null]),
  );
  return {
    size: holders.length,
    fingerprint: hash('sha256', lines.toSorted().join('\n')),
    identify(credential) {
      // Header values are bytes in latin1; the digest is of the bytes that were sent.
      const digest = hash('sha256', Buffer.from(credential ?? '', 'latin1'), 'buffer');
      let found: Identity | IdentityRefusal = UNKNOWN_KEY;
      const bucket = buckets.get(digest.readUInt16BE());
      if (bucket === undefined) timingSafeEqual(digest, DECOY);
      else for (const { digest: known, identity } of bucket) if (timingSafeEqual(digest, known)) found = identity;
      return found;
    },
  };
}
