import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isSignalboxError, SignalboxError } from '@signalbox/plugin-api';
import type { LoadedPolicy, PolicyLoader } from '../policy/load-policy.ts';

/** A policy, or a file of tests with the policy that it imports, that stands for itself in a run. */
export interface TestFile {
  /** As it was found: relative to where the command runs, or as it was given. */
  readonly path: string;
  readonly loaded: LoadedPolicy;
  /** Whether a test or ensure that the policy has is run with this file. */
  runs(check: { readonly span: { readonly file: string } }): boolean;
}

export interface FoundFiles {
  readonly files: readonly TestFile[];
  /** What could not be read, a sentence each. */
  readonly unreadable: readonly string[];
  /** Everything that was looked at, by absolute path, for a watcher. */
  readonly texts: ReadonlyMap<string, string | undefined>;
}

const TEST_FILE = /\.test\.route$/;
const POLICY_FILE = /\.route$/;
/** Folders below the one that is given are looked at so deep. */
const MOST_DEPTH = 16;

/**
 * The files that the arguments of `signalbox test` mean. Of a folder, every policy below it that is no part of another, and every
 * `*.test.route`; of a policy, itself and the `*.test.route` beside it that import it. A file of tests runs its own tests, a policy its own
 * and those of what it imports.
 */
export function findTestFiles(paths: readonly string[], cwd: string, loader: PolicyLoader): FoundFiles {
  const unreadable: string[] = [];
  const texts = new Map<string, string | undefined>();
  const loaded = new Map<string, { readonly path: string; readonly loaded: LoadedPolicy }>();
  const load = (path: string): LoadedPolicy | undefined => {
    const absolute = resolve(cwd, path);
    const known = loaded.get(absolute);
    if (known !== undefined) return known.loaded;
    try {
      const policy = loader.load(path);
      loaded.set(absolute, { path, loaded: policy });
      for (const [file, text] of policy.texts) texts.set(file, text);
      return policy;
    } catch (error) {
      if (!isSignalboxError(error)) throw error;
      unreadable.push(error.message);
      texts.set(absolute, undefined);
      return undefined;
    }
  };

  const found = new Set<string>();
  for (const path of paths) {
    const absolute = resolve(cwd, path);
    if (isFolder(absolute)) {
      const below = policiesBelow(path, cwd);
      for (const file of below) load(file);
      for (const file of standAlone(below, cwd, loaded)) found.add(file);
      continue;
    }
    found.add(path);
    load(path);
    if (TEST_FILE.test(path)) continue;
    for (const beside of testFilesBeside(path, cwd)) {
      const imports = load(beside)?.texts.has(absolute) === true;
      if (imports) found.add(beside);
    }
  }
  const files = [...found].flatMap((path): TestFile[] => {
    const policy = loaded.get(resolve(cwd, path))?.loaded;
    if (policy === undefined) return [];
    const ownOnly = TEST_FILE.test(path);
    return [{ path, loaded: policy, runs: ({ span }) => !ownOnly || TEST_FILE.test(span.file) }];
  });
  return { files: distinct(files, cwd), unreadable, texts };
}

/** Paths of all files that a run of these arguments would look at, whatever is in them: another list is another run. */
export function listTestFiles(paths: readonly string[], cwd: string): readonly string[] {
  return paths.flatMap((path) =>
    isFolder(resolve(cwd, path)) ? policiesBelow(path, cwd) : [path, ...testFilesBeside(path, cwd)],
  );
}

/** The same file under two names is one. */
function distinct(files: readonly TestFile[], cwd: string): readonly TestFile[] {
  return [...Map.groupBy(files, ({ path }) => resolve(cwd, path)).values()].flatMap(([first]) => first ?? []);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Paths of the policies below a folder, in the order of their names; not in `node_modules` or folders with a dot before the name. */
function policiesBelow(folder: string, cwd: string, depth = 0): readonly string[] {
  let entries;
  try {
    entries = readdirSync(resolve(cwd, folder), { withFileTypes: true });
  } catch (cause) {
    throw new SignalboxError(`cannot read ${folder}: ${(cause as Error).message}`, {
      code: 'policy_unreadable',
      source: 'gateway',
      cause,
    });
  }
  return entries
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === '.' ? entry.name : join(folder, entry.name);
      if (entry.isDirectory()) {
        const skipped = entry.name.startsWith('.') || entry.name === 'node_modules' || depth >= MOST_DEPTH;
        return skipped ? [] : policiesBelow(path, cwd, depth + 1);
      }
      return POLICY_FILE.test(entry.name) ? [path] : [];
    });
}

/** Those of the files that run by themselves: not a part of a policy that runs its tests, and not one that is no policy without it. */
function standAlone(
  paths: readonly string[],
  cwd: string,
  loaded: ReadonlyMap<string, { readonly loaded: LoadedPolicy }>,
): readonly string[] {
  const policies = paths.filter((path) => !TEST_FILE.test(path));
  return paths.filter((path) => {
    if (TEST_FILE.test(path)) return true;
    const absolute = resolve(cwd, path);
    const own = loaded.get(absolute)?.loaded;
    const users = policies.flatMap((other) => {
      const policy = resolve(cwd, other) === absolute ? undefined : loaded.get(resolve(cwd, other))?.loaded;
      return policy?.texts.has(absolute) === true ? [policy] : [];
    });
    if (users.length === 0) return true;
    const checks = [...(own?.checks?.tests ?? []), ...(own?.checks?.ensures ?? [])];
    const elsewhere = users.flatMap((user) => [...(user.checks?.tests ?? []), ...(user.checks?.ensures ?? [])]);
    const runElsewhere = new Set(elsewhere.map(({ span }) => `${span.start} ${span.file}`));
    return checks.some(({ span }) => !runElsewhere.has(`${span.start} ${span.file}`));
  });
}

function testFilesBeside(path: string, cwd: string): readonly string[] {
  const folder = dirname(path);
  try {
    return readdirSync(resolve(cwd, folder))
      .filter((name) => TEST_FILE.test(name) && name !== basename(path))
      .toSorted()
      .map((name) => (folder === '.' && !path.startsWith('.') ? name : join(folder, name)));
  } catch {
    // the policy itself will be found to be unreadable
    return [];
  }
}
