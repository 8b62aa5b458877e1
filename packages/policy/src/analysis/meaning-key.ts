import type { PolicyProgram, PropertyRef, SignalRef } from '../ir.ts';

/** Names under which a node keeps where it stands, or what follows from the rest. */
const WITHOUT_MEANING: ReadonlySet<string> = new Set(['span', 'headSpan', 'type', 'scope', 'known', 'reads']);

type Plain = { readonly [name: string]: unknown };

/**
 * A text that two parts of programs share exactly if they mean the same: spans do not count, and signals, properties and plugins are told
 * by what they are and not by their numbers.
 */
export function meaningKey(program: PolicyProgram, part: unknown): string {
  return JSON.stringify(plain(program, part));
}

function plain(program: PolicyProgram, part: unknown): unknown {
  if (Array.isArray(part)) return part.map((member) => plain(program, member));
  if (typeof part !== 'object' || part === null) {
    return typeof part === 'number' && !Number.isFinite(part) ? String(part) : part;
  }
  const node = part as Plain;
  if ((node['kind'] === 'signal' || node['kind'] === 'property') && typeof node['index'] === 'number') {
    const table = node['kind'] === 'signal' ? program.signals : program.properties;
    return { kind: node['kind'], ref: plain(program, table[node['index']]) };
  }
  if (node['kind'] === 'plugin' && typeof node['use'] === 'number') {
    const used = program.uses[node['use']];
    return { plugin: node['plugin'], package: used?.package, options: sorted(used?.options ?? {}) };
  }
  const result: { [name: string]: unknown } = {};
  for (const name of Object.keys(node).sort())
    if (!WITHOUT_MEANING.has(name) && node[name] !== undefined) result[name] = plain(program, node[name]);
  return result;
}

const sorted = (options: Plain): Plain =>
  Object.fromEntries(Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The key of a signal or property. */
export const referenceKey = (program: PolicyProgram, ref: SignalRef | PropertyRef): string =>
  ref.arguments.length === 0 && ref.provider.kind === 'builtin' ? ref.key : `${ref.key} ${meaningKey(program, ref)}`;
