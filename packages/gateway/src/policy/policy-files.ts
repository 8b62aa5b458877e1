import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { SignalboxError } from '@signalbox/plugin-api';

/** Largest policy file that is read; the language has the same limit and a finding of its own for it. */
const READ_LIMIT = 4 * 1024 * 1024;

/** What is wrong with a file that cannot be read, by the system's code. */
const REASONS: { readonly [code: string]: string } = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of the path is a file where a directory is expected',
  EISDIR: 'it is a directory; name a .route file in it',
  EACCES: 'reading it is not permitted',
  EPERM: 'reading it is not permitted',
  ELOOP: 'its symbolic links lead round in a circle',
};

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A file's text, or why there is none: one sentence, without the path. */
type ReadText =
  | { readonly text: string }
  | { readonly reason: string; readonly missing: boolean; readonly cause?: unknown };

function read(path: string): ReadText {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException;
    return { reason: REASONS[code] ?? message, missing: code === 'ENOENT' || code === 'ENOTDIR', cause };
  }
  if (bytes.length > READ_LIMIT)
    return { reason: `it has ${bytes.length} bytes, and a policy file has at most 1 MiB`, missing: false };
  try {
    return { text: decoder.decode(bytes) };
  } catch (cause) {
    const place = `byte ${firstBadByte(bytes) + 1} of ${bytes.length}`;
    return {
      reason: `it is not UTF-8 text (${place}): half written, or saved in another encoding`,
      missing: false,
      cause,
    };
  }
}

/** Offset of the first byte that no UTF-8 text has there: decoding up to it succeeds, as the start of something longer. */
function firstBadByte(bytes: Buffer): number {
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, middle), { stream: true });
      good = middle;
    } catch {
      bad = middle;
    }
  }
  return good;
}

/** The text of a policy file. Throws a SignalboxError that says what to do when it cannot be read. */
export function readPolicyText(path: string): string {
  const found = read(path);
  if ('text' in found) return found.text;
  throw new SignalboxError(`cannot read ${path}: ${found.reason}`, {
    code: 'policy_unreadable',
    source: 'gateway',
    cause: found.cause,
  });
}

/** Imported files as the compiler asks for them. */
export interface PolicyReader {
  read(path: string): string | undefined;
  /** What it gave, by absolute path. */
  readonly texts: ReadonlyMap<string, string | undefined>;
  /** A sentence for each file that is there and could not be read. */
  readonly problems: readonly string[];
}

/**
 * Reads imported files for the compiler, by paths relative to `cwd`: only what lies under `root`, and `undefined` for what is not
 * there. Remembers what it was asked for.
 */
export function createPolicyReader(cwd: string, root: string): PolicyReader {
  const texts = new Map<string, string | undefined>();
  const problems: string[] = [];
  return {
    texts,
    problems,
    read(path) {
      const absolute = resolve(cwd, path);
      const inside = relative(root, absolute);
      if (inside.startsWith('..') || isAbsolute(inside)) return undefined;
      const found = read(absolute);
      const text = 'text' in found ? found.text : undefined;
      // Of one that is not there the compiler says so.
      if ('reason' in found && !found.missing) problems.push(`cannot read ${path}: ${found.reason}`);
      texts.set(absolute, text);
      return text;
    },
  };
}

/** The directory that imports must stay under: the one of the file that was named. */
export function policyRoot(path: string): string {
  return dirname(resolve(path));
}
