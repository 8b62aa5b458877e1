import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { AdmissionRule, PolicyProgram, RouteRule } from '../ir.ts';
import type { PolicyChecks } from '../policy-checks.ts';
import type { Span } from '../syntax/span.ts';
import { constantParts } from './constants.ts';
import type { Constancy } from './constants.ts';
import { comesTo, decisionList, isAdmitted, meetingNone, reaching } from './decision-list.ts';
import type { DecisionList, ListedRule } from './decision-list.ts';
import { checkEnsures } from './ensures.ts';
import type { EnsureVerdict } from './ensures.ts';
import { noDefault, overlapping, shadowed, unreachable } from './findings.ts';
import type { Formula } from './formula.ts';
import { ask, DEFAULT_BUDGET, isImpossible } from './question.ts';
import type { Finding, Questions } from './question.ts';
import { createTranslator } from './translate.ts';
import type { Translator } from './translate.ts';
import { createVocabulary } from './variable.ts';
import { createTrials } from './witness.ts';
import type { Assignment, Trial, Witness } from './witness.ts';

export interface AnalyseOptions {
  /** Steps for each question, `DEFAULT_BUDGET` where nothing is said; past them the answer is "not proved". */
  readonly budget?: number;
  /** Whether rules that some request meets both of are reported (W0505). */
  readonly overlap?: boolean;
  /** The policy's own tests and ensures, as the compiler gives them beside the program. */
  readonly checks?: PolicyChecks;
}

export interface RuleVerdict {
  readonly label: string;
  readonly phase: 'admission' | 'routing';
  /** Of the rule's keyword and label. */
  readonly span: Span;
  /**
   * - `reachable`: `witness` is a request that it decides;
   * - `shadowed`: one earlier rule takes all that would come here; `unreachable`: several together do;
   * - `contradiction`: its condition is never known true; `constant`: always, and it is reachable;
   * - `not_proved`: by `reason`.
   */
  readonly verdict: 'reachable' | 'unreachable' | 'shadowed' | 'contradiction' | 'constant' | 'not_proved';
  readonly reason?: string;
  readonly witness?: Witness;
}

export interface Analysis {
  /** W0501 to W0506 and what came of `ensure`s, in no order. */
  readonly diagnostics: readonly Diagnostic[];
  /** Admission rules, then routes, in the order in which they are tried. */
  readonly rules: readonly RuleVerdict[];
  readonly ensures: readonly EnsureVerdict[];
  /** Examples that did not hold when the interpreter tried them. Any such is a fault of the analysis, and counts as not proved. */
  readonly unconfirmed: number;
}

/**
 * Decides for each rule whether some request comes to it, and for each `ensure` whether it holds. Exact for conditions over numbers,
 * enumerations, strings and booleans; where one depends on something else, or the budget runs out, it says so and does not guess.
 */
export function analysePolicy(program: PolicyProgram, options: AnalyseOptions = {}): Analysis {
  const vocabulary = createVocabulary();
  const translator = createTranslator(program, vocabulary);
  const list = decisionList(program, translator);
  const questions: Questions = { budget: options.budget ?? DEFAULT_BUDGET, unconfirmed: 0 };
  const work: Work = { program, translator, list, questions, trial: createTrials(program), diagnostics: [] };
  const rules = [...list.admission, ...list.routes].map((rule) => analyseRule(work, rule));
  reportMissingDefault(work);
  if (options.overlap === true) for (const phase of [list.admission, list.routes]) reportOverlaps(work, phase, rules);
  const ensures =
    options.checks === undefined
      ? []
      : checkEnsures(program, options.checks, { vocabulary, list, questions, trial: work.trial });
  return {
    diagnostics: [...distinct(work.diagnostics), ...ensures.flatMap(({ diagnostic }) => diagnostic ?? [])],
    rules,
    ensures: ensures.map(({ verdict }) => verdict),
    unconfirmed: questions.unconfirmed,
  };
}

interface Work {
  readonly program: PolicyProgram;
  readonly translator: Translator;
  readonly list: DecisionList;
  readonly questions: Questions;
  readonly trial: (assignment: Assignment) => Trial;
  readonly diagnostics: Diagnostic[];
}

function analyseRule(work: Work, at: ListedRule): RuleVerdict {
  const { rule } = at;
  const verdict = (is: RuleVerdict['verdict'], more: Pick<RuleVerdict, 'reason' | 'witness'> = {}): RuleVerdict => ({
    label: rule.label,
    phase: at.phase,
    span: rule.headSpan,
    verdict: is,
    ...more,
  });
  const constancy = conditionConstancy(work, rule);
  filterConstancy(work, rule);
  if (constancy === 'never') return verdict('contradiction');
  const found = reachability(work, at);
  switch (found.kind) {
    case 'none':
      return verdict(reportUnreached(work, at) ? 'shadowed' : 'unreachable');
    case 'some':
      return verdict(constancy === 'always' ? 'constant' : 'reachable', { witness: found.witness });
    case 'not_proved':
      return verdict('not_proved', { reason: found.reason });
  }
}

/** Whether some request comes to a rule and fires it. */
const reachability = ({ list, questions, trial }: Work, at: ListedRule): Finding =>
  ask(questions, reaching(list, at), (assignment) => comesTo(list, at, trial(assignment)));

/** Reports a rule that no request comes to. Whether one earlier rule alone is the reason. */
function reportUnreached(work: Work, at: ListedRule): boolean {
  const { list, questions, trial, diagnostics } = work;
  const own = (at.phase === 'admission' ? list.admission : list.routes).slice(0, at.index);
  const blockers: readonly Blocker[] = [
    ...(at.phase === 'routing' ? list.admitted : []),
    ...own.flatMap((by) => (by.stops ? [{ by, statement: by.passes() }] : [])),
  ];
  const single = blockers.find(({ statement }) => isImpossible(questions, [at.fires, statement]));
  // A default that nothing is left for is a safety net and no mistake.
  const isQuiet = 'kind' in at.rule && at.rule.kind === 'default';
  if (single !== undefined) {
    const both = ask(questions, [at.fires], (assignment) => {
      const { holds } = trial(assignment);
      return holds(at.rule.when) && holds(single.by.rule.when);
    });
    if (!isQuiet) diagnostics.push(shadowed(at, single.by, both.kind === 'some' ? both.witness : undefined));
    return true;
  }
  if (!isQuiet) diagnostics.push(unreachable(at, smallestCover(questions, at.fires, blockers)));
  return false;
}

interface Blocker {
  readonly by: ListedRule;
  readonly statement: Formula;
}

/**
 * Blockers that together take all of what fires, none of which can be left out. Each round finds the first that completes a cover by
 * bisection, so that few questions are asked even of many rules.
 */
function smallestCover(questions: Questions, fires: Formula, blockers: readonly Blocker[]): readonly ListedRule[] {
  const chosen: Blocker[] = [];
  let among = blockers;
  const covers = (some: readonly Blocker[]): boolean =>
    isImpossible(questions, [fires, ...[...chosen, ...some].map(({ statement }) => statement)]);
  while (!covers([])) {
    let few = 0;
    let enough = among.length;
    if (!covers(among)) break;
    while (enough - few > 1) {
      const middle = (few + enough) >> 1;
      if (covers(among.slice(0, middle))) enough = middle;
      else few = middle;
    }
    const needed = among[enough - 1];
    if (needed === undefined) break;
    chosen.push(needed);
    among = among.slice(0, enough - 1);
  }
  return chosen.map(({ by }) => by).sort((a, b) => a.rule.headSpan.start - b.rule.headSpan.start);
}

function conditionConstancy(work: Work, rule: AdmissionRule | RouteRule): Constancy {
  if (rule.when === undefined) return undefined;
  const { constancy, diagnostics } = constantParts(rule.when, { rule, subject: 'condition' }, work);
  for (const diagnostic of diagnostics) work.diagnostics.push(diagnostic);
  return constancy;
}

function filterConstancy(work: Work, rule: AdmissionRule | RouteRule): void {
  if (!('steps' in rule)) return;
  for (const step of rule.steps) {
    if (step.kind !== 'destination' || step.where === undefined) continue;
    const { diagnostics } = constantParts(step.where, { rule, subject: 'endpoint' }, work);
    for (const diagnostic of diagnostics) work.diagnostics.push(diagnostic);
  }
}

function reportMissingDefault({ list, questions, trial, diagnostics }: Work): void {
  const last = list.routes.at(-1)?.rule;
  if (last === undefined || 'verb' in last || list.routes.some(({ rule }) => rule.when === undefined)) return;
  const found = ask(questions, meetingNone(list), (assignment) => {
    const tried = trial(assignment);
    return isAdmitted(list, tried) && !list.routes.some(({ rule }) => tried.holds(rule.when));
  });
  if (found.kind !== 'none') diagnostics.push(noDefault(last, found.kind === 'some' ? found.witness : found.reason));
}

function reportOverlaps(work: Work, phase: readonly ListedRule[], verdicts: readonly RuleVerdict[]): void {
  const { questions, trial, diagnostics } = work;
  const reached = new Set(
    verdicts.flatMap(({ span, verdict }) => (verdict === 'reachable' || verdict === 'not_proved' ? [span] : [])),
  );
  const ruled = phase.filter(({ rule, fires }) => fires.kind !== 'true' && reached.has(rule.headSpan));
  ruled.forEach((at, index) => {
    if ('kind' in at.rule && at.rule.kind === 'default') return;
    const met: ListedRule[] = [];
    let witness: Witness | undefined;
    for (const earlier of ruled.slice(0, index)) {
      const found = ask(questions, [at.fires, earlier.fires], (assignment) => {
        const { holds } = trial(assignment);
        return holds(at.rule.when) && holds(earlier.rule.when);
      });
      if (found.kind !== 'some') continue;
      met.push(earlier);
      witness ??= found.witness;
    }
    if (witness !== undefined) diagnostics.push(overlapping(at, met, witness));
  });
}

/** One finding for each place and code: a `let` or the condition of a group stands in many rules. */
function distinct(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const seen = new Set<string>();
  return diagnostics.filter(({ code, span }) => {
    const place = `${code} ${span.file} ${span.start} ${span.end}`;
    return !seen.has(place) && seen.add(place) !== undefined;
  });
}
