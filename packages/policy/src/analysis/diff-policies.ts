import type { AdmissionRule, PolicyProgram, RouteRule } from '../ir.ts';
import { alignKeys } from './align.ts';
import { coverByBoxes } from './boxes.ts';
import { decisionList, isAdmitted } from './decision-list.ts';
import type { DecisionList, ListedRule } from './decision-list.ts';
import { definitionChanges } from './definition-changes.ts';
import type { DefinitionChange } from './definition-changes.ts';
import type { Formula } from './formula.ts';
import { meaningKey } from './meaning-key.ts';
import { ask, DEFAULT_BUDGET, isImpossible } from './question.ts';
import type { Questions } from './question.ts';
import { narrowedText } from './region-text.ts';
import { pairRules, ruleChanges } from './rule-changes.ts';
import type { RuleChange, RulePair } from './rule-changes.ts';
import { actionKey, placesKey, placesText } from './rule-outcome.ts';
import type { DecidingRule } from './rule-outcome.ts';
import type { Narrowed } from './solve.ts';
import { createTranslator } from './translate.ts';
import { createVocabulary } from './variable.ts';
import { createTrials } from './witness.ts';
import type { Assignment, Trial, Witness } from './witness.ts';

/** What becomes of a request: the rule that takes it first. Absent label: no rule does. */
export interface MoveEnd {
  readonly label?: string;
  /** `admit`, `reject`, `queue`, `route` or `default`. */
  readonly verb?: string;
  /** Where it may go then: `to tier "70B" else reject`. For no rule: `admitted`, or `503 no_route`. */
  readonly outcome: string;
}

/** Requests that another rule takes than before, with another outcome. */
export interface Move {
  readonly phase: 'admission' | 'routing';
  /** `places`: they may go elsewhere; `handling`: to the same places, otherwise chosen or handled. */
  readonly kind: 'places' | 'handling';
  /**
   * Which ones, of those that no condition above takes that is in both, and that both policies let in, as conditions: `complexity in (50, 60]`. Ends
   * in `or others` where that is not all; `all others` are all that come so far.
   */
  readonly region: string;
  readonly from: MoveEnd;
  readonly to: MoveEnd;
  /** `not_proved`: whether there is such a request is open, by `reason`. */
  readonly verdict: 'proved' | 'not_proved';
  readonly reason?: string;
  readonly witness?: Witness;
}

export interface PolicyDiff {
  /** Nothing that the policies do or define differs. */
  readonly isSame: boolean;
  readonly moves: readonly Move[];
  /** Rules that are in both with other conditions or actions, in one only, or at another place among the others. */
  readonly rules: readonly RuleChange[];
  readonly definitions: readonly DefinitionChange[];
  /** Examples that did not hold when they were tried; always 0. */
  readonly unconfirmed: number;
}

export interface DiffOptions {
  /** Steps for each pair of rules, `DEFAULT_BUDGET` where nothing is said. */
  readonly budget?: number;
}

/** How many pieces a region is told in. */
const MAX_BOXES = 5;

interface Side {
  readonly program: PolicyProgram;
  readonly list: DecisionList;
  readonly trial: (assignment: Assignment) => Trial;
}

/**
 * What a change of policy does, by meaning: which requests another rule takes with another outcome, what changes in how rules handle theirs,
 * and in the definitions. Rewritten conditions, `let`s, comments and layout that mean the same are no change. Compared is the rule that takes a
 * request first; where it goes on from by `else next` is not followed.
 */
export function diffPolicies(before: PolicyProgram, after: PolicyProgram, options: DiffOptions = {}): PolicyDiff {
  const found = findMoves(before, after, options);
  const rules = [...found.pairs].flatMap((pair) => ruleChanges(before, after, pair, found.questions));
  const definitions = definitionChanges(before, after);
  return {
    isSame: found.moves.length === 0 && rules.length === 0 && definitions.length === 0,
    moves: found.moves.map(({ move }) => move),
    rules,
    definitions,
    unconfirmed: found.questions.unconfirmed,
  };
}

/** Moves with the boxes behind their regions. */
export interface FoundMoves {
  readonly moves: readonly { readonly move: Move; readonly boxes: readonly Narrowed[]; readonly isWhole: boolean }[];
  readonly pairs: readonly RulePair[];
  readonly questions: Questions;
}

export function findMoves(before: PolicyProgram, after: PolicyProgram, options: DiffOptions = {}): FoundMoves {
  const vocabulary = createVocabulary();
  const sideOf = (program: PolicyProgram): Side => ({
    program,
    list: decisionList(program, createTranslator(program, vocabulary)),
    trial: createTrials(program),
  });
  const questions: Questions = { budget: options.budget ?? DEFAULT_BUDGET, unconfirmed: 0 };
  const [old, now] = [sideOf(before), sideOf(after)];
  const phases = (['admission', 'routing'] as const).map((phase) => movesOfPhase(old, now, phase, questions));
  return {
    moves: phases.flatMap(({ moves }) => moves),
    pairs: phases.flatMap(({ pairs }) => pairs),
    questions,
  };
}

/** A rule, or that there is none, with the requests that it is the first to take. */
interface Taker {
  readonly rule: DecidingRule;
  readonly listed: ListedRule | undefined;
  readonly places: string;
  readonly action: string;
  /** The statements that it takes a request first; without those rules above that `isBackground` names. */
  readonly takes: (isBackground?: (rule: ListedRule) => boolean) => readonly Formula[];
  readonly happens: (tried: Trial) => boolean;
}

function movesOfPhase(
  old: Side,
  now: Side,
  phase: Move['phase'],
  questions: Questions,
): Pick<FoundMoves, 'moves' | 'pairs'> {
  const [before, after] = [rulesOf(old, phase), rulesOf(now, phase)];
  const keyOf = (side: Side, { rule }: ListedRule): string =>
    `${meaningKey(side.program, rule.when ?? null)} ${actionKey(side.program, rule)}`;
  const aligned = alignKeys(
    before.map((rule) => keyOf(old, rule)),
    after.map((rule) => keyOf(now, rule)),
  );
  const keptBefore = new Set(aligned.map(([at]) => at));
  const keptAfter = new Set(aligned.map(([, at]) => at));
  const pairs = pairRules(old.program, before, now.program, after, aligned);
  // Rules with one condition in both.
  const partners = new Map(
    pairs.flatMap(({ before: from, after: to }) =>
      from !== undefined && to !== undefined && hasSameCondition(old, from, now, to) ? [[from, to] as const] : [],
    ),
  );
  const backwards = new Map(Array.from(partners, ([from, to]) => [to, from]));
  const same = new Set(pairs.map(({ before: from, after: to }) => `${from?.index ?? ''} ${to?.index ?? ''}`));
  const letIn =
    phase === 'routing' ? [...old.list.admitted, ...now.list.admitted].map(({ statement }) => statement) : [];
  const moves: FoundMoves['moves'][number][] = [];
  // Whom two rules take that stay in both, in one order, the one takes in both: only changed ones have to be looked at.
  const tos = takersOf(now, after, phase);
  for (const from of takersOf(old, before, phase)) {
    const isKept = from.listed === undefined ? false : keptBefore.has(from.listed.index);
    for (const to of tos) {
      if (isKept && to.listed !== undefined && keptAfter.has(to.listed.index)) continue;
      const kind = kindOfMove(from, to);
      if (kind === undefined || isHeldBack(from, to, partners, backwards) || areApart(from, to, questions)) continue;
      // What changes in a rule that takes the same requests is told of the rule.
      if (kind === 'handling' && same.has(`${from.listed?.index ?? ''} ${to.listed?.index ?? ''}`)) continue;
      // A condition that stands above both keeps the same requests from either.
      const isBackground = (rule: ListedRule): boolean => {
        const partner = partners.get(rule);
        return partner !== undefined && isAbove(rule, partner, from, to);
      };
      const isAlsoBackground = (rule: ListedRule): boolean => {
        const partner = backwards.get(rule);
        return partner !== undefined && isBackground(partner);
      };
      const found = moveBetween({
        old,
        now,
        from,
        to,
        statements: [...from.takes(), ...to.takes(), ...letIn],
        described: [...from.takes(isBackground), ...to.takes(isAlsoBackground)],
        phase,
        kind,
        questions,
      });
      if (found !== undefined) moves.push(found);
    }
  }
  return { moves, pairs };
}

const rulesOf = ({ list }: Side, phase: Move['phase']): readonly ListedRule[] =>
  phase === 'admission' ? list.admission : list.routes;

const hasSameCondition = (old: Side, before: ListedRule, now: Side, after: ListedRule): boolean =>
  meaningKey(old.program, before.rule.when ?? null) === meaningKey(now.program, after.rule.when ?? null);

/** Whether a rule stands above one taker and its partner above the other. */
const isAbove = (rule: ListedRule, partner: ListedRule, from: Taker, to: Taker): boolean =>
  rule.index < (from.listed?.index ?? Infinity) && partner.index < (to.listed?.index ?? Infinity);

function kindOfMove(from: Taker, to: Taker): Move['kind'] | undefined {
  if (from.places !== to.places) return 'places';
  return from.action === to.action ? undefined : 'handling';
}

/** Whether the condition of one stands above the other in the other's policy too, and so keeps all that it takes from it. */
function isHeldBack(
  { listed: from }: Taker,
  { listed: to }: Taker,
  partners: ReadonlyMap<ListedRule, ListedRule>,
  backwards: ReadonlyMap<ListedRule, ListedRule>,
): boolean {
  const there = from === undefined ? undefined : partners.get(from);
  const here = to === undefined ? undefined : backwards.get(to);
  return (
    (there !== undefined && there.index < (to?.index ?? Infinity)) ||
    (here !== undefined && here.index < (from?.index ?? Infinity))
  );
}

/** Whether no request meets both conditions, which is found out at once where other rules need not be looked at. */
const areApart = ({ listed: from }: Taker, { listed: to }: Taker, questions: Questions): boolean =>
  from !== undefined && to !== undefined && isImpossible(questions, [from.fires, to.fires]);

function takersOf(side: Side, rules: readonly ListedRule[], phase: Move['phase']): readonly Taker[] {
  const isLetIn = (tried: Trial): boolean => phase === 'admission' || isAdmitted(side.list, tried);
  const ends = (rule: DecidingRule): Pick<Taker, 'rule' | 'places' | 'action'> => ({
    rule,
    places: placesKey(rule),
    action: actionKey(side.program, rule),
  });
  const passed = (rule: ListedRule, tried: Trial): boolean => !tried.holds(rule.rule.when);
  return [
    ...rules.map((listed, at): Taker => {
      const earlier = rules.slice(0, at);
      return {
        ...ends(listed.rule),
        listed,
        takes: (isBackground) => [listed.fires, ...passing(earlier, isBackground)],
        happens: (tried) =>
          isLetIn(tried) && tried.holds(listed.rule.when) && earlier.every((rule) => passed(rule, tried)),
      };
    }),
    {
      ...ends(undefined),
      listed: undefined,
      takes: (isBackground) => passing(rules, isBackground),
      happens: (tried) => isLetIn(tried) && rules.every((rule) => passed(rule, tried)),
    },
  ];
}

const passing = (rules: readonly ListedRule[], isBackground?: (rule: ListedRule) => boolean): readonly Formula[] =>
  rules.flatMap((rule) => (isBackground?.(rule) === true ? [] : [rule.passes()]));

interface PossibleMove {
  readonly old: Side;
  readonly now: Side;
  readonly from: Taker;
  readonly to: Taker;
  readonly statements: readonly Formula[];
  /** The same without what is left out of the description. */
  readonly described: readonly Formula[];
  readonly phase: Move['phase'];
  readonly kind: Move['kind'];
  readonly questions: Questions;
}

function moveBetween(possible: PossibleMove): FoundMoves['moves'][number] | undefined {
  const { old, now, from, to, statements, described, phase, kind, questions } = possible;
  const found = ask(
    questions,
    statements,
    (assignment) => from.happens(old.trial(assignment)) && to.happens(now.trial(assignment)),
  );
  if (found.kind === 'none') return undefined;
  const { boxes, isWhole } = coverByBoxes(described, { left: questions.budget }, MAX_BOXES);
  const pieces = boxes.map((box) => narrowedText(box));
  const joined = pieces.length > 1 ? pieces.map((piece) => (piece.includes(' and ') ? `(${piece})` : piece)) : pieces;
  const told = [...joined, ...(isWhole ? [] : ['others'])].join(' or ');
  const region = told === 'any request' && described.length < statements.length ? 'all others' : told;
  const ends = { from: endOf(from.rule, phase), to: endOf(to.rule, phase) };
  const proof: Pick<Move, 'verdict' | 'reason' | 'witness'> =
    found.kind === 'some'
      ? { verdict: 'proved', witness: found.witness }
      : { verdict: 'not_proved', reason: found.reason };
  return { move: { phase, kind, region, ...ends, ...proof }, boxes, isWhole };
}

function endOf(rule: DecidingRule, phase: Move['phase']): MoveEnd {
  if (rule === undefined) return { outcome: phase === 'admission' ? 'admitted' : '503 no_route' };
  return { label: rule.label, verb: verbOf(rule), outcome: placesText(rule) };
}

const verbOf = (rule: AdmissionRule | RouteRule): string => ('verb' in rule ? rule.verb : rule.kind);
