import type { AdmissionRule, PolicyProgram, RouteRule } from '../ir.ts';
import { negate, someOf, TRUE } from './formula.ts';
import type { Formula } from './formula.ts';
import type { Translator } from './translate.ts';
import type { Trial } from './witness.ts';

/** A rule with what its condition means. */
export interface ListedRule {
  readonly rule: AdmissionRule | RouteRule;
  readonly phase: 'admission' | 'routing';
  /** Place within its phase. */
  readonly index: number;
  /** The statement that its condition is known true. */
  readonly fires: Formula;
  /** Whether no request that it takes goes on to the rules below it in its phase. */
  readonly stops: boolean;
  /** Worked out when it is asked for: the statement that its condition is not known true. */
  readonly passes: () => Formula;
}

/** Both phases of a policy as lists in which the first rule that fires decides. */
export interface DecisionList {
  readonly admission: readonly ListedRule[];
  readonly routes: readonly ListedRule[];
  /** For each `reject`: the statement that it does not refuse a request. All of them hold for whatever comes to the routes. */
  readonly admitted: readonly { readonly by: ListedRule; readonly statement: Formula }[];
}

/**
 * What a queue holds goes through admission again without that rule, so a `queue` keeps nothing from the rules below it; nor does a route
 * that ends in `else next`.
 */
export function decisionList(program: PolicyProgram, translator: Translator): DecisionList {
  const list = <Rule extends AdmissionRule | RouteRule>(
    rules: readonly Rule[],
    phase: ListedRule['phase'],
    stops: (rule: Rule) => boolean,
  ): readonly ListedRule[] =>
    rules.map((rule, index) => {
      const fires = rule.when === undefined ? TRUE : translator.truth(rule.when);
      let passes: Formula | undefined;
      return { rule, phase, index, fires, stops: stops(rule), passes: () => (passes ??= negate(fires)) };
    });
  const admission = list(program.admission, 'admission', ({ verb }) => verb !== 'queue');
  const routes = list(program.routes, 'routing', ({ steps }) => steps.at(-1)?.kind !== 'next');
  const admitted = admission.flatMap((by, index) => {
    if (!('verb' in by.rule) || by.rule.verb !== 'reject') return [];
    const letIn = admission.slice(0, index).filter(({ rule }) => 'verb' in rule && rule.verb === 'admit');
    return [{ by, statement: someOf([by.passes(), ...letIn.map(({ fires }) => fires)]) }];
  });
  return { admission, routes, admitted };
}

/** The statements that hold exactly for the requests that come to a rule and fire it. */
export function reaching(list: DecisionList, at: ListedRule): readonly Formula[] {
  const own = at.phase === 'admission' ? list.admission : list.routes;
  return [
    at.fires,
    ...(at.phase === 'routing' ? list.admitted.map(({ statement }) => statement) : []),
    ...own.slice(0, at.index).flatMap((earlier) => (earlier.stops ? [earlier.passes()] : [])),
  ];
}

/** The statements that hold exactly for the requests that are let in and meet no route. */
export const meetingNone = (list: DecisionList): readonly Formula[] => [
  ...list.admitted.map(({ statement }) => statement),
  ...list.routes.map((route) => route.passes()),
];

/** Whether, by the interpreter, a rule is one that a request comes to and fires. */
export function comesTo(list: DecisionList, at: ListedRule, tried: Trial): boolean {
  if (at.phase === 'routing' && !isAdmitted(list, tried)) return false;
  const own = at.phase === 'admission' ? list.admission : list.routes;
  const isStopped = own.slice(0, at.index).some(({ rule, stops }) => stops && tried.holds(rule.when));
  return tried.holds(at.rule.when) && !isStopped;
}

/** Whether, by the interpreter, no `reject` takes a request. */
export function isAdmitted(list: DecisionList, tried: Trial): boolean {
  const first = list.admission.find(({ rule, stops }) => stops && tried.holds(rule.when));
  return first === undefined || !('verb' in first.rule) || first.rule.verb === 'admit';
}
