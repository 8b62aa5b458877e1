import { operandsOf, referenceName } from '@signalbox/policy';
import type { Destination, Expression, SignalRef } from '@signalbox/policy';

/** Signals that hold text of the prompt: no record has them, and they are let go with the body. */
export const PROMPT_KEYS: ReadonlySet<string> = new Set(['prompt', 'system_prompt', 'first_user_message', 'prefix']);
const HASHED_KEYS: ReadonlySet<string> = new Set(['user', 'session', 'conversation']);
/** Headers and metadata that carry who or which session: `x-session-id`, `user_id`, `email` … */
const PERSONAL_NAMES = /session|user|account|email|conversation|auth|token|key|cookie/;

/** A signal as records and traces name it: `complexity`, `header["x-tier"]`. */
export function signalName(signal: SignalRef): string {
  const argument = signal.arguments[0];
  if ((signal.key === 'header' || signal.key === 'metadata') && argument?.kind === 'value') {
    return `${signal.key}[${JSON.stringify(argument.value)}]`;
  }
  return referenceName(signal);
}

/** Whether a signal tells one user or session from another, so that records hold its hash only. */
export function isPersonal(signal: SignalRef): boolean {
  if (HASHED_KEYS.has(signal.key)) return true;
  const argument = signal.arguments[0];
  const name = argument?.kind === 'value' && typeof argument.value === 'string' ? argument.value.toLowerCase() : '';
  return (signal.key === 'header' || signal.key === 'metadata') && PERSONAL_NAMES.test(name);
}

/** Properties of the candidate in hand that a destination reads, ascending. */
export function recordedProperties(destination: Destination): readonly number[] {
  const found = new Set<number>();
  const visit = (expression: Expression): void => {
    // What an aggregate reads is not of the candidate in hand.
    if (expression.kind === 'aggregate') return;
    if (expression.kind === 'property') found.add(expression.index);
    operandsOf(expression).forEach(visit);
  };
  if (destination.where !== undefined) visit(destination.where);
  for (const sum of destination.by)
    for (const { scorer } of sum.terms) if (scorer.kind === 'expression') visit(scorer.expression);
  return [...found].sort((a, b) => a - b);
}
