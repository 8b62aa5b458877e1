// perf: orders candidates in arrays of its own, so that a call allocates nothing.
import { ChwblError } from './errors.ts';
import type { CandidateColumns } from './first-within-bound.ts';
import { cannotReach, comesBefore } from './first-within-bound.ts';
import type { Hash64 } from './hash.ts';
import { keyLeft, keyRight, logOfFraction, pairHigh, pairLow } from './rendezvous-score.ts';

/**
 * Working memory for rendezvous orders over at most `capacity` candidates. One call at a time: `top` and `among` end an
 * order under way.
 */
export interface Ranker {
  readonly capacity: number;

  /** Starts the key's whole order over the candidates as they stand. O(n). */
  begin(candidates: CandidateColumns, key: Hash64): void;

  /** The next slot of the order that was begun, best first; -1 at its end. O(log n). */
  next(): number;

  /**
   * Writes the slots of the key's first k nodes to `out`, best first. O(n + k log k log(n/k)) expected.
   *
   * @returns how many were written: the smaller of k and the candidates of weight above 0
   */
  top(candidates: CandidateColumns, key: Hash64, k: number, out: Int32Array): number;

  /**
   * Marks the key's own subset of k nodes: `mask[i]` becomes 1 for a member and 0 otherwise, i being the place in the list.
   * The subset changes by one node when one comes or goes. With k of at least the number of candidates, all are members.
   *
   * @returns how many are members
   */
  among(candidates: CandidateColumns, key: Hash64, k: number, mask: Uint8Array): number;
}

/**
 * A {@link Ranker}.
 *
 * @param capacity integer in [0, 2^24]; a call with more candidates throws ChwblError `ERR_CHWBL_ARGUMENT`
 */
export function createRanker(capacity: number): Ranker {
  if (!Number.isInteger(capacity) || capacity < 0 || capacity > 2 ** 24) {
    throw new ChwblError('ERR_CHWBL_ARGUMENT', `ranker: capacity is ${capacity}; expected an integer from 0 to 2^24`);
  }
  return new HeapRanker(capacity);
}

/** A binary heap in parallel arrays: best at the root for whole orders, worst at the root while the k best are sought. */
class HeapRanker implements Ranker {
  readonly capacity: number;
  readonly #scores: Float64Array;
  readonly #his: Uint32Array;
  readonly #los: Uint32Array;
  readonly #slots: Int32Array;
  readonly #places: Int32Array;
  #size = 0;
  #worstFirst = false;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#scores = new Float64Array(capacity);
    this.#his = new Uint32Array(capacity);
    this.#los = new Uint32Array(capacity);
    this.#slots = new Int32Array(capacity);
    this.#places = new Int32Array(capacity);
  }

  begin(candidates: CandidateColumns, key: Hash64): void {
    this.#checkLength(candidates);
    const { hashHi, hashLo, weights, slots, length } = candidates;
    const left = keyLeft(key);
    const right = keyRight(key);
    let size = 0;
    for (let index = 0; index < length; index++) {
      const slot = slots[index]!;
      const weight = weights[slot]!;
      if (!(weight > 0)) continue;
      const hi = pairHigh(left, right, hashHi[slot]!, hashLo[slot]!);
      const lo = pairLow(left, right, hashHi[slot]!, hashLo[slot]!);
      this.#put(size++, logOfFraction(hi, lo) / weight, hi, lo, slot, index);
    }
    this.#size = size;
    this.#worstFirst = false;
    for (let at = (size >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  next(): number {
    return this.#worstFirst ? -1 : this.#pop();
  }

  top(candidates: CandidateColumns, key: Hash64, k: number, out: Int32Array): number {
    this.#keepBest(candidates, key, k);
    const count = this.#size;
    for (let at = count - 1; at >= 0; at--) out[at] = this.#pop();
    return count;
  }

  among(candidates: CandidateColumns, key: Hash64, k: number, mask: Uint8Array): number {
    this.#checkLength(candidates);
    const { length } = candidates;
    if (k >= length) {
      mask.fill(1, 0, length);
      this.#size = 0;
      return length;
    }
    this.#keepBest(candidates, key, k);
    mask.fill(0, 0, length);
    const count = this.#size;
    for (let at = 0; at < count; at++) mask[this.#places[at]!] = 1;
    this.#size = 0;
    return count;
  }

  #keepBest(candidates: CandidateColumns, key: Hash64, k: number): void {
    this.#checkLength(candidates);
    if (!Number.isInteger(k) || k < 0) {
      throw new ChwblError('ERR_CHWBL_ARGUMENT', `k is ${k}; expected an integer of at least 0`);
    }
    const { hashHi, hashLo, weights, slots, length } = candidates;
    const left = keyLeft(key);
    const right = keyRight(key);
    this.#size = 0;
    this.#worstFirst = true;
    if (k === 0) return;
    for (let index = 0; index < length; index++) {
      const slot = slots[index]!;
      const weight = weights[slot]!;
      if (!(weight > 0)) continue;
      const hi = pairHigh(left, right, hashHi[slot]!, hashLo[slot]!);
      const full = this.#size === k;
      if (full && cannotReach(this.#scores[0]!, hi, weight)) continue;
      const lo = pairLow(left, right, hashHi[slot]!, hashLo[slot]!);
      const score = logOfFraction(hi, lo) / weight;
      if (!full) {
        this.#put(this.#size, score, hi, lo, slot, index);
        this.#rise(this.#size++);
      } else if (comesBefore(score, hi, lo, slot, this.#scores[0]!, this.#his[0]!, this.#los[0]!, this.#slots[0]!)) {
        this.#put(0, score, hi, lo, slot, index);
        this.#sink(0);
      }
    }
  }

  #checkLength(candidates: CandidateColumns): void {
    if (candidates.length > this.capacity) {
      throw new ChwblError(
        'ERR_CHWBL_ARGUMENT',
        `ranker: ${candidates.length} candidates, capacity ${this.capacity}; create it with createRanker(${candidates.length})`,
      );
    }
  }

  #pop(): number {
    if (this.#size === 0) return -1;
    const slot = this.#slots[0]!;
    this.#size -= 1;
    this.#copy(this.#size, 0);
    this.#sink(0);
    return slot;
  }

  #put(at: number, score: number, hi: number, lo: number, slot: number, place: number): void {
    this.#scores[at] = score;
    this.#his[at] = hi;
    this.#los[at] = lo;
    this.#slots[at] = slot;
    this.#places[at] = place;
  }

  #copy(from: number, to: number): void {
    this.#put(to, this.#scores[from]!, this.#his[from]!, this.#los[from]!, this.#slots[from]!, this.#places[from]!);
  }

  #swap(one: number, other: number): void {
    const score = this.#scores[one]!;
    const hi = this.#his[one]!;
    const lo = this.#los[one]!;
    const slot = this.#slots[one]!;
    const place = this.#places[one]!;
    this.#copy(other, one);
    this.#put(other, score, hi, lo, slot, place);
  }

  /** Whether the entry at `one` belongs nearer the root than the entry at `other`. */
  #above(one: number, other: number): boolean {
    const before = comesBefore(
      this.#scores[one]!,
      this.#his[one]!,
      this.#los[one]!,
      this.#slots[one]!,
      this.#scores[other]!,
      this.#his[other]!,
      this.#los[other]!,
      this.#slots[other]!,
    );
    return before !== this.#worstFirst;
  }

  #rise(start: number): void {
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#above(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #sink(start: number): void {
    let at = start;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= this.#size) return;
      const right = left + 1;
      const child = right < this.#size && this.#above(right, left) ? right : left;
      if (!this.#above(child, at)) return;
      this.#swap(child, at);
      at = child;
    }
  }
}
