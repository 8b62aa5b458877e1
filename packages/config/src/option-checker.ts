import type { CheckOptions, OptionProblem, OptionSchema } from '@signalbox/plugin-api';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';

/**
 * A checker of options against their JSON Schema, with all violations of a value at once. Schemas are compiled once per checker and kept
 * for as long as the schema object lives. Throws a plain Error for a schema that is not valid itself, which is its author's mistake.
 */
export function createOptionChecker(): CheckOptions {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    strictTypes: false,
    useDefaults: false,
    coerceTypes: false,
  });
  ajv.addVocabulary(['x-unit']);
  const compiled = new WeakMap<OptionSchema, ValidateFunction>();
  return (schema, value) => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      validate = ajv.compile(schema);
      compiled.set(schema, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(toProblem);
  };
}

/** The problem's pointer names the value; for a missing or unknown key it names the object, and `params` the key. */
function toProblem(error: ErrorObject): OptionProblem {
  return { pointer: error.instancePath, keyword: error.keyword, params: error.params as OptionProblem['params'] };
}
