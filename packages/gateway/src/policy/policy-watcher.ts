import { createHash } from 'node:crypto';
import { readFileSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { dirname } from 'node:path';

export interface PolicyWatcherOptions {
  /** Called once for every change of content, after things have been quiet for a moment. */
  onChange(): void;
  /** Milliseconds of quiet that make a change; editors write in several steps. */
  readonly settleMs?: number;
  /** Milliseconds between looks at the content, which catch what the directory watch misses (symlink swaps, network file systems). */
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

export function createPolicyWatcher({ onChange, settleMs = 25, pollMs = 1000 }: PolicyWatcherOptions): PolicyWatcher {
  let followed: readonly string[] = [];
  let seen = '';
  let settling: NodeJS.Timeout | undefined;
  let watchers = new Map<string, FSWatcher>();

  function look(): void {
    settling = undefined;
    const content = contentHash(followed);
    if (content === seen) return;
    seen = content;
    onChange();
  }

  function stir(): void {
    settling ??= setTimeout(look, settleMs);
  }

  const poll = setInterval(() => {
    if (contentHash(followed) !== seen) stir();
  }, pollMs);
  poll.unref();

  return {
    follow(paths, read) {
      followed = [...paths];
      seen = contentHash(followed, read);
      const directories = new Set(paths.map((path) => dirname(path)));
      const kept = new Map<string, FSWatcher>();
      for (const [directory, watcher] of watchers) {
        if (directories.has(directory)) kept.set(directory, watcher);
        else watcher.close();
      }
      for (const directory of directories) {
        if (kept.has(directory)) continue;
        try {
          const watcher = watch(directory, { persistent: false }, stir);
          watcher.on('error', () => {
            watcher.close();
            watchers.delete(directory);
          });
          kept.set(directory, watcher);
        } catch {
          // the poll goes on looking: a directory that cannot be watched is slower, not blind
        }
      }
      watchers = kept;
    },
    close() {
      clearInterval(poll);
      clearTimeout(settling);
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

function contentHash(paths: readonly string[], read?: TextsByPath): string {
  const hash = createHash('sha1');
  for (const path of paths) {
    const text = read?.has(path) === true ? read.get(path) : textOf(path);
    hash.update(text ?? '').update(text === undefined ? '\u0001' : '\0');
  }
  return hash.digest('hex');
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
