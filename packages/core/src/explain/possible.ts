/**
 * What a condition may have come to where not all that it reads was recorded: any of true, false and unknown, as bits. Logic is Kleene's,
 * for every combination of what the parts may be.
 */
export type Possible = number;

export const TRUE: Possible = 1;
export const FALSE: Possible = 2;
export const UNKNOWN: Possible = 4;
export const ANYTHING: Possible = TRUE | FALSE | UNKNOWN;

/** The one thing that a known result is; undefined is unknown. */
export function possibleOf(result: unknown): Possible {
  return result === true ? TRUE : result === false ? FALSE : UNKNOWN;
}

/** Of a conjunction. */
export function bothOf(left: Possible, right: Possible): Possible {
  return (
    (left & right & TRUE) |
    ((left | right) & FALSE) |
    // Unknown where one is unknown and the other is not false.
    (((left & UNKNOWN) !== 0 && (right & (TRUE | UNKNOWN)) !== 0) || ((right & UNKNOWN) !== 0 && (left & TRUE) !== 0)
      ? UNKNOWN
      : 0)
  );
}

/** Of a negation. */
export function notOf(one: Possible): Possible {
  return ((one & TRUE) === 0 ? 0 : FALSE) | ((one & FALSE) === 0 ? 0 : TRUE) | (one & UNKNOWN);
}

/** Of a disjunction. */
export function eitherOf(left: Possible, right: Possible): Possible {
  return notOf(bothOf(notOf(left), notOf(right)));
}

/** Whether it is known true: yes, no, or undecided. */
export function isKnownTrue(one: Possible): boolean | undefined {
  if (one === TRUE) return true;
  return (one & TRUE) === 0 ? false : undefined;
}
