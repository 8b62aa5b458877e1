import type { Value } from '@signalbox/plugin-api';
import type { DecisionRecord } from './decision-record.ts';
import { toHundredths } from './hundredths.ts';

/** Writes the lines of records: the line of one, with its line break, at `epochMs`. */
export type DecisionLineWriter = (record: DecisionRecord, epochMs: number) => string;

/** What records of one route, endpoint, model and outcome have in common, and its text. */
interface CommonPart {
  readonly verdict: DecisionRecord['verdict'];
  readonly route: string;
  readonly tier: string;
  readonly attempts: number;
  readonly model: string;
  readonly servedModel: string;
  readonly policy: string;
  readonly status: number;
  readonly reason: string;
  readonly text: string;
}

/** Endpoints whose common parts are kept; beyond that all begin anew. */
const MOST_COMMON_PARTS = 1024;

/**
 * A writer of log lines: a record's scalars by allow-list, unknown numbers left out.
 */
export function createDecisionLines(): DecisionLineWriter {
  // perf: written for every request. Most of a line is as it was for the last request to the same endpoint.
  const parts = new Map<string, CommonPart>();
  const time = createIsoTime();
  const commonPart = (record: DecisionRecord): string => {
    const reason = record.reasons.length === 1 ? record.reasons[0]! : record.reasons.join(',');
    const known = parts.get(record.endpoint);
    if (known !== undefined && isCommon(known, record, reason)) return known.text;
    if (parts.size >= MOST_COMMON_PARTS) parts.clear();
    const made = makeCommonPart(record, reason);
    parts.set(record.endpoint, made);
    return made.text;
  };
  return (record, epochMs) => {
    let line = `{"level":"info","v":${record.v},"time":"${time(epochMs)}","request_id":${quoted(record.requestId)}${commonPart(record)}`;
    // What no policy saw has none.
    if (Number.isFinite(record.seed)) line += `,"seed":${record.seed}`;
    if (record.code !== '') line += `,"code":${quoted(record.code)}`;
    if (record.tenant !== '') line += `,"tenant":${quoted(record.tenant)}`;
    if (record.traceId !== '') line += `,"trace_id":"${record.traceId}"`;
    return `${line}${numberField(',"queued_ms":', record.queuedMs)}${numberField(',"ttft_ms":', record.ttftMs)}${numberField(',"duration_ms":', record.durationMs)}${numberField(',"input_tokens":', record.inputTokens)}${numberField(',"cached_tokens":', record.cachedTokens)}${numberField(',"output_tokens":', record.outputTokens)},"msg":"request"}\n`;
  };
}

function isCommon(part: CommonPart, record: DecisionRecord, reason: string): boolean {
  return (
    part.verdict === record.verdict &&
    part.route === record.route &&
    part.tier === record.tier &&
    part.attempts === record.attempts.length &&
    part.model === record.model &&
    part.servedModel === record.servedModel &&
    part.policy === record.policy &&
    part.status === record.status &&
    part.reason === reason
  );
}

function makeCommonPart(record: DecisionRecord, reason: string): CommonPart {
  const { verdict, route, tier, endpoint, attempts, model, servedModel, policy, status } = record;
  const text = `,"verdict":"${verdict}","route":${quoted(route)},"tier":${quoted(tier)},"endpoint":${quoted(endpoint)},"attempt":${attempts.length},"model":${quoted(model)},"served_model":${quoted(servedModel)},"policy":"${policy}","status":${status},"reason":${quoted(reason)}`;
  return { verdict, route, tier, attempts: attempts.length, model, servedModel, policy, status, reason, text };
}

/** Milliseconds since 1970 as an ISO date; the text of a second is made once. */
function createIsoTime(): (epochMs: number) => string {
  let second = Number.NaN;
  let text = '';
  return (epochMs) => {
    const now = Math.floor(epochMs / 1000);
    if (now !== second) {
      second = now;
      text = new Date(now * 1000).toISOString().slice(0, -4);
    }
    return `${text}${String(1000 + Math.floor(epochMs - now * 1000)).slice(1)}Z`;
  };
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Text that JSON writes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/;

function numberField(name: string, value: number): string {
  return Number.isFinite(value) ? name + toHundredths(value) : '';
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
