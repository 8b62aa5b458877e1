import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin, PluginManifest } from '@signalbox/plugin-api';
import type { PluginProblem } from '@signalbox/policy';
import { API_VERSION, SignalboxError } from '@signalbox/plugin-api';
import { DEFAULT_LIMITS, importIsolated } from './isolation/isolated-plugin.ts';
import type { IsolationLimits } from './isolation/messages.ts';

/** A plugin package found on disk: its manifest as data, and the module to import when it is bound. */
export interface PluginPackage {
  readonly name: string;
  readonly version: string;
  readonly directory: string;
  readonly manifest: PluginManifest;
  /** Absolute path of the module whose default export is the plugin. */
  readonly entry: string;
}

/** Where a package's file lives and what it says; only the fields that are read here. */
interface PackageJson {
  readonly name?: string;
  readonly version?: string;
  readonly main?: string;
  readonly exports?: unknown;
  readonly signalbox?: string;
  readonly dependencies?: { readonly [name: string]: string };
  readonly devDependencies?: { readonly [name: string]: string };
  readonly optionalDependencies?: { readonly [name: string]: string };
}

/** Finds plugin packages for the policies of one directory. What may be loaded is settled when it is made and never widened. */
export interface PluginFinder {
  /** The package, or why it cannot be used and what to do. */
  find(name: string): PluginPackage | PluginProblem;
  /** Names that `use` may name. */
  readonly allowed: ReadonlySet<string>;
  /** What was settled, as data: another thread makes the same finder of it. */
  readonly settled: SettledPlugins;
}

/** Which packages may load, settled once for the policies of one directory. */
export interface SettledPlugins {
  readonly directory: string;
  readonly allowed: readonly string[];
  /** The nearest `package.json`. */
  readonly project?: string;
  /** The plugin package that the directory itself belongs to. */
  readonly own?: string;
}

/**
 * A finder for policies under `directory`. A package may load if the nearest `package.json` upwards lists it as a dependency (or is its own), or if it
 * is in `allow` (`--allow-plugin`); names in `allow` may also be paths relative to `directory`.
 */
export function createPluginFinder(directory: string, allow: readonly string[]): PluginFinder {
  const allowed = new Set(allow);
  const project = nearestPackageJson(directory);
  let own: string | undefined;
  if (project !== undefined) {
    const { name: ownName, dependencies, devDependencies, optionalDependencies, signalbox } = readPackageJson(project);
    // a plugin package may try its own policy in its own folder
    own = signalbox === undefined ? undefined : ownName;
    if (own !== undefined) allowed.add(own);
    for (const name of Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })) allowed.add(name);
  }
  return finderOf({
    directory,
    allowed: [...allowed],
    ...(project === undefined ? {} : { project }),
    ...(own === undefined ? {} : { own }),
  });
}

/** The finder of what was settled before. */
export function finderOf(settled: SettledPlugins): PluginFinder {
  const { directory, project, own } = settled;
  const allowed = new Set(settled.allowed);
  return {
    allowed,
    settled,
    find(name) {
      if (!allowed.has(name)) {
        const where =
          project === undefined ? 'no package.json was found above the policy' : `${project} does not list it`;
        return {
          reason: 'not_allowed',
          message: `the package is not allowed to load: ${where}; add it to that file's dependencies, or start with --allow-plugin ${name}`,
        };
      }
      const found = isPath(name)
        ? resolve(directory, name)
        : name === own && project !== undefined
          ? dirname(project)
          : findInNodeModules(directory, name);
      if (found === undefined || !existsSync(join(found, 'package.json'))) {
        return { reason: 'not_found', message: `the package is not installed; run: npm install ${name}` };
      }
      return readPlugin(name, found);
    },
  };
}

function isPath(name: string): boolean {
  return name.startsWith('./') || name.startsWith('../') || name.startsWith('/');
}

function nearestPackageJson(directory: string): string | undefined {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const candidate = join(at, 'package.json');
    if (existsSync(candidate)) return candidate;
    if (dirname(at) === at) return undefined;
  }
}

function findInNodeModules(directory: string, name: string): string | undefined {
  for (let at = resolve(directory); ; at = dirname(at)) {
    const candidate = join(at, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (dirname(at) === at) return undefined;
  }
}

function readPackageJson(path: string): PackageJson {
  return JSON.parse(readFileSync(path, 'utf8')) as PackageJson;
}

function readPlugin(name: string, directory: string): PluginPackage | PluginProblem {
  const json = readPackageJson(join(directory, 'package.json'));
  if (typeof json.signalbox !== 'string') {
    return {
      reason: 'invalid',
      message: 'the package is not a Signalbox plugin: its package.json has no "signalbox" field that names a manifest',
    };
  }
  const manifestPath = join(directory, json.signalbox);
  let manifest: PluginManifest;
  try {
    manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as PluginManifest;
  } catch {
    return {
      reason: 'invalid',
      message: `its manifest ${json.signalbox} cannot be read; build the package, or reinstall it`,
    };
  }
  if (manifest.manifestVersion !== 1 || !Array.isArray(manifest.entries)) {
    return {
      reason: 'invalid',
      message: `its manifest ${json.signalbox} is not one that this version reads; generate it again with plugin-api's toManifest`,
    };
  }
  if (manifest.apiVersion !== API_VERSION) {
    return {
      reason: 'api_version',
      message: `it was written for plugin API ${String(manifest.apiVersion)}, and this gateway speaks ${API_VERSION}; install a version of it for API ${API_VERSION}`,
    };
  }
  const entry = entryOf(json);
  if (entry === undefined) {
    return { reason: 'invalid', message: 'its package.json names no module to import ("exports" or "main")' };
  }
  return { name, version: json.version ?? '0.0.0', directory, manifest, entry: join(directory, entry) };
}

/** The module of the `.` export under the conditions import and default, else `main`. */
function entryOf({ exports, main }: PackageJson): string | undefined {
  let target: unknown = exports;
  if (typeof target === 'object' && target !== null && '.' in target) target = target['.'];
  while (typeof target === 'object' && target !== null) {
    const conditions = target as { readonly import?: unknown; readonly node?: unknown; readonly default?: unknown };
    target = conditions.import ?? conditions.node ?? conditions.default;
  }
  return typeof target === 'string' ? target : main;
}

/** Which packages run in a process of their own. */
export interface Isolation {
  readonly names: readonly string[];
  /** All that a policy's `use` loads. */
  readonly all: boolean;
  readonly limits: IsolationLimits;
}

export const NO_ISOLATION: Isolation = { names: [], all: false, limits: DEFAULT_LIMITS };

/** Imports all packages of a policy, those that are to be isolated into a process of their own. Throws as `importPlugin` does. */
export function importPlugins(
  packages: Iterable<PluginPackage>,
  isolation: Isolation = NO_ISOLATION,
): Promise<readonly Plugin[]> {
  return Promise.all(Array.from(packages, (found) => importPlugin(found, isolation)));
}

/**
 * Imports a plugin package and checks that it is what its manifest says. Throws a SignalboxError that names the package.
 */
export async function importPlugin(found: PluginPackage, isolation: Isolation = NO_ISOLATION): Promise<Plugin> {
  let module: { readonly default?: unknown };
  try {
    module =
      isolation.all || isolation.names.includes(found.name)
        ? { default: await importIsolated(found.name, found.entry, isolation.limits) }
        : ((await import(pathToFileURL(found.entry).href)) as { readonly default?: unknown });
  } catch (cause) {
    throw new SignalboxError(`plugin package "${found.name}" could not be imported: ${(cause as Error).message}`, {
      code: 'plugin_import_failed',
      source: 'plugin',
      cause,
    });
  }
  const plugin = module.default as Partial<Plugin> | undefined;
  if (typeof plugin !== 'object' || plugin === null || typeof plugin.provides !== 'object') {
    throw new SignalboxError(
      `plugin package "${found.name}" has no plugin as its default export; export default definePlugin({ … })`,
      {
        code: 'plugin_no_export',
        source: 'plugin',
      },
    );
  }
  if (plugin.apiVersion !== API_VERSION) {
    throw new SignalboxError(
      `plugin package "${found.name}" was written for plugin API ${String(plugin.apiVersion)}; this gateway speaks ${API_VERSION}`,
      { code: 'plugin_api_version', source: 'plugin' },
    );
  }
  for (const { kind, name } of found.manifest.entries) {
    if (!Object.hasOwn(plugin.provides[kind] ?? {}, name)) {
      throw new SignalboxError(
        `plugin package "${found.name}": its manifest promises the ${kind} "${name}", but its code does not provide it; generate the manifest again`,
        { code: 'plugin_manifest_stale', source: 'plugin' },
      );
    }
  }
  return plugin as Plugin;
}
