import { operandsOf } from '@signalbox/policy';
import type { Expression, PolicyProgram, Span, TraceLeaf, TraceSink } from '@signalbox/policy';
import type { Explanation } from '../explain/explain.ts';

/** What tests have shown of a policy. Counts are of tests, not of evaluations. Plain data. */
export interface Coverage {
  /** Texts by path, as far as rules and leaves stand in them. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  readonly rules: readonly RuleCoverage[];
  readonly leaves: readonly LeafCoverage[];
}

export interface RuleCoverage {
  readonly label: string;
  readonly kind: 'admit' | 'reject' | 'queue' | 'route' | 'default';
  /** Keyword and label. */
  readonly span: Span;
  /** Tests in which its condition was looked at, and in which it took the request. */
  readonly reached: number;
  readonly matched: number;
  /** The `else` parts of a route in order, each with the tests that came to it. */
  readonly elses: readonly { readonly span: Span; readonly reached: number }[];
}

/** A comparison or predicate in the `when` or `where` of a rule; one in a `let` or a group's `when` counts once for all rules that read it. */
export interface LeafCoverage {
  readonly span: Span;
  readonly text: string;
  /** Whether it is ever unknown in production: it reads something that a request or endpoint may lack. */
  readonly mayBeUnknown: boolean;
  readonly true: number;
  readonly false: number;
  readonly unknown: number;
}

/** Of how many outcomes tests have shown how many. */
export interface Share {
  readonly covered: number;
  readonly total: number;
}

export interface CoverageTotals {
  /** Rules that took a request. */
  readonly rules: Share;
  /** `else` parts that were come to. */
  readonly elses: Share;
  /** Leaves' outcomes: true, false, and unknown where it may be. */
  readonly outcomes: Share;
  /** All three together, in percent; 100 where there is nothing to cover. What `--fail-under` is held against. */
  readonly percent: number;
}

type Truth = 'true' | 'false' | 'unknown';
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type LeafCounts = Mutable<LeafCoverage>;
type RuleCounts = Omit<Mutable<RuleCoverage>, 'elses'> & { readonly elses: Mutable<RuleCoverage['elses'][number]>[] };

/** Gathers the coverage of one program, a test at a time. */
export class CoverageCollector {
  readonly #program: PolicyProgram;
  readonly #rules: RuleCounts[];
  readonly #leaves = new Map<string, LeafCounts>();
  readonly #rulesByLabel: ReadonlyMap<string, RuleCounts>;
  readonly #seen = new Map<LeafCounts, Set<Truth>>();
  /** To be told of the leaves that a test's decision evaluates. */
  readonly sink: TraceSink = (leaf) => this.#note(leaf);

  constructor(program: PolicyProgram) {
    this.#program = program;
    this.#rules = [
      ...program.admission.map((rule) => ruleCounts(rule.label, rule.verb, rule.headSpan, [])),
      ...program.routes.map((rule) =>
        ruleCounts(
          rule.label,
          rule.kind,
          rule.headSpan,
          rule.steps.slice(1).map(({ span }) => span),
        ),
      ),
    ];
    this.#rulesByLabel = new Map(this.#rules.map((rule) => [rule.label, rule]));
    for (const condition of conditionsOf(program)) for (const leaf of leavesOf(condition)) this.#addLeaf(leaf);
  }

  /** Ends a test: what its leaves came to counts once, and so do the rules that its decision came past. */
  count(decision: Explanation): void {
    for (const [leaf, truths] of this.#seen) for (const truth of truths) leaf[truth]++;
    this.#seen.clear();
    for (const { label, matched } of [...decision.admission, ...decision.routes]) {
      const rule = this.#rulesByLabel.get(label);
      if (rule === undefined) continue;
      rule.reached++;
      if (matched) rule.matched++;
      const last = decision.decided?.phase === 'route' && decision.decided.label === label;
      // Of a rule that the request was passed on from, every part was come to.
      const step = !matched ? 0 : last ? (decision.decided?.step ?? 0) : rule.elses.length;
      for (const part of rule.elses.slice(0, step)) part.reached++;
    }
  }

  coverage(): Coverage {
    const leaves = [...this.#leaves.values()].map((leaf) => ({ ...leaf }));
    const rules = this.#rules.map((rule) => ({ ...rule, elses: rule.elses.map((part) => ({ ...part })) }));
    return { files: filesOf(this.#program, [...rules, ...leaves]), rules, leaves };
  }

  #addLeaf(leaf: Expression): void {
    const key = spanKey(leaf.span);
    const known = this.#leaves.get(key);
    const mayBeUnknown = canBeUnknown(this.#program, leaf);
    if (known !== undefined) known.mayBeUnknown ||= mayBeUnknown;
    else {
      const text = this.#program.files.find(({ path }) => path === leaf.span.file)?.text ?? '';
      const written = text.slice(leaf.span.start, leaf.span.end);
      this.#leaves.set(key, { span: leaf.span, text: written, mayBeUnknown, true: 0, false: 0, unknown: 0 });
    }
  }

  #note({ expression, value }: TraceLeaf): void {
    const leaf = this.#leaves.get(spanKey(expression.span));
    if (leaf === undefined) return;
    const truths = this.#seen.get(leaf) ?? new Set();
    truths.add(value === undefined ? 'unknown' : value ? 'true' : 'false');
    this.#seen.set(leaf, truths);
  }
}

function ruleCounts(label: string, kind: RuleCoverage['kind'], span: Span, elses: readonly Span[]): RuleCounts {
  return { label, kind, span, reached: 0, matched: 0, elses: elses.map((part) => ({ span: part, reached: 0 })) };
}

function conditionsOf(program: PolicyProgram): readonly Expression[] {
  const conditions: Expression[] = [];
  for (const { when } of [...program.admission, ...program.routes]) if (when !== undefined) conditions.push(when);
  for (const { steps } of program.routes)
    for (const step of steps) if (step.kind === 'destination' && step.where !== undefined) conditions.push(step.where);
  return conditions;
}

function leavesOf(condition: Expression): readonly Expression[] {
  if (condition.kind === 'and' || condition.kind === 'or') return condition.operands.flatMap(leavesOf);
  if (condition.kind === 'not') return leavesOf(condition.operand);
  return condition.kind === 'constant' ? [] : [condition];
}

/** Properties that core knows of every endpoint. */
const KNOWN_PROPERTIES: ReadonlySet<string> = new Set([
  'name',
  'state',
  'healthy',
  'draining',
  'weight',
  'queued_tokens',
  'decode_tokens',
  'inflight_requests',
  'inflight_tokens',
  'queue_depth',
  'running',
  'batch_size',
  'under_bound',
]);

function canBeUnknown(program: PolicyProgram, expression: Expression): boolean {
  switch (expression.kind) {
    case 'constant':
    case 'exists':
      return false;
    case 'signal':
      return program.signals[expression.index]?.known !== 'always';
    case 'property':
      return !KNOWN_PROPERTIES.has(program.properties[expression.index]?.key ?? '');
    case 'coalesce':
      return canBeUnknown(program, expression.right);
    case 'aggregate':
      return expression.function !== 'count';
    case 'call':
      return !['min', 'max', 'clamp', 'lower'].includes(expression.function) || anyUnknown(program, expression);
    default:
      return anyUnknown(program, expression);
  }
}

function anyUnknown(program: PolicyProgram, expression: Expression): boolean {
  return operandsOf(expression).some((operand) => canBeUnknown(program, operand));
}

function spanKey({ file, start, end }: Span): string {
  return `${start} ${end} ${file}`;
}

function filesOf(program: PolicyProgram, parts: readonly { readonly span: Span }[]): Coverage['files'] {
  const named = new Set(parts.map(({ span }) => span.file));
  return program.files.filter(({ path }) => named.has(path));
}

/** Coverage of several programs as one: what stands at the same place of the same file adds up. */
export function mergeCoverage(all: readonly Coverage[]): Coverage {
  const files = new Map(all.flatMap((one) => one.files.map((file) => [file.path, file] as const)));
  const rules = new Map<string, RuleCounts>();
  const leaves = new Map<string, LeafCounts>();
  for (const rule of all.flatMap((one) => one.rules)) {
    const known = rules.get(spanKey(rule.span));
    if (known === undefined) {
      rules.set(spanKey(rule.span), { ...rule, elses: rule.elses.map((part) => ({ ...part })) });
      continue;
    }
    known.reached += rule.reached;
    known.matched += rule.matched;
    known.elses.forEach((part, index) => (part.reached += rule.elses[index]?.reached ?? 0));
  }
  for (const leaf of all.flatMap((one) => one.leaves)) {
    const known = leaves.get(spanKey(leaf.span));
    if (known === undefined) {
      leaves.set(spanKey(leaf.span), { ...leaf });
      continue;
    }
    known.mayBeUnknown ||= leaf.mayBeUnknown;
    for (const truth of ['true', 'false', 'unknown'] as const) known[truth] += leaf[truth];
  }
  const byPlace = (a: { readonly span: Span }, b: { readonly span: Span }): number =>
    a.span.file < b.span.file ? -1 : a.span.file > b.span.file ? 1 : a.span.start - b.span.start;
  return {
    files: [...files.values()],
    rules: [...rules.values()].toSorted(byPlace),
    leaves: [...leaves.values()].toSorted(byPlace),
  };
}

/** The outcomes of a leaf that no test has shown, of those that count. */
export function missingOutcomes(leaf: LeafCoverage): readonly Truth[] {
  return outcomesOf(leaf).filter((truth) => leaf[truth] === 0);
}

function outcomesOf(leaf: LeafCoverage): readonly Truth[] {
  return leaf.mayBeUnknown ? ['true', 'false', 'unknown'] : ['true', 'false'];
}

export function coverageTotals({ rules, leaves }: Coverage): CoverageTotals {
  const elses = rules.flatMap((rule) => rule.elses);
  const outcomes = leaves.flatMap((leaf) => outcomesOf(leaf).map((truth) => leaf[truth]));
  const totals = {
    rules: { covered: rules.filter(({ matched }) => matched > 0).length, total: rules.length },
    elses: { covered: elses.filter(({ reached }) => reached > 0).length, total: elses.length },
    outcomes: { covered: outcomes.filter((count) => count > 0).length, total: outcomes.length },
  };
  const covered = totals.rules.covered + totals.elses.covered + totals.outcomes.covered;
  const total = totals.rules.total + totals.elses.total + totals.outcomes.total;
  return { ...totals, percent: total === 0 ? 100 : (100 * covered) / total };
}
