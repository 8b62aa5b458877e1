import type { Value } from '@signalbox/plugin-api';
import type { Expression, TargetRef } from '../ir.ts';

/**
 * What an evaluator reads while it works: the signals of the request in hand, property columns, and pools for aggregates. Implemented
 * by core over fleet columns, and by tests over plain arrays. One object, reused for every request.
 */
export interface EvaluationHost {
  /** Numeric signals by `PolicyProgram.signals` index; NaN is unknown. */
  readonly n: Float64Array;
  /** Signals of other types by the same index; `undefined` is unknown. */
  readonly v: (Value | undefined)[];
  /**
   * The column of property `property` (index into `PolicyProgram.properties`), indexed by slot and valid for `slots[0..length)`:
   * numbers with NaN for unknown, or other values with `undefined` for unknown. Properties that depend on the request are filled here.
   */
  column(property: number, slots: Int32Array, length: number): Column;
  /** The healthy, not draining endpoints of a target; all endpoints' for `any`. `target` indexes `Evaluators.targets`. */
  pool(target: number): Pool;
}

/** A column indexed by slot. Typed as numbers for the hot path; columns of other types hold their values. */
export interface Column {
  readonly [slot: number]: number;
}

export interface Pool {
  readonly slots: Int32Array;
  readonly length: number;
}

/** Whether a request-scope bool is known true. */
export type RequestPredicate = (host: EvaluationHost) => boolean;
/** The value of a request-scope expression; NaN or `undefined` is unknown. */
export type RequestValue = (host: EvaluationHost) => Value | undefined;
/** Writes the slots for which a candidate-scope bool is known true to `out`, in order, and returns how many. `out` may be `slots`. */
export type CandidateFilter = (host: EvaluationHost, slots: Int32Array, length: number, out: Int32Array) => number;
/** Writes the value of a numeric candidate-scope expression for each position to `out`; NaN is unknown. */
export type CandidateValue = (host: EvaluationHost, slots: Int32Array, length: number, out: Float64Array) => void;

/**
 * The functions of one program, generated or interpreted, with the same results. Where the IR leaves a choice, both hold to these:
 * - arithmetic whose result is not finite (a division by zero, an overflow) is unknown; an infinite signal or property is a known number;
 * - `between` is the conjunction of its two bounds: false where one known bound says so, though the other is unknown;
 * - a list with an unknown member is unknown as a value, while `in` and `contains` on it are decided member by member;
 * - `sum` is 0 over an empty pool and unknown over one of unknowns only; `count` is never unknown; `any` and `all` are unknown over none;
 * - as a score, a bool is 1 or 0;
 * - zero has no sign.
 *
 * Each accessor takes an expression object that is part of the program (by identity) and is meant for
 * bind time; the functions returned are for request time. Asking for an expression that is not part of the program throws.
 */
export interface Evaluators {
  /** Pools that aggregates range over; `EvaluationHost.pool` is called with an index into this. */
  readonly targets: readonly TargetRef[];
  predicate(expression: Expression): RequestPredicate;
  value(expression: Expression): RequestValue;
  filter(expression: Expression): CandidateFilter;
  score(expression: Expression): CandidateValue;
}
