import type { Value } from '@signalbox/plugin-api';
import type { DecisionRecord } from './decision-record.ts';
import { Utf8Text } from './utf8-text.ts';

/** Adds the line of a record, with its line break, at `epochMs`. */
export type DecisionLineRenderer = (text: Utf8Text, record: DecisionRecord, epochMs: number) => void;

/** The line of a record, with its line break, at `epochMs`. */
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
  readonly text: Uint8Array;
}

/** Endpoints whose common parts are kept; beyond that all begin anew. */
const MOST_COMMON_PARTS = 1024;

/** A writer of log lines as texts. */
export function createDecisionLines(): DecisionLineWriter {
  const render = createDecisionLineRenderer();
  const text = new Utf8Text();
  return (record, epochMs) => {
    text.size = 0;
    render(text, record, epochMs);
    return text.toString();
  };
}

/**
 * A writer of log lines: a record's scalars by allow-list, unknown numbers left out.
 */
export function createDecisionLineRenderer(): DecisionLineRenderer {
  // perf: written for every request. Most of a line is as it was for the last request to the same endpoint.
  const parts = new Map<string, CommonPart>();
  let second = Number.NaN;
  /** The line up to the milliseconds of its time; made once for a second. */
  let beginning: Uint8Array = new Uint8Array(0);
  const commonPart = (record: DecisionRecord): Uint8Array => {
    const reason = record.reasons.length === 1 ? record.reasons[0]! : record.reasons.join(',');
    const known = parts.get(record.endpoint);
    if (known !== undefined && isCommon(known, record, reason)) return known.text;
    if (parts.size >= MOST_COMMON_PARTS) parts.clear();
    const made = makeCommonPart(record, reason);
    parts.set(record.endpoint, made);
    return made.text;
  };
  return (text, record, epochMs) => {
    const now = Math.floor(epochMs / 1000);
    if (now !== second) {
      second = now;
      beginning = Buffer.from(`{"level":"info","v":1,"time":"${new Date(now * 1000).toISOString().slice(0, -4)}`);
    }
    text.addBytes(beginning);
    text.addPadded(epochMs - now * 1000, 3);
    text.addAscii('Z","request_id":');
    text.addQuoted(record.requestId);
    text.addBytes(commonPart(record));
    // What no policy saw has none.
    if (Number.isFinite(record.seed)) {
      text.addAscii(',"seed":');
      text.addNumber(record.seed);
    }
    if (record.code !== '') {
      text.addAscii(',"code":');
      text.addQuoted(record.code);
    }
    if (record.tenant !== '') {
      text.addAscii(',"tenant":');
      text.addQuoted(record.tenant);
    }
    if (record.traceId !== '') {
      text.addAscii(',"trace_id":');
      text.addQuoted(record.traceId);
    }
    addNumber(text, ',"queued_ms":', record.queuedMs);
    addNumber(text, ',"ttft_ms":', record.ttftMs);
    addNumber(text, ',"duration_ms":', record.durationMs);
    addNumber(text, ',"input_tokens":', record.inputTokens);
    addNumber(text, ',"cached_tokens":', record.cachedTokens);
    addNumber(text, ',"output_tokens":', record.outputTokens);
    text.addAscii(',"msg":"request"}\n');
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
  const text = Buffer.from(
    `,"verdict":"${verdict}","route":${quoted(route)},"tier":${quoted(tier)},"endpoint":${quoted(endpoint)},"attempt":${attempts.length},"model":${quoted(model)},"served_model":${quoted(servedModel)},"policy":"${policy}","status":${status},"reason":${quoted(reason)}`,
  );
  return { verdict, route, tier, attempts: attempts.length, model, servedModel, policy, status, reason, text };
}

const quoted = (text: string): string => JSON.stringify(text);

function addNumber(text: Utf8Text, name: string, value: number): void {
  if (!Number.isFinite(value)) return;
  text.addAscii(name);
  text.addHundredths(value);
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
