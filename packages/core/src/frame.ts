// perf: one frame per request under way, taken from a free list; the arrays are sized once per policy version.
import type { ParsedRequest, Value } from '@signalbox/plugin-api';
import type { Column, EvaluationHost, Pool, TenantDefinition } from '@signalbox/policy';
import type { SignalStep } from './bound-policy.ts';
import type { RouteRequest } from './router.ts';

/** Where the column of one property comes from: an array that always holds it, or a function that fills one for the candidates in hand. */
export type ColumnSource = Column | FillColumn;

export type FillColumn = (frame: Frame, slots: Int32Array, length: number) => Column;

/** What all frames of one policy version have in common. */
export interface FrameShape {
  readonly signals: number;
  /** Signals that are worked out when a rule comes to them. */
  readonly late: readonly SignalStep[];
  readonly columns: readonly ColumnSource[];
  readonly pools: readonly { readonly healthy: Int32Array; refresh(): void }[];
  /** Places on a shortlist, scores of each, and numeric properties recorded of each. */
  readonly shortlist: number;
  readonly parts: number;
  readonly properties: number;
}

const NONE: readonly never[] = Object.freeze([]);

/**
 * One request as evaluators see it: its signals, and the fleet's columns and pools. Also holds the numbers of its decision until the
 * decision record is written, so that nothing need be built on the way, and what is known of failed attempts for as long as others may
 * follow.
 */
export class Frame implements EvaluationHost {
  readonly n: Float64Array;
  readonly v: (Value | undefined)[];
  readonly shape: FrameShape;
  request: RouteRequest | undefined = undefined;
  parsed: ParsedRequest | undefined = undefined;
  tenant: TenantDefinition | undefined = undefined;
  nowMs = 0;
  epochMs = 0;
  seed = 0;
  promptTokens = 0;
  outputTokens = 0;
  /** One bit for each late signal that has been worked out. */
  lateRead = 0;
  /** Goes up whenever a list of candidates is made, so that columns filled for one are not taken for another's. */
  stamp = 0;

  /** The candidates that `where` looks at, and the endpoints that they are what is left of once full and tried ones are out. */
  candidates: Int32Array | undefined = undefined;
  eligible: Int32Array | undefined = undefined;

  /** Shortlist: slots best first, their scores, the parts of each, the numeric properties of each as they were when it was made. */
  readonly slots: Int32Array;
  readonly scores: Float64Array;
  readonly parts: Float64Array;
  readonly facts: Float64Array;
  readonly factValues: (Value | undefined)[];
  listed = 0;
  /** Candidates that the shortlist is the best of. */
  considered = 0;
  droppedUnavailable = 0;
  droppedDraining = 0;
  droppedUnhealthy = 0;
  droppedCapacity = 0;
  droppedWhere = 0;
  droppedSlowStart = 0;
  affinityHi = 0;
  affinityLo = 0;
  affinityState: AffinityState = 0;
  splitHi = 0;
  splitLo = 0;
  hasSplit = false;
  panic = false;
  /** Milliseconds until the first endpoint comes back of those that the targets in question have (`comesBackInMs`). */
  comesBackInMs: number = Number.POSITIVE_INFINITY;
  decideMs = 0;

  /** Place of the current attempt on the shortlist, and the endpoints that attempts have failed at. */
  cursor = 0;
  tried: readonly number[] = NONE;
  retriesLeft = 0;
  ignoresBusy = false;
  /** Every failed attempt so far was answered 429. */
  onlyRateLimited = true;
  smallestRetryAfter: number = Number.NaN;
  raceRepeated = false;

  constructor(shape: FrameShape) {
    this.shape = shape;
    this.n = new Float64Array(shape.signals).fill(Number.NaN);
    this.v = Array.from({ length: shape.signals });
    this.slots = new Int32Array(shape.shortlist);
    this.scores = new Float64Array(shape.shortlist);
    this.parts = new Float64Array(shape.shortlist * shape.parts);
    this.facts = new Float64Array(shape.shortlist * shape.properties);
    this.factValues = Array.from({ length: shape.shortlist * shape.properties });
  }

  column(property: number, slots: Int32Array, length: number): Column {
    const source = this.shape.columns[property]!;
    return typeof source === 'function' ? source(this, slots, length) : source;
  }

  pool(target: number): Pool {
    const pool = this.shape.pools[target]!;
    pool.refresh();
    const slots = pool.healthy;
    return { slots, length: slots.length };
  }

  /** Forgets the decision, not the request: for a run from the top. */
  startDecision(): void {
    this.listed = 0;
    this.considered = 0;
    this.droppedUnavailable = 0;
    this.droppedDraining = 0;
    this.droppedUnhealthy = 0;
    this.droppedCapacity = 0;
    this.droppedWhere = 0;
    this.droppedSlowStart = 0;
    this.affinityState = 0;
    this.hasSplit = false;
    this.panic = false;
    this.comesBackInMs = Number.POSITIVE_INFINITY;
  }

  /** Lets go of the request, so that its body can be freed and no value of it is taken for one of the next request. */
  forget(): void {
    this.request = undefined;
    this.parsed = undefined;
    this.tenant = undefined;
    this.lateRead = 0;
    this.decideMs = 0;
    this.cursor = 0;
    this.tried = NONE;
    this.retriesLeft = 0;
    this.ignoresBusy = false;
    this.onlyRateLimited = true;
    this.smallestRetryAfter = Number.NaN;
    this.raceRepeated = false;
    const { n, v } = this;
    // perf: a loop over so few costs a fraction of what two calls of `fill` do.
    for (let i = 0; i < n.length; i++) n[i] = Number.NaN;
    for (let i = 0; i < v.length; i++) v[i] = undefined;
  }
}

/** 0 none, 1 the key's first endpoint was picked, 2 it was passed over for another. */
export type AffinityState = 0 | 1 | 2;
