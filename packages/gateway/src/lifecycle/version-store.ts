import { createHash } from 'node:crypto';
import type { Plugin } from '@signalbox/plugin-api';
import { SignalboxError } from '@signalbox/plugin-api';
import type { PolicyProgram } from '@signalbox/policy';

/** Why a version came. */
export type VersionOrigin =
  | 'start'
  | 'file'
  | 'sighup'
  | 'admin'
  | 'unpin'
  | 'rollback'
  | 'pin'
  | 'canary'
  | 'promote'
  | 'shadow';

/** A version as it is kept: enough to put it in force again without any file. */
export interface KeptVersion {
  readonly id: string;
  /** As it was compiled, with what the gateway puts in place of parts of it. */
  readonly program: PolicyProgram;
  readonly plugins: readonly Plugin[];
  /** Texts by shown path, the main file first. */
  readonly sources: ReadonlyMap<string, string>;
  /** When it first came, as ISO 8601, and when it was last put in force. */
  readonly since: string;
  inForceSince: string | undefined;
  /** How it came last. */
  origin: VersionOrigin;
  /** Generation under which it last decided; 0 for one that never did. */
  generation: number;
  /** Requests that it decided. */
  decided: number;
}

/** A file of a version, in lists. */
export interface VersionFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The last versions of a gateway, newest first, and the line of those that were in force. */
export interface VersionStore {
  /** Keeps it, in place of one with the same id; the oldest that nobody needs gives way. */
  keep(version: Omit<KeptVersion, 'since' | 'inForceSince' | 'generation' | 'decided'>): KeptVersion;
  get(id: string): KeptVersion | undefined;
  /** The version whose id begins so. Throws a SignalboxError (404, or 409 for a beginning of several). */
  find(start: string): KeptVersion;
  /** Newest first. */
  list(): readonly KeptVersion[];
  /** It is in force from now on. A step back keeps the line, everything else ends it there. */
  enforced(id: string, back: boolean): void;
  /** The version that was in force before this one, by the line; undefined for the first. */
  before(id: string): KeptVersion | undefined;
  /** Counts a request that the version decided. */
  decided(id: string): void;
}

export interface VersionStoreOptions {
  readonly most: number;
  /** Characters that the sources of all versions may have together. */
  readonly mostCharacters: number;
  /** The time as ISO 8601. */
  readonly now: () => string;
  /** Whether a version must stay because it decides, or waits to. */
  readonly needed: (id: string) => boolean;
}

const LEAST_START = 4;

export function createVersionStore({ most, mostCharacters, now, needed }: VersionStoreOptions): VersionStore {
  /** In the order in which they came last. */
  const versions = new Map<string, KeptVersion>();
  let line: string[] = [];
  let current: string | undefined;

  const charactersOf = ({ sources }: KeptVersion): number => {
    let sum = 0;
    for (const text of sources.values()) sum += text.length;
    return sum;
  };
  const trim = (newest: string): void => {
    let characters = 0;
    for (const version of versions.values()) characters += charactersOf(version);
    for (const [id, version] of versions) {
      if (versions.size <= most && characters <= mostCharacters) return;
      if (id === newest || needed(id)) continue;
      versions.delete(id);
      line = line.filter((other) => other !== id);
      characters -= charactersOf(version);
    }
  };
  return {
    keep(given) {
      const known = versions.get(given.id);
      versions.delete(given.id);
      const version: KeptVersion = {
        since: known?.since ?? now(),
        inForceSince: known?.inForceSince,
        generation: known?.generation ?? 0,
        decided: known?.decided ?? 0,
        ...given,
      };
      versions.set(given.id, version);
      trim(given.id);
      return version;
    },
    get: (id) => versions.get(id),
    find(start) {
      const found = [...versions.values()].filter(({ id }) => id.startsWith(start));
      const [only, second] = found;
      if (only !== undefined && second === undefined && start.length >= LEAST_START) return only;
      if (second !== undefined && start.length >= LEAST_START)
        throw new SignalboxError(
          `several versions have an id that begins with ${JSON.stringify(start)}; write more of it`,
          { code: 'version_ambiguous', source: 'client', status: 409 },
        );
      throw new SignalboxError(
        `no version is kept whose id begins with ${JSON.stringify(start)} (${LEAST_START} characters or more); "signalbox policy list", or GET /-/policy/versions, lists them`,
        { code: 'version_unknown', source: 'client', status: 404 },
      );
    },
    list: () => [...versions.values()].toReversed(),
    enforced(id, back) {
      const version = versions.get(id);
      if (version !== undefined) version.inForceSince = now();
      if (back && line.includes(id)) {
        current = id;
        return;
      }
      const at = current === undefined ? -1 : line.indexOf(current);
      line = [...line.slice(0, at + 1).filter((other) => other !== id), id].slice(-most);
      current = id;
    },
    before(id) {
      const at = line.indexOf(id);
      const earlier = at > 0 ? line[at - 1] : undefined;
      return earlier === undefined ? undefined : versions.get(earlier);
    },
    decided(id) {
      const version = versions.get(id);
      if (version !== undefined) version.decided++;
    },
  };
}

export function filesOf({ sources }: Pick<KeptVersion, 'sources'>): VersionFile[] {
  return [...sources].map(([path, text]) => ({
    path,
    bytes: Buffer.byteLength(text),
    sha256: createHash('sha256').update(text).digest('hex'),
  }));
}
