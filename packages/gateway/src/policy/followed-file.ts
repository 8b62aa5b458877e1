import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';

/** What can be said of a file without reading it: equal marks mean equal content, but for a write within one tick of the file's clock. */
interface Mark {
  readonly text: string;
  /** When its content or its place last changed, by the file system's clock, in milliseconds. */
  readonly changedMs: number;
}

/**
 * A change within so many milliseconds before the content was read may be followed by another that leaves times and size as they were
 * (coarse file clocks, as of network file systems): such a mark proves nothing, and the content is read again at the next look.
 */
const RACY_MS = 2000;

/** One file whose content is followed. Symbolic links are followed to their end, so that a link that is swapped is another file. */
export interface FollowedFile {
  readonly path: string;
  /** Whether the content differs from what was seen last. A `stat` suffices as long as nothing was written. */
  differs(): boolean;
  /** The same; the content counts as seen from then on. */
  changed(): boolean;
  /** Takes this content as seen: what a reader of the file got (undefined for a file that could not be read). */
  saw(text: string | undefined): void;
}

export interface FollowOptions {
  /** Wall clock in milliseconds, to be compared with the file system's. */
  readonly epochMs?: () => number;
  /** Counts the times that a file was read. */
  readonly reads?: { count: number };
}

/** Follows `path` from its present content on. */
export function followFile(path: string, { epochMs = Date.now, reads }: FollowOptions = {}): FollowedFile {
  let mark: Mark | undefined;
  let content = '';

  const look = (): string => {
    // The mark is taken before the content: what is written in between makes another.
    const now = markOf(path);
    if (mark === undefined || now.text !== mark.text) {
      content = digest(textOf(path));
      if (reads !== undefined) reads.count++;
      mark = now.changedMs < epochMs() - RACY_MS ? now : undefined;
    }
    return content;
  };
  let seen = look();
  return {
    path,
    differs: () => look() !== seen,
    changed() {
      const before = seen;
      seen = look();
      return seen !== before;
    },
    saw(text) {
      seen = digest(text);
      // What the file holds by now may be something else already.
      mark = undefined;
    },
  };
}

function markOf(path: string): Mark {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs, mtimeMs, ctimeMs } = statSync(path, { bigint: true });
    const changed = mtimeMs > ctimeMs ? mtimeMs : ctimeMs;
    return { text: `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`, changedMs: Number(changed) };
  } catch (error) {
    return { text: (error as NodeJS.ErrnoException).code ?? 'unreadable', changedMs: -Infinity };
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function digest(text: string | undefined): string {
  return text === undefined ? '' : createHash('sha1').update(text).digest('hex');
}
