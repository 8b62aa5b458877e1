// perf: limits are worked out once per candidate per request.
import { ChwblError } from './errors.ts';

/**
 * What a load counts. `requests`: whole requests in flight; the limit is the highest load *after* the assignment.
 * `tokens` (or any other amount): the limit is the highest load *before* it, so that an idle node takes a request of any
 * size, and a node may go past its limit by one request at most.
 */
export type LoadUnit = 'requests' | 'tokens';

/** A checked bound, made by {@link createBound}: how many times its fair share a node may hold, and what a load counts. */
export interface Bound {
  readonly factor: number;
  readonly unit: LoadUnit;
}

/** The factor that is used where none is given: a node may hold a quarter more than its fair share. */
export const DEFAULT_BOUND_FACTOR = 1.25;

/**
 * A bound of `factor` times the fair share, frozen.
 *
 * @param factor finite, at least 1: below 1 the nodes together could not hold the load.
 * @throws ChwblError `ERR_CHWBL_BOUND`
 */
export function createBound(factor: number = DEFAULT_BOUND_FACTOR, unit: LoadUnit = 'requests'): Bound {
  if (!Number.isFinite(factor) || factor < 1) {
    throw new ChwblError(
      'ERR_CHWBL_BOUND',
      `bound is ${factor}; expected a finite number of at least 1 (1.25 lets a node hold a quarter more than its fair share)`,
    );
  }
  if (unit !== 'requests' && unit !== 'tokens') {
    throw new ChwblError('ERR_CHWBL_BOUND', `bound unit is ${String(unit)}; expected 'requests' or 'tokens'`);
  }
  return Object.freeze({ factor, unit });
}

/** One node's weight and the sums over all eligible nodes, itself included. */
export interface LoadShare {
  /** w: the node's weight. */
  readonly weight: number;
  /** W: the sum of the weights of the eligible nodes. */
  readonly totalWeight: number;
  /** m: the sum of the loads of the eligible nodes. */
  readonly totalLoad: number;
}

/**
 * The limit of one node: `ceil(c · w/W · (m + 1))` in requests, `c · w/W · m` in tokens. Compare by {@link withinLimit}.
 *
 * Some node is always within its limit. Requests: the limits sum to at least c·(m + 1) > m, so not every load can have
 * reached its limit. Tokens: the limits sum to c·m ≥ m, so not every load can be above its limit.
 *
 * Source: Mirrokni, Thorup and Zadimoghaddam, Consistent hashing with bounded loads, SODA 2018 (arXiv:1608.01350), with
 * weights, and over the eligible nodes alone.
 */
export function boundLimit(bound: Bound, share: LoadShare): number {
  return limitOf(bound, limitPerWeight(bound, share.totalWeight, share.totalLoad), share.weight);
}

/** Whether a node that holds `load` may take one more request under `limit` (of {@link boundLimit}). */
export function withinLimit(bound: Bound, load: number, limit: number): boolean {
  return bound.unit === 'requests' ? load + 1 <= limit : load <= limit;
}

/** The part of the limit that all nodes share: c·(m + 1)/W in requests, c·m/W in tokens. */
export function limitPerWeight(bound: Bound, totalWeight: number, totalLoad: number): number {
  return (bound.factor * (bound.unit === 'requests' ? totalLoad + 1 : totalLoad)) / totalWeight;
}

/**
 * A node's limit from the shared part. A millionth of a millionth is given away so that rounding never decides: a product
 * that is a hair above a whole number is not rounded up to the next, and equal loads at c = 1 do not all miss their limit.
 * `TINY` does the same for amounts near the least double (a decayed average may get there), where relative slack is lost.
 */
export function limitOf(bound: Bound, perWeight: number, weight: number): number {
  return bound.unit === 'requests'
    ? Math.ceil(perWeight * weight * (1 - SLACK))
    : perWeight * weight * (1 + SLACK) + TINY;
}

const SLACK = 1e-12;
const TINY = 1e-290;
