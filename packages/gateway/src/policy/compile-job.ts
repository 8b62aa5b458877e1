import { relative, resolve } from 'node:path';
import type { CheckOptions, PluginManifest } from '@signalbox/plugin-api';
import { INERT_KEYS, tenantsWithoutKeys } from '@signalbox/core';
import type { CompileResult, Diagnostic, PolicyChecks, PolicyProgram, Sources } from '@signalbox/policy';
import { compilePolicy } from '@signalbox/policy';
import type { PluginPackage, SettledPlugins } from '../plugins/plugin-packages.ts';
import { finderOf } from '../plugins/plugin-packages.ts';
import { createPolicyReader } from './policy-files.ts';
import type { TextsByPath } from './policy-watcher.ts';
import { UNPROVIDED } from './unfed-properties.ts';

/** What came of compiling one policy file and all that it imports. */
export interface LoadedPolicy {
  /** Present if there are no errors. */
  readonly program: PolicyProgram | undefined;
  /** Its tests and ensures, checked and not run; present with the program. */
  readonly checks: PolicyChecks | undefined;
  /** What `@allow` drops, for the analysis; present with the program. */
  readonly allowed: CompileResult['allowed'];
  readonly diagnostics: readonly Diagnostic[];
  /** What no place in the text stands for, a sentence each. */
  readonly notices: readonly string[];
  /** Texts by the file id that spans carry, for rendering. */
  readonly sources: Sources;
  /** What was read of every file that took part, present or not, for the watcher. */
  readonly texts: TextsByPath;
  /** The plugin packages that `use` statements found, by package name. */
  readonly packages: ReadonlyMap<string, PluginPackage>;
}

/** One compilation as data, so that any thread can do it. */
export interface CompileJob {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
  /** The directory that shown paths are relative to. */
  readonly cwd: string;
  /** The directory that imports stay under. */
  readonly root: string;
  /** The only files that there are for it, by absolute path; absent: those on disk. */
  readonly files?: ReadonlyMap<string, string>;
  readonly manifests: readonly PluginManifest[];
  readonly plugins: SettledPlugins;
  readonly strict: boolean;
  readonly nowEpochMs: number;
}

/** Compiles; every fault of the policy is a diagnostic. `checkOptions` is the host's, since a function is no data. */
export function runCompileJob(job: CompileJob, checkOptions: CheckOptions): LoadedPolicy {
  const { path, text, cwd, root, files: given } = job;
  const finder = finderOf(job.plugins);
  const packages = new Map<string, PluginPackage>();
  const reader = given === undefined ? createPolicyReader(cwd, root) : undefined;
  const { program, checks, allowed, diagnostics, files } = compilePolicy({
    path: shownPath(cwd, path),
    root: shownPath(cwd, root),
    text,
    readFile: reader?.read ?? ((asked) => given?.get(resolve(cwd, asked))),
    manifests: job.manifests,
    resolvePlugin(name: string) {
      const found = finder.find(name);
      if ('reason' in found) return { error: found };
      packages.set(name, found);
      return { manifest: found.manifest };
    },
    checkOptions,
    unprovided: [...UNPROVIDED, ...INERT_KEYS],
    nowEpochMs: job.nowEpochMs,
    strict: job.strict,
  });
  return {
    program,
    checks,
    allowed,
    diagnostics,
    notices: [...(reader?.problems ?? []), ...(program === undefined ? [] : tenantsWithoutKeys(program))],
    sources: new Map(files.map((file) => [file.path, file.text])),
    texts: new Map([[path, text], ...(reader?.texts ?? given ?? [])]),
    packages,
  };
}

/** Relative to `cwd` where the file lies below it, else absolute. */
function shownPath(cwd: string, absolute: string): string {
  const path = relative(cwd, absolute);
  return (path.startsWith('..') ? absolute : path).replaceAll('\\', '/');
}
