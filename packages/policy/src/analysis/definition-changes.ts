import type { PolicyProgram } from '../ir.ts';
import { meaningKey } from './meaning-key.ts';

export interface DefinitionChange {
  /** The word after `define`, or `use`. */
  readonly kind: string;
  /** Empty for the gateway. */
  readonly name: string;
  readonly change: 'added' | 'removed' | 'changed';
  /** Of a changed one: its keys with what they were and are, `gpu_count: 4 → 2`. */
  readonly details: readonly string[];
}

interface Named {
  readonly kind: string;
  readonly name: string;
  readonly value: { readonly [key: string]: unknown };
}

const KINDS = {
  slos: 'slo',
  tenants: 'tenant',
  limits: 'limit',
  alarms: 'alarm',
  params: 'param',
  discoveries: 'discovery',
  profiles: 'profile',
} as const;

const MAX_SHOWN = 60;

/** What the definitions of two programs differ in, formatting and order aside. */
export function definitionChanges(before: PolicyProgram, after: PolicyProgram): readonly DefinitionChange[] {
  const old = namedOf(before);
  const now = namedOf(after);
  const changes: DefinitionChange[] = [];
  for (const [key, { kind, name, value }] of old) {
    const same = now.get(key);
    if (same === undefined) changes.push({ kind, name, change: 'removed', details: [] });
    else {
      // What an endpoint has from its tier is told of the tier.
      const tier = kind === 'endpoint' ? `tier ${String(value['tier'])}` : '';
      const details = detailsOf({
        before,
        old: value,
        after,
        now: same.value,
        told: [old.get(tier)?.value, now.get(tier)?.value],
      });
      if (details.length > 0) changes.push({ kind, name, change: 'changed', details });
    }
  }
  for (const [key, { kind, name }] of now)
    if (!old.has(key)) changes.push({ kind, name, change: 'added', details: [] });
  return changes;
}

function namedOf({ definitions, uses }: PolicyProgram): ReadonlyMap<string, Named> {
  const named = new Map<string, Named>();
  const add = (kind: string, name: string, value: object): void => {
    const { name: _, span: __, endpoints: ___, ...own } = value as Named['value'];
    named.set(`${kind} ${name}`, { kind, name, value: own });
  };
  add('gateway', '', definitions.gateway);
  for (const tier of definitions.tiers) {
    add('tier', tier.name, tier);
    for (const endpoint of tier.endpoints) add('endpoint', endpoint.name, endpoint);
  }
  for (const [list, kind] of Object.entries(KINDS))
    for (const definition of definitions[list as keyof typeof KINDS] ?? []) add(kind, definition.name, definition);
  uses.forEach((use) => add('use', use.alias ?? use.package, use));
  return named;
}

interface Compared {
  readonly before: PolicyProgram;
  readonly old: Named['value'];
  readonly after: PolicyProgram;
  readonly now: Named['value'];
  /** What the same changes are told of elsewhere, before and after. */
  readonly told: readonly [Named['value'] | undefined, Named['value'] | undefined];
}

function detailsOf({ before, old, after, now, told }: Compared): readonly string[] {
  const [oldTold, nowTold] = told;
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  const same = (a: unknown, b: unknown): boolean => meaningKey(before, a ?? null) === meaningKey(after, b ?? null);
  return keys.flatMap((key) => {
    if (same(old[key], now[key])) return [];
    const isTold =
      oldTold !== undefined && nowTold !== undefined && same(oldTold[key], old[key]) && same(nowTold[key], now[key]);
    if (isTold) return [];
    // Hashes of keys say nothing to people.
    if (key === 'keys') return ['keys changed'];
    return [`${written(key)}: ${shown(before, old[key])} → ${shown(after, now[key])}`];
  });
}

const written = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A value as it is written: an expression by its text, all else as data. */
function shown(program: PolicyProgram, value: unknown): string {
  if (value === undefined) return 'none';
  const span =
    typeof value === 'object' && value !== null && 'span' in value && 'kind' in value ? value.span : undefined;
  const text =
    span === undefined
      ? JSON.stringify(value, (key, inner: unknown) => (key === 'span' ? undefined : inner))
      : sourceText(program, span);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN - 1)}…`;
}

/** The text of a policy that a span covers, on one line. */
export function sourceText(program: PolicyProgram, span: unknown): string {
  const { file, start, end } = span as { readonly file: string; readonly start: number; readonly end: number };
  const text = program.files.find(({ path }) => path === file)?.text ?? '';
  return text.slice(start, end).replaceAll(/\s+/g, ' ');
}
