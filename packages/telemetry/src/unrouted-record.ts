import type { DecisionRecord } from './decision-record.ts';

/** A request that ended before a policy saw it: malformed, too large, of an unknown path, without a key, or left by its client. */
export interface UnroutedRequest {
  readonly requestId: string;
  /** Empty if the caller named no trace. */
  readonly traceId: string;
  /** Empty if the caller was not known yet, or belongs to none. */
  readonly tenant: string;
  readonly path: string;
  readonly status: number;
  readonly code: string;
  readonly durationMs: number;
  /** When it ended, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** The record of a request that no policy saw, under the policy version that was in force. */
export function unroutedRecord(request: UnroutedRequest, policy: string): DecisionRecord {
  const { requestId, traceId, tenant, path, status, code, durationMs, timeMs } = request;
  return {
    v: 1,
    requestId,
    timeMs: timeMs - durationMs,
    seed: Number.NaN,
    traceId,
    tenant,
    model: '',
    path,
    stream: false,
    policy,
    generation: Number.NaN,
    verdict: 'refused',
    route: '',
    reasons: [code],
    signals: {},
    queuedMs: 0,
    decideMs: Number.NaN,
    shortlist: [],
    dropped: {},
    keys: { affinity: null, split: null },
    attempts: [],
    servedModel: '',
    tier: '',
    endpoint: '',
    status,
    code,
    ttftMs: Number.NaN,
    durationMs,
    inputTokens: Number.NaN,
    cachedTokens: Number.NaN,
    outputTokens: Number.NaN,
  };
}
