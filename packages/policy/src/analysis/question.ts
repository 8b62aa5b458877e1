import type { Formula } from './formula.ts';
import { solve } from './solve.ts';
import type { Narrowed } from './solve.ts';
import { assign, witnessOf } from './witness.ts';
import type { Assignment, Witness } from './witness.ts';

/** Steps for one question, where nobody says otherwise. A step looks at one comparison; a second is some ten million. */
export const DEFAULT_BUDGET = 200_000;

/**
 * What was found about whether some request meets all of some statements: none does; one does, and was tried; or neither could be proved.
 */
export type Finding =
  | { readonly kind: 'none' }
  | { readonly kind: 'some'; readonly witness: Witness; readonly narrowed: Narrowed }
  | { readonly kind: 'not_proved'; readonly reason: string; readonly narrowed?: Narrowed };

/** Asks and counts. */
export interface Questions {
  readonly budget: number;
  /** Solutions that did not hold when they were tried: a fault of the analysis, so always 0. */
  unconfirmed: number;
}

const NONE: Finding = Object.freeze({ kind: 'none' });

/** Whether some request meets all statements. `holds` tries an assignment of signals by the interpreter. */
export function ask(
  questions: Questions,
  statements: readonly Formula[],
  holds: (assignment: Assignment) => boolean,
): Finding {
  const budget = { left: questions.budget };
  const answer = solve(statements, { budget });
  if (answer.verdict === 'unsatisfiable') return NONE;
  if (answer.verdict === 'budget') return { kind: 'not_proved', reason: budgetReason(questions) };
  const opaque = [...answer.narrowed.keys()].filter((variable) => variable.opaque);
  if (opaque.length === 0) return tried(questions, answer.narrowed, holds);
  const strict = solve(statements, { budget, forEveryOpaque: true });
  if (strict.verdict === 'satisfiable') return tried(questions, strict.narrowed, holds);
  // The parts that cannot be followed may still come out as needed: then the request is as good a witness as any.
  if (holds(assign(answer.narrowed)))
    return { kind: 'some', witness: witnessOf(answer.narrowed), narrowed: answer.narrowed };
  const texts = opaque.map(({ text }) => `\`${text}\``);
  return {
    kind: 'not_proved',
    reason: `depends on ${texts.slice(0, 3).join(', ')}${texts.length > 3 ? ' and more' : ''}, which cannot be decided`,
    narrowed: answer.narrowed,
  };
}

const budgetReason = ({ budget }: Questions): string => `budget of ${budget} steps used up`;

function tried(questions: Questions, narrowed: Narrowed, holds: (assignment: Assignment) => boolean): Finding {
  if (holds(assign(narrowed))) return { kind: 'some', witness: witnessOf(narrowed), narrowed };
  questions.unconfirmed += 1;
  return { kind: 'not_proved', reason: 'its example did not hold when it was tried', narrowed };
}

/** Whether no request meets all statements; false also where that is not proved. */
export const isImpossible = (questions: Questions, statements: readonly Formula[]): boolean =>
  solve(statements, { budget: { left: questions.budget } }).verdict === 'unsatisfiable';
