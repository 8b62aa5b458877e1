import type { LogFields, Value } from '@signalbox/plugin-api';
import type { DecisionRecord } from './decision-record.ts';

/** The scalars of a record for the log, by allow-list; unknown numbers are left out. */
export function decisionLogFields(record: DecisionRecord): LogFields {
  const fields: { [name: string]: string | number | boolean } = {
    request_id: record.requestId,
    verdict: record.verdict,
    route: record.route,
    tier: record.tier,
    endpoint: record.endpoint,
    attempt: record.attempts.length,
    model: record.model,
    served_model: record.servedModel,
    policy: record.policy,
    status: record.status,
    reason: record.reasons.join(','),
  };
  if (record.code !== '') fields['code'] = record.code;
  if (record.tenant !== '') fields['tenant'] = record.tenant;
  const numbers: readonly (readonly [string, number])[] = [
    ['queued_ms', record.queuedMs],
    ['ttft_ms', record.ttftMs],
    ['duration_ms', record.durationMs],
    ['input_tokens', record.inputTokens],
    ['cached_tokens', record.cachedTokens],
    ['output_tokens', record.outputTokens],
  ];
  for (const [name, value] of numbers) {
    if (Number.isFinite(value)) fields[name] = Math.round(value * 100) / 100;
  }
  return fields;
}

/**
 * One line for people: `200 hard → 70B/1 · complexity 72 · first token 84 ms · 1.2 s · 38 → 61 tokens`. `signals` are the ones that the
 * policy read, which is why the request went where it did.
 */
export function decisionText(record: DecisionRecord): string {
  const where = record.endpoint === '' ? `✗ ${record.code}` : `→ ${record.endpoint}`;
  const parts = [`${record.status} ${record.route === '' ? '(no route)' : `"${record.route}"`} ${where}`];
  const notable = record.reasons.filter(
    (reason) => reason !== 'matched' && reason !== 'default' && reason !== record.code,
  );
  if (notable.length > 0) parts.push(notable.join(', '));
  const signals = Object.entries(record.signals)
    .filter(([, value]) => typeof value === 'number' || typeof value === 'boolean')
    .map(([name, value]) => `${name} ${shown(value)}`);
  if (signals.length > 0) parts.push(signals.join(' '));
  if (record.queuedMs > 0) parts.push(`queued ${milliseconds(record.queuedMs)}`);
  if (record.stream && Number.isFinite(record.ttftMs)) parts.push(`first token ${milliseconds(record.ttftMs)}`);
  parts.push(milliseconds(record.durationMs));
  if (Number.isFinite(record.inputTokens) && Number.isFinite(record.outputTokens)) {
    parts.push(`${record.inputTokens} → ${record.outputTokens} tokens`);
  }
  return parts.join(' · ');
}

function shown(value: Value | null): string {
  return typeof value === 'number' ? String(Math.round(value * 10) / 10) : String(value);
}

function milliseconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
}
