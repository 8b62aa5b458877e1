import type { ParsedRequest } from '@signalbox/plugin-api';
import type { FailureCause } from '@signalbox/policy';
import type { DecisionRecord } from '@signalbox/telemetry';

/**
 * What a data plane (proxy, endpoint picker) sees of the core. It hands over a parsed request, gets a leased attempt or a refusal,
 * reports how the attempt went, and never learns the name of a scorer.
 */
export interface Router {
  /**
   * Steps 2 to 6 in the life of a request: admit, route, filter, score, pick and reserve. Synchronous unless the request is queued or a
   * signal is asynchronous. Every outcome must be closed: a `Forward` by exactly one `finish`, a `Refusal` by `finish` as well.
   */
  route(request: RouteRequest): RouteOutcome | Promise<RouteOutcome>;
  /** Models that requests may name, for `GET /v1/models`. */
  models(): readonly ModelInfo[];
  /** Whether requests may be admitted: false before the first policy is in force. */
  ready(): boolean;
}

export interface ModelInfo {
  readonly id: string;
  readonly ownedBy: string;
  /** Largest context window among the endpoints that serve it; undefined where unknown. */
  readonly maxModelLen: number | undefined;
}

/** One request as the core takes it. Times are milliseconds of the core's clock. */
export interface RouteRequest {
  /** The request id that clients see. Not unique. */
  readonly id: string;
  /** The caller's trace, 32 hexadecimal digits; absent or empty if it named none. */
  readonly traceId?: string;
  readonly parsed: ParsedRequest;
  /** Header values by lower-case name, several values joined by `, `; hop-by-hop and credential headers left out. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly tenant?: string;
  readonly apiKeyName?: string;
  /** The caller may not use the model: it is refused as one that does not exist. */
  readonly hidesModel?: boolean;
  readonly receivedAtMs: number;
  /** Absolute; Infinity for none. */
  readonly deadlineMs: number;
  /** Registers the one function to call when the client goes away (while queued); the core sets it at most once. */
  onAbort?: (() => void) | undefined;
}

export type RouteOutcome = Forward | Refusal;

/** An answer that the data plane gives itself. `finish` writes the decision record. */
export interface Refusal {
  readonly kind: 'refuse';
  readonly status: number;
  /** A code of the OpenAI error envelope: rejected, no_route, no_endpoint, queue_full, queue_timeout, model_not_found … */
  readonly code: string;
  readonly message: string;
  /** Whole seconds ≥ 1 for the Retry-After header; undefined for statuses that carry none. */
  readonly retryAfterSeconds: number | undefined;
  readonly decision: DecisionRecord;
  finish(): void;
}

/** A request on its way: one current attempt, and what to do when it fails. */
export interface Forward {
  readonly kind: 'forward';
  readonly decision: DecisionRecord;
  /** The attempt to make, its lease taken. Replaced by `next`. */
  readonly attempt: Attempt;
  /** Absolute deadline of the whole request: the policy's `timeout` and the caller's deadline, whichever is earlier. */
  readonly deadlineMs: number;
  /**
   * Ends the current attempt as failed before the commit point and gives the next one, leased: a retry on the shortlist, then fallbacks,
   * then `else`. `wait` gives a back-off before it. A refusal ends the request. Never called after `commit`.
   */
  next(failure: AttemptFailure): NextStep;
  /** The commit point was reached: the first data event, or the head of a plain answer. From here on there is no other attempt. */
  commit(ttftMs: number): void;
  /** Ends the request and its lease, once; later calls do nothing. Writes the decision record. */
  finish(end: RequestEnd): void;
}

export type NextStep =
  | { readonly kind: 'attempt'; readonly attempt: Attempt; readonly waitMs: number }
  | {
      readonly kind: 'refuse';
      readonly status: number;
      readonly code: string;
      readonly message: string;
      readonly retryAfterSeconds: number | undefined;
    };

/** One try at one endpoint. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  readonly tier: string;
  /** Name, safe to show. */
  readonly endpoint: string;
  readonly target: EndpointTarget;
  /** The model name to send upstream; undefined leaves the body's own. */
  readonly model: string | undefined;
  /** Top-level body fields to set (JSON text) or drop, by the policy. */
  readonly set: readonly { readonly field: string; readonly json: string }[];
  readonly drop: readonly string[];
  /** Headers the policy sets, beyond the endpoint's own. */
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** Milliseconds; Infinity where there is no limit. */
  readonly attemptTimeoutMs: number;
  readonly firstTokenMs: number;
  readonly idleMs: number;
  readonly connectMs: number;
}

/** Where an endpoint is reached. One object per endpoint for as long as it is in the fleet, so that a pool can be kept by identity. */
export interface EndpointTarget {
  /** `http://host:port`. */
  readonly origin: string;
  /** Path prefix without trailing slash and without `/v1`; often empty. */
  readonly basePath: string;
  /** Headers for every request to it, credentials among them. */
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** PEM of a private certificate authority. */
  readonly ca: string | undefined;
  /** Engine family: auto, vllm, sglang, tgi, trtllm, llamacpp, ollama, other. */
  readonly engine: string;
}

export interface AttemptFailure {
  readonly cause: FailureCause;
  /** The upstream's status, 0 if none came. */
  readonly status: number;
  /** Seconds of the upstream's Retry-After; NaN if none. */
  readonly retryAfterSeconds: number;
  readonly durationMs: number;
  /** A reset on a reused socket before any response byte: repeated once free of charge. */
  readonly keepAliveRace?: boolean;
}

/** How a request ended, as the data plane saw it. Counts are NaN where unknown. */
export interface RequestEnd {
  /** `ok`; `client_abort`; a failure after the commit point: `upstream_disconnected`, `timeout`, `upstream_error`. */
  readonly outcome: 'ok' | 'client_abort' | 'upstream_disconnected' | 'upstream_timeout' | 'upstream_error';
  /** The status the client saw; 499 if it left. */
  readonly status: number;
  readonly upstreamStatus: number;
  readonly ttftMs: number;
  readonly durationMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}
