import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { SignalboxError } from '@signalbox/plugin-api';

/** Largest policy file that is read; the language has the same limit and a finding of its own for it. */
const READ_LIMIT = 4 * 1024 * 1024;

/** The text of a policy file. Throws a SignalboxError that says what to do when it cannot be read. */
export function readPolicyText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT'
        ? 'there is no such file'
        : code === 'EISDIR'
          ? 'it is a directory; name a .route file in it'
          : code === 'EACCES'
            ? 'reading it is not permitted'
            : ((cause as Error).message ?? String(code));
    throw new SignalboxError(`cannot read ${path}: ${why}`, { code: 'policy_unreadable', source: 'gateway', cause });
  }
  if (bytes.length > READ_LIMIT) {
    throw new SignalboxError(`cannot read ${path}: it has ${bytes.length} bytes, and a policy file has at most 1 MiB`, {
      code: 'policy_unreadable',
      source: 'gateway',
    });
  }
  return bytes.toString('utf8');
}

/**
 * Reads imported files for the compiler, by paths relative to `cwd`: only what lies under `root`, and `undefined` for what is not
 * there. Remembers what it was asked for.
 */
export function createPolicyReader(
  cwd: string,
  root: string,
): {
  read(path: string): string | undefined;
  /** What it gave, by absolute path. */
  readonly texts: ReadonlyMap<string, string | undefined>;
} {
  const texts = new Map<string, string | undefined>();
  return {
    texts,
    read(path) {
      const absolute = resolve(cwd, path);
      const inside = relative(root, absolute);
      if (inside.startsWith('..') || isAbsolute(inside)) return undefined;
      let text: string | undefined;
      try {
        text = readFileSync(absolute, 'utf8');
      } catch {
        // the compiler says that it is not there
      }
      texts.set(absolute, text);
      return text;
    },
  };
}

/** The directory that imports must stay under: the one of the file that was named. */
export function policyRoot(path: string): string {
  return dirname(resolve(path));
}
