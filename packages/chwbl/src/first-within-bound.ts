// perf: runs per request over all candidates; no sorting, no allocation, and a logarithm only for a new best.
import type { Bound } from './bound.ts';
import { limitOf, limitPerWeight, withinLimit } from './bound.ts';
import type { Hash64 } from './hash.ts';
import { keyLeft, keyRight, logOfFraction, pairHigh, pairLow } from './rendezvous-score.ts';

/** A column of loads by slot: whole numbers of at least 0 where requests are counted, amounts of at least 0 for tokens. */
export type LoadColumn = Int32Array | Uint32Array | Float64Array;

/**
 * The nodes that a call may choose from: columns indexed by slot, and a list of slots. The caller owns every array and may
 * change them between calls; one such object can serve all requests by setting `length`.
 */
export interface CandidateColumns {
  /** High and low halves of `hashString(node id)`, by slot. */
  readonly hashHi: Uint32Array;
  readonly hashLo: Uint32Array;
  /** By slot. A node whose weight is not above 0 is left out. */
  readonly weights: Float64Array;
  /** Slots of the candidates in the first `length` places; each slot at most once; the order does not matter. */
  readonly slots: Int32Array;
  length: number;
}

/**
 * The slot of the first node in the key's rendezvous order whose load is within the bound, or -1 when there is none: with
 * no candidates, or when another thread changed the loads in mid-call.
 *
 * The best score among the acceptable nodes is the first acceptable node in score order, so one pass for the sums and one
 * for the best are enough: O(n).
 */
export function firstWithinBound(candidates: CandidateColumns, key: Hash64, loads: LoadColumn, bound: Bound): number {
  return bestOf(candidates, key, loads, bound, sharedLimit(candidates, loads, bound));
}

/** The slot of the first node in the key's rendezvous order, whatever its load; -1 without candidates. O(n). */
export function firstInOrder(candidates: CandidateColumns, key: Hash64): number {
  return bestOf(candidates, key, undefined, undefined, 0);
}

/**
 * Marks the candidates within the bound: `mask[i]` becomes 1 or 0 for the candidate in place i of the list.
 *
 * @returns how many are within; at least 1 unless there are no candidates of weight above 0.
 */
export function markWithinBound(
  candidates: CandidateColumns,
  loads: LoadColumn,
  bound: Bound,
  mask: Uint8Array,
): number {
  const { weights, slots, length } = candidates;
  const perWeight = sharedLimit(candidates, loads, bound);
  let count = 0;
  for (let index = 0; index < length; index++) {
    const slot = slots[index]!;
    const weight = weights[slot]!;
    const within = weight > 0 && withinLimit(bound, loads[slot]!, limitOf(bound, perWeight, weight)) ? 1 : 0;
    mask[index] = within;
    count += within;
  }
  return count;
}

/** The order of two scored nodes: score, then the pair's hash, both highest first, then the lower slot. */
export function comesBefore(
  score: number,
  hi: number,
  lo: number,
  slot: number,
  otherScore: number,
  otherHi: number,
  otherLo: number,
  otherSlot: number,
): boolean {
  if (score !== otherScore) return score > otherScore;
  if (hi !== otherHi) return hi > otherHi;
  if (lo !== otherLo) return lo > otherLo;
  return slot < otherSlot;
}

/**
 * Whether a node whose pair hash begins with `hi` surely scores below `score`. ln(u) ≤ u − 1, and u is below
 * (hi + 1)/2^32; the margin keeps rounding from ruling out a node that would tie.
 */
export function cannotReach(score: number, hi: number, weight: number): boolean {
  return (hi + 1) * 2.3283064365386963e-10 - 1 < score * weight * (1 + 1e-12);
}

function bestOf(
  candidates: CandidateColumns,
  key: Hash64,
  loads: LoadColumn | undefined,
  bound: Bound | undefined,
  perWeight: number,
): number {
  const { hashHi, hashLo, weights, slots, length } = candidates;
  const left = keyLeft(key);
  const right = keyRight(key);
  let best = -1;
  let bestScore = -Infinity;
  let bestHi = 0;
  let bestLo = 0;
  for (let index = 0; index < length; index++) {
    const slot = slots[index]!;
    const weight = weights[slot]!;
    if (!(weight > 0)) continue;
    const hi = pairHigh(left, right, hashHi[slot]!, hashLo[slot]!);
    if (cannotReach(bestScore, hi, weight)) continue;
    if (loads !== undefined && bound !== undefined) {
      if (!withinLimit(bound, loads[slot]!, limitOf(bound, perWeight, weight))) continue;
    }
    const lo = pairLow(left, right, hashHi[slot]!, hashLo[slot]!);
    const score = logOfFraction(hi, lo) / weight;
    if (best < 0 || comesBefore(score, hi, lo, slot, bestScore, bestHi, bestLo, best)) {
      best = slot;
      bestScore = score;
      bestHi = hi;
      bestLo = lo;
    }
  }
  return best;
}

function sharedLimit(candidates: CandidateColumns, loads: LoadColumn, bound: Bound): number {
  const { weights, slots, length } = candidates;
  let totalWeight = 0;
  let totalLoad = 0;
  for (let index = 0; index < length; index++) {
    const slot = slots[index]!;
    const weight = weights[slot]!;
    if (!(weight > 0)) continue;
    totalWeight += weight;
    totalLoad += loads[slot]!;
  }
  return limitPerWeight(bound, totalWeight, totalLoad);
}
