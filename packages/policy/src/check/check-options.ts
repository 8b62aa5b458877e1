import type { Json, OptionProblem, OptionSchema } from '@signalbox/plugin-api';

const typeName = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

const hasType = (type: NonNullable<OptionSchema['type']>, value: unknown): boolean =>
  type === 'integer' ? typeof value === 'number' && Number.isInteger(value) : typeName(value) === type;

const equal = (a: Json, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * Checks options against the subset of JSON Schema that `OptionSchema` is, without any library. Hosts that have a full validator inject
 * it in place of this one; problems come in the same form.
 */
export const checkOptionsPlainly = (schema: OptionSchema, value: unknown): readonly OptionProblem[] => {
  const problems: OptionProblem[] = [];
  const add = (pointer: string, keyword: string, params: OptionProblem['params']): void => {
    problems.push({ pointer, keyword, params });
  };
  const visit = (part: OptionSchema, at: unknown, pointer: string): void => {
    if (part.type !== undefined && !hasType(part.type, at)) {
      add(pointer, 'type', { type: part.type });
      return;
    }
    if (part.enum !== undefined && !part.enum.some((allowed) => equal(allowed, at)))
      add(pointer, 'enum', { allowedValues: part.enum });
    if (typeof at === 'number') {
      if (part.minimum !== undefined && at < part.minimum) add(pointer, 'minimum', { limit: part.minimum });
      if (part.maximum !== undefined && at > part.maximum) add(pointer, 'maximum', { limit: part.maximum });
      if (part.exclusiveMinimum !== undefined && at <= part.exclusiveMinimum)
        add(pointer, 'exclusiveMinimum', { limit: part.exclusiveMinimum });
      if (part.exclusiveMaximum !== undefined && at >= part.exclusiveMaximum)
        add(pointer, 'exclusiveMaximum', { limit: part.exclusiveMaximum });
    } else if (typeof at === 'string') {
      const { length } = Array.from(at);
      if (part.minLength !== undefined && length < part.minLength) add(pointer, 'minLength', { limit: part.minLength });
      if (part.maxLength !== undefined && length > part.maxLength) add(pointer, 'maxLength', { limit: part.maxLength });
      if (part.pattern !== undefined && !new RegExp(part.pattern, 'u').test(at))
        add(pointer, 'pattern', { pattern: part.pattern });
    } else if (Array.isArray(at)) {
      if (part.minItems !== undefined && at.length < part.minItems) add(pointer, 'minItems', { limit: part.minItems });
      if (part.maxItems !== undefined && at.length > part.maxItems) add(pointer, 'maxItems', { limit: part.maxItems });
      const { items } = part;
      if (items !== undefined) for (const [index, item] of at.entries()) visit(items, item, `${pointer}/${index}`);
    } else if (typeof at === 'object' && at !== null) {
      for (const name of part.required ?? [])
        if (!Object.hasOwn(at, name)) add(pointer, 'required', { missingProperty: name });
      for (const [name, inner] of Object.entries(at)) {
        const property =
          part.properties === undefined || !Object.hasOwn(part.properties, name) ? undefined : part.properties[name];
        if (property !== undefined)
          visit(property, inner, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
        else if (part.additionalProperties === false)
          add(pointer, 'additionalProperties', { additionalProperty: name });
        else if (typeof part.additionalProperties === 'object')
          visit(part.additionalProperties, inner, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
      }
    }
  };
  visit(schema, value, '');
  return problems;
};
