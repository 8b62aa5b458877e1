import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { createOptionChecker } from '@signalbox/config';
import type { Plugin } from '@signalbox/plugin-api';
import { SignalboxError, toManifest } from '@signalbox/plugin-api';
import { renderText } from '@signalbox/policy';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import type { PluginFinder } from '../plugins/plugin-packages.ts';
import { createPluginFinder } from '../plugins/plugin-packages.ts';
import { compileAside, isLargePolicy } from './compile-aside.ts';
import type { CompileJob, LoadedPolicy } from './compile-job.ts';
import { runCompileJob } from './compile-job.ts';
import { policyRoot, readPolicyText } from './policy-files.ts';

export type { LoadedPolicy } from './compile-job.ts';

export interface PolicyLoaderOptions {
  /** The directory that shown paths are relative to. */
  readonly cwd: string;
  /** Package names or paths that may load beyond the dependencies of the nearest package.json. */
  readonly allowPlugins: readonly string[];
  /** Whether a missing `default` is an error. */
  readonly strict?: boolean;
  /** In place of the first-party plugins. */
  readonly plugins?: readonly Plugin[];
}

/** A policy as texts: its main file and what that imports, by paths relative to one directory, `/` between folders. */
export interface PolicyTexts {
  readonly main: string;
  readonly files: { readonly [path: string]: string };
}

/**
 * Compiles policy files from disk. One loader serves one policy for as long as it runs: which plugin packages may load is settled when
 * it is made, so that an edit of a policy cannot widen it.
 */
export interface PolicyLoader {
  /** Reads and compiles. Throws a SignalboxError if the file itself cannot be read; every other fault is a diagnostic. */
  load(path: string): LoadedPolicy;
  /** The same; a large policy is compiled on a thread of its own. `imported` are the other texts that it was made of so far. */
  loadAside(path: string, imported?: Iterable<string | undefined>): Promise<LoadedPolicy>;
  /**
   * Compiles texts as if they stood in the folder of the policy at `path`, and reads no others. Throws a SignalboxError (400) if they name
   * no main file or lead out of that folder.
   */
  loadTexts(path: string, texts: PolicyTexts): Promise<LoadedPolicy>;
}

export function createPolicyLoader({
  cwd,
  allowPlugins,
  strict = false,
  plugins = BUILTIN_PLUGINS,
}: PolicyLoaderOptions): PolicyLoader {
  const checkOptions = createOptionChecker();
  const manifests = plugins.map(toManifest);
  const finders = new Map<string, PluginFinder>();
  const jobFor = (path: string, text: string, root: string): CompileJob => {
    const finder = finders.get(root) ?? createPluginFinder(root, allowPlugins);
    finders.set(root, finder);
    return { path, text, cwd, root, manifests, plugins: finder.settled, strict, nowEpochMs: Date.now() };
  };
  const jobAt = (path: string): CompileJob => {
    const absolute = resolve(cwd, path);
    return jobFor(absolute, readPolicyText(absolute), policyRoot(absolute));
  };
  const run = async (job: CompileJob, texts: Iterable<string | undefined>): Promise<LoadedPolicy> =>
    isLargePolicy(texts) ? await compileAside(job) : runCompileJob(job, checkOptions);
  return {
    load: (path) => runCompileJob(jobAt(path), checkOptions),
    async loadAside(path, imported = []) {
      const job = jobAt(path);
      return await run(job, [job.text, ...imported]);
    },
    async loadTexts(path, { main, files }) {
      const root = policyRoot(resolve(cwd, path));
      const given = new Map(Object.entries(files).map(([name, text]) => [placeBelow(root, name), text]));
      const at = placeBelow(root, main);
      const text = given.get(at);
      if (text === undefined)
        throw new SignalboxError(`the policy's main file ${JSON.stringify(main)} is not among its files`, {
          code: 'policy_texts_invalid',
          source: 'client',
          status: 400,
        });
      return await run({ ...jobFor(at, text, root), files: given }, given.values());
    },
  };
}

function placeBelow(root: string, name: string): string {
  const place = join(root, name);
  const inside = relative(root, place);
  if (name === '' || isAbsolute(name) || inside === '' || inside.startsWith('..') || dirname(place) === place)
    throw new SignalboxError(`a file of a policy must lie below its folder, got ${JSON.stringify(name)}`, {
      code: 'policy_texts_invalid',
      source: 'client',
      status: 400,
    });
  return place;
}

/** The findings and notices as people read them. Empty for none. */
export function findingsText({ diagnostics, sources, notices }: LoadedPolicy, colour: boolean): string {
  const findings = diagnostics.length === 0 ? '' : renderText(diagnostics, sources, { color: colour });
  return findings + notices.map((notice) => `note: ${notice}\n`).join('');
}
