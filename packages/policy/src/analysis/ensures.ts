import { createDiagnostic } from '../diagnostics/diagnostic.ts';
import type { Diagnostic, DiagnosticLabel } from '../diagnostics/diagnostic.ts';
import type { PolicyProgram, Verdict } from '../ir.ts';
import type { Outcome, PolicyChecks, PolicyEnsure } from '../policy-checks.ts';
import type { Span } from '../syntax/span.ts';
import { comesTo, isAdmitted, meetingNone, reaching } from './decision-list.ts';
import type { DecisionList, ListedRule } from './decision-list.ts';
import { ruleName } from './findings.ts';
import { someOf, TRUE } from './formula.ts';
import type { Formula } from './formula.ts';
import { endpointsOf, mayBelong, stopsOf, surelyBelongs, targetText } from './places.ts';
import type { KnownEndpoint, Place, Stop } from './places.ts';
import { ask } from './question.ts';
import type { Finding, Questions } from './question.ts';
import { createTranslator } from './translate.ts';
import type { Vocabulary } from './variable.ts';
import { createTrials } from './witness.ts';
import type { Assignment, Trial, Witness } from './witness.ts';

export interface EnsureVerdict {
  readonly label: string;
  readonly span: Span;
  /** `refuted`: for `witness` the policy can do what is excluded, or something else than is demanded; `reason` says what. */
  readonly verdict: 'proved' | 'refuted' | 'not_proved';
  readonly reason?: string;
  readonly witness?: Witness;
}

export interface EnsureParts {
  readonly vocabulary: Vocabulary;
  readonly list: DecisionList;
  readonly questions: Questions;
  readonly trial: (assignment: Assignment) => Trial;
}

/** Something that may become of a request, against an `ensure` if the requests it is about can come to it. */
interface Breach {
  /** The statements that hold exactly for the requests that come to it. */
  readonly statements: readonly Formula[];
  /** Whether a request comes to it by the interpreter. */
  readonly happens: (tried: Trial) => boolean;
  /** As in "the request may be …". */
  readonly text: string;
  readonly at: DiagnosticLabel | undefined;
}

/** Decides the ensures of a policy; what the outcomes mean is in the reference of the language. */
export function checkEnsures(
  program: PolicyProgram,
  checks: PolicyChecks,
  parts: EnsureParts,
): readonly { readonly verdict: EnsureVerdict; readonly diagnostic?: Diagnostic }[] {
  const conditions = createTranslator(checks.conditions, parts.vocabulary);
  const tryCondition = createTrials(checks.conditions);
  return checks.ensures.map((ensure) => {
    const condition = ensure.when === undefined ? TRUE : conditions.truth(ensure.when);
    const applies = (assignment: Assignment): boolean => tryCondition(assignment).holds(ensure.when);
    const breaches =
      ensure.mode === 'never' ? matching(program, parts, ensure.outcome) : contrary(program, parts, ensure.outcome);
    let unproved: { readonly reason: string; readonly breach: Breach } | undefined;
    for (const breach of breaches) {
      const found: Finding = ask(
        parts.questions,
        [condition, ...breach.statements],
        (assignment) => applies(assignment) && breach.happens(parts.trial(assignment)),
      );
      if (found.kind === 'some') return refuted(ensure, breach, found.witness);
      if (found.kind === 'not_proved') unproved ??= { reason: found.reason, breach };
    }
    return unproved === undefined
      ? { verdict: { label: ensure.label, span: ensure.span, verdict: 'proved' } }
      : notProved(ensure, unproved.breach, unproved.reason);
  });
}

function refuted(
  ensure: PolicyEnsure,
  breach: Breach,
  witness: Witness,
): { readonly verdict: EnsureVerdict; readonly diagnostic: Diagnostic } {
  const { label, span } = ensure;
  const example = witness.text === 'any request' ? 'any request' : `\`${witness.text}\``;
  return {
    verdict: { label, span, verdict: 'refuted', reason: breach.text, witness },
    diagnostic: createDiagnostic(
      'E0420',
      span,
      `${JSON.stringify(label)} does not hold: a request may be ${breach.text}`,
      {
        labels: breach.at === undefined ? [] : [breach.at],
        help: `for example ${example}`,
      },
    ),
  };
}

function notProved(
  ensure: PolicyEnsure,
  breach: Breach,
  reason: string,
): { readonly verdict: EnsureVerdict; readonly diagnostic: Diagnostic } {
  const { label, span } = ensure;
  const whole = `that no request is ${breach.text} ${reason}`;
  return {
    verdict: { label, span, verdict: 'not_proved', reason: whole },
    diagnostic: createDiagnostic('W0519', span, `${JSON.stringify(label)} is not proved`, {
      labels: breach.at === undefined ? [] : [breach.at],
      help: whole,
    }),
  };
}

type Work = EnsureParts & { readonly program: PolicyProgram };

/** What of a policy matches an outcome. */
function matching(program: PolicyProgram, parts: EnsureParts, outcome: Outcome): readonly Breach[] {
  const work: Work = { ...parts, program };
  const { admission, routes } = work.list;
  switch (outcome.kind) {
    case 'target':
      return routes.flatMap((route) =>
        placesOf(route).flatMap((place) => sentTo(work, route, place, (e) => mayBelong(e, outcome.target))),
      );
    case 'route': {
      const named = routes.filter(({ rule }) => rule.label === outcome.label);
      const { target } = outcome;
      if (target === undefined) return named.map((route) => taken(work, route));
      return named.flatMap((route) =>
        placesOf(route).flatMap((place) => sentTo(work, route, place, (e) => mayBelong(e, target))),
      );
    }
    case 'default':
      return routes.filter(isDefault).map((route) => taken(work, route));
    case 'verdict': {
      if (outcome.verdict.verb === 'admit') return [admitted(work)];
      const { verdict } = outcome;
      return [
        ...admission.filter(({ rule }) => 'verb' in rule && matches(verdict, rule)).map((rule) => taken(work, rule)),
        ...routes.flatMap((route) =>
          stopsOfRule(route).flatMap((stop) =>
            stop.kind === 'verdict' && matches(verdict, stop.verdict) ? [answered(work, route, stop.verdict)] : [],
          ),
        ),
      ];
    }
  }
}

/** What of a policy is something else than an outcome that is to come always. */
function contrary(program: PolicyProgram, parts: EnsureParts, outcome: Outcome): readonly Breach[] {
  const work: Work = { ...parts, program };
  const { admission, routes } = work.list;
  const rejecting = admission.filter(({ rule }) => 'verb' in rule && rule.verb === 'reject');
  const refusedAtTheDoor = rejecting.map((rule) => taken(work, rule));
  const elsewhere = (route: ListedRule, target: Parameters<typeof surelyBelongs>[1]): readonly Breach[] =>
    stopsOfRule(route).flatMap((stop) => {
      if (stop.kind === 'verdict') return stop.verdict.verb === 'reject' ? [answered(work, route, stop.verdict)] : [];
      return stop.by === 'mirror' ? [] : sentTo(work, route, stop, (e) => !surelyBelongs(e, target));
    });
  switch (outcome.kind) {
    case 'target':
      return [...refusedAtTheDoor, ...routes.flatMap((route) => elsewhere(route, outcome.target)), unmatched(work)];
    case 'route': {
      const { target } = outcome;
      return [
        ...refusedAtTheDoor,
        ...routes.filter(({ rule }) => rule.label !== outcome.label).map((route) => taken(work, route)),
        ...(target === undefined
          ? []
          : routes.filter(({ rule }) => rule.label === outcome.label).flatMap((route) => elsewhere(route, target))),
        unmatched(work),
      ];
    }
    case 'default':
      return [
        ...refusedAtTheDoor,
        ...routes.filter((route) => !isDefault(route)).map((route) => taken(work, route)),
        unmatched(work),
      ];
    case 'verdict':
      return contraryToVerdict(work, outcome.verdict);
  }
}

function contraryToVerdict(work: Work, wanted: Verdict): readonly Breach[] {
  const { admission, routes } = work.list;
  const others = admission.filter(({ rule }) => 'verb' in rule && rule.verb !== 'admit' && !matches(wanted, rule));
  if (wanted.verb === 'admit') return others.map((rule) => taken(work, rule));
  if (wanted.verb === 'reject')
    return [
      ...others.map((rule) => taken(work, rule)),
      ...routes.flatMap((route) =>
        stopsOfRule(route).flatMap((stop) => {
          if (stop.kind === 'target') return stop.by === 'target' ? sentTo(work, route, stop, () => true) : [];
          return matches(wanted, stop.verdict) ? [] : [answered(work, route, stop.verdict)];
        }),
      ),
      unmatched(work),
    ];
  // A request that is to be queued always meets a queue before anything else can become of it.
  const unqueued = (breach: Breach): Breach => ({
    ...breach,
    statements: [...breach.statements, ...notQueued(work)],
    happens: (tried) => breach.happens(tried) && !isQueued(work, tried),
  });
  const waitsFirst = ({ rule }: ListedRule): boolean => {
    const [first] = 'steps' in rule ? rule.steps : [];
    return first?.kind === 'verdict' && matches(wanted, first);
  };
  return [
    ...others.map((rule) => unqueued(taken(work, rule))),
    ...routes.filter((route) => !waitsFirst(route)).map((route) => unqueued(taken(work, route))),
    unqueued(unmatched(work)),
  ];
}

const isDefault = ({ rule }: ListedRule): boolean => 'kind' in rule && rule.kind === 'default';
const stopsOfRule = ({ rule }: ListedRule): readonly Stop[] => ('steps' in rule ? stopsOf(rule) : []);
const placesOf = (route: ListedRule): readonly Place[] =>
  stopsOfRule(route).flatMap((stop) => (stop.kind === 'target' ? [stop] : []));

/** Whether a verdict is the one of an outcome: the same verb, and the same status where the outcome names one. */
function matches(wanted: Verdict, verdict: Pick<Verdict, 'verb' | 'with'>): boolean {
  if (wanted.verb !== verdict.verb) return false;
  return wanted.with.status === undefined || wanted.with.status === (verdict.with.status ?? 429);
}

const labelOf = ({ rule }: ListedRule, message: string, span: Span = rule.headSpan): DiagnosticLabel => ({
  span,
  message,
});

/** That a rule takes the request. */
const taken = (work: Work, at: ListedRule): Breach => ({
  statements: reaching(work.list, at),
  happens: (tried) => comesTo(work.list, at, tried),
  text: at.phase === 'routing' ? `taken by ${ruleName(at)}` : `met by ${ruleName(at)}`,
  at: labelOf(at, 'by this rule'),
});

const answered = (work: Work, route: ListedRule, verdict: Verdict): Breach => ({
  ...taken(work, route),
  text: `${verdict.verb === 'reject' ? 'rejected' : 'queued'} by ${ruleName(route)}`,
  at: labelOf(route, 'here', verdict.span),
});

/** That the request comes to no rule at all. */
const unmatched = ({ list }: Work): Breach => ({
  statements: meetingNone(list),
  happens: (tried) => isAdmitted(list, tried) && !list.routes.some(({ rule }) => tried.holds(rule.when)),
  text: 'met by no rule and answered by 503 `no_route`',
  at: undefined,
});

/** That the request is let in at once. */
const admitted = (work: Work): Breach => ({
  statements: [...work.list.admitted.map(({ statement }) => statement), ...notQueued(work)],
  happens: (tried) => isAdmitted(work.list, tried) && !isQueued(work, tried),
  text: 'admitted',
  at: undefined,
});

/** The statements that no `queue` of the admission holds the request. */
const notQueued = ({ list }: Work): readonly Formula[] =>
  list.admission.flatMap((at) =>
    'verb' in at.rule && at.rule.verb === 'queue'
      ? [
          someOf([
            at.passes(),
            ...list.admission.slice(0, at.index).flatMap(({ stops, fires }) => (stops ? [fires] : [])),
          ]),
        ]
      : [],
  );

function isQueued({ list }: Work, { holds }: Trial): boolean {
  const first = list.admission.find(({ rule }) => holds(rule.when));
  return first !== undefined && 'verb' in first.rule && first.rule.verb === 'queue';
}

/** That a route may send the request to an endpoint of a place that `counts`, in some state of the endpoints. */
function sentTo(
  work: Work,
  route: ListedRule,
  place: Place,
  counts: (endpoint: KnownEndpoint) => boolean,
): readonly Breach[] {
  const { program, vocabulary, list } = work;
  const base = reaching(list, route);
  const where = place.filtered?.where;
  const how = place.by === 'target' ? '' : place.by === 'mirror' ? ' as a copy' : ` by its ${place.by}`;
  const endpoints = endpointsOf(program, place.target).filter(counts);
  const breach = (text: string, passes: Formula, endpoint: KnownEndpoint): Breach => ({
    statements: [...base, passes],
    happens: (tried) => comesTo(list, route, tried) && tried.passes(where, endpoint),
    text: `sent to ${text} by ${ruleName(route)}${how}`,
    at: labelOf(route, 'here', place.span),
  });
  const [first] = endpoints;
  if (first === undefined) return [];
  if (where === undefined) return [breach(targetText(place.target), TRUE, first)];
  return endpoints.map((endpoint) => {
    const passes = createTranslator(program, vocabulary, { endpoint }).truth(where);
    return breach(`endpoint ${JSON.stringify(endpoint.name)}`, passes, endpoint);
  });
}
