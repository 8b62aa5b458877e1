import type { Plugin, PluginKind } from '@signalbox/plugin-api';
import { check, demand } from './check.ts';
import type { Check } from './check.ts';
import { checkPlugin } from './check-plugin.ts';

/** The definition of a provided name; throws where the plugin has none of it, which is a mistake in the test. */
export function definitionOf<K extends PluginKind>(
  plugin: Plugin,
  kind: K,
  name: string,
): NonNullable<Plugin['provides'][K]>[string] {
  const definitions = plugin.provides[kind] as
    | { readonly [name: string]: NonNullable<Plugin['provides'][K]>[string] }
    | undefined;
  const definition = definitions !== undefined && Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  if (definition === undefined) {
    const names = Object.keys(plugin.provides[kind] ?? {}).join(', ');
    throw new RangeError(
      `plugin "${plugin.name}" provides no ${kind} "${name}"; it provides ${names === '' ? `no ${kind} at all` : names}`,
    );
  }
  return definition;
}

/** The check that an entry's manifest form is right. */
export function manifestCheck(plugin: Plugin, kind: PluginKind, name: string): Check {
  return check(`${kind} ${name}: manifest, options and reads are well formed`, () => {
    const problems = checkPlugin(plugin).filter(({ where }) => where === 'plugin' || where === `${kind} ${name}`);
    demand(problems.length === 0, () => problems.map(({ where, message }) => `${where} ${message}`).join('; '));
  });
}
