// perf: runs whole for every request between its signals and its lease: no await, no look-up by name, nothing allocated per candidate. What
// is rare has functions of its own, so that what is common is small enough to be inlined.
import { firstInOrder, firstWithinBound, frame as frameParts, hashString, md5Modulo } from '@signalbox/chwbl';
import type { BoundAffinity, BoundDestination, BoundModifiers, BoundVerdict, Learner } from './bound-policy.ts';
import { isOverLimit } from './bound-limits.ts';
import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { TenantDefinition } from '@signalbox/policy';
import { comesBackInMs } from './fleet/come-back.ts';
import { FLAG } from './fleet/fleet-table.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { TargetPool } from './fleet/pool.ts';
import type { Frame } from './frame.ts';
import { holds } from './late-signals.ts';
import { chargeable, hasRoom } from './lease.ts';
import type { Lease, LeaseLedger } from './lease.ts';
import type { LimitLedger } from './limits.ts';
import { refusalFor } from './plugins/guard.ts';
import { candidateColumns, textOf } from './property-columns.ts';
import { createRanking } from './ranking.ts';
import type { Ranking, RankTerm } from './ranking.ts';
import type { RefusalCause, RequestState } from './request-state.ts';
import { createSeededRandom } from './seeded-random.ts';
import { SlowStartGate } from './slow-start-gate.ts';
import { seedKeyHi, seedKeyLo, splitPoint, stickyKey } from './split-key.ts';
import { classOf, PRIORITIES } from './signals/signal-producers.ts';

/** What a run of the pipeline came to: a lease, a refusal in `state.refusal`, or a wait at `state.place`. */
export type Outcome = 'leased' | 'refused' | 'queued';

/** What the pipeline works on. */
export interface PipelineParts {
  readonly fleet: Fleet;
  readonly leases: LeaseLedger;
  readonly limits: LimitLedger;
}

/**
 * Steps 2 to 6 in the life of a request, in order: admit → route → filter → score → pick and reserve. A run is one synchronous stretch, so
 * that two picks always see each other. `dry` runs (explain) take no lease and tell no plugin.
 */
export class Pipeline {
  /** How often each scorer knew nothing of any candidate, since the start. */
  readonly unknownScorers: Map<string, number> = new Map<string, number>();
  readonly #fleet: Fleet;
  readonly #leases: LeaseLedger;
  readonly #limits: LimitLedger;
  readonly #ranking: Ranking;
  readonly #random = createSeededRandom(0);
  readonly #scratch: Int32Array;
  readonly #slowStarts: SlowStartGate;
  /** Arms of the split in hand that have no candidate. */
  #closedArms = new Uint8Array(8);
  readonly #candidates: ReturnType<typeof candidateColumns>;
  /** New requests of this class (an index into `PRIORITIES`) and those below are refused. */
  shedFrom: number = PRIORITIES.length;
  /** The candidates in hand: a pool's own list, not to be written to, or the scratch list. */
  #slots: Int32Array;

  constructor(parts: PipelineParts) {
    this.#fleet = parts.fleet;
    this.#leases = parts.leases;
    this.#limits = parts.limits;
    this.#ranking = createRanking(parts.fleet);
    this.#slowStarts = new SlowStartGate(parts.fleet);
    this.#scratch = new Int32Array(parts.fleet.table.capacity);
    this.#candidates = candidateColumns(parts.fleet);
    this.#slots = this.#scratch;
  }

  /** Runs from the top. */
  decide(state: RequestState): Outcome {
    const { frame } = state;
    frame.startDecision();
    state.sawAvailable = false;
    state.fellBack = false;
    state.wentElse = false;
    state.admittedPriority = undefined;
    state.admissionIndex = -1;
    state.routeIndex = -1;
    state.stepIndex = -1;
    state.fallbackIndex = -1;
    state.active = undefined;
    state.destination = undefined;
    state.place = undefined;
    state.refusal = undefined;
    this.#fleet.health.expire(frame.nowMs);
    try {
      return (
        this.#unknownModel(state) ?? this.#admit(state) ?? this.#overTenantLimit(state) ?? this.#route(state, 0, 0)
      );
    } catch (error) {
      return refuse(state, refusalFor(error));
    }
  }

  // --- 2. admit

  #unknownModel(state: RequestState): Outcome | undefined {
    if (!state.hidesModel && state.version.isKnownModel(state.model)) return undefined;
    return refuse(state, {
      status: 404,
      code: 'model_not_found',
      message: `The model ${JSON.stringify(state.model)} does not exist or you do not have access to it.`,
      retryAfterSeconds: undefined,
    });
  }

  #admit(state: RequestState): Outcome | undefined {
    const rules = state.version.policy.admission;
    for (let i = 0; i < rules.length; i++) {
      const rule = rules[i]!;
      if (i === state.passedAdmission) continue;
      if (!holds(rule, state.frame)) continue;
      state.admissionIndex = i;
      if (rule.verdict.verb === 'admit') {
        state.admittedPriority = rule.verdict.with.priority;
        return undefined;
      }
      return this.#obey(state, rule.verdict);
    }
    return undefined;
  }

  #overTenantLimit(state: RequestState): Outcome | undefined {
    const { tenant } = state.frame;
    return tenant === undefined || tenant.limits.length === 0 ? undefined : this.#overLimitOf(tenant, state);
  }

  #overLimitOf({ limits }: TenantDefinition, state: RequestState): Outcome | undefined {
    for (const name of limits) {
      if (!isOverLimit(state.version.limitsByName, name, state.frame, this.#limits)) continue;
      return refuse(state, {
        status: 429,
        code: 'rate_limited',
        message: `The limit ${JSON.stringify(name)} is used up. Try again later.`,
        retryAfterSeconds: state.version.limitRetryAfter(name, state.frame, this.#limits),
      });
    }
    return undefined;
  }

  #obey(state: RequestState, verdict: BoundVerdict): Outcome {
    if (verdict.verb === 'queue' && verdict.place !== undefined) {
      if (state.atDoor && this.#isShed(state, verdict.with)) return 'refused';
      state.place = verdict.place;
      return 'queued';
    }
    return refuse(state, rejection(verdict.with, state, this.#limits));
  }

  /** Refuses a new request whose class is to be shed; `modifiers` are those of where it would go. */
  #isShed(state: RequestState, modifiers: BoundModifiers): boolean {
    if (this.shedFrom >= PRIORITIES.length) return false;
    const index = classOf(state.frame, modifiers.priority ?? state.admittedPriority);
    if (index < this.shedFrom) return false;
    state.refusal = { ...OVERLOADED, shed: { queue: '', class: PRIORITIES[index] ?? '' } };
    return true;
  }

  // --- 3. route

  /** Goes on from a rule and one of its steps: the first rule whose condition is known true, its destination, then its `else` parts. */
  #route(state: RequestState, routeIndex: number, stepIndex: number): Outcome {
    const { routes } = state.version.policy;
    let passedOn = false;
    for (let r = routeIndex; r < routes.length; r++) {
      const route = routes[r]!;
      const resumed = r === routeIndex && stepIndex > 0;
      if (!resumed && !holds(route, state.frame)) continue;
      state.routeIndex = r;
      const { steps } = route;
      let goOn = false;
      for (let s = resumed ? stepIndex : 0; s < steps.length; s++) {
        const step = steps[s]!;
        state.stepIndex = s;
        if (step.kind === 'next') {
          goOn = true;
          break;
        }
        if (step.kind === 'verdict') {
          // Admission is over: an `admit` here has nothing left to admit to.
          if (step.verdict.verb === 'admit') continue;
          // There is nothing to wait for, and something else to try.
          if (step.verdict.verb === 'queue' && !state.sawAvailable && s + 1 < steps.length) continue;
          return this.#obey(state, step.verdict);
        }
        if (state.atDoor && this.shedFrom < PRIORITIES.length && this.#isShed(state, step.with)) return 'refused';
        if (this.#enter(state, step, s + 1 < steps.length)) {
          if (passedOn || s > 0) state.wentElse = true;
          return 'leased';
        }
      }
      passedOn = goOn;
      if (!goOn) return refuse(state, noEndpoint(state));
    }
    return refuse(state, {
      status: 503,
      code: 'no_route',
      message: 'No rule of the routing policy takes this request.',
      retryAfterSeconds: 1,
    });
  }

  /** Tries a destination, then those of its fallbacks that are for want of a candidate. */
  #enter(state: RequestState, destination: BoundDestination, moreSteps: boolean): boolean {
    state.destination = destination;
    if (destination.fallbacks.length === 0) return this.#use(state, destination, -1, moreSteps);
    return this.#enterOrFallBack(state, destination, moreSteps);
  }

  #enterOrFallBack(state: RequestState, destination: BoundDestination, moreSteps: boolean): boolean {
    const { fallbacks } = destination;
    let last = fallbacks.length;
    while (last > 0 && !fallbacks[last - 1]!.on.has('saturated')) last--;
    if (this.#use(state, destination, -1, moreSteps || last > 0)) return true;
    for (let f = 0; f < last; f++) {
      const fallback = fallbacks[f]!;
      if (!fallback.on.has('saturated')) continue;
      if (this.#use(state, fallback.destination, f, moreSteps || f + 1 < last)) {
        state.fellBack = true;
        return true;
      }
    }
    return false;
  }

  #use(state: RequestState, destination: BoundDestination, fallbackIndex: number, alternatives: boolean): boolean {
    if (!this.#place(state, destination, alternatives)) return false;
    state.active = destination;
    state.fallbackIndex = fallbackIndex;
    state.frame.retriesLeft = destination.retries;
    return true;
  }

  // --- after a failure

  /** The next attempt on the same destination: down the shortlist, then by a new run that leaves out what was tried. */
  retry(state: RequestState): boolean {
    const { frame, active } = state;
    if (active === undefined) return false;
    const pool = active.arms[state.armIndex]?.pool;
    if (pool === undefined) return false;
    pool.refresh();
    const alternatives = this.hasElse(state) || state.fallbackIndex + 1 < (state.destination?.fallbacks.length ?? 0);
    const tokens = tokensOf(frame);
    for (let place = frame.cursor + 1; place < frame.listed; place++) {
      const slot = frame.slots[place]!;
      if (frame.tried.includes(slot) || !pool.eligible.includes(slot) || !this.#isOpen(slot, frame, tokens)) continue;
      if (!this.#take(state, active, slot)) continue;
      frame.cursor = place;
      return true;
    }
    if (this.#place(state, active, alternatives)) return true;
    if (alternatives) return false;
    // Nothing else is left: an endpoint that was tried may be tried again, after the wait that it asked for.
    frame.tried = [];
    frame.ignoresBusy = true;
    const placed = this.#place(state, active, false);
    frame.ignoresBusy = false;
    return placed;
  }

  /** The same endpoint again at once, whether it is still eligible or not. */
  retake(state: RequestState, slot: number): boolean {
    return state.active !== undefined && this.#take(state, state.active, slot);
  }

  /** The first fallback of the destination for this cause that has room, beyond the one in use. */
  fallBack(state: RequestState, cause: string): boolean {
    const { destination } = state;
    if (destination === undefined) return false;
    for (let f = state.fallbackIndex + 1; f < destination.fallbacks.length; f++) {
      const fallback = destination.fallbacks[f]!;
      if (!fallback.on.has(cause as never)) continue;
      if (this.#use(state, fallback.destination, f, false)) return true;
    }
    return false;
  }

  /** The `else` parts of the rule in force, from the one after the step in use. A queue is passed over: the request is under way. */
  goElse(state: RequestState): Outcome {
    state.refusal = undefined;
    try {
      let outcome = this.#route(state, state.routeIndex, state.stepIndex + 1);
      while (outcome === 'queued') outcome = this.#route(state, state.routeIndex, state.stepIndex + 1);
      return outcome;
    } catch (error) {
      return refuse(state, refusalFor(error));
    }
  }

  /** Whether the rule in force has an `else` left. */
  hasElse(state: RequestState): boolean {
    return state.stepIndex + 1 < (state.version.policy.routes[state.routeIndex]?.steps.length ?? 0);
  }

  // --- 4. filter

  #place(state: RequestState, destination: BoundDestination, alternatives: boolean): boolean {
    if (!destination.split) {
      const length = this.#eligible(state, destination, destination.arms[0]!.pool, alternatives);
      state.armIndex = 0;
      if (length > 0 && this.#pick(state, destination, length)) return true;
      this.#noteWait(state, destination.arms[0]!.pool);
      return false;
    }
    return this.#placeOnArm(state, destination, alternatives);
  }

  /** Tries the arms of a split, from the one that the key falls to. */
  #placeOnArm(state: RequestState, destination: BoundDestination, alternatives: boolean): boolean {
    const { frame } = state;
    const { arms } = destination;
    let at = this.#splitPoint(state, destination);
    let left = 1;
    if (this.#closedArms.length < arms.length) this.#closedArms = new Uint8Array(arms.length);
    const closed = this.#closedArms;
    closed.fill(0, 0, arms.length);
    for (let tries = 0; tries < arms.length; tries++) {
      let start = 0;
      let chosen = -1;
      for (let a = 0; a < arms.length; a++) {
        if (closed[a] !== 0) continue;
        const share = arms[a]!.share / left;
        if (share > 0 || chosen < 0) chosen = a;
        if (at < start + share) break;
        start += share;
      }
      if (chosen < 0) return false;
      const arm = arms[chosen]!;
      const length = this.#eligible(state, destination, arm.pool, alternatives || tries + 1 < arms.length);
      state.armIndex = chosen;
      if (length > 0 && this.#pick(state, destination, length)) return true;
      this.#noteWait(state, arm.pool);
      // The keys of an arm that is empty spread over the others by where they lay within it; all other keys stay.
      const share = arm.share / left;
      at = share > 0 ? Math.min(0.9999999999, Math.max(0, (at - start) / share)) : at;
      left -= arm.share;
      closed[chosen] = 1;
      if (left <= 0) left = Number.MIN_VALUE;
      frame.stamp++;
    }
    return false;
  }

  /** Remembers when the first endpoint of a pool that had nobody comes back. */
  #noteWait({ frame }: RequestState, { members }: TargetPool): void {
    if (frame.comesBackInMs > 0)
      frame.comesBackInMs = Math.min(frame.comesBackInMs, comesBackInMs(this.#fleet.table, members, frame.nowMs));
  }

  /** A point in [0, 1) for the split's key: the sticky key, else the session, else the request's seed. */
  #splitPoint(state: RequestState, destination: BoundDestination): number {
    const { frame } = state;
    const written = destination.with.sticky?.(frame);
    const sticky = isKnown(written) ? written : state.version.sessionOf(frame);
    if (sticky === undefined) {
      frame.splitHi = seedKeyHi(frame.seed);
      frame.splitLo = seedKeyLo(frame.seed);
    } else {
      const hash = stickyKey(sticky, state.tenant);
      frame.splitHi = hash.hi;
      frame.splitLo = hash.lo;
    }
    frame.hasSplit = true;
    return splitPoint(frame.splitHi, frame.splitLo);
  }

  /** Leaves in `#slots` the endpoints of a pool that are up, healthy, not full, not tried and pass `where`; returns how many. */
  #eligible(state: RequestState, destination: BoundDestination, pool: TargetPool, alternatives: boolean): number {
    const { frame } = state;
    pool.refresh();
    frame.stamp++;
    const { eligible } = pool;
    let { length } = eligible;
    if (length > 0 || pool.coming) state.sawAvailable = true;
    frame.droppedDraining = pool.drainingCount;
    frame.droppedUnavailable = pool.unavailableCount - pool.drainingCount;
    frame.droppedUnhealthy = pool.unhealthyCount;
    frame.droppedCapacity = 0;
    frame.droppedWhere = 0;
    frame.droppedSlowStart = 0;
    if (pool.noneHealthy && alternatives) {
      frame.droppedUnhealthy += length;
      return 0;
    }
    frame.panic = pool.panic;
    let slots = eligible;
    if (pool.limited || frame.tried.length > 0) {
      slots = this.#scratch;
      length = this.#keepOpen(frame, pool);
    }
    if (destination.where !== undefined && length > 0) {
      frame.candidates = slots;
      frame.eligible = eligible;
      const passed = destination.where(frame, slots, length, this.#scratch);
      frame.droppedWhere = length - passed;
      length = passed;
      slots = this.#scratch;
      frame.stamp++;
    }
    this.#slots = slots;
    return length;
  }

  /** Copies the endpoints that are open to this request and were not tried to the scratch list; returns how many. */
  #keepOpen(frame: Frame, { eligible, guarded }: TargetPool): number {
    const { tried } = frame;
    const tokens = tokensOf(frame);
    const slots = this.#scratch;
    let length = 0;
    let full = 0;
    if (!guarded && tried.length === 0) {
      // perf: most fleets have limits and nothing else that closes an endpoint.
      const { table } = this.#fleet;
      const { inflightRequests, inflightTokens } = table;
      for (let i = 0; i < eligible.length; i++) {
        const slot = eligible[i]!;
        if (hasRoom(table, slot, inflightRequests[slot]!, inflightTokens[slot]!, tokens)) slots[length++] = slot;
        else full++;
      }
    } else {
      for (let i = 0; i < eligible.length; i++) {
        const slot = eligible[i]!;
        if (tried.length > 0 && tried.includes(slot)) continue;
        if (this.#isOpen(slot, frame, tokens)) slots[length++] = slot;
        else full++;
      }
    }
    frame.droppedCapacity = full;
    return length;
  }

  /** Whether an endpoint has room for a request of so many tokens, and has not asked to be left alone. */
  #isOpen(slot: number, frame: Frame, tokens: number): boolean {
    const { table } = this.#fleet;
    if (table.busyUntil[slot]! > frame.nowMs && !frame.ignoresBusy) return false;
    const held = table.inflightRequests[slot]!;
    if ((table.flags[slot]! & FLAG.halfOpen) !== 0 && held > 0) return false;
    return hasRoom(table, slot, held, table.inflightTokens[slot]!, tokens);
  }

  // --- 5. and 6. score, pick and reserve

  #pick(state: RequestState, destination: BoundDestination, length: number): boolean {
    const { frame } = state;
    const { affinity, picker } = destination;
    if (affinity !== undefined && this.#pickByAffinity(state, destination, affinity, length)) return true;
    const slow = this.#slowStarts.isNeeded(frame.nowMs);
    const among = slow ? this.#holdBack(state, length) : length;
    frame.considered = among;
    if (picker !== undefined) this.#random.reset(frame.seed);
    frame.listed = this.#ranking.rank(
      destination.tiers,
      picker,
      this.#random,
      frame,
      this.#slots,
      among,
      state.shortlistSize > 0 ? state.shortlistSize : destination.retries + 1,
    );
    if (this.#ranking.unknownTerms.length > 0 && !state.dry) this.#countUnknown(this.#ranking.unknownTerms);
    this.#recordFacts(state, destination);
    for (let place = 0; place < frame.listed; place++) {
      if (!this.#take(state, destination, frame.slots[place]!)) continue;
      if (slow && !state.dry) this.#slowStarts.picked(frame.slots[place]!);
      frame.cursor = place;
      return true;
    }
    return false;
  }

  /** Takes those in a slow start out of the candidates that have no turn; returns how many are left. */
  #holdBack(state: RequestState, length: number): number {
    const { frame } = state;
    const among = this.#slowStarts.pass(this.#slots, length, this.#scratch, state.dry);
    frame.droppedSlowStart = length - among;
    this.#slots = this.#scratch;
    frame.stamp++;
    return among;
  }

  #countUnknown(terms: readonly RankTerm[]): void {
    for (const { name } of terms) this.unknownScorers.set(name, (this.unknownScorers.get(name) ?? 0) + 1);
  }

  #pickByAffinity(
    state: RequestState,
    destination: BoundDestination,
    affinity: BoundAffinity,
    length: number,
  ): boolean {
    const { frame } = state;
    const parts: string[] = [];
    for (const part of affinity.key) {
      const value = part(frame);
      if (value === undefined || value !== value) return false;
      parts.push(textOf(value));
    }
    const candidates = this.#candidates;
    candidates.slots = this.#slots;
    candidates.length = length;
    let slot: number;
    let first: number;
    if (affinity.method === 'modulo_md5') {
      // For agreement with routers that hash the bare key; scoped as soon as there are tenants.
      const text =
        state.tenant === undefined && parts.length === 1 ? parts[0]! : frameParts([state.tenant ?? '', ...parts]);
      const { members } = destination.arms[state.armIndex]!.pool;
      first = members[md5Modulo(text, members.length)]!;
      slot = this.#isCandidate(first, length) ? first : -1;
      const hash = hashString(text);
      frame.affinityHi = hash.hi;
      frame.affinityLo = hash.lo;
    } else {
      const key = hashString(frameParts([state.tenant ?? '', ...parts]));
      frame.affinityHi = key.hi;
      frame.affinityLo = key.lo;
      const { table } = this.#fleet;
      const loads = affinity.bound.unit === 'tokens' ? table.inflightTokens : table.inflightRequests;
      slot = firstWithinBound(candidates, key, loads, affinity.bound);
      first = firstInOrder(candidates, key);
    }
    if (slot < 0) return false;
    frame.slots[0] = slot;
    frame.scores[0] = 1;
    frame.parts.fill(Number.NaN, 0, frame.shape.parts);
    frame.listed = 1;
    frame.considered = length;
    this.#recordFacts(state, destination);
    if (!this.#take(state, destination, slot)) return false;
    frame.affinityState = slot === first ? 1 : 2;
    frame.cursor = 0;
    return true;
  }

  #isCandidate(slot: number, length: number): boolean {
    for (let i = 0; i < length; i++) if (this.#slots[i] === slot) return true;
    return false;
  }

  /** Keeps what the shortlist's properties were, for the record. */
  #recordFacts(state: RequestState, destination: BoundDestination): void {
    const { frame } = state;
    const { recorded } = destination;
    const { propertyNumeric } = state.version.policy;
    const { slots, listed, facts } = frame;
    const width = frame.shape.properties;
    frame.stamp++;
    for (let r = 0; r < recorded.length; r++) {
      const property = recorded[r]!;
      const column = frame.column(property, slots, listed);
      // Numbers on a path of their own: where a value may be of any type, each one is put into an object.
      if (propertyNumeric[property] === true) {
        for (let place = 0; place < listed; place++) facts[place * width + property] = column[slots[place]!]!;
      } else {
        for (let place = 0; place < listed; place++) {
          frame.factValues[place * width + property] = column[slots[place]!] as Value | undefined;
        }
      }
    }
  }

  #take(state: RequestState, destination: BoundDestination, slot: number): boolean {
    const { frame } = state;
    if (state.dry) return true;
    const lease: Lease | undefined = this.#leases.reserve(
      slot,
      chargeable(frame.promptTokens),
      chargeable(frame.outputTokens),
    );
    if (lease === undefined) return false;
    state.lease = lease;
    if (destination.learners.length > 0) tellPicked(destination.learners, slot);
    return true;
  }
}

/** What an endpoint would be charged for the request. */
function tokensOf({ promptTokens, outputTokens }: Frame): number {
  return chargeable(promptTokens) + chargeable(outputTokens);
}

function tellPicked(learners: readonly Learner[], slot: number): void {
  for (const learner of learners) learner.picked?.(slot);
}

/** The refusal of a request that is one too many. */
export const OVERLOADED: RefusalCause = Object.freeze({
  status: 503,
  code: 'shed',
  message: 'The gateway is overloaded. Try again later.',
  retryAfterSeconds: 2,
});

function refuse(state: RequestState, cause: RefusalCause): Outcome {
  state.refusal = cause;
  return 'refused';
}

function rejection(modifiers: BoundModifiers, state: RequestState, limits: LimitLedger): RefusalCause {
  const { frame } = state;
  const status = modifiers.status ?? 429;
  const message = modifiers.message?.(frame);
  const wait = modifiers.retryAfter?.(frame);
  const carries = status === 429 || status === 503 || wait !== undefined;
  return {
    status,
    code: 'rejected',
    message: typeof message === 'string' ? message : 'The routing policy refuses this request.',
    retryAfterSeconds: !carries
      ? undefined
      : wholeSeconds(
          typeof wait === 'number' ? wait : status === 429 ? state.version.overLimitRetryAfter(frame, limits) : 1,
        ),
  };
}

function noEndpoint(state: RequestState): RefusalCause {
  return {
    status: 503,
    code: 'no_endpoint',
    message: state.sawAvailable
      ? 'Every endpoint for this request is at its limit. Try again later.'
      : 'No endpoint for this request is up.',
    retryAfterSeconds: wholeSeconds(state.frame.comesBackInMs / 1000),
  };
}

/** Whole seconds for a Retry-After header, at least 1. */
export function wholeSeconds(seconds: number): number {
  return seconds >= 1 && seconds < 1e9 ? Math.ceil(seconds) : 1;
}
