import type { AdmissionRule, Destination, Modifiers, PolicyProgram, RouteRule, Step } from '../ir.ts';
import type { ListedRule } from './decision-list.ts';
import { sourceText } from './definition-changes.ts';
import { negate } from './formula.ts';
import { meaningKey } from './meaning-key.ts';
import { isImpossible } from './question.ts';
import type { Questions } from './question.ts';
import { actionKey, placesText } from './rule-outcome.ts';

export interface RuleChange {
  readonly phase: 'admission' | 'routing';
  /** As in the newer policy, where it is there. */
  readonly label: string;
  readonly verb: string;
  readonly change: 'added' | 'removed' | 'moved' | 'changed';
  /** What changed, as `by: least_tokens → least_latency`. */
  readonly details: readonly string[];
}

/** A rule of either policy with what it is in the other. */
export interface RulePair {
  readonly before: ListedRule | undefined;
  readonly after: ListedRule | undefined;
  /** Whether other rules that are in both stand on its other side. */
  readonly isMoved: boolean;
}

/** Finds what each rule is in the other policy: what is the same in the same order, then by label, then what is left between such. */
export function pairRules(
  old: PolicyProgram,
  before: readonly ListedRule[],
  now: PolicyProgram,
  after: readonly ListedRule[],
  aligned: readonly (readonly [number, number])[],
): readonly RulePair[] {
  const partners = new Map<ListedRule, ListedRule>();
  const taken = new Set<ListedRule>();
  const pair = (from: ListedRule | undefined, to: ListedRule | undefined): void => {
    if (from === undefined || to === undefined || partners.has(from) || taken.has(to)) return;
    partners.set(from, to);
    taken.add(to);
  };
  for (const [i, j] of aligned) pair(before[i], after[j]);
  const aligners = new Set(partners.keys());
  const labelled = new Map(
    after.flatMap((rule) => (hasLabel(now, rule) && !taken.has(rule) ? [[nameOf(rule), rule]] : [])),
  );
  for (const rule of before) if (hasLabel(old, rule)) pair(rule, labelled.get(nameOf(rule)));
  const rest = {
    before: before.filter((rule) => !partners.has(rule)),
    after: after.filter((rule) => !taken.has(rule)),
  };
  const unnamed = rest.before.filter((rule) => !hasLabel(old, rule));
  const candidates = rest.after.filter((rule) => !hasLabel(now, rule));
  if (unnamed.length === candidates.length) unnamed.forEach((rule, at) => pair(rule, candidates[at]));
  return [
    ...before.map((rule): RulePair => {
      const partner = partners.get(rule);
      const isMoved = partner !== undefined && !aligners.has(rule) && crosses(rule, partner, partners);
      return { before: rule, after: partner, isMoved };
    }),
    ...after.flatMap((rule): readonly RulePair[] =>
      taken.has(rule) ? [] : [{ before: undefined, after: rule, isMoved: false }],
    ),
  ];
}

/** Whether a rule that is in both policies stands before this one in one, and behind it in the other. */
function crosses(from: ListedRule, to: ListedRule, partners: ReadonlyMap<ListedRule, ListedRule>): boolean {
  for (const [other, partner] of partners)
    if (other !== from && other.index < from.index !== partner.index < to.index) return true;
  return false;
}

const nameOf = ({ rule }: ListedRule): string => `${verbOf(rule)} ${rule.label}`;
const verbOf = (rule: AdmissionRule | RouteRule): string => ('verb' in rule ? rule.verb : rule.kind);

/** Whether the label is written, and not a number that another rule above would change. A default is the only one of its block. */
const hasLabel = (program: PolicyProgram, { rule }: ListedRule): boolean =>
  ('kind' in rule && rule.kind === 'default') || sourceText(program, rule.headSpan).endsWith('"');

/** What changed about a rule; nothing for one that is the same. */
export function ruleChanges(
  old: PolicyProgram,
  now: PolicyProgram,
  { before, after, isMoved }: RulePair,
  questions: Questions,
): readonly RuleChange[] {
  const one = after ?? before;
  if (one === undefined) return [];
  const base = { phase: one.phase, label: one.rule.label, verb: verbOf(one.rule) };
  if (before === undefined)
    return [{ ...base, change: 'added', details: [whenText(now, one.rule), placesText(one.rule)] }];
  if (after === undefined) return [{ ...base, change: 'removed', details: [] }];
  const details = [
    ...renamed(old, before, now, after),
    ...conditionChange(old, before, now, after, questions),
    ...actionChanges(old, before.rule, now, after.rule),
  ];
  if (details.length > 0) return [{ ...base, change: 'changed', details }];
  return isMoved ? [{ ...base, change: 'moved', details: [] }] : [];
}

function renamed(old: PolicyProgram, before: ListedRule, now: PolicyProgram, after: ListedRule): readonly string[] {
  const isTold = before.rule.label !== after.rule.label && (hasLabel(old, before) || hasLabel(now, after));
  return isTold ? [`label: ${JSON.stringify(before.rule.label)} → ${JSON.stringify(after.rule.label)}`] : [];
}

/** Nothing where both conditions are proved to hold for the same requests. */
function conditionChange(
  old: PolicyProgram,
  before: ListedRule,
  now: PolicyProgram,
  after: ListedRule,
  questions: Questions,
): readonly string[] {
  const [from, to] = [before.rule.when, after.rule.when];
  if (meaningKey(old, from ?? null) === meaningKey(now, to ?? null)) return [];
  const isSame =
    isImpossible(questions, [before.fires, negate(after.fires)]) &&
    isImpossible(questions, [after.fires, negate(before.fires)]);
  if (isSame) return [];
  return [`when: ${conditionText(old, before.rule)} → ${conditionText(now, after.rule)}`];
}

const whenText = (program: PolicyProgram, rule: ListedRule['rule']): string =>
  rule.when === undefined ? 'always' : `when ${conditionText(program, rule)}`;

/** The parts of a condition as they are written, those of groups and `let`s where they stand. */
function conditionText(program: PolicyProgram, { when }: ListedRule['rule']): string {
  if (when === undefined) return 'always';
  const parts = when.kind === 'and' ? when.operands : [when];
  return parts
    .map(({ kind, span }) => (kind === 'or' ? `(${sourceText(program, span)})` : sourceText(program, span)))
    .join(' and ');
}

function actionChanges(
  old: PolicyProgram,
  before: AdmissionRule | RouteRule,
  now: PolicyProgram,
  after: AdmissionRule | RouteRule,
): readonly string[] {
  if (actionKey(old, before) === actionKey(now, after)) return [];
  if ('verb' in before || 'verb' in after) {
    return 'verb' in before && 'verb' in after
      ? [...keyChange('by', old, before.by, now, after.by), ...modifierChanges(old, before.with, now, after.with)]
      : [];
  }
  if (before.steps.length !== after.steps.length) return [`steps: ${placesText(before)} → ${placesText(after)}`];
  return before.steps.flatMap((step, at) => {
    const other = after.steps[at];
    const prefix = at === 0 ? '' : `else ${at}: `;
    return other === undefined ? [] : stepChanges(old, step, now, other).map((change) => prefix + change);
  });
}

function stepChanges(old: PolicyProgram, before: Step, now: PolicyProgram, after: Step): readonly string[] {
  if (meaningKey(old, before) === meaningKey(now, after)) return [];
  if (before.kind !== 'destination' || after.kind !== 'destination')
    return [`${sourceText(old, before.span)} → ${sourceText(now, after.span)}`];
  const targets = (step: Destination): string => placesText({ ...dummyRoute, steps: [{ ...step, with: {} }] });
  return [
    ...(targets(before) === targets(after) ? [] : [`${targets(before)} → ${targets(after)}`]),
    ...keyChange('where', old, before.where, now, after.where),
    ...keyChange('by', old, before.by, now, after.by),
    ...keyChange('pick', old, before.pick, now, after.pick),
    ...modifierChanges(old, before.with, now, after.with),
  ];
}

const dummyRoute: RouteRule = Object.freeze({
  kind: 'route',
  label: '',
  span: { file: '', start: 0, end: 0 },
  headSpan: { file: '', start: 0, end: 0 },
  steps: [],
});

function modifierChanges(
  old: PolicyProgram,
  before: Modifiers,
  now: PolicyProgram,
  after: Modifiers,
): readonly string[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof Modifiers)[];
  return keys.flatMap((key) => keyChange(written(key), old, before[key], now, after[key]));
}

const PLURALS: { readonly [key: string]: string } = { fallbacks: 'fallback', headers: 'header' };
const written = (key: string): string =>
  PLURALS[key] ?? key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function keyChange(
  name: string,
  old: PolicyProgram,
  before: unknown,
  now: PolicyProgram,
  after: unknown,
): readonly string[] {
  if (meaningKey(old, before ?? null) === meaningKey(now, after ?? null)) return [];
  return [`${name}: ${partText(old, before)} → ${partText(now, after)}`];
}

/** A part of a rule as it is written where it has a place of its own, else as data. */
function partText(program: PolicyProgram, part: unknown): string {
  if (part === undefined) return 'none';
  if (Array.isArray(part)) return part.map((member) => partText(program, member)).join(' then ');
  if (typeof part === 'object' && part !== null && 'span' in part) return sourceText(program, part.span);
  return dataText(program, part);
}

function dataText(program: PolicyProgram, part: unknown): string {
  if (Array.isArray(part)) return `[${part.map((member) => dataText(program, member)).join(', ')}]`;
  if (typeof part !== 'object' || part === null) return String(part);
  if ('span' in part) return sourceText(program, part.span);
  return Object.entries(part)
    .map(([key, value]) => `${written(key)}: ${dataText(program, value)}`)
    .join(', ');
}
