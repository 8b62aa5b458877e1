import type { EndpointTarget } from '@signalbox/core';
import type { DecisionRecord } from '@signalbox/telemetry';

/** Who asks, as far as the gateway knows. */
export interface Identity {
  readonly kind: 'known';
  readonly tenant?: string;
  readonly apiKeyName?: string;
  /** Whether this caller may see and use a model; absent: all. Others are answered as if they did not exist. */
  readonly allows?: (model: string) => boolean;
}

/** An answer to a caller without a right to ask: 401 or 403, one text for every reason. */
export interface IdentityRefusal {
  readonly kind: 'refuse';
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfterSeconds?: number;
}

/** A request that ended without reaching the router: malformed, too large, unknown path, without a key, or left by its client. */
export interface UnroutedEnd {
  readonly requestId: string;
  /** Of the caller; empty if it named none. */
  readonly traceId: string;
  /** Empty if the caller was not known yet, or belongs to none. */
  readonly tenant: string;
  /** Empty where no request could be read. */
  readonly path: string;
  /** 499 if the client left. */
  readonly status: number;
  readonly code: string;
  readonly durationMs: number;
}

/** What the gateway adds to the data plane. All are optional, synchronous, and must not throw. */
export interface ProxyHooks {
  /** Tells who asks by the bearer token or API key of the request, before its body is read. */
  readonly identify?: (credential: string | undefined, path: string) => Identity | IdentityRefusal;
  /** Id of the policy version in force, for answers that no policy decided; empty before the first. */
  readonly policy?: () => string;
  /** `x-ratelimit-*` headers for an answer, as a flat list of names and values. */
  readonly limitHeaders?: (decision: DecisionRecord) => readonly string[] | undefined;
  /** What `x-signalbox-explain` says of a decision; undefined for an answer that is not to have it. `asked`: the request has that header. */
  readonly explain?: (decision: DecisionRecord, asked: boolean) => string | undefined;
  /** An endpoint stated its load in the header `endpoint-load-metrics` of an answer. The header is not passed on. */
  readonly loadReport?: (target: EndpointTarget, header: string) => void;
  readonly unrouted?: (end: UnroutedEnd) => void;
}
