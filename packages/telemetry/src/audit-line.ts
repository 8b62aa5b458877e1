import type { DecisionRecord } from './decision-record.ts';

/** How much of a record goes into the audit file: the fields of its page, or all that the record has. */
export type AuditDetail = 'read' | 'all';

/** A request that ended before a policy saw it: malformed, too large, of an unknown path, without a key, or left by its client. */
export interface UnroutedRequest {
  readonly requestId: string;
  /** Empty if the caller named no trace. */
  readonly traceId: string;
  readonly path: string;
  readonly status: number;
  readonly code: string;
  readonly durationMs: number;
  /** When it ended, in milliseconds since 1970. */
  readonly timeMs: number;
}

/**
 * The audit line of a request: NDJSON with its line break, version 1. Unknown is null. Sessions and users stand in it hashed, as in the
 * record; prompts, answers and keys do not stand in it.
 */
export function auditLine(record: DecisionRecord, detail: AuditDetail): string {
  return `${JSON.stringify({
    v: record.v,
    time: new Date(record.timeMs).toISOString(),
    request_id: record.requestId,
    seed: record.seed,
    trace_id: record.traceId || null,
    tenant: record.tenant || null,
    model: record.model || null,
    policy: record.policy,
    verdict: record.verdict,
    route: record.route || null,
    reason: record.reasons,
    signals: record.signals,
    queued_ms: rounded(record.queuedMs),
    shortlist: record.shortlist.map(({ endpoint, score, parts, properties }) => ({
      endpoint,
      score,
      parts,
      properties,
    })),
    dropped: record.dropped,
    keys: record.keys,
    attempts: record.attempts.map(({ tier, endpoint, outcome, status, durationMs }) => ({
      tier,
      endpoint,
      outcome,
      status,
      ms: rounded(durationMs),
    })),
    served_model: record.servedModel || null,
    status: record.status,
    ...(record.shed === undefined ? {} : { shed: record.shed }),
    ttft_ms: rounded(record.ttftMs),
    duration_ms: rounded(record.durationMs),
    input_tokens: record.inputTokens,
    cached_tokens: record.cachedTokens,
    output_tokens: record.outputTokens,
    ...(detail === 'read'
      ? {}
      : {
          path: record.path,
          stream: record.stream,
          generation: record.generation,
          tier: record.tier || null,
          endpoint: record.endpoint || null,
          code: record.code || null,
          decide_ms: rounded(record.decideMs),
        }),
  })}\n`;
}

/** The audit line of a request that no policy saw, with the same fields. */
export function unroutedAuditLine(request: UnroutedRequest, policy: string, detail: AuditDetail): string {
  const { requestId, traceId, path, status, code, durationMs, timeMs } = request;
  return auditLine(
    {
      v: 1,
      requestId,
      timeMs: timeMs - durationMs,
      seed: Number.NaN,
      traceId,
      tenant: '',
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
    },
    detail,
  );
}

/** To a thousandth of a millisecond. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
