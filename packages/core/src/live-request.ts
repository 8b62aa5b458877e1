import type { AttemptOutcome, Clock, RandomSource } from '@signalbox/plugin-api';
import type { AttemptRecord, DecisionRecord, DecisionSink, RowRecord } from '@signalbox/telemetry';
import { limitKey } from './bound-limits.ts';
import type { BoundModifiers } from './bound-policy.ts';
import { buildDecision } from './decision.ts';
import { LATENCY } from './fleet/adaptive-limit.ts';
import { comesBackInMs } from './fleet/come-back.ts';
import type { FirstTokenMeter } from './first-token-meter.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { Frame } from './frame.ts';
import type { Learned } from './learned.ts';
import type { Lease, LeaseLedger } from './lease.ts';
import type { Charge, LimitLedger } from './limits.ts';
import type { Pipeline } from './pipeline.ts';
import { refusalFor } from './plugins/guard.ts';
import { wholeSeconds } from './pipeline.ts';
import { requestCost } from './property-columns.ts';
import type { RefusalCause, RequestState } from './request-state.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { Attempt, AttemptFailure, Forward, NextStep, Refusal, RequestEnd } from './router.ts';

/** What requests under way share. */
export interface RequestServices {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly fleet: Fleet;
  readonly leases: LeaseLedger;
  readonly limits: LimitLedger;
  readonly learned: Learned;
  readonly budget: RetryBudget;
  readonly firstTokens: FirstTokenMeter;
  readonly pipeline: Pipeline;
  readonly onDecision: DecisionSink;
  /** The request behind a record that was asked for while it is under way. */
  readonly described: WeakMap<DecisionRecord, RequestState>;
  /** Room may have come free: to be called when a public call that released something is over. */
  released(): void;
  /** A finished request's tokens, for fair queues. */
  served(state: RequestState, inputTokens: number, outputTokens: number): void;
}

const CONNECT_MS = 2000;
const IDLE_MS = 60_000;
const FIRST_TOKEN_BASE_MS = 30_000;
/** Prompt tokens per second that the first-token timeout allows for. */
const FIRST_TOKEN_RATE = 200;
const FIRST_TOKEN_MOST_MS = 600_000;
const REQUEST_TIMEOUT_MS = 3_600_000;
const BACK_OFF_MS = 50;
const BACK_OFF_MOST_MS = 2000;
/** No server is left alone for longer than this on its word. */
const MOST_RETRY_AFTER_MS = 300_000;

/** A shorter prompt takes as long as one of so many tokens: the fixed part of a prefill, and the step under way. */
const SHORT_PROMPT = 512;
/** Work of a prompt token as a share of an output token's, and the least work of an answer, in output tokens. */
const PROMPT_WEIGHT = 0.1;
const LEAST_WORK = 16;

const NOTHING: readonly never[] = Object.freeze([]);

/** A request with a lease: the data plane's view of one that is forwarded. */
export class LiveRequest implements Forward {
  readonly kind = 'forward';
  readonly #state: RequestState;
  readonly #services: RequestServices;
  #attempt: Attempt;

  constructor(state: RequestState, services: RequestServices) {
    this.#state = state;
    this.#services = services;
    const timeoutMs = millis(state.active?.with.timeout?.(state.frame), REQUEST_TIMEOUT_MS);
    state.deadlineMs = Math.min(state.deadlineMs, state.receivedAtMs + timeoutMs);
    this.#attempt = this.#begin();
    if (state.version.policy.limits.length > 0) chargeLimits(state, services);
  }

  get attempt(): Attempt {
    return this.#attempt;
  }

  get deadlineMs(): number {
    return this.#state.deadlineMs;
  }

  /** As it stands: the data plane puts route, tier, endpoint and reasons into the head of the answer. */
  get decision(): DecisionRecord {
    const state = this.#state;
    const record = state.record ?? recordOf(state, this.#services, this.#services.clock.now());
    this.#describe(record);
    return record;
  }

  /** Says where the request is. It stays there from the commit point on. */
  #describe(record: RowRecord): void {
    const state = this.#state;
    if (state.described) return;
    state.described = state.committed || state.finished;
    record.verdict = 'routed';
    record.route = state.version.policy.routes[state.routeIndex]?.rule.label ?? '';
    record.tier = this.#attempt.tier;
    record.endpoint = this.#attempt.endpoint;
    record.servedModel = this.#attempt.model ?? state.model;
    if (state.hasFrame) record.reasons = reasonsOf(state);
  }

  next(failure: AttemptFailure): NextStep {
    const state = this.#state;
    const { clock } = this.#services;
    if (state.finished || state.committed || state.lease === undefined) {
      return {
        kind: 'refuse',
        status: 500,
        code: 'internal',
        message: 'The request cannot be sent again.',
        retryAfterSeconds: undefined,
      };
    }
    const nowMs = clock.now();
    const { slot } = state.lease;
    state.frame.nowMs = nowMs;
    this.#fail(state.lease, failure, nowMs);
    try {
      return this.#again(slot, failure, nowMs);
    } catch (error) {
      state.refusal = refusalFor(error);
      return { kind: 'refuse', ...state.refusal };
    } finally {
      this.#services.released();
    }
  }

  commit(): void {
    const state = this.#state;
    if (state.finished || state.committed) return;
    state.committed = true;
    if (state.lease !== undefined) this.#services.leases.commit(state.lease);
    if (state.stream) {
      const { clock, firstTokens, fleet } = this.#services;
      const nowMs = clock.now();
      const waitedMs = nowMs - state.attemptStartMs;
      firstTokens.observe(this.#attempt.tier, waitedMs);
      if (state.lease !== undefined) {
        const { slot, promptTokens, requestsBefore } = state.lease;
        const latency = waitedMs / Math.max(SHORT_PROMPT, promptTokens);
        fleet.adaptive.answered(slot, LATENCY.firstToken, latency, requestsBefore, state.attemptStartMs, nowMs);
      }
    }
    this.#letGo();
  }

  /** From the commit point on, no other attempt will be made: what only a decision needs goes, for a stream may stay open for long. */
  #letGo(): void {
    const state = this.#state;
    state.request = undefined;
    this.#describe(recordOf(state, this.#services, this.#services.clock.now()));
    state.releaseFrame();
  }

  finish(end: RequestEnd): void {
    const state = this.#state;
    const services = this.#services;
    if (state.finished) return;
    const nowMs = services.clock.now();
    const record = recordOf(state, services, nowMs);
    state.finished = true;
    const attempt = state.attempts?.at(-1);
    if (state.lease !== undefined) {
      const { lease } = state;
      if (attempt !== undefined) {
        attempt.outcome = end.outcome === 'ok' ? 'ok' : end.outcome;
        attempt.status = end.upstreamStatus;
        attempt.durationMs = nowMs - state.attemptStartMs;
      }
      const isGood = end.outcome === 'ok' && end.upstreamStatus < 400;
      // perf: nothing is told where nobody learns.
      if (this.#hasLearners()) {
        this.#teach(lease, {
          ok: isGood,
          reason: reasonOf(end),
          status: end.upstreamStatus,
          ttftMs: end.ttftMs,
          durationMs: nowMs - state.attemptStartMs,
          promptTokens: end.promptTokens,
          cachedTokens: end.cachedTokens,
          outputTokens: end.outputTokens,
          before: heldBefore(lease),
        });
      }
      // Last, for with it the endpoint may leave the fleet and be forgotten.
      services.leases.release(lease);
      if (isGood && !state.stream) this.#tellPlain(lease, end, nowMs);
      const { health } = services.fleet;
      if (end.outcome === 'ok') {
        // A request that the server refuses as wrong speaks neither for nor against it.
        if (isGood) health.succeeded(lease.slot, nowMs, lease.ejections);
      } else if (isFaultOfServer(end, nowMs, state.deadlineMs)) health.failed(lease.slot, nowMs, lease.ejections);
    }
    settleLimits(state, services, end);
    if (end.outcome === 'ok' && end.upstreamStatus < 400) this.#learn(end);
    services.served(state, end.promptTokens, end.outputTokens);
    this.#describe(record);
    record.code = end.outcome === 'ok' ? '' : (state.refusal?.code ?? end.outcome);
    fillEnd(record, end);
    close(state, services, record);
    services.released();
  }

  /** A plain answer has no first token; its whole time is told, per token of its work. */
  #tellPlain(lease: Lease, end: RequestEnd, nowMs: number): void {
    const { attemptStartMs } = this.#state;
    const promptTokens = end.promptTokens >= 0 ? end.promptTokens : lease.promptTokens;
    const outputTokens = end.outputTokens >= 0 ? end.outputTokens : lease.outputTokens;
    const work = Math.max(LEAST_WORK, PROMPT_WEIGHT * promptTokens + outputTokens);
    const { adaptive } = this.#services.fleet;
    const latency = (nowMs - attemptStartMs) / work;
    adaptive.answered(lease.slot, LATENCY.wholeAnswer, latency, lease.requestsBefore, attemptStartMs, nowMs);
  }

  #again(slot: number, failure: AttemptFailure, nowMs: number): NextStep {
    const state = this.#state;
    const { frame } = state;
    const { pipeline, budget, fleet } = this.#services;
    if (failure.keepAliveRace === true && !frame.raceRepeated) {
      frame.raceRepeated = true;
      if (pipeline.retake(state, slot)) return this.#step(0);
    }
    if (nowMs >= state.deadlineMs) return this.#refuse({ ...failure, cause: 'timeout' });
    frame.tried = [...frame.tried, slot];
    const { active } = state;
    const repeatable =
      active !== undefined &&
      active.retryOn.has(failure.cause) &&
      (!active.retryByDefault || !isAnsweredError(failure));
    if (repeatable && frame.retriesLeft > 0) {
      const backOffMs =
        this.#services.random.next() * Math.min(BACK_OFF_MOST_MS, BACK_OFF_MS * 2 ** (state.attemptNumber - 1));
      const tier = fleet.texts.tier[slot] ?? '';
      // An attempt that cannot be answered in time would only add to the load.
      const latestMs = state.deadlineMs - this.#services.firstTokens.medianMs(tier);
      if (nowMs + backOffMs < latestMs && budget.spend(tier, nowMs) && pipeline.retry(state)) {
        frame.retriesLeft--;
        state.retried = true;
        const waitMs = this.#waitMs(slot, failure, backOffMs);
        if (nowMs + waitMs < latestMs) return this.#step(waitMs);
        this.#giveBack();
      }
    }
    if (pipeline.fallBack(state, failure.cause)) {
      state.fellBack = true;
      return this.#step(0);
    }
    if ((repeatable || failure.cause === 'saturated' || failure.cause === 'connect') && pipeline.hasElse(state)) {
      const { routeIndex, stepIndex } = state;
      if (pipeline.goElse(state) === 'leased') return this.#step(0);
      // The record's shortlist is that of the part which was left.
      state.routeIndex = routeIndex;
      state.stepIndex = stepIndex;
      const { refusal } = state;
      if (refusal !== undefined && (refusal.code === 'rejected' || refusal.code === 'plugin_failed'))
        return { kind: 'refuse', ...refusal };
    }
    return this.#refuse(failure);
  }

  /** The back-off; for the same endpoint again, what its server asked for; none where it asked for none. */
  #waitMs(failed: number, failure: AttemptFailure, backOffMs: number): number {
    const asked = failure.retryAfterSeconds * 1000;
    if (asked === 0) return 0;
    if (this.#state.lease?.slot === failed && asked > 0) return Math.max(asked, backOffMs);
    return backOffMs;
  }

  #giveBack(): void {
    const state = this.#state;
    if (state.lease === undefined) return;
    this.#endAttempt(state.lease, unanswered(state.lease, 'timeout', 0, 0));
    state.lease = undefined;
  }

  #step(waitMs: number): NextStep {
    this.#attempt = this.#begin();
    this.#state.attemptStartMs += waitMs;
    return { kind: 'attempt', attempt: this.#attempt, waitMs };
  }

  #refuse(failure: AttemptFailure): NextStep {
    const state = this.#state;
    const cause = exhausted(state, failure, this.#smallestWait());
    state.refusal = cause;
    return { kind: 'refuse', ...cause };
  }

  /** Whole seconds until some endpoint may be asked again: the least that a server asked for, or what is left of a wait that another has. */
  #smallestWait(): number {
    const { active, armIndex, frame } = this.#state;
    const { smallestRetryAfter } = frame;
    const pool = active?.arms[armIndex]?.pool;
    const backInMs = pool === undefined ? 0 : comesBackInMs(this.#services.fleet.table, pool.members, frame.nowMs);
    return wholeSeconds(backInMs > 0 && backInMs < smallestRetryAfter * 1000 ? backInMs / 1000 : smallestRetryAfter);
  }

  #begin(): Attempt {
    const state = this.#state;
    const { fleet, budget } = this.#services;
    const slot = state.lease?.slot ?? 0;
    const target = fleet.endpointTargets[slot];
    if (target === undefined || state.active === undefined)
      throw new TypeError('a lease stands for an endpoint that is not in the fleet');
    state.attemptNumber++;
    state.attemptStartMs = state.frame.nowMs;
    const tier = fleet.texts.tier[slot] ?? '';
    const endpoint = fleet.texts.name[slot] ?? '';
    if (state.attemptNumber === 1) budget.earn(tier);
    const record: AttemptRecord = { tier, endpoint, outcome: '', status: 0, durationMs: 0 };
    if (state.attempts === undefined) state.attempts = [record];
    else state.attempts.push(record);
    const { frame } = state;
    const modifiers = state.active.with;
    return {
      number: state.attemptNumber,
      tier,
      endpoint,
      target,
      model: modelFor(modifiers, frame, fleet, slot, state.model),
      set: modifiers.set.length === 0 ? NOTHING : setFields(modifiers, frame),
      drop: modifiers.drop,
      headers: modifiers.headers.length === 0 ? NOTHING : setHeaders(modifiers, frame),
      attemptTimeoutMs: millis(modifiers.attemptTimeout?.(frame), Infinity),
      firstTokenMs: millis(
        modifiers.firstToken?.(frame),
        Math.min(FIRST_TOKEN_MOST_MS, FIRST_TOKEN_BASE_MS + (frame.promptTokens / FIRST_TOKEN_RATE) * 1000),
      ),
      idleMs: millis(modifiers.idle?.(frame), IDLE_MS),
      connectMs: CONNECT_MS,
    };
  }

  #fail(lease: Lease, failure: AttemptFailure, nowMs: number): void {
    const state = this.#state;
    const { frame } = state;
    const { health } = this.#services.fleet;
    const attempt = state.attempts?.at(-1);
    if (attempt !== undefined) {
      attempt.outcome = failure.cause;
      attempt.status = failure.status;
      attempt.durationMs = failure.durationMs;
    }
    const asked = failure.retryAfterSeconds;
    if (failure.cause !== 'rate_limited') frame.onlyRateLimited = false;
    if (asked >= 0 && !(asked >= frame.smallestRetryAfter)) frame.smallestRetryAfter = asked;
    if (failure.cause === 'saturated' || failure.cause === 'rate_limited' || failure.cause === 'first_token') {
      const { adaptive } = this.#services.fleet;
      adaptive.overloaded(lease.slot, lease.requestsBefore, state.attemptStartMs, nowMs);
    }
    if (failure.keepAliveRace !== true) {
      if (speaksAgainst(failure)) health.failed(lease.slot, nowMs, lease.ejections);
      if (asked > 0) health.askedToWait(lease.slot, nowMs + Math.min(MOST_RETRY_AFTER_MS, asked * 1000));
    }
    this.#endAttempt(lease, unanswered(lease, failure.cause, failure.status, failure.durationMs));
    state.lease = undefined;
  }

  #endAttempt(lease: Lease, outcome: AttemptOutcome): void {
    this.#teach(lease, outcome);
    // Last, for with it the endpoint may leave the fleet and be forgotten.
    this.#services.leases.release(lease);
  }

  #hasLearners(): boolean {
    const { active, version } = this.#state;
    return version.policy.learners.length > 0 || (active !== undefined && active.learners.length > 0);
  }

  #teach(lease: Lease, outcome: AttemptOutcome): void {
    const state = this.#state;
    for (const learner of state.active?.learners ?? NOTHING) learner.ended?.(lease.slot, outcome);
    for (const learner of state.version.policy.learners) learner.ended?.(lease.slot, outcome);
  }

  #learn(end: RequestEnd): void {
    const state = this.#state;
    const { learned } = this.#services;
    learned.observe({
      model: state.model,
      tenant: state.tenant,
      promptChars: state.promptChars,
      promptTokens: end.promptTokens,
      outputTokens: end.outputTokens,
    });
    if (state.session !== undefined && end.promptTokens + end.outputTokens >= 0) {
      learned.observeSession(state.session, end.promptTokens + end.outputTokens);
    }
  }
}

/** A request that the data plane answers itself. */
export class RefusedRequest implements Refusal {
  readonly kind = 'refuse';
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfterSeconds: number | undefined;
  readonly #shed: RefusalCause['shed'];
  readonly #state: RequestState;
  readonly #services: RequestServices;

  constructor(state: RequestState, services: RequestServices, cause: RefusalCause) {
    this.#shed = cause.shed;
    this.status = cause.status;
    this.code = cause.code;
    this.message = cause.message;
    this.retryAfterSeconds = cause.retryAfterSeconds;
    this.#state = state;
    this.#services = services;
  }

  /** As it stands: the data plane puts its reasons into the head of the answer. */
  get decision(): DecisionRecord {
    return this.#record();
  }

  #record(): RowRecord {
    const record = recordOf(this.#state, this.#services, this.#services.clock.now());
    if (record.reasons.length === 0) record.reasons = this.#state.queued ? [this.code, 'queued'] : [this.code];
    return record;
  }

  finish(): void {
    const state = this.#state;
    if (state.finished) return;
    const nowMs = this.#services.clock.now();
    const record = this.#record();
    state.finished = true;
    record.verdict = this.code === 'rejected' ? 'rejected' : 'refused';
    record.status = this.status;
    record.code = this.code;
    record.durationMs = nowMs - state.receivedAtMs;
    if (this.#shed !== undefined) record.shed = this.#shed;
    close(state, this.#services, record);
  }
}

function recordOf(state: RequestState, services: RequestServices, nowMs: number): RowRecord {
  if (state.record === undefined) {
    const ageMs = nowMs - state.receivedAtMs;
    state.record = buildDecision(state, services.fleet, services.clock.epochMs() - ageMs);
    if (state.version.policy.limits.length > 0) services.described.set(state.record, state);
  }
  return state.record;
}

function close(state: RequestState, services: RequestServices, record: DecisionRecord): void {
  state.request = undefined;
  state.releaseFrame();
  state.version.leave();
  services.onDecision(record);
}

/** The outcome of an attempt to which nothing was answered. */
function unanswered(lease: Lease, reason: string, status: number, durationMs: number): AttemptOutcome {
  return {
    ok: false,
    reason,
    status,
    ttftMs: Number.NaN,
    durationMs,
    promptTokens: Number.NaN,
    cachedTokens: Number.NaN,
    outputTokens: Number.NaN,
    before: heldBefore(lease),
  };
}

function heldBefore(lease: Lease): NonNullable<AttemptOutcome['before']> {
  return {
    inflightRequests: lease.requestsBefore,
    inflightTokens: lease.tokensBefore,
    queuedTokens: lease.queuedBefore,
    decodeTokens: lease.decodeBefore,
  };
}

function fillEnd(record: DecisionRecord, end: RequestEnd): void {
  record.status = end.status;
  record.ttftMs = end.ttftMs;
  record.durationMs = end.durationMs;
  record.inputTokens = end.promptTokens;
  record.cachedTokens = end.cachedTokens;
  record.outputTokens = end.outputTokens;
}

const REASONS = ['matched', 'default', 'fallback', 'retried', 'queued', 'affinity_hit', 'affinity_repin', 'panic'];

// perf: not frozen, as the engine reads frozen lists by a call.
/** Every list of them, by a bit for each. */
const REASON_LISTS: readonly (readonly string[])[] = Array.from({ length: 2 ** REASONS.length }, (_, bits) =>
  REASONS.filter((_reason, i) => (bits & (1 << i)) !== 0),
);

/** What speaks for the route. */
function reasonsOf(state: RequestState): readonly string[] {
  const { frame } = state;
  const isDefault = state.version.policy.routes[state.routeIndex]?.rule.kind === 'default';
  const bits =
    (isDefault ? 2 : 1) |
    (state.fellBack || state.wentElse ? 4 : 0) |
    (state.retried ? 8 : 0) |
    (state.queued ? 16 : 0) |
    (frame.affinityState === 1 ? 32 : 0) |
    (frame.affinityState === 2 ? 64 : 0) |
    (frame.panic ? 128 : 0);
  return REASON_LISTS[bits]!;
}

/** The refusal after the last attempt has failed. */
function exhausted(state: RequestState, failure: AttemptFailure, retryAfterSeconds: number): RefusalCause {
  switch (failure.cause) {
    case 'timeout':
    case 'first_token':
      return {
        status: 504,
        code: 'upstream_timeout',
        message: 'The model server did not answer in time.',
        retryAfterSeconds: undefined,
      };
    case 'rate_limited':
      if (state.frame.onlyRateLimited)
        return { status: 429, code: 'rate_limited', message: 'Every endpoint asks to slow down.', retryAfterSeconds };
      return { status: 503, code: 'no_endpoint', message: 'No endpoint takes the request.', retryAfterSeconds };
    case 'saturated':
      return { status: 503, code: 'no_endpoint', message: 'Every endpoint is saturated.', retryAfterSeconds };
    case 'context_exceeded':
      return {
        status: 400,
        code: 'context_length_exceeded',
        message: "The request is longer than the model's context window.",
        retryAfterSeconds: undefined,
      };
    default:
      return { status: 502, code: 'upstream_error', message: 'The model server failed.', retryAfterSeconds: undefined };
  }
}

/**
 * A redirect or a plain 5xx: an answer, which is repeated only where the policy says so. An error event before any output, which comes with
 * a 200, is none.
 */
function isAnsweredError({ cause, status }: AttemptFailure): boolean {
  return cause === 'error' && (status >= 500 || (status >= 300 && status < 400));
}

/** Failures that count towards an ejection: no connection, a redirect, a 5xx other than 503, no first token in time. */
function speaksAgainst(failure: AttemptFailure): boolean {
  if (failure.cause === 'connect' || failure.cause === 'first_token') return true;
  return failure.cause === 'error' && failure.status !== 503 && !(failure.status >= 400 && failure.status < 500);
}

/** Whether an answer that broke off counts towards an ejection: not where the client left, nor where the time that it gave was over. */
function isFaultOfServer(end: RequestEnd, nowMs: number, deadlineMs: number): boolean {
  if (end.outcome === 'client_abort') return false;
  return end.outcome !== 'upstream_timeout' || nowMs < deadlineMs;
}

function reasonOf(end: RequestEnd): string {
  if (end.outcome === 'ok') return end.upstreamStatus < 400 ? 'ok' : 'error';
  return end.outcome === 'client_abort' ? 'client_abort' : end.outcome === 'upstream_timeout' ? 'timeout' : 'error';
}

function chargeLimits(state: RequestState, services: RequestServices): void {
  const { limits } = state.version.policy;
  const { frame } = state;
  const { promptTokens, outputTokens } = frame;
  const estimate = chargeOf(state, services, promptTokens, outputTokens);
  for (let i = 0; i < limits.length; i++) {
    const limit = limits[i];
    const key = limit === undefined ? undefined : limitKey(limit, frame);
    if (limit === undefined || key === undefined) continue;
    services.limits.charge(limit.definition, key, estimate, frame.nowMs);
    (state.charged ??= []).push({ limit: i, key, estimate });
  }
}

/** Replaces estimates by what was used. What is not told counts as estimated if an answer had begun, so that nobody saves by leaving early. */
function settleLimits(state: RequestState, services: RequestServices, end: RequestEnd): void {
  if (state.charged === undefined) return;
  const answered = state.committed && end.upstreamStatus < 400;
  const known = (tokens: number, estimate: number): number => (tokens >= 0 ? tokens : answered ? estimate : 0);
  const nowMs = services.clock.now();
  for (const { limit, key, estimate } of state.charged) {
    const inputTokens = known(end.promptTokens, estimate.inputTokens);
    const outputTokens = known(end.outputTokens, estimate.outputTokens);
    const real = chargeOf(state, services, inputTokens, outputTokens);
    const definition = state.version.policy.limits[limit]?.definition;
    if (definition !== undefined) services.limits.settle(definition, key, estimate, real, nowMs);
  }
}

/** These tokens with what they cost at the endpoint that the request is at; 0 where that is unknown. */
function chargeOf(state: RequestState, services: RequestServices, inputTokens: number, outputTokens: number): Charge {
  const slot = state.lease?.slot;
  const cost = slot === undefined ? 0 : requestCost(services.fleet, slot, inputTokens, outputTokens);
  return { inputTokens, outputTokens, cost: cost >= 0 ? cost : 0 };
}

function modelFor(
  modifiers: BoundModifiers,
  frame: Frame,
  fleet: Fleet,
  slot: number,
  asked: string,
): string | undefined {
  const written = modifiers.model?.(frame);
  if (typeof written === 'string') return written;
  if (fleet.texts.loras[slot]?.includes(asked) === true) return undefined;
  const served = fleet.texts.model[slot];
  return served === asked ? undefined : served;
}

function setFields(
  modifiers: BoundModifiers,
  frame: Frame,
): readonly { readonly field: string; readonly json: string }[] {
  return modifiers.set.flatMap(({ field, value }) => {
    const set = value(frame);
    return set === undefined || set !== set ? [] : [{ field, json: JSON.stringify(set) }];
  });
}

function setHeaders(
  modifiers: BoundModifiers,
  frame: Frame,
): readonly { readonly name: string; readonly value: string }[] {
  return modifiers.headers.flatMap(({ name, value }) => {
    const set = value(frame);
    return set === undefined || set !== set
      ? []
      : [{ name, value: typeof set === 'string' ? set : JSON.stringify(set) }];
  });
}

/** Seconds of a modifier as milliseconds; the default where it is not written or unknown. */
function millis(seconds: unknown, otherwise: number): number {
  return typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : otherwise;
}
