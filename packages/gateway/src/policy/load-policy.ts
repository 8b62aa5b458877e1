import { relative, resolve } from 'node:path';
import { createOptionChecker } from '@signalbox/config';
import type { Plugin } from '@signalbox/plugin-api';
import { toManifest } from '@signalbox/plugin-api';
import { INERT_KEYS, tenantsWithoutKeys } from '@signalbox/core';
import type { Diagnostic, PolicyChecks, PolicyProgram, Sources } from '@signalbox/policy';
import { compilePolicy, renderText } from '@signalbox/policy';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import type { PluginFinder, PluginPackage } from '../plugins/plugin-packages.ts';
import { createPluginFinder } from '../plugins/plugin-packages.ts';
import { createPolicyReader, policyRoot, readPolicyText } from './policy-files.ts';
import type { TextsByPath } from './policy-watcher.ts';
import { UNPROVIDED } from './unfed-properties.ts';

/** What came of compiling one policy file and all that it imports. */
export interface LoadedPolicy {
  /** Present if there are no errors. */
  readonly program: PolicyProgram | undefined;
  /** Its tests and ensures, checked and not run; present with the program. */
  readonly checks: PolicyChecks | undefined;
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

/**
 * Compiles policy files from disk. One loader serves one policy for as long as it runs: which plugin packages may load is settled when
 * it is made, so that an edit of a policy cannot widen it.
 */
export interface PolicyLoader {
  /** Reads and compiles. Throws a SignalboxError if the file itself cannot be read; every other fault is a diagnostic. */
  load(path: string): LoadedPolicy;
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
  const finderFor = (root: string): PluginFinder => {
    const known = finders.get(root) ?? createPluginFinder(root, allowPlugins);
    finders.set(root, known);
    return known;
  };
  return {
    load(path) {
      const absolute = resolve(cwd, path);
      const root = policyRoot(absolute);
      const finder = finderFor(root);
      const packages = new Map<string, PluginPackage>();
      const text = readPolicyText(absolute);
      const reader = createPolicyReader(cwd, root);
      const { program, checks, diagnostics, files } = compilePolicy({
        path: shownPath(cwd, absolute),
        root: shownPath(cwd, root),
        text,
        readFile: reader.read,
        manifests,
        resolvePlugin(name: string) {
          const found = finder.find(name);
          if ('reason' in found) return { error: found };
          packages.set(name, found);
          return { manifest: found.manifest };
        },
        checkOptions,
        unprovided: [...UNPROVIDED, ...INERT_KEYS],
        nowEpochMs: Date.now(),
        strict,
      });
      const sources = new Map(files.map((file) => [file.path, file.text]));
      const notices = program === undefined ? [] : tenantsWithoutKeys(program);
      return {
        program,
        checks,
        diagnostics,
        notices,
        sources,
        texts: new Map([[absolute, text], ...reader.texts]),
        packages,
      };
    },
  };
}

/** The findings and notices as people read them. Empty for none. */
export function findingsText({ diagnostics, sources, notices }: LoadedPolicy, colour: boolean): string {
  const findings = diagnostics.length === 0 ? '' : renderText(diagnostics, sources, { color: colour });
  return findings + notices.map((notice) => `note: ${notice}\n`).join('');
}

/** Relative to `cwd` where the file lies below it, else absolute. */
function shownPath(cwd: string, absolute: string): string {
  const path = relative(cwd, absolute);
  return (path.startsWith('..') ? absolute : path).replaceAll('\\', '/');
}
