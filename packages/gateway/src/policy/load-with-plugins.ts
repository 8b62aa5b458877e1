import type { Plugin } from '@signalbox/plugin-api';
import type { PolicyProgram } from '@signalbox/policy';
import type { Terminal } from '../cli/command.ts';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import type { PluginChoice } from '../plugins/plugin-options.ts';
import { importPlugins } from '../plugins/plugin-packages.ts';
import { createPolicyLoader, findingsText } from './load-policy.ts';

/** A policy that decides: its program and all plugins that it may name. */
export interface PolicyWithPlugins {
  readonly program: PolicyProgram;
  readonly plugins: readonly Plugin[];
}

/** Loads a policy for a command that decides by it; undefined where it has errors, which then stand on standard error. */
export async function loadWithPlugins(
  path: string,
  { allowPlugins, isolation }: PluginChoice,
  terminal: Terminal,
): Promise<PolicyWithPlugins | undefined> {
  const loaded = createPolicyLoader({ cwd: terminal.cwd, allowPlugins }).load(path);
  if (loaded.program === undefined) {
    terminal.err(findingsText(loaded, terminal.colour));
    return undefined;
  }
  const own = await importPlugins(loaded.packages.values(), isolation);
  return { program: loaded.program, plugins: [...BUILTIN_PLUGINS, ...own] };
}
