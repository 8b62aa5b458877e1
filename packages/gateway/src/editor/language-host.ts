import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { Dirent } from 'node:fs';
import { createOptionChecker } from '@signalbox/config';
import type { LanguageHost } from '@signalbox/language-server';
import { toManifest } from '@signalbox/plugin-api';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import { createPluginFinder } from '../plugins/plugin-packages.ts';
import { UNPROVIDED } from '../policy/unfed-properties.ts';

/** Largest file that is read for an editor; the language has a limit of its own below it. */
const READ_LIMIT = 4 * 1024 * 1024;
const MAX_DEPTH = 12;

/** A path of the compiler, which has `/` between folders, as this system has it. */
const native = (path: string): string => (/^\/[A-Za-z]:\//.test(path) ? path.slice(1) : path);

const readText = (path: string): string | undefined => {
  try {
    const file = native(path);
    const stats = statSync(file);
    return stats.isFile() && stats.size <= READ_LIMIT ? readFileSync(file, 'utf8') : undefined;
  } catch {
    return undefined;
  }
};

const entriesOf = (directory: string): readonly Dirent[] => {
  try {
    return readdirSync(native(directory), { withFileTypes: true });
  } catch {
    return [];
  }
};

/** Policy files below a directory in order; not in hidden folders and those of packages, and not through links. */
const listPolicies = (directory: string, limit: number): readonly string[] => {
  const found: string[] = [];
  const visit = (folder: string, depth: number): void => {
    for (const entry of entriesOf(folder).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (found.length >= limit) return;
      const path = `${folder}/${entry.name}`;
      if (entry.isFile() && entry.name.endsWith('.route')) found.push(path);
      else if (entry.isDirectory() && depth < MAX_DEPTH && entry.name !== 'node_modules' && !entry.name.startsWith('.'))
        visit(path, depth + 1);
    }
  };
  visit(directory.replace(/\/$/, ''), 0);
  return found;
};

/** Files, plugins and time as the language server takes them: those of this build and machine. */
export function createLanguageHost(allowPlugins: readonly string[]): LanguageHost {
  return {
    manifests: BUILTIN_PLUGINS.map(toManifest),
    // A finder for each question, so that an edit of package.json counts; nothing is loaded, only manifests are read.
    resolvePlugin(root, name) {
      const found = createPluginFinder(native(root), allowPlugins).find(name);
      return 'reason' in found ? { error: found } : { manifest: found.manifest };
    },
    pluginPackages(root) {
      const finder = createPluginFinder(native(root), allowPlugins);
      return [...finder.allowed].filter((name) => !('reason' in finder.find(name)));
    },
    checkOptions: createOptionChecker(),
    unprovided: UNPROVIDED,
    readFile: readText,
    listPolicies,
    nowEpochMs: () => Date.now(),
    schedule(run, ms) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
}
