import { SignalboxError, silentLogger } from '@signalbox/plugin-api';
import type { Clock, Logger, Plugin } from '@signalbox/plugin-api';
import { createEvaluators } from '@signalbox/policy';
import type { EvaluatorOptions, PolicyProgram, SecretRef, TraceSink } from '@signalbox/policy';
import type { DecisionRecord, DecisionSink } from '@signalbox/telemetry';
import { AdmissionQueues } from './admission-queue.ts';
import type { QueueEntry, QueueRefusal, QueueStatus } from './admission-queue.ts';
import { createAlarms } from './alarms.ts';
import { awaitSignals, fillSignals } from './fill-signals.ts';
import { bindPolicy } from './bind-policy.ts';
import { limitKey } from './bound-limits.ts';
import type { BoundPolicy, BoundQueue } from './bound-policy.ts';
import { explain } from './explain/explain.ts';
import type { Explanation } from './explain/explain.ts';
import { createFirstTokenMeter } from './first-token-meter.ts';
import { Fleet } from './fleet/fleet.ts';
import { fleetDifference } from './fleet/same-fleet.ts';
import { Frame } from './frame.ts';
import type { GivenValues } from './given-values.ts';
import type { EndpointStatus, EngineSample } from './fleet/fleet.ts';
import type { AllocateMemory } from './fleet/fleet-table.ts';
import { createLearned } from './learned.ts';
import { createLeaseLedger } from './lease.ts';
import { createLimitLedger, tighter } from './limits.ts';
import type { Standing } from './limits.ts';
import { LiveRequest, RefusedRequest } from './live-request.ts';
import type { RequestServices } from './live-request.ts';
import { OVERLOADED, Pipeline, wholeSeconds } from './pipeline.ts';
import type { Outcome } from './pipeline.ts';
import { createPluginGuard, refusalFor } from './plugins/guard.ts';
import { createInstanceRegistry } from './plugins/instance-registry.ts';
import { openFrame, PolicyVersion } from './policy-version.ts';
import { createRateMeter } from './rate-meter.ts';
import { readParam } from './read-param.ts';
import type { RefusalCause } from './request-state.ts';
import { RequestState } from './request-state.ts';
import { createRetryBudget } from './retry-budget.ts';
import type { EndpointTarget, ModelInfo, Router, RouteOutcome, RouteRequest } from './router.ts';
import { withinReach } from './scheduler.ts';
import type { Scheduler } from './scheduler.ts';
import { createSeededRandom, spread } from './seeded-random.ts';
import { decideInShadow, verdictOf } from './shadow.ts';
import type { Shadow, ShadowDecision } from './shadow.ts';
import { goesByCanary, isSampled } from './trial-share.ts';
import type { Canary } from './trial-share.ts';
import { PRIORITIES, sessionKeyOf } from './signals/signal-producers.ts';

export interface CoreOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Memory for the fleet table; plain memory unless given. */
  readonly allocate?: AllocateMemory;
  /** Endpoints that the fleet table has room for, those still draining among them; 4096 unless given. */
  readonly capacity?: number;
  readonly logger?: Logger;
  /** Seeds back-off, ejection jitter, and the counter behind request seeds; the same seed and calls give the same decisions. */
  readonly seed?: number;
  /** Takes each finished request's record. */
  readonly onDecision?: DecisionSink;
  /** How expressions are evaluated: `interpreted` where code from strings is forbidden. */
  readonly evaluators?: EvaluatorOptions['mode'];
  /** Told of each boolean leaf that is evaluated; evaluators are interpreted then. */
  readonly trace?: TraceSink;
  /** What stands in place of signals and properties, for tests of policies. */
  readonly given?: GivenValues;
  /** Bytes that the bodies of all queued requests may hold together; 256 MiB unless given. */
  readonly maxQueuedBytes?: number;
  /** The text behind a secret reference. */
  readonly resolveSecret?: (ref: SecretRef) => string | undefined;
  /** Called when an endpoint that the policy in force does not name has ended its last request: connections to it are of no more use. */
  readonly onEndpointGone?: (target: EndpointTarget) => void;
  /** The value of an environment variable that a `define param` names. */
  readonly environment?: (name: string) => string | undefined;
}

/** What shows of the core from outside: numbers for metrics and status pages. */
export interface CoreStatus {
  readonly policy: { readonly id: string; readonly hash: string; readonly generation: number } | undefined;
  readonly leasesOpen: number;
  readonly leasesStarted: number;
  /** Releases that would have broken the ledger; 0 in a correct program. */
  readonly leaseFaults: number;
  readonly queues: readonly QueueStatus[];
  readonly queued: number;
  /** Versions in force or still needed by a request. */
  readonly versions: number;
  readonly pluginInstances: number;
  readonly pluginFailures: ReadonlyMap<string, number>;
  readonly pluginInvalidValues: ReadonlyMap<string, number>;
  /** How often each scorer knew nothing of any candidate and so had no say, by its name. */
  readonly unknownScorers: ReadonlyMap<string, number>;
  readonly concurrentCharges: number;
  readonly alarms: ReadonlyMap<string, boolean>;
}

/** The routing core of one worker. */
export interface Core {
  readonly router: Router;
  /** Binds a program and sets its plugins up, without effect on traffic. Throws SignalboxError; the version in force stays. */
  prepare(program: PolicyProgram, plugins?: readonly Plugin[]): PolicyVersion;
  /** Puts a prepared version in force for all requests to come. */
  activate(version: PolicyVersion): void;
  /** Lets go of a prepared version that is not to be put in force. */
  discard(version: PolicyVersion): void;
  readonly active: PolicyVersion | undefined;
  /**
   * Lets a share of the requests to come go by a prepared version (`goesByCanary`), until it is put in force, another is, or the canary is
   * ended. Throws a SignalboxError `fleet_differs` if it defines another fleet than the version in force.
   */
  startCanary(canary: Canary): void;
  /** No new request goes by the canary; those under way do to their end. */
  endCanary(): void;
  readonly canary: Canary | undefined;
  /**
   * Has a prepared version decide requests of the version in force along with it, without effect, in place of the shadow before. Throws a
   * SignalboxError `fleet_differs`, or `shadow_async` for a version that would have to wait for its signals.
   */
  startShadow(shadow: Shadow): void;
  endShadow(): void;
  readonly shadow: Shadow | undefined;
  /** Versions in force, on trial or still needed by a request, oldest first. */
  versions(): readonly PolicyVersion[];
  /** Why a request would go where, on the fleet as it stands. Changes no state. */
  explain(request: RouteRequest): Explanation;
  /**
   * `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` for an answer, as a flat list of names and values: of the tightest limit that
   * applies to the request. To be asked while the request is under way, with its decision.
   */
  limitHeaders(decision: DecisionRecord): readonly string[];
  endpoints(): EndpointStatus[];
  /** Writes an engine's report; false if no endpoint has that name. */
  feed(endpoint: string, sample: EngineSample): boolean;
  /** Takes an endpoint out of routing or back in; false if no endpoint has that name. */
  cordon(endpoint: string, cordoned: boolean): boolean;
  /**
   * Refuses requests of the lowest `level` classes at the door with 503 `shed`, until called with another level: 1 is `low`, 2 `normal` as
   * well, 3 all but `critical`; 0 none. The class is what the policy gives the request (`with priority` of the queue, the destination or
   * an `admit`), else its own. For a host whose own thread is overloaded. Throws a RangeError for another level.
   */
  shed(level: number): void;
  status(): CoreStatus;
  readonly fleet: Fleet;
  /** Cancels timers and closes plugins. Requests under way keep their leases until they finish. */
  close(): void;
}

const DEFAULT_CAPACITY = 4096;
const TICK_MS = 100;
const ALARM_TICK_MS = 250;
const MAX_WAIT_MS = 30_000;
const MAX_QUEUED_BYTES = 256 * 2 ** 20;

/** A core with an empty fleet and no policy: `router.ready()` is false until the first `activate`. */
export function createCore(options: CoreOptions): Core {
  return new RoutingCore(options);
}

class RoutingCore implements Core {
  readonly fleet: Fleet;
  readonly router: Router;
  readonly #options: CoreOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #scheduler: Scheduler;
  readonly #services: RequestServices;
  readonly #queues: AdmissionQueues;
  readonly #alarms = createAlarms();
  readonly #meter = createRateMeter();
  readonly #guard: ReturnType<typeof createPluginGuard>;
  readonly #instances: ReturnType<typeof createInstanceRegistry>;
  readonly #versions = new Set<PolicyVersion>();
  readonly #fairShares = new WeakMap<
    RequestState,
    {
      readonly place: BoundQueue;
      readonly fairKey: string;
      readonly weight: number;
      readonly input: number;
      readonly output: number;
    }
  >();
  #active: PolicyVersion | undefined;
  #canary: Canary | undefined;
  #shadow: Shadow | undefined;
  #generation = 0;
  #seed: number;
  #waking = false;
  #cancelTick: (() => void) | undefined;
  #cancelAlarmTick: (() => void) | undefined;
  #closed = false;

  constructor(options: CoreOptions) {
    const logger = options.logger ?? silentLogger;
    this.#options = options;
    this.#clock = options.clock;
    this.#logger = logger;
    this.#scheduler = withinReach(options.scheduler);
    this.#seed = (options.seed ?? 1) >>> 0;
    const random = createSeededRandom(this.#seed);
    this.#queues = new AdmissionQueues(options.maxQueuedBytes ?? MAX_QUEUED_BYTES);
    this.fleet = new Fleet({
      capacity: options.capacity ?? DEFAULT_CAPACITY,
      allocate: options.allocate ?? ((byteLength) => new ArrayBuffer(byteLength)),
      random,
      ...(options.resolveSecret === undefined ? {} : { resolveSecret: options.resolveSecret }),
      onGone: (target, slot) => {
        this.#instances.forget(slot);
        options.onEndpointGone?.(target);
      },
    });
    this.#guard = createPluginGuard(logger);
    this.#instances = createInstanceRegistry(options.clock, logger);
    const leases = createLeaseLedger(this.fleet);
    const limits = createLimitLedger();
    this.#services = {
      clock: options.clock,
      random,
      fleet: this.fleet,
      leases,
      limits,
      learned: createLearned(),
      budget: createRetryBudget(),
      firstTokens: createFirstTokenMeter(),
      pipeline: new Pipeline({ fleet: this.fleet, leases, limits }),
      onDecision: options.onDecision ?? (() => {}),
      described: new WeakMap(),
      released: () => this.#wake(),
      served: (state, inputTokens, outputTokens) => this.#served(state, inputTokens, outputTokens),
    };
    this.router = {
      route: (request) => this.#route(request),
      models: () => this.#models(),
      ready: () => this.#active !== undefined && !this.#closed,
    };
  }

  get active(): PolicyVersion | undefined {
    return this.#active;
  }

  prepare(program: PolicyProgram, plugins: readonly Plugin[] = []): PolicyVersion {
    this.fleet.check(program.definitions);
    const { trace, evaluators: mode = 'generated' } = this.#options;
    const evaluators = createEvaluators(program, trace === undefined ? { mode } : { mode: 'interpreted', trace });
    const params = new Map(
      program.definitions.params.map((param) => [param.name, readParam(param, this.#options.environment)]),
    );
    const everything = this.fleet.pool([{ kind: 'any' }]);
    const policy = bindPolicy(program, evaluators, {
      fleet: this.fleet,
      sources: {
        fleet: this.fleet,
        everything,
        learned: this.#services.learned,
        timezone: program.definitions.gateway.timezone,
        queuedRequests: () => this.#queues.size,
        requestsPerSecond: (nowMs) => this.#meter.perSecond(nowMs),
        alarm: (name) => this.#alarms.value(name),
        param: (name) => params.get(name),
      },
      limits: this.#services.limits,
      instances: this.#instances,
      guard: this.#guard,
      plugins: new Map(plugins.map((plugin) => [plugin.name, plugin])),
      ...(this.#options.given === undefined ? {} : { given: this.#options.given }),
    });
    const retire = (retired: PolicyVersion): void => {
      this.#versions.delete(retired);
      for (const held of retired.policy.instances) this.#instances.release(held);
    };
    const version = new PolicyVersion(program, policy, ++this.#generation, this.fleet, retire, plugins);
    this.#versions.add(version);
    for (const notice of version.notices) this.#logger.warn(notice, { policy: version.id });
    return version;
  }

  activate(version: PolicyVersion): void {
    if (version.retired)
      throw new SignalboxError('the policy version was discarded; prepare it again', {
        code: 'version_retired',
        source: 'gateway',
      });
    if (version === this.#active) return;
    this.fleet.apply(version.program.definitions, this.#clock.now());
    const before = this.#active;
    this.#active = version;
    version.enforce();
    before?.supersede();
    if (this.#canary !== undefined) this.endCanary();
    const shadow = this.#shadow?.version;
    if (shadow !== undefined && (shadow === version || differenceOfFleets(shadow, version) !== undefined))
      this.endShadow();
    this.#tend();
    this.#wake();
  }

  get canary(): Canary | undefined {
    return this.#canary;
  }

  get shadow(): Shadow | undefined {
    return this.#shadow;
  }

  startCanary(canary: Canary): void {
    this.#checkTrial(canary.version, 'canary');
    if (this.#canary !== undefined) this.endCanary();
    this.#canary = canary;
    this.#tend();
  }

  endCanary(): void {
    const version = this.#canary?.version;
    this.#canary = undefined;
    if (version !== undefined) this.discard(version);
    this.#tend();
  }

  startShadow(shadow: Shadow): void {
    this.#checkTrial(shadow.version, 'shadow');
    if (shadow.version.policy.asyncSignals.length > 0)
      throw new SignalboxError(
        'the policy reads signals of plugins that answer later; a shadow decides at once, so it cannot take part',
        { code: 'shadow_async', source: 'gateway', status: 409 },
      );
    if (this.#shadow !== undefined) this.endShadow();
    this.#shadow = shadow;
    this.#tend();
  }

  endShadow(): void {
    const version = this.#shadow?.version;
    this.#shadow = undefined;
    if (version !== undefined) this.discard(version);
    this.#tend();
  }

  versions(): readonly PolicyVersion[] {
    return [...this.#versions];
  }

  #checkTrial(version: PolicyVersion, as: 'canary' | 'shadow'): void {
    if (this.#active === undefined)
      throw new SignalboxError('no policy is in force', { code: 'no_policy', source: 'gateway' });
    if (version.retired || version === this.#active)
      throw new SignalboxError(`a version ${version.retired ? 'that was discarded' : 'in force'} cannot be a ${as}`, {
        code: 'version_retired',
        source: 'gateway',
      });
    const difference = differenceOfFleets(version, this.#active);
    if (difference === undefined) return;
    throw new SignalboxError(
      `the policy cannot be a ${as}: ${difference}, and it decides on the fleet of the policy in force. Put the change of the fleet in force first, by an edit of the policy file.`,
      { code: 'fleet_differs', source: 'gateway', status: 409 },
    );
  }

  /** Keeps the alarms and queues of every version that decides, and no others. */
  #tend(): void {
    const deciding = this.#deciding();
    this.#alarms.keep(deciding.flatMap(({ policy }) => policy.alarms.map((alarm) => alarm.name)));
    this.#queues.keep(new Set(deciding.flatMap(({ policy }) => [...queueKeys(policy)])));
    this.#startAlarms();
  }

  #deciding(): PolicyVersion[] {
    return [this.#active, this.#canary?.version, this.#shadow?.version].filter((version) => version !== undefined);
  }

  discard(version: PolicyVersion): void {
    if (!this.#deciding().includes(version)) version.supersede();
  }

  explain(request: RouteRequest): Explanation {
    const version = this.#active;
    if (version === undefined)
      throw new SignalboxError('no policy is in force', { code: 'no_policy', source: 'gateway' });
    this.#bringFleetTo(this.#clock.now());
    // A frame of its own, with room to list every endpoint.
    const frame = new Frame({ ...version.policy.shape, shortlist: this.fleet.slotLimit + 1 });
    openFrame(frame, request, version, {
      nowMs: this.#clock.now(),
      epochMs: this.#clock.epochMs(),
      seed: spread(this.#seed + 1),
    });
    const state = new RequestState(version, frame, request);
    state.dry = true;
    state.shortlistSize = this.fleet.slotLimit;
    try {
      fillSignals(state, this.#services.learned);
      return explain(state, { ...this.#services, queueDepth: (place) => this.#queues.depth(place) });
    } catch (error) {
      const { message, status } = refusalFor(error);
      throw new SignalboxError(`requests like this are refused: ${message}`, {
        code: 'plugin_failed',
        source: 'plugin',
        status,
      });
    }
  }

  limitHeaders(decision: DecisionRecord): readonly string[] {
    const state = this.#services.described.get(decision);
    if (state === undefined || state.finished || state.version.policy.limits.length === 0) return NO_HEADERS;
    const nowMs = this.#clock.now();
    let requests: Standing | undefined;
    let tokens: Standing | undefined;
    const { limits } = state.version.policy;
    // What a request was charged to stays so when the signals that told it are let go with the body.
    const asked =
      state.charged ?? (state.hasFrame ? limits.map((limit) => ({ limit, key: limitKey(limit, state.frame) })) : []);
    for (const charged of asked) {
      const limit = typeof charged.limit === 'number' ? limits[charged.limit] : charged.limit;
      const { key } = charged;
      if (limit === undefined || key === undefined) continue;
      requests = tighter(requests, this.#services.limits.standing(limit.definition, key, 'requests', nowMs));
      tokens = tighter(tokens, this.#services.limits.standing(limit.definition, key, 'tokens', nowMs));
    }
    return [...standingHeaders('requests', requests), ...standingHeaders('tokens', tokens)];
  }

  endpoints(): EndpointStatus[] {
    const nowMs = this.#clock.now();
    this.#bringFleetTo(nowMs);
    return this.fleet.status(nowMs);
  }

  feed(endpoint: string, sample: EngineSample): boolean {
    const slot = this.fleet.slotOf(endpoint);
    if (slot === undefined) return false;
    this.fleet.feed(slot, sample, this.#clock.now());
    return true;
  }

  cordon(endpoint: string, cordoned: boolean): boolean {
    const found = this.fleet.cordon(endpoint, cordoned);
    this.#wake();
    return found;
  }

  shed(level: number): void {
    if (!Number.isInteger(level) || level < 0 || level >= PRIORITIES.length)
      throw new RangeError(`the level of shedding is ${level}; expected 0 to ${PRIORITIES.length - 1}`);
    this.#services.pipeline.shedFrom = PRIORITIES.length - level;
  }

  status(): CoreStatus {
    const { leases, limits, pipeline } = this.#services;
    const active = this.#active;
    return {
      policy:
        active === undefined ? undefined : { id: active.id, hash: active.program.hash, generation: active.generation },
      leasesOpen: leases.open,
      leasesStarted: leases.started,
      leaseFaults: leases.faults,
      queues: this.#queues.status(this.#clock.now()),
      queued: this.#queues.size,
      versions: this.#versions.size,
      pluginInstances: this.#instances.size,
      pluginFailures: this.#guard.failures,
      pluginInvalidValues: this.#guard.invalidValues,
      unknownScorers: pipeline.unknownScorers,
      concurrentCharges: limits.concurrent(),
      alarms: this.#alarms.values(),
    };
  }

  close(): void {
    this.#closed = true;
    this.#cancelTick?.();
    this.#cancelAlarmTick?.();
    this.#cancelTick = undefined;
    this.#cancelAlarmTick = undefined;
    const deciding = this.#deciding();
    this.#active = undefined;
    this.#canary = undefined;
    this.#shadow = undefined;
    for (const version of deciding) version.supersede();
  }

  // --- requests

  #route(request: RouteRequest): RouteOutcome | Promise<RouteOutcome> {
    const active = this.#active;
    if (active === undefined) throw notReady();
    this.#seed = (this.#seed + 1) >>> 0;
    const seed = spread(this.#seed);
    const canary = this.#canary;
    const version = canary !== undefined && goesByCanary(canary, request, seed) ? canary.version : active;
    const state = this.#open(version, request, seed);
    const { nowMs } = state.frame;
    this.#meter.count(nowMs);
    this.#bringFleetTo(nowMs);
    try {
      fillSignals(state, this.#services.learned);
    } catch (error) {
      return this.#pluginFailed(state, error);
    }
    return version.policy.asyncSignals.length === 0 ? this.#decide(state) : this.#decideLater(state);
  }

  async #decideLater(state: RequestState): Promise<RouteOutcome> {
    let left = false;
    if (state.request !== undefined) state.request.onAbort = () => (left = true);
    try {
      await awaitSignals(state, this.#scheduler, this.#guard);
      if (left) return this.#refused(state, CLIENT_LEFT);
      if (state.request !== undefined) state.request.onAbort = undefined;
    } catch (error) {
      return this.#pluginFailed(state, error);
    }
    return this.#refresh(state) ?? this.#decide(state);
  }

  #pluginFailed(state: RequestState, error: unknown): RefusedRequest {
    return this.#refused(state, refusalFor(error));
  }

  #open(version: PolicyVersion, request: RouteRequest, seed: number): RequestState {
    const frame = version.enter();
    const nowMs = this.#clock.now();
    openFrame(frame, request, version, { nowMs, epochMs: version.policy.readsClock ? this.#clock.epochMs() : 0, seed });
    const state = new RequestState(version, frame, request);
    if (version.policy.readsSessionTokens) state.session = sessionKeyOf(frame);
    return state;
  }

  #decide(state: RequestState): RouteOutcome | Promise<RouteOutcome> {
    const { frame } = state;
    if (frame.nowMs >= state.deadlineMs) return this.#refused(state, TOO_LATE);
    state.atDoor = true;
    const shadow = this.#shadow;
    const outcome = shadow === undefined ? this.#services.pipeline.decide(state) : this.#decideBeside(state, shadow);
    state.atDoor = false;
    frame.decideMs += this.#clock.now() - frame.nowMs;
    if (outcome === 'leased') return new LiveRequest(state, this.#services);
    if (outcome === 'queued') return this.#wait(state);
    return this.#refused(state, state.refusal ?? TOO_LATE);
  }

  #decideBeside(state: RequestState, shadow: Shadow): Outcome {
    const compares = state.version === this.#active && isSampled(shadow.share, state.frame.seed);
    return compares ? this.#decideBoth(state, shadow) : this.#services.pipeline.decide(state);
  }

  /** The shadow first, so that both see the fleet without this request. Its time is not the decision's. */
  #decideBoth(state: RequestState, { version, onCompared }: Shadow): Outcome {
    const startMs = this.#clock.now();
    const { fleet, learned, pipeline } = this.#services;
    const shadow: ShadowDecision = decideInShadow(version, state, { fleet, learned, pipeline }, this.#clock.epochMs());
    const tookMs = this.#clock.now() - startMs;
    state.frame.decideMs = -tookMs;
    const outcome = pipeline.decide(state);
    const inForce = verdictOf(state, outcome, fleet);
    onCompared({
      requestId: state.requestId,
      inForce,
      ...('verdict' in shadow ? { shadow: shadow.verdict } : shadow),
      tookMs,
    });
    return outcome;
  }

  #refused(state: RequestState, cause: RefusalCause): RefusedRequest {
    return new RefusedRequest(state, this.#services, cause);
  }

  // --- waiting

  #wait(state: RequestState): RouteOutcome | Promise<RouteOutcome> {
    const place = state.place;
    if (place === undefined) return this.#refused(state, TOO_LATE);
    if (place.admission >= 0) {
      state.passedAdmission = place.admission;
      // Nobody is ahead: what the queue waits for may be there.
      if (this.#queues.depth(place) === 0) {
        const outcome = this.#services.pipeline.decide(state);
        if (outcome === 'leased') {
          this.#serve(state, place, this.#queues.fairKey(state, place));
          return new LiveRequest(state, this.#services);
        }
        if (outcome === 'refused' && !waitsForRoom(state)) return this.#refused(state, state.refusal ?? TOO_LATE);
        state.place = place;
      }
    } else if (isRouteQueue(state) && !state.sawAvailable) {
      return this.#refused(state, GONE);
    }
    const nowMs = state.frame.nowMs;
    const maxWait = place.with.maxWait?.(state.frame);
    const maxWaitMs = typeof maxWait === 'number' && maxWait >= 0 ? maxWait * 1000 : MAX_WAIT_MS;
    return new Promise<RouteOutcome>((resolve) => {
      let cancel: (() => void) | undefined;
      const leave = (outcome: RouteOutcome): void => {
        cancel?.();
        if (state.request !== undefined) state.request.onAbort = undefined;
        state.queuedMs = this.#clock.now() - nowMs;
        resolve(outcome);
      };
      // Whom an `else` takes after the wait loses nothing by it, unless the deadline is over first.
      const elsewhere = isRouteQueue(state) && this.#services.pipeline.hasElse(state);
      const leftMs = state.deadlineMs - nowMs;
      const patienceMs = !elsewhere ? Math.min(maxWaitMs, leftMs) : leftMs < maxWaitMs ? leftMs : Infinity;
      const entry = this.#queues.enqueue(state, place, nowMs, patienceMs, (displaced) => {
        const waitMs = this.#queues.expectedWaitMs(displaced, this.#clock.now());
        leave(this.#shed(state, place, { kind: 'full', waitMs }));
      });
      if ('kind' in entry) {
        // Those ahead were offered every place that came free. What is free is of no use to them: they wait for another tier.
        const overtakes = entry.kind === 'too_long' && place.admission >= 0;
        if (overtakes && this.#services.pipeline.decide(state) === 'leased') {
          this.#serve(state, place, this.#queues.fairKey(state, place));
          leave(new LiveRequest(state, this.#services));
          return;
        }
        leave(this.#shed(state, place, entry));
        return;
      }
      state.queued = true;
      this.#leavers.set(entry, leave);
      cancel = this.#scheduler.setTimer(Math.max(0, Math.min(maxWaitMs, leftMs)), () => {
        if (!this.#queues.remove(entry, this.#clock.now())) return;
        // Timers may be early by part of a millisecond: what ended the wait is told by what it was set for.
        leave(leftMs <= maxWaitMs ? this.#refused(state, TOO_LATE) : this.#timedOut(entry));
      });
      if (state.request !== undefined) {
        state.request.onAbort = () => {
          if (this.#queues.remove(entry, this.#clock.now())) leave(this.#refused(state, CLIENT_LEFT));
        };
      }
      this.#startTick();
    });
  }

  readonly #leavers = new WeakMap<QueueEntry, (outcome: RouteOutcome) => void>();

  /** At `max_wait`: the next `else`, else 503. */
  #timedOut(entry: QueueEntry): RouteOutcome {
    const { state, place } = entry;
    const { pipeline } = this.#services;
    const failed = this.#refresh(state);
    if (failed !== undefined) return failed;
    if (state.frame.nowMs >= state.deadlineMs) return this.#refused(state, TOO_LATE);
    const outcome = pipeline.decide(state);
    if (outcome === 'leased') {
      this.#queues.dispatched(entry);
      this.#serve(state, place, entry.fairKey);
      return this.#dispatched(state);
    }
    if (outcome === 'queued' && isRouteQueue(state) && pipeline.hasElse(state)) {
      if (pipeline.goElse(state) === 'leased') return this.#dispatched(state);
      if (state.refusal !== undefined && state.refusal.code !== 'no_endpoint')
        return this.#refused(state, state.refusal);
    }
    if (outcome === 'refused' && state.refusal !== undefined && !waitsForRoom(state))
      return this.#refused(state, state.refusal);
    const cause = {
      ...QUEUE_TIMEOUT,
      message: `The request waited in the queue of ${JSON.stringify(place.label)} for as long as it may. Try again later.`,
    };
    const waitMs = this.#queues.expectedWaitMs(entry, state.frame.nowMs);
    return this.#refused(state, this.#inQueue(asWritten(cause, place, state, waitMs), state, place));
  }

  /** A request that a queue does not take, or takes no longer for the sake of another. */
  #shed(state: RequestState, place: BoundQueue, { kind, waitMs }: QueueRefusal): RefusedRequest {
    const cause =
      kind === 'full'
        ? QUEUE_FULL
        : {
            ...OVERLOADED,
            message: `The wait in the queue of ${JSON.stringify(place.label)} would be about ${inSeconds(waitMs)} s, longer than the request may wait. Try again later.`,
          };
    return this.#refused(state, this.#inQueue(asWritten(cause, place, state, waitMs), state, place));
  }

  #inQueue(cause: RefusalCause, state: RequestState, place: BoundQueue): RefusalCause {
    return { ...cause, shed: { queue: place.label, class: PRIORITIES[this.#queues.priority(state, place)] ?? '' } };
  }

  /** Offers room that may have come free to those who wait. */
  #wake(): void {
    if (this.#waking || this.#queues.size === 0 || this.#closed) return;
    this.#waking = true;
    try {
      this.#queues.wake((entry) => this.#offer(entry));
    } finally {
      this.#waking = false;
    }
  }

  #offer(entry: QueueEntry): boolean {
    const { state } = entry;
    const failed = this.#refresh(state);
    const { nowMs } = state.frame;
    if (failed !== undefined) {
      this.#queues.remove(entry, nowMs);
      this.#leavers.get(entry)?.(failed);
      return true;
    }
    if (nowMs >= state.deadlineMs) {
      // Its timer is late: the loop was held up.
      this.#queues.remove(entry, nowMs);
      this.#leavers.get(entry)?.(this.#refused(state, TOO_LATE));
      return true;
    }
    const outcome = this.#services.pipeline.decide(state);
    const gone = outcome === 'queued' && isRouteQueue(state) && !state.sawAvailable;
    if ((outcome === 'queued' && !gone) || (outcome === 'refused' && waitsForRoom(state))) return false;
    this.#queues.remove(entry, nowMs);
    const leave = this.#leavers.get(entry);
    if (gone) {
      leave?.(this.#refused(state, GONE));
      return true;
    }
    if (outcome !== 'leased') {
      leave?.(this.#refused(state, state.refusal ?? TOO_LATE));
      return true;
    }
    this.#queues.dispatched(entry);
    this.#serve(state, entry.place, entry.fairKey);
    leave?.(this.#dispatched(state));
    return true;
  }

  #dispatched(state: RequestState): LiveRequest {
    state.queuedMs = state.frame.nowMs - state.receivedAtMs;
    return new LiveRequest(state, this.#services);
  }

  /** Signals that depend on time or the fleet are worked out anew for each offer. Gives the refusal where a plugin failed. */
  #refresh(state: RequestState): RefusedRequest | undefined {
    state.frame.nowMs = this.#clock.now();
    if (state.version.policy.readsClock) state.frame.epochMs = this.#clock.epochMs();
    this.#bringFleetTo(state.frame.nowMs);
    try {
      fillSignals(state, this.#services.learned);
      return undefined;
    } catch (error) {
      return this.#pluginFailed(state, error);
    }
  }

  /** Ends what is over by now: reports of engines that are stale, ejections, waits. To be called before anything reads the fleet. */
  #bringFleetTo(nowMs: number): void {
    if (this.fleet.engineFed > 0) this.fleet.expireSamples(nowMs);
    this.fleet.health.expire(nowMs);
  }

  /** Charges a dispatched request's estimate to its key in a fair queue. */
  #serve(state: RequestState, place: BoundQueue, fairKey: string): void {
    if (place.order.kind !== 'weighted_fair') return;
    const { promptTokens, outputTokens } = state.frame;
    const weight = state.frame.tenant?.weight ?? 1;
    this.#queues.serve(place, fairKey, promptTokens, outputTokens, weight);
    this.#fairShares.set(state, { place, fairKey, weight, input: promptTokens, output: outputTokens });
  }

  #served(state: RequestState, inputTokens: number, outputTokens: number): void {
    const share = this.#fairShares.get(state);
    if (share === undefined) return;
    const input = inputTokens >= 0 ? inputTokens - share.input : 0;
    const output = outputTokens >= 0 ? outputTokens - share.output : 0;
    this.#queues.correct(share.place, share.fairKey, input, output, share.weight);
  }

  #startTick(): void {
    this.#cancelTick ??= this.#scheduler.setTimer(TICK_MS, () => {
      this.#cancelTick = undefined;
      this.#wake();
      if (this.#queues.size > 0 && !this.#closed) this.#startTick();
    });
  }

  #startAlarms(): void {
    this.#cancelAlarmTick?.();
    this.#cancelAlarmTick = undefined;
    const deciding = this.#deciding();
    if (this.#closed || deciding.every(({ policy }) => policy.alarms.length === 0)) return;
    this.#bringFleetTo(this.#clock.now());
    this.#alarms.sample(deciding, this.#clock);
    this.#cancelAlarmTick = this.#scheduler.setTimer(ALARM_TICK_MS, () => this.#startAlarms());
  }

  // --- names and values

  #models(): readonly ModelInfo[] {
    const version = this.#active;
    if (version === undefined) return [];
    const { table, texts } = this.fleet;
    const everything = this.fleet.pool([{ kind: 'any' }]);
    everything.refresh();
    const names = [...new Set([...version.models, ...this.fleet.adapters()])].sort();
    return names.map((id) => {
      let longest: number | undefined;
      for (const slot of everything.members) {
        const window = table.contextWindow[slot] ?? Number.NaN;
        const serves = texts.model[slot] === id || texts.loras[slot]?.includes(id) === true;
        if (serves && window === window && !(window <= (longest ?? 0))) longest = window;
      }
      return { id, ownedBy: 'signalbox', maxModelLen: longest };
    });
  }
}

function notReady(): SignalboxError {
  return new SignalboxError('no policy is in force; ask `ready()` before routing', {
    code: 'no_policy',
    source: 'gateway',
    status: 503,
  });
}

/** How the fleets of two versions differ, as half a sentence; undefined where they are one. */
function differenceOfFleets(version: PolicyVersion, inForce: PolicyVersion): string | undefined {
  return fleetDifference(inForce.program.definitions, version.program.definitions);
}

/** Identities of all queues that the policy's rules send to. */
function queueKeys({ admission, routes }: BoundPolicy): ReadonlySet<string> {
  const verdicts = [
    ...admission.map(({ verdict }) => verdict),
    ...routes.flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'verdict' ? [step.verdict] : []))),
  ];
  return new Set(verdicts.flatMap(({ place }) => (place === undefined ? [] : [place.key])));
}

/** Whether the request waits at an `else queue`, and not at an admission rule. */
function isRouteQueue(state: RequestState): boolean {
  return state.place?.key.startsWith('route:') === true;
}

/** Whether a refusal is for want of room at endpoints that are up. */
function waitsForRoom(state: RequestState): boolean {
  return state.refusal?.code === 'no_endpoint' && state.sawAvailable;
}

const NO_HEADERS: readonly string[] = Object.freeze([]);

function standingHeaders(of: 'requests' | 'tokens', standing: Standing | undefined): readonly string[] {
  if (standing === undefined) return NO_HEADERS;
  return [
    `x-ratelimit-limit-${of}`,
    String(standing.limit),
    `x-ratelimit-remaining-${of}`,
    String(standing.remaining),
    `x-ratelimit-reset-${of}`,
    `${standing.resetSeconds}s`,
  ];
}

/** A refusal by a queue, with the status, message and Retry-After that its modifiers write; else it asks to come back after the wait. */
function asWritten(cause: RefusalCause, place: BoundQueue, state: RequestState, waitMs: number): RefusalCause {
  const { status, message, retryAfter } = place.with;
  const text = message?.(state.frame);
  const wait = retryAfter?.(state.frame);
  return {
    status: status ?? cause.status,
    code: cause.code,
    message: typeof text === 'string' ? text : cause.message,
    retryAfterSeconds: typeof wait === 'number' ? wholeSeconds(wait) : inSeconds(waitMs),
  };
}

/** Whole seconds for a wait, from 1 to an hour; 1 where it is unknown. */
function inSeconds(waitMs: number): number {
  return wholeSeconds(Math.min(MOST_RETRY_AFTER_SECONDS, waitMs / 1000));
}

const MOST_RETRY_AFTER_SECONDS = 3600;

const QUEUE_FULL: RefusalCause = {
  status: 503,
  code: 'queue_full',
  message: 'The queue is full. Try again later.',
  retryAfterSeconds: 1,
};
const QUEUE_TIMEOUT: RefusalCause = {
  status: 503,
  code: 'queue_timeout',
  message: 'The request waited too long.',
  retryAfterSeconds: 1,
};
const GONE: RefusalCause = {
  status: 503,
  code: 'no_endpoint',
  message: 'No endpoint for this request is up.',
  retryAfterSeconds: 1,
};
const TOO_LATE: RefusalCause = {
  status: 504,
  code: 'upstream_timeout',
  message: 'The deadline of the request has passed.',
  retryAfterSeconds: undefined,
};
const CLIENT_LEFT: RefusalCause = {
  status: 499,
  code: 'client_abort',
  message: 'The client left.',
  retryAfterSeconds: undefined,
};
