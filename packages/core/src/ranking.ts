// perf: runs over all candidates of every decision; scratch memory is made once, nothing is allocated per call. What is rare has functions
// of its own, so that what is common is small enough to be inlined.
import { clampScores, normaliseCosts, normaliseGains } from '@signalbox/plugin-api';
import type { RandomSource } from '@signalbox/plugin-api';
import type { CandidateValue } from '@signalbox/policy';
import type { Fleet } from './fleet/fleet.ts';
import type { Frame } from './frame.ts';
import { spread } from './seeded-random.ts';

/** What a scorer's values mean. */
export type Direction = 'lowest' | 'highest' | 'score';

/** One scorer of a sum. `evaluate` writes raw values by position; NaN is unknown. */
export interface RankTerm {
  readonly name: string;
  readonly weight: number;
  readonly direction: Direction;
  readonly evaluate: CandidateValue;
  /** Told how many values were not finite, where that is a plugin's fault. */
  readonly onInvalid?: (count: number) => void;
}

/** One tier of an order: `by` first, then each `then`. Weights sum to 1. */
export type RankTier = readonly RankTerm[];

/** Chooses among scored candidates in place of the host's order. Positions and meaning as in PickerInstance. */
export interface RankPicker {
  readonly sample:
    | ((frame: Frame, slots: Int32Array, length: number, random: RandomSource, out: Int32Array) => number)
    | undefined;
  readonly pick:
    | ((
        frame: Frame,
        scores: Float64Array,
        slots: Int32Array,
        length: number,
        random: RandomSource,
        k: number,
        out: Int32Array,
      ) => number)
    | undefined;
}

/** Sums that differ by no more than this are equal. */
const SUM_TIE = 1e-9;

/** Shortlists of up to this many are cut out of all candidates in one pass; longer ones (explain) take a pass per place. */
const MOST_IN_ONE_PASS = 16;

/**
 * Orders candidates: best by the first tier, ties by the next ones, last ties by the rendezvous order of (request seed, endpoint). A tier
 * of one scorer compares raw values, equal ones tie, unknown ones come last; a sum compares the weighted mean of clamped or min–max
 * normalised scores, and within 1e-9 they tie. Later tiers are worked out only where there is a tie.
 */
export interface Ranking {
  /** Scorers that the last `rank` asked and that knew nothing of any candidate: the order is as if they were left out. */
  readonly unknownTerms: readonly RankTerm[];
  /**
   * Writes the best `k` candidates to the frame's shortlist, with score and parts, and returns how many there are.
   * `keepPosition` receives the position of each.
   */
  rank(
    tiers: readonly RankTier[],
    picker: RankPicker | undefined,
    random: RandomSource,
    frame: Frame,
    slots: Int32Array,
    length: number,
    k: number,
  ): number;
}

/** A ranking with scratch memory for a fleet's capacity. */
export function createRanking(fleet: Fleet): Ranking {
  const { capacity } = fleet.table;
  const tierValues: Float64Array[] = [];
  const termValues: Float64Array[] = [];
  const normalised = new Float64Array(capacity);
  const taken = new Uint8Array(capacity);
  const ties = new Int32Array(capacity);
  const chosen = new Int32Array(capacity);
  const sampled = new Int32Array(capacity);
  const tieHashes = new Uint32Array(capacity);
  const front = new Int32Array(capacity);
  const topValues = new Float64Array(MOST_IN_ONE_PASS);
  const topHashes = new Float64Array(MOST_IN_ONE_PASS);
  const topPositions = new Int32Array(MOST_IN_ONE_PASS);
  const { hashHi, hashLo } = fleet.table;
  const unknownTerms: RankTerm[] = [];
  let computedTiers = 0;

  const scratch = (list: Float64Array[], index: number): Float64Array => (list[index] ??= new Float64Array(capacity));

  /** Asks the lone scorer of a tier for its values. */
  const ask = (term: RankTerm, frame: Frame, slots: Int32Array, length: number, values: Float64Array): void => {
    term.evaluate(frame, slots, length, values);
    if (term.direction === 'score') {
      const invalid = clampScores(values, length);
      if (invalid > 0) term.onInvalid?.(invalid);
      if (invalid === length) unknownTerms.push(term);
    } else if (isUnknown(values, length)) unknownTerms.push(term);
  };

  /** Adds the weighted scores of a tier of several up, from 0; `kept` receives those of each term. */
  const addUp = (
    tier: RankTier,
    kept: Float64Array[] | undefined,
    frame: Frame,
    slots: Int32Array,
    length: number,
    values: Float64Array,
  ): void => {
    for (let t = 0; t < tier.length; t++) {
      const term = tier[t]!;
      const part = kept === undefined ? normalised : scratch(kept, t);
      term.evaluate(frame, slots, length, part);
      const invalid =
        term.direction === 'lowest'
          ? normaliseCosts(part, length)
          : term.direction === 'highest'
            ? normaliseGains(part, length)
            : clampScores(part, length);
      if (invalid > 0) term.onInvalid?.(invalid);
      if (invalid === length) unknownTerms.push(term);
      const { weight } = term;
      if (t === 0) for (let i = 0; i < length; i++) values[i] = weight * part[i]!;
      else for (let i = 0; i < length; i++) values[i] = values[i]! + weight * part[i]!;
    }
  };

  /** The values of a tier for all candidates, by position. */
  const compute = (
    tiers: readonly RankTier[],
    index: number,
    frame: Frame,
    slots: Int32Array,
    length: number,
  ): Float64Array => {
    const values = scratch(tierValues, index);
    if (index < computedTiers) return values;
    computedTiers = index + 1;
    const tier = tiers[index]!;
    if (tier.length === 1) ask(tier[0]!, frame, slots, length, values);
    // The parts of the first tier are kept for the shortlist; later tiers need none.
    else addUp(tier, index === 0 ? termValues : undefined, frame, slots, length, values);
    return values;
  };

  /** Narrows `ties[0..count)` to its best by one tier; returns how many remain. */
  const narrow = (values: Float64Array, tier: RankTier, count: number): number => {
    const sign = signOf(tier);
    const slack = tier.length === 1 ? 0 : SUM_TIE;
    let best = -Infinity;
    for (let j = 0; j < count; j++) {
      const value = sign * values[ties[j]!]!;
      if (value > best) best = value;
    }
    if (best === -Infinity) return count;
    let kept = 0;
    for (let j = 0; j < count; j++) {
      const position = ties[j]!;
      if (sign * values[position]! >= best - slack) ties[kept++] = position;
    }
    return kept;
  };

  const tieKey = (frame: Frame): number => spread(frame.seed ^ 0x5bd1e995);
  const tieHash = (slot: number, key: number): number => spread(hashHi[slot]! ^ spread(hashLo[slot]! ^ key));

  /**
   * Puts the first `wanted` of `ties[0..count)` by rendezvous order at the front of `ties`: highest hash of (request seed, endpoint) first.
   * Weights play no part in ties, so the hash itself is the score.
   */
  const orderByHash = (frame: Frame, slots: Int32Array, count: number, wanted: number): number => {
    const key = tieKey(frame);
    for (let j = 0; j < count; j++) tieHashes[j] = tieHash(slots[ties[j]!]!, key);
    for (let first = 0; first < wanted; first++) {
      let best = first;
      for (let j = first + 1; j < count; j++) if (tieHashes[j]! > tieHashes[best]!) best = j;
      const position = ties[best]!;
      const hash = tieHashes[best]!;
      ties[best] = ties[first]!;
      tieHashes[best] = tieHashes[first]!;
      ties[first] = position;
      tieHashes[first] = hash;
    }
    return wanted;
  };

  /**
   * Puts the positions of the best of `among[0..size)` not yet taken, which tie by every tier, into `ties`: at most `wanted`; returns how
   * many.
   */
  const best = (
    tiers: readonly RankTier[],
    frame: Frame,
    slots: Int32Array,
    length: number,
    among: Int32Array,
    size: number,
    wanted: number,
  ): number => {
    const tier = tiers[0]!;
    const values = compute(tiers, 0, frame, slots, length);
    const sign = signOf(tier);
    const slack = tier.length === 1 ? 0 : SUM_TIE;
    let top = -Infinity;
    for (let j = 0; j < size; j++) {
      const position = among[j]!;
      const value = sign * values[position]!;
      if (value > top && taken[position] === 0) top = value;
    }
    let count = 0;
    for (let j = 0; j < size; j++) {
      const position = among[j]!;
      // Where all that is left is unknown, all of it ties.
      if (taken[position] === 0 && (top === -Infinity || sign * values[position]! >= top - slack))
        ties[count++] = position;
    }
    for (let t = 1; count > 1 && t < tiers.length; t++) {
      // `compute` uses no tie memory, so the list survives it.
      count = narrow(compute(tiers, t, frame, slots, length), tiers[t]!, count);
    }
    return count <= 1 ? count : orderByHash(frame, slots, count, wanted < count ? wanted : count);
  };

  /**
   * Puts the `k` highest of `sign` times `values` into `topValues` and `topPositions`, highest first, and into `front` the positions, in
   * order, of all that were within `slack` of the last of them when they were met; returns how many those are, or -1 if no two of the `k`
   * are equal and no other equals the last, so that their order is settled. Fewer than `k` are known if the last is -Infinity.
   */
  const cut = (values: Float64Array, sign: 1 | -1, length: number, k: number, slack: number): number => {
    const last = k - 1;
    for (let j = 0; j < k; j++) topValues[j] = -Infinity;
    let least = -Infinity;
    let bar = -Infinity;
    let size = 0;
    let tied = slack > 0;
    for (let i = 0; i < length; i++) {
      const value = sign * values[i]!;
      if (!(value >= bar)) continue;
      front[size++] = i;
      if (value > least) {
        let j = last;
        for (; j > 0; j--) {
          const better = topValues[j - 1]!;
          if (better >= value) break;
          topValues[j] = better;
          topPositions[j] = topPositions[j - 1]!;
        }
        topValues[j] = value;
        topPositions[j] = i;
        const dropped = least;
        least = topValues[last]!;
        bar = least - slack;
        if (slack === 0) tied = dropped === least;
      } else tied = true;
    }
    if (tied || least === -Infinity) return size;
    for (let j = 1; j < k; j++) if (topValues[j - 1] === topValues[j]) return size;
    return -1;
  };

  /** As `cut` for a `k` of three, the shortlist of a destination whose retries are not written: a quarter faster, for all is in locals. */
  const cutThree = (values: Float64Array, sign: 1 | -1, length: number, slack: number): number => {
    let first = -Infinity;
    let second = -Infinity;
    let third = -Infinity;
    let firstAt = 0;
    let secondAt = 0;
    let thirdAt = 0;
    let bar = -Infinity;
    let size = 0;
    let tied = slack > 0;
    for (let i = 0; i < length; i++) {
      const value = sign * values[i]!;
      if (!(value >= bar)) continue;
      front[size++] = i;
      if (value > third) {
        const dropped = third;
        if (value > second) {
          third = second;
          thirdAt = secondAt;
          if (value > first) {
            second = first;
            secondAt = firstAt;
            first = value;
            firstAt = i;
          } else {
            second = value;
            secondAt = i;
          }
        } else {
          third = value;
          thirdAt = i;
        }
        bar = third - slack;
        if (slack === 0) tied = dropped === third;
      } else tied = true;
    }
    topValues[2] = third;
    topPositions[0] = firstAt;
    topPositions[1] = secondAt;
    topPositions[2] = thirdAt;
    return tied || third === -Infinity || first === second || second === third ? size : -1;
  };

  /** Leaves of `front[0..size)` what is at least `bar`; returns how many those are. */
  const keepFrom = (values: Float64Array, sign: 1 | -1, size: number, bar: number): number => {
    let kept = 0;
    for (let j = 0; j < size; j++) {
      const position = front[j]!;
      if (sign * values[position]! >= bar) front[kept++] = position;
    }
    return kept;
  };

  const list = (frame: Frame, tier: RankTier, slots: Int32Array, position: number, place: number): void => {
    const value = tierValues[0]![position]!;
    const first = place * frame.shape.parts;
    frame.slots[place] = slots[position]!;
    frame.scores[place] = value;
    if (tier.length === 1) frame.parts[first] = value;
    else for (let t = 0; t < tier.length; t++) frame.parts[first + t] = termValues[t]![position]!;
  };

  /** Fills the shortlist from `front[0..size)`, in rounds of those that tie by every tier; returns how many there are. */
  const orderTied = (
    tiers: readonly RankTier[],
    frame: Frame,
    slots: Int32Array,
    length: number,
    size: number,
    wanted: number,
  ): number => {
    let count = 0;
    while (count < wanted) {
      const found = best(tiers, frame, slots, length, front, size, wanted - count);
      if (found === 0) break;
      for (let j = 0; j < found; j++, count++) {
        const position = ties[j]!;
        taken[position] = 1;
        chosen[count] = position;
        list(frame, tiers[0]!, slots, position, count);
      }
    }
    for (let j = 0; j < count; j++) taken[chosen[j]!] = 0;
    return count;
  };

  /**
   * Puts the best `wanted` of `front[0..size)` into `topPositions` in one pass, where equal values tie and no other tier is there to part
   * them: as on an idle fleet, where all are equal. All of them are known, and at least `wanted`.
   */
  const cutByHash = (
    values: Float64Array,
    sign: 1 | -1,
    frame: Frame,
    slots: Int32Array,
    size: number,
    wanted: number,
  ): void => {
    const key = tieKey(frame);
    const last = wanted - 1;
    for (let j = 0; j < wanted; j++) {
      topValues[j] = -Infinity;
      topHashes[j] = -1;
    }
    let least = -Infinity;
    let leastHash = -1;
    for (let i = 0; i < size; i++) {
      const position = front[i]!;
      const value = sign * values[position]!;
      if (value < least) continue;
      const hash = tieHash(slots[position]!, key);
      if (value === least && hash <= leastHash) continue;
      let j = last;
      for (; j > 0; j--) {
        const better = topValues[j - 1]!;
        if (better > value || (better === value && topHashes[j - 1]! >= hash)) break;
        topValues[j] = better;
        topHashes[j] = topHashes[j - 1]!;
        topPositions[j] = topPositions[j - 1]!;
      }
      topValues[j] = value;
      topHashes[j] = hash;
      topPositions[j] = position;
      least = topValues[last]!;
      leastHash = topHashes[last]!;
    }
  };

  const orderByHost = (
    tiers: readonly RankTier[],
    frame: Frame,
    slots: Int32Array,
    length: number,
    k: number,
  ): number => {
    const wanted = k < length ? k : length;
    const tier = tiers[0]!;
    const values = compute(tiers, 0, frame, slots, length);
    if (wanted > 0 && wanted <= MOST_IN_ONE_PASS) {
      const sign = signOf(tier);
      const slack = tier.length === 1 ? 0 : SUM_TIE;
      const size = wanted === 3 ? cutThree(values, sign, length, slack) : cut(values, sign, length, wanted, slack);
      const least = topValues[wanted - 1]!;
      const isByHash = size >= 0 && least !== -Infinity && slack === 0 && tiers.length === 1;
      if (isByHash) cutByHash(values, sign, frame, slots, size, wanted);
      if (size < 0 || isByHash) {
        for (let j = 0; j < wanted; j++) list(frame, tier, slots, topPositions[j]!, j);
        return wanted;
      }
      // Where fewer are known than wanted, the unknown are candidates too; else only what is at least as good as the last of the cut.
      if (least !== -Infinity) {
        const kept = keepFrom(values, sign, size, least - slack);
        return orderTied(tiers, frame, slots, length, kept, wanted);
      }
    }
    for (let i = 0; i < length; i++) front[i] = i;
    return orderTied(tiers, frame, slots, length, length, wanted);
  };

  const orderByPicker = (
    picker: RankPicker,
    tiers: readonly RankTier[],
    random: RandomSource,
    frame: Frame,
    slots: Int32Array,
    length: number,
    k: number,
  ): number => {
    let pool = slots;
    let size = length;
    if (picker.sample !== undefined) {
      const drawn = picker.sample(frame, slots, length, random, chosen);
      if (drawn > 0 && drawn < length) {
        size = distinct(chosen, drawn, length, taken);
        // In declared order, so that scorers which go by position see what they would without sampling.
        chosen.subarray(0, size).sort();
        for (let j = 0; j < size; j++) sampled[j] = slots[chosen[j]!]!;
        pool = sampled;
        frame.stamp++;
      }
    }
    if (picker.pick === undefined) return orderByHost(tiers, frame, pool, size, k);
    const values = compute(tiers, 0, frame, pool, size);
    normalised.set(values.subarray(0, size));
    const tier = tiers[0]!;
    if (tier.length === 1 && tier[0]!.direction === 'lowest') normaliseCosts(normalised, size);
    else if (tier.length === 1 && tier[0]!.direction === 'highest') normaliseGains(normalised, size);
    const given = picker.pick(frame, normalised, pool, size, random, k, chosen);
    const count = distinct(chosen, Math.min(given, k), size, taken);
    if (count === 0) return orderByHost(tiers, frame, pool, size, k);
    for (let j = 0; j < count; j++) list(frame, tier, pool, chosen[j]!, j);
    return count;
  };

  return {
    unknownTerms,
    rank(tiers, picker, random, frame, slots, length, k) {
      computedTiers = 0;
      // perf: a write of an array's length is a call into the runtime.
      if (unknownTerms.length > 0) unknownTerms.length = 0;
      if (picker === undefined) return orderByHost(tiers, frame, slots, length, k);
      return orderByPicker(picker, tiers, random, frame, slots, length, k);
    },
  };
}

const signOf = (tier: RankTier): 1 | -1 => (tier.length === 1 && tier[0]!.direction === 'lowest' ? -1 : 1);

/** Keeps the first of each valid position in `list[0..count)`; `marks` is zero before and after. */
function distinct(list: Int32Array, count: number, length: number, marks: Uint8Array): number {
  let kept = 0;
  for (let j = 0; j < count; j++) {
    const position = list[j]!;
    if (position < 0 || position >= length || marks[position] !== 0) continue;
    marks[position] = 1;
    list[kept++] = position;
  }
  for (let j = 0; j < kept; j++) marks[list[j]!] = 0;
  return kept;
}

/** Whether none of the first `length` values is known. */
function isUnknown(values: Float64Array, length: number): boolean {
  for (let i = 0; i < length; i++) if (!Number.isNaN(values[i]!)) return false;
  return length > 0;
}
