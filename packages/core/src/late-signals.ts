// perf: a rule whose cheap conditions fail costs no look at the text of the prompt.
import type { RequestPredicate } from '@signalbox/policy';
import type { SignalStep } from './bound-policy.ts';
import type { Frame } from './frame.ts';

/**
 * What a condition reads of the late signals: those that cost something to work out and that nothing but conditions of rules reads. They
 * are worked out when a rule comes to them, at most once for a request.
 */
export interface LateReads {
  /** One bit for each late signal that the condition reads. */
  readonly mask: number;
  /** The parts of a conjunction that read none of them. Where one is not known true the conjunction is not either. */
  readonly gates: readonly RequestPredicate[];
}

/** How many signals may be late: as many as there are bits in a small integer. */
export const MOST_LATE_SIGNALS = 30;

/** Whether a rule's condition is known true, by as few of its late signals as tell. */
export function holds(
  { when, late }: { readonly when: RequestPredicate | undefined; readonly late: LateReads | undefined },
  frame: Frame,
): boolean {
  if (when === undefined) return true;
  if (late !== undefined && !mayHold(late, frame)) return false;
  return when(frame);
}

/** False where a gate says that the condition does not hold; else its late signals are there. */
function mayHold({ mask, gates }: LateReads, frame: Frame): boolean {
  if ((mask & ~frame.lateRead) === 0) return true;
  for (const gate of gates) if (!gate(frame)) return false;
  readLate(frame, mask);
  return true;
}

/** Works out the late signals of a mask that the request has not got yet. */
export function readLate(frame: Frame, mask: number): void {
  const { late } = frame.shape;
  for (let i = 0; i < late.length; i++) {
    const bit = 1 << i;
    if ((mask & bit) !== 0 && (frame.lateRead & bit) === 0) readOne(frame, late[i]!, bit);
  }
}

function readOne(frame: Frame, { index, numeric, produce }: SignalStep, bit: number): void {
  if (numeric) frame.n[index] = produce(frame) as number;
  else frame.v[index] = produce(frame);
  frame.lateRead |= bit;
}

/** The mask of all late signals of a policy. */
export function everyLate(late: readonly SignalStep[]): number {
  return (1 << late.length) - 1;
}
