import type { Value } from '@signalbox/plugin-api';

/** How one upstream attempt went. */
export interface AttemptRecord {
  readonly tier: string;
  /** The endpoint's name, never its address. */
  readonly endpoint: string;
  /** `ok`, `client_abort`, or the cause of failure: connect, timeout, first_token, error, saturated, rate_limited, context_exceeded. */
  outcome: string;
  /** The upstream's HTTP status, 0 if none came. */
  status: number;
  durationMs: number;
}

/** One endpoint of the shortlist with what made its place. */
export interface ShortlistRecord {
  readonly endpoint: string;
  readonly tier: string;
  readonly score: number;
  readonly parts: { readonly [scorer: string]: number };
  readonly properties: { readonly [name: string]: Value | null };
}

/** Where in its policy a request was decided. */
export interface DecisionPlace {
  /** Label of the admission rule that held, empty where none did. */
  readonly admission: string;
  /** Which part of the route: 0 its destination, then its `else` parts; -1 where no route was in force. */
  readonly step: number;
  /** Which `fallback` of the destination, from 0; -1 for the destination itself. */
  readonly fallback: number;
  /** Endpoints that the shortlist is the best of; 0 where none was left. */
  readonly candidates: number;
}

/**
 * All that was settled for one request, as data: written once at its end, to the ring buffer, the log line and the audit sink. Session
 * and user values stand here hashed, prompts never. Enough to replay the decision on the version that made it.
 */
export interface DecisionRecord {
  readonly v: 1;
  readonly requestId: string;
  readonly timeMs: number;
  readonly seed: number;
  /** The caller's trace (W3C Trace Context), 32 hexadecimal digits; empty if it named none. */
  readonly traceId: string;
  tenant: string;
  /** The model the client asked for. */
  readonly model: string;
  readonly path: string;
  readonly stream: boolean;
  /** Policy version id. */
  readonly policy: string;
  readonly generation: number;
  verdict: 'routed' | 'rejected' | 'refused';
  route: string;
  /** Absent where no policy was asked. */
  readonly decided?: DecisionPlace;
  /** matched, default, fallback (by a `fallback` or an `else`), retried, queued, affinity_hit, affinity_repin, or an error code. */
  readonly reasons: readonly string[];
  /** Those that the decision took into account; unknown is null. */
  readonly signals: { readonly [name: string]: Value | null };
  queuedMs: number;
  decideMs: number;
  readonly shortlist: ShortlistRecord[];
  readonly dropped: { readonly [reason: string]: number };
  readonly keys: { affinity: string | null; split: string | null };
  readonly attempts: AttemptRecord[];
  servedModel: string;
  tier: string;
  endpoint: string;
  /** The status the client saw; 499 if it left. */
  status: number;
  code: string;
  /** Where overload is the reason of a refusal: the label of the queue's rule, empty where it was no queue, and the class of the request. */
  shed?: { readonly queue: string; readonly class: string };
  ttftMs: number;
  durationMs: number;
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
}

/**
 * Takes each finished record. Must not throw and must not block. `decided`, `signals`, `shortlist`, `dropped` and `keys` may be getters that
 * make them when they are first read: a spread does not copy them, `toJSON` does.
 */
export type DecisionSink = (record: DecisionRecord) => void;
