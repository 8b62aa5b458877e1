import { statSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { FollowedFile, FollowOptions } from './followed-file.ts';
import { followFile } from './followed-file.ts';

export interface PolicyWatcherOptions extends FollowOptions {
  /** Called once for every change of content, after things have been quiet for a moment. */
  onChange(): void;
  /** Milliseconds of quiet that make a change; editors write in several steps. */
  readonly settleMs?: number;
  /** Milliseconds between looks at the files, which catch what the directory watch misses (symlink swaps, network file systems). */
  readonly pollMs?: number;
}

/** What files held when they were read, by absolute path; undefined for one that could not be read. */
export type TextsByPath = ReadonlyMap<string, string | undefined>;

/**
 * Watches policy files by their directories and by content. Atomic saves, replaced files and symlink swaps all end in one `onChange`
 * when the content differs from what was last seen.
 */
export interface PolicyWatcher {
  /**
   * Watches these files instead of those before. What was `read` of them, by path, counts as seen, so that an edit that came while it was
   * read is a change; of the others the present content does.
   */
  follow(paths: readonly string[], read?: TextsByPath): void;
  close(): void;
}

/** A file that is written to without a pause is looked at after so many times the quiet that is waited for. */
const LONGEST_UNREST = 20;

interface WatchedDirectory {
  readonly watcher: FSWatcher;
  /** Which directory it is: a path may come to name another. */
  readonly identity: string;
}

/** Starts with nothing to follow. */
export function createPolicyWatcher({
  onChange,
  settleMs = 50,
  pollMs = 1000,
  ...options
}: PolicyWatcherOptions): PolicyWatcher {
  let followed: readonly FollowedFile[] = [];
  let names = new Set<string>();
  let settling: NodeJS.Timeout | undefined;
  let unrestSinceMs = 0;
  const directories = new Map<string, WatchedDirectory>();

  function look(): void {
    settling = undefined;
    // All of them: one that has changed must not hide that another has.
    if (followed.map((file) => file.changed()).includes(true)) onChange();
  }

  function stir(): void {
    const nowMs = performance.now();
    if (settling === undefined) unrestSinceMs = nowMs;
    else if (nowMs - unrestSinceMs > LONGEST_UNREST * settleMs) return;
    clearTimeout(settling);
    settling = setTimeout(look, settleMs);
  }

  /** Other files of a directory are no concern of ours: logs and audit files are written to all the time. */
  function heard(name: string | null): void {
    // Kubernetes swaps `..data`.
    if (name === null || names.has(name) || name.startsWith('..')) stir();
  }

  function watchDirectory(path: string): void {
    const identity = identityOf(path);
    const known = directories.get(path);
    if (known?.identity === identity) return;
    known?.watcher.close();
    directories.delete(path);
    if (identity === undefined) return;
    try {
      const watcher = watch(path, { persistent: false }, (_event, name) => heard(name));
      watcher.on('error', () => {
        watcher.close();
        if (directories.get(path)?.watcher === watcher) directories.delete(path);
      });
      directories.set(path, { watcher, identity });
    } catch {
      // the poll goes on looking: a directory that cannot be watched is slower, not blind
    }
  }

  function watchDirectories(): void {
    const wanted = new Set(followed.map(({ path }) => dirname(path)));
    for (const [path, { watcher }] of directories) {
      if (wanted.has(path)) continue;
      watcher.close();
      directories.delete(path);
    }
    for (const path of wanted) watchDirectory(path);
  }

  const poll = setInterval(() => {
    watchDirectories();
    if (settling === undefined && followed.some((file) => file.differs())) stir();
  }, pollMs);
  poll.unref();

  return {
    follow(paths, read) {
      const before = new Map(followed.map((file) => [file.path, file]));
      followed = [...new Set(paths)].map((path) => {
        const file = before.get(path) ?? followFile(path, options);
        if (read?.has(path) === true) file.saw(read.get(path));
        else file.changed();
        return file;
      });
      names = new Set(followed.map(({ path }) => basename(path)));
      watchDirectories();
    },
    close() {
      clearInterval(poll);
      clearTimeout(settling);
      for (const { watcher } of directories.values()) watcher.close();
      directories.clear();
    },
  };
}

function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
