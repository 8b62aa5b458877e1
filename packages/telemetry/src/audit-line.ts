import type { DecisionPlace, DecisionRecord } from './decision-record.ts';

/** How much of a record goes into the audit file: the fields of its page, or all that the record has. */
export type AuditDetail = 'read' | 'all';

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
    decided: record.decided === undefined ? null : placeOf(record.decided),
    reason: record.reasons,
    signals: record.signals,
    queued_ms: rounded(record.queuedMs),
    shortlist: record.shortlist.map(({ endpoint, tier, score, parts, properties }) => ({
      endpoint,
      tier,
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

function placeOf({ admission, step, fallback, candidates }: DecisionPlace): { readonly [field: string]: unknown } {
  return {
    admission: admission || null,
    step: step < 0 ? null : step,
    fallback: fallback < 0 ? null : fallback,
    candidates,
  };
}

/** To a thousandth of a millisecond. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
