import type {
  Attempt,
  AttemptFailure,
  EndpointTarget,
  Forward,
  ModelInfo,
  NextStep,
  Refusal,
  RequestEnd,
  RouteOutcome,
  Router,
  RouteRequest,
} from '@signalbox/core';
import type { DecisionRecord } from '@signalbox/telemetry';

/** One attempt of a script; all but the target have the defaults of `attempt`. */
export type AttemptScript = Partial<Omit<Attempt, 'target' | 'number'>> & {
  readonly target: EndpointTarget;
  readonly waitMs?: number;
};

export interface Script {
  readonly attempts: readonly AttemptScript[];
  /** What `next` answers when no attempt is left. */
  readonly last?: { readonly status: number; readonly code: string; readonly retryAfterSeconds?: number };
  readonly deadlineMs?: number;
  /** Held until this settles, as a queued request is. */
  readonly queued?: Promise<unknown>;
  readonly refusal?: {
    readonly status: number;
    readonly code: string;
    readonly message: string;
    readonly retryAfterSeconds?: number;
  };
}

/** What the router saw of one request. */
export interface Trace {
  readonly request: RouteRequest;
  readonly failures: AttemptFailure[];
  readonly commits: number[];
  readonly ends: RequestEnd[];
  refusalsFinished: number;
  aborts: number;
}

export function target(origin: string, rest: Partial<EndpointTarget> = {}): EndpointTarget {
  return { origin, basePath: '', headers: [], ca: undefined, engine: 'vllm', ...rest };
}

/**
 * A router that does what a test wrote: the same script for every request, until it is changed. It counts open leases, so that a test
 * can see that none is left.
 */
export class ScriptedRouter implements Router {
  script: Script;
  readonly traces: Trace[] = [];
  leases = 0;
  isReady = true;
  modelInfos: ModelInfo[] = [];

  constructor(script: Script) {
    this.script = script;
  }

  get last(): Trace {
    const trace = this.traces.at(-1);
    if (trace === undefined) throw new Error('no request was routed');
    return trace;
  }

  models(): readonly ModelInfo[] {
    return this.modelInfos;
  }

  ready(): boolean {
    return this.isReady;
  }

  route(request: RouteRequest): RouteOutcome | Promise<RouteOutcome> {
    const script = this.script;
    const trace: Trace = { request, failures: [], commits: [], ends: [], refusalsFinished: 0, aborts: 0 };
    this.traces.push(trace);
    if (script.queued === undefined) return this.outcome(script, trace);
    const { promise, resolve } = Promise.withResolvers<RouteOutcome>();
    const decision = decisionFor(request);
    request.onAbort = () => {
      trace.aborts++;
      resolve(this.refusal({ status: 499, code: 'client_abort', message: '' }, trace, decision));
    };
    void script.queued.then(() => resolve(this.outcome(script, trace)));
    return promise;
  }

  private outcome(script: Script, trace: Trace): RouteOutcome {
    const decision = decisionFor(trace.request);
    if (script.refusal !== undefined) return this.refusal(script.refusal, trace, decision);
    return new ScriptedForward(this, script, trace, decision);
  }

  private refusal(refusal: NonNullable<Script['refusal']>, trace: Trace, decision: DecisionRecord): Refusal {
    return {
      kind: 'refuse',
      status: refusal.status,
      code: refusal.code,
      message: refusal.message,
      retryAfterSeconds: refusal.retryAfterSeconds,
      decision,
      finish: () => {
        trace.refusalsFinished++;
      },
    };
  }
}

class ScriptedForward implements Forward {
  readonly kind = 'forward';
  readonly decision: DecisionRecord;
  readonly deadlineMs: number;
  attempt: Attempt;
  private readonly router: ScriptedRouter;
  private readonly script: Script;
  private readonly trace: Trace;
  private index = 0;
  private leased = true;

  constructor(router: ScriptedRouter, script: Script, trace: Trace, decision: DecisionRecord) {
    this.router = router;
    this.script = script;
    this.trace = trace;
    this.decision = decision;
    this.deadlineMs = script.deadlineMs ?? trace.request.deadlineMs;
    this.attempt = this.take(0);
    router.leases++;
  }

  next(failure: AttemptFailure): NextStep {
    this.trace.failures.push(failure);
    if (this.trace.commits.length > 0) throw new Error('next after commit');
    if (!this.leased) throw new Error('next without a lease');
    this.router.leases--;
    this.leased = false;
    this.index++;
    const script = this.script.attempts[this.index];
    if (script === undefined) {
      const last = this.script.last ?? { status: 502, code: 'upstream_error' };
      return {
        kind: 'refuse',
        status: last.status,
        code: last.code,
        message: 'no attempt left',
        retryAfterSeconds: last.retryAfterSeconds,
      };
    }
    this.attempt = this.take(this.index);
    this.router.leases++;
    this.leased = true;
    return { kind: 'attempt', attempt: this.attempt, waitMs: script.waitMs ?? 0 };
  }

  commit(ttftMs: number): void {
    this.trace.commits.push(ttftMs);
  }

  finish(end: RequestEnd): void {
    this.trace.ends.push(end);
    if (this.leased) this.router.leases--;
    this.leased = false;
  }

  private take(index: number): Attempt {
    const script = this.script.attempts[index];
    if (script === undefined) throw new Error('the script has no attempt');
    const tier = script.tier ?? 'tier';
    const endpoint = script.endpoint ?? `tier/${index + 1}`;
    this.decision.attempts.push({ tier, endpoint, outcome: '', status: 0, durationMs: 0 });
    this.decision.tier = tier;
    this.decision.endpoint = endpoint;
    return {
      tier,
      endpoint,
      model: undefined,
      set: [],
      drop: [],
      headers: [],
      attemptTimeoutMs: Number.POSITIVE_INFINITY,
      firstTokenMs: 30_000,
      idleMs: 60_000,
      connectMs: 2_000,
      ...script,
      number: index + 1,
    };
  }
}

function decisionFor(request: RouteRequest): DecisionRecord {
  return {
    v: 1,
    requestId: request.id,
    timeMs: 0,
    seed: 1,
    traceId: '',
    tenant: request.tenant ?? '',
    model: request.parsed.model ?? '',
    path: request.parsed.path,
    stream: request.parsed.stream,
    policy: 'p1',
    generation: 1,
    verdict: 'routed',
    route: 'default',
    reasons: ['matched'],
    signals: {},
    queuedMs: 0,
    decideMs: 0.01,
    shortlist: [],
    dropped: {},
    keys: { affinity: null, split: null },
    attempts: [],
    servedModel: '',
    tier: '',
    endpoint: '',
    status: 0,
    code: '',
    ttftMs: Number.NaN,
    durationMs: 0,
    inputTokens: Number.NaN,
    cachedTokens: Number.NaN,
    outputTokens: Number.NaN,
  };
}
