import { SignalboxError } from './error.ts';
import { API_VERSION } from './plugin.ts';
import type { Plugin, PluginKind } from './plugin.ts';

export const PLUGIN_KINDS: readonly PluginKind[] = ['signal', 'property', 'filter', 'scorer', 'picker', 'admission'];

const WORD = /^[a-z][a-z0-9_]*$/;

function invalid(plugin: unknown, what: string): SignalboxError {
  const name = typeof plugin === 'object' && plugin !== null ? (plugin as { name?: unknown }).name : undefined;
  const who = typeof name === 'string' ? `plugin "${name}"` : 'plugin';
  return new SignalboxError(`${who}: ${what}`, { code: 'plugin_invalid', source: 'plugin' });
}

/**
 * Checks the shape of a plugin and returns it frozen. Inert: nothing is registered and no `setup` runs.
 * Throws a SignalboxError `plugin_invalid`, or `plugin_api_version` for a version that this package does not speak.
 */
export function definePlugin<const P extends Plugin>(plugin: P): P {
  if (typeof plugin !== 'object' || plugin === null)
    throw invalid(plugin, 'expected an object with name, apiVersion and provides');
  if (typeof plugin.name !== 'string' || !/^[a-z][a-z0-9-]*$/.test(plugin.name)) {
    throw invalid(plugin, `name must be kebab-case, got ${JSON.stringify(plugin.name)}`);
  }
  if (plugin.apiVersion !== API_VERSION) {
    throw new SignalboxError(
      `plugin "${plugin.name}" was written for plugin API ${String(plugin.apiVersion)}; this host speaks ${API_VERSION}. Install a version of the plugin for API ${API_VERSION}.`,
      { code: 'plugin_api_version', source: 'plugin' },
    );
  }
  if (typeof plugin.provides !== 'object' || plugin.provides === null)
    throw invalid(plugin, 'provides must be an object of kinds');
  let names = 0;
  for (const kind of Object.keys(plugin.provides)) {
    if (!(PLUGIN_KINDS as readonly string[]).includes(kind)) {
      throw invalid(plugin, `unknown kind "${kind}"; this API has ${PLUGIN_KINDS.join(', ')}`);
    }
    for (const [name, definition] of Object.entries(plugin.provides[kind as PluginKind] ?? {})) {
      names++;
      if (!name.split('.').every((part) => WORD.test(part)))
        throw invalid(plugin, `${kind} "${name}" must be lower_snake_case`);
      const given = definition as { expression?: unknown; setup?: unknown; doc?: unknown };
      if (typeof given.doc !== 'string' || given.doc === '')
        throw invalid(plugin, `${kind} "${name}" needs a doc text`);
      const hasExpression = typeof given.expression === 'string';
      const hasSetup = typeof given.setup === 'function';
      if (hasExpression === hasSetup) {
        throw invalid(plugin, `${kind} "${name}" must have either an expression or a setup function`);
      }
    }
  }
  if (names === 0) throw invalid(plugin, 'provides nothing');
  return deepFreeze(plugin);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
