import type { CommandInput, OptionHelp } from '../cli/command.ts';
import { UsageError } from '../cli/command.ts';
import { DEFAULT_LIMITS } from './isolation/isolated-plugin.ts';
import type { Isolation } from './plugin-packages.ts';

/** Which plugin packages may load, and which run apart: settled by whoever starts the command, never by a policy. */
export interface PluginChoice {
  readonly allowPlugins: readonly string[];
  readonly isolation: Isolation;
}

/** The option of commands that read what plugins say of themselves. */
export const ALLOW_PLUGIN: { readonly [name: string]: OptionHelp } = {
  'allow-plugin': {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'a plugin package that may be used beyond the dependencies of package.json',
  },
};

/** Options of commands that run plugins. */
export const PLUGIN_OPTIONS: { readonly [name: string]: OptionHelp } = {
  ...ALLOW_PLUGIN,
  'isolate-plugin': {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'a plugin package that runs in a process of its own, with limits of time and memory',
  },
  'isolate-plugins': { type: 'boolean', help: 'the same for every package that a policy uses' },
  'isolate-timeout': {
    type: 'string',
    value: 'TIME',
    help: `how long one call of an isolated plugin may take; ${DEFAULT_LIMITS.callMs}ms by default`,
  },
};

export function readPluginChoice(input: CommandInput): PluginChoice {
  const callMs = readTimeout(input.text('isolate-timeout'));
  return {
    allowPlugins: input.texts('allow-plugin'),
    isolation: {
      names: input.texts('isolate-plugin'),
      all: input.flag('isolate-plugins'),
      limits: { ...DEFAULT_LIMITS, callMs },
    },
  };
}

function readTimeout(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMITS.callMs;
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s)$/.exec(text) ?? [];
  const ms = Number(number) * (unit === 's' ? 1000 : 1);
  if (!(ms > 0 && ms <= DEFAULT_LIMITS.setupMs))
    throw new UsageError(`--isolate-timeout must be a time of at most 2s, such as 5ms, got "${text}"`);
  return ms;
}
