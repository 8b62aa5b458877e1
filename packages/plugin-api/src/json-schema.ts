/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** The unit literal that an option written in a policy may use; the host converts it to the canonical number of `ValueType`. */
export type OptionUnit = 'duration' | 'bytes' | 'percent' | 'rate' | 'money' | 'count';

/**
 * The subset of JSON Schema (2020-12) that options are described in. One schema drives validation, defaults, docs and completion.
 * An object schema for options has `additionalProperties: false`, and every optional property has a `default` or is absent when unset.
 */
export interface OptionSchema {
  readonly type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean';
  readonly description?: string;
  readonly default?: Json;
  readonly enum?: readonly Json[];
  readonly properties?: { readonly [name: string]: OptionSchema };
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | OptionSchema;
  readonly items?: OptionSchema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly 'x-unit'?: OptionUnit;
}

/** A schema violation as data: `pointer` is a JSON pointer to the offending value (or to the object that lacks or has the key). */
export interface OptionProblem {
  readonly pointer: string;
  readonly keyword: string;
  readonly params: { readonly [name: string]: unknown };
}

/** Checks options against their schema. Injected into the compiler by whoever composes it (package config has the implementation). */
export type CheckOptions = (schema: OptionSchema, value: unknown) => readonly OptionProblem[];

type Mutable = { [key: string]: Json };

/**
 * `value` with the schema's defaults filled in, at every depth of nested objects. Neither argument is changed. Values that do not fit
 * the schema are returned as they are: checking is `CheckOptions`' task.
 */
export function applyOptionDefaults(schema: OptionSchema, value: Json | undefined): Json | undefined {
  if (value === undefined) {
    if (schema.default !== undefined) return applyOptionDefaults(schema, schema.default);
    if (schema.type !== 'object') return undefined;
    value = {};
  }
  if (schema.properties === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
    return value;
  const filled: Mutable = { ...(value as { readonly [key: string]: Json }) };
  for (const [name, property] of Object.entries(schema.properties)) {
    const own = Object.hasOwn(filled, name) ? filled[name] : undefined;
    if (own === undefined && property.default === undefined) continue;
    const result = applyOptionDefaults(property, own);
    if (result !== undefined) filled[name] = result;
  }
  return filled;
}
