import type { CheckOptions, PluginManifest } from '@signalbox/plugin-api';
import type { ResolvedPlugin } from '@signalbox/policy';

/** Stops what was scheduled, if it has not run. */
export type Cancel = () => void;

/** What the language server asks of whoever composes it: files, plugins, time. It reads nothing by itself. */
export interface LanguageHost {
  /** Manifests of the plugins whose names are in scope without a prefix. */
  readonly manifests: readonly PluginManifest[];
  /** What a `use` in a policy under `root` (an absolute directory) names. */
  resolvePlugin(root: string, name: string): ResolvedPlugin;
  /** Packages that policies under `root` may name in `use`. */
  pluginPackages(root: string): readonly string[];
  readonly checkOptions: CheckOptions;
  /** Catalogue keys that nothing feeds, as the compiler takes them. */
  readonly unprovided: readonly string[];
  /** Text of a file by its absolute path, or undefined where it cannot be read. */
  readFile(path: string): string | undefined;
  /** Absolute paths of the policy files below a directory, at most `limit` of them, in order. */
  listPolicies(directory: string, limit: number): readonly string[];
  /** Milliseconds since 1970, for what expires. */
  nowEpochMs(): number;
  /** Runs once after `ms` milliseconds. */
  schedule(run: () => void, ms: number): Cancel;
}
