import { functionDocs } from '../check/catalogue/function-docs.ts';
import { modifierTable } from '../check/catalogue/modifiers.ts';
import { typeOfSchema } from '../check/options.ts';
import { expectedAfter } from './expected.ts';
import { findEntry } from './find-entry.ts';
import type { SemanticModel } from './semantic-model.ts';
import { typeText } from './type-text.ts';

/** How a call or a modifier at a place is written. */
export interface PolicySignature {
  /** `under_load(limit: percent)`. */
  readonly label: string;
  readonly doc: string;
  /** The parts of the label that are parameters, as [start, end) in it. */
  readonly parameters: readonly (readonly [number, number])[];
  /** Index of the parameter at the place; undefined where none of them stands there. */
  readonly active?: number;
}

/** `name(a: T, b: U)` with the places of its parameters. */
const layOut = (name: string, parameters: readonly string[]): Pick<PolicySignature, 'label' | 'parameters'> => {
  let label = `${name}(`;
  const places: (readonly [number, number])[] = [];
  for (const [index, parameter] of parameters.entries()) {
    if (index > 0) label += ', ';
    places.push([label.length, label.length + parameter.length]);
    label += parameter;
  }
  return { label: `${label})`, parameters: places };
};

/** Help with the call or modifier in which a place lies, in unfinished text too. */
export const signatureAt = (model: SemanticModel, path: string, offset: number): PolicySignature | undefined => {
  const text = model.tree(path)?.text.slice(0, offset);
  if (text === undefined) return undefined;
  const start = /[\w.%$]*$/.exec(text)?.index ?? offset;
  for (const expectation of expectedAfter(text.slice(0, start))) {
    if (expectation.kind !== 'value') continue;
    const { wanted } = expectation;
    if (wanted.kind === 'modifier') {
      const spec = modifierTable.get(wanted.name);
      if (spec !== undefined) return { label: spec.form, doc: spec.doc, parameters: [] };
    }
    if (wanted.kind !== 'argument' || wanted.role === 'modifier') continue;
    const known = functionDocs[wanted.callee];
    if (known !== undefined) return { label: known.form, doc: known.doc, parameters: [] };
    const entry = findEntry(model, path, offset, wanted.callee, wanted.role);
    if (entry === undefined) continue;
    const options = Object.entries(entry.options?.properties ?? {});
    const names = [...entry.parameters.map(({ name }) => name), ...options.map(([name]) => name)];
    const written = [
      ...entry.parameters.map(
        ({ name, kind, type, optional }) =>
          `${name}${optional === true ? '?' : ''}: ${type === undefined ? (kind === 'expression' ? 'value' : kind) : typeText(type)}`,
      ),
      ...options.map(([name, schema]) => {
        const type = typeOfSchema(schema);
        return `${name}?: ${type === undefined ? (schema.type ?? 'value') : typeText(type)}`;
      }),
    ];
    const own = wanted.name ?? entry.parameters[wanted.index]?.name ?? entry.positional?.[wanted.index];
    const active = own === undefined ? -1 : names.indexOf(own);
    return { ...layOut(wanted.callee, written), doc: entry.doc, ...(active === -1 ? {} : { active }) };
  }
  return undefined;
};
