import type { CatalogueEntry } from '../check/catalogue/entries.ts';
import type { SemanticModel } from './semantic-model.ts';

/** The entry that a written name stands for at a place, aliases of plugins included; `role` says which kind is meant first. */
export const findEntry = (
  model: SemanticModel,
  path: string,
  offset: number,
  name: string,
  role: string,
): CatalogueEntry | undefined => {
  const [first, ...rest] = name.split('.');
  const alias =
    rest.length === 0 ? undefined : model.bindingsAt(path, offset).find((binding) => binding.name === first);
  const table = alias?.kind === 'plugin' ? alias.table : model.session?.catalogue;
  if (table === undefined) return undefined;
  const key = alias?.kind === 'plugin' ? rest.join('.') : name;
  const { values, scorers, pickers, admissions } = table;
  const order =
    role === 'scorer'
      ? [scorers, values, pickers, admissions]
      : role === 'order'
        ? [admissions, values, scorers, pickers]
        : role === 'picker'
          ? [pickers, values, scorers, admissions]
          : [values, scorers, pickers, admissions];
  for (const names of order) {
    const entry = names.get(key);
    if (entry !== undefined) return entry;
  }
  return undefined;
};
