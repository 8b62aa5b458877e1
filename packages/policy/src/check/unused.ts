import { hasErrors } from '../diagnostics/diagnostic.ts';
import type { Work } from './work.ts';

export const reportUnused = (work: Work): void => {
  const { session } = work;
  // A use that has an error counts as none, and its error says enough.
  if (hasErrors(session.diagnostics)) return;
  for (const { kind, span, binding, use, name } of work.unusedChecks) {
    if (kind === 'let' && binding?.used === false && binding.kind !== 'poison')
      session.report('W0507', span, `nothing uses \`${name}\``);
    if (kind === 'import' && binding?.used === false && !libraryIsUsed(work, name))
      session.report('W0509', span, `nothing uses a name of \`${name}\``);
    if (kind === 'use' && use !== undefined && !session.usedPlugins.has(use))
      session.report('W0508', span, `nothing uses what ${JSON.stringify(name)} provides`);
  }
  const { defined } = session;
  for (const [kind, names] of [
    ['limit', defined.limits],
    ['alarm', defined.alarms],
    ['param', defined.params],
    ['slo', defined.slos],
  ] as const) {
    for (const definition of names.values()) {
      if (definition.used || !definition.own) continue;
      session.report('W0517', definition.span, `nothing refers to the ${kind} ${JSON.stringify(definition.name)}`, {
        // An objective is shown beside what is measured even where no rule reads it.
        ...(kind === 'slo' ? { severity: 'note' } : {}),
        ...(kind === 'limit' ? { help: 'a limit refuses nothing by itself: write `reject when over_limit("…")`' } : {}),
      });
    }
  }
};

/** Whether something refers to a definition that the import brought. */
const libraryIsUsed = (work: Work, alias: string): boolean => {
  const { tiers, slos, limits, alarms, params, tenants } = work.session.defined;
  for (const names of [tiers, slos, limits, alarms, params]) {
    for (const [name, definition] of names) if (name.startsWith(`${alias}.`) && definition?.used === true) return true;
  }
  return [...tenants.keys()].some((name) => name.startsWith(`${alias}.`));
};
