import { PLUGIN_KINDS, toManifest } from '@signalbox/plugin-api';
import type { Json, OptionSchema, Plugin } from '@signalbox/plugin-api';

/** Something wrong with what a plugin says of itself. */
export interface PluginProblem {
  /** For example `scorer least_grams`, or `plugin`. */
  readonly where: string;
  readonly message: string;
}

const READ_KEY = /^(request|candidate|cluster)\.[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)*$/;

/**
 * Checks the form of a plugin, without setting anything up: its manifest survives JSON, its option schemas are closed and say their
 * defaults, its reads are keys with a scope, and each kind has the fields that it needs. Empty if all is well.
 */
export function checkPlugin(plugin: Plugin): readonly PluginProblem[] {
  const problems: PluginProblem[] = [];
  const report = (where: string, message: string): void => void problems.push({ where, message });
  checkSchema(plugin.options, 'plugin', report);
  for (const kind of PLUGIN_KINDS) {
    for (const [name, definition] of Object.entries(plugin.provides[kind] ?? {})) {
      const where = `${kind} ${name}`;
      const given = definition as { readonly [field: string]: unknown };
      const options = given['options'] as OptionSchema | undefined;
      checkSchema(options, where, report);
      for (const positional of (given['positional'] as readonly string[] | undefined) ?? []) {
        if (options?.properties?.[positional] === undefined)
          report(
            where,
            `positional "${positional}" is no option; its options are ${Object.keys(options?.properties ?? {}).join(', ') || 'none'}`,
          );
      }
      for (const key of (given['reads'] as readonly string[] | undefined) ?? []) {
        if (!READ_KEY.test(key))
          report(where, `reads "${key}", which is no key; write the scope, as in "candidate.queued_tokens"`);
      }
      if ((kind === 'signal' || kind === 'property') && given['type'] === undefined) report(where, 'has no type');
      if (kind === 'admission' && !Array.isArray(given['arguments'])) report(where, 'has no list of arguments');
      if (typeof given['expression'] === 'string' && !['property', 'filter', 'scorer'].includes(kind)) {
        report(where, `a ${kind} cannot be given as an expression; write a setup function`);
      }
    }
  }
  const manifest = toManifest(plugin);
  const copy = JSON.parse(JSON.stringify(manifest)) as unknown;
  if (!sameJson(manifest, copy))
    report('plugin', 'the manifest changes on its way through JSON: it holds a function, undefined, NaN or a symbol');
  return problems;
}

type Report = (where: string, message: string) => void;

function checkSchema(schema: OptionSchema | undefined, where: string, report: Report): void {
  if (schema === undefined) return;
  if (schema.type !== 'object') {
    report(where, 'the schema of its options is not of type "object"');
    return;
  }
  checkObject(schema, where, '', report);
}

function checkObject(schema: OptionSchema, where: string, path: string, report: Report): void {
  // An inner object may be a map from the author's keys to values of one schema; a misspelt option cannot hide in it.
  const isMap = path !== '' && typeof schema.additionalProperties === 'object';
  if (schema.additionalProperties !== false && !isMap) {
    report(
      where,
      `its options${path} lack "additionalProperties": false, so that a misspelt option would go unnoticed`,
    );
  }
  const required = new Set(schema.required ?? []);
  for (const name of required) {
    if (schema.properties?.[name] === undefined)
      report(where, `its options${path} require "${name}", which is no property`);
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const at = `${path}.${name}`;
    if (property.default !== undefined && !fits(property, property.default)) {
      report(where, `the default of option ${at.slice(1)} does not fit its own schema`);
    }
    if (required.has(name) && property.default !== undefined)
      report(where, `option ${at.slice(1)} is required and has a default; drop one`);
    if (property.type === 'object') checkObject(property, where, at, report);
  }
}

/** Whether a value fits the parts of a schema that a default can break. */
function fits(schema: OptionSchema, value: Json): boolean {
  if (schema.enum !== undefined && !schema.enum.some((one) => sameJson(one, value))) return false;
  switch (schema.type) {
    case 'number':
    case 'integer':
      return (
        typeof value === 'number' &&
        (schema.type === 'number' || Number.isInteger(value)) &&
        !(value < (schema.minimum ?? -Infinity)) &&
        !(value > (schema.maximum ?? Infinity)) &&
        !(schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum) &&
        !(schema.exclusiveMaximum !== undefined && value >= schema.exclusiveMaximum)
      );
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    default:
      return true;
  }
}

/** Deep equality of plain data, in which NaN, functions and `undefined` equal nothing that JSON can hold. */
function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (
    typeof a !== 'object' ||
    typeof b !== 'object' ||
    a === null ||
    b === null ||
    Array.isArray(a) !== Array.isArray(b)
  )
    return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every(
      (key) =>
        Object.hasOwn(b, key) &&
        sameJson((a as { [key: string]: unknown })[key], (b as { [key: string]: unknown })[key]),
    )
  );
}
