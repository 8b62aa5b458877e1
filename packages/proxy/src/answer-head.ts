// perf: built once per answer as a flat list, which node:http writes without a map.
import { toHundredths } from '@signalbox/telemetry';
import type { DecisionRecord } from '@signalbox/telemetry';

/** Upstream headers that end here: hop-by-hop, framing, what we state ourselves, and what would tell of the server behind. */
const DROPPED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'date',
  'server',
  'alt-svc',
  'location',
  'x-request-id',
  'server-timing',
  'x-accel-buffering',
]);

/** What headers say of how a request was handled. Times in milliseconds. */
export interface AnswerFacts {
  readonly requestId: string;
  readonly decision: DecisionRecord | undefined;
  /** Id of the policy version in force, which counts where there is no decision; empty if there is none. */
  readonly policy: string;
  /** An error code of our own, listed last in `x-signalbox-reason`. */
  readonly code: string | undefined;
  /** Why the request went where it went; undefined where that is not to be said. */
  readonly explained: string | undefined;
  readonly upstreamMs: number;
  readonly totalMs: number;
  /** More headers as a flat list, for example the tightest rate limit. */
  readonly extra: readonly string[] | undefined;
  readonly close: boolean;
}

/** Our own headers, on every answer: a flat list of names and values. */
export function ownHeaders(facts: AnswerFacts): string[] {
  const headers = ['x-request-id', facts.requestId];
  const decision = facts.decision;
  if (decision === undefined) {
    if (facts.policy !== '') headers.push('x-signalbox-policy', headerValue(facts.policy));
    headers.push('x-signalbox-attempts', '0');
  } else {
    if (decision.route !== '') headers.push('x-signalbox-route', headerValue(decision.route));
    if (decision.tier !== '') headers.push('x-signalbox-tier', headerValue(decision.tier));
    if (decision.endpoint !== '') headers.push('x-signalbox-endpoint', headerValue(decision.endpoint));
    headers.push(
      'x-signalbox-policy',
      headerValue(decision.policy),
      'x-signalbox-attempts',
      String(decision.attempts.length),
    );
  }
  const reason = reasonOf(decision, facts.code);
  if (reason !== '') headers.push('x-signalbox-reason', headerValue(reason));
  if (facts.explained !== undefined) headers.push('x-signalbox-explain', headerValue(facts.explained));
  const queueMs = decision?.queuedMs ?? 0;
  const decideMs = decision?.decideMs ?? 0;
  const ownMs = Math.max(0, facts.totalMs - queueMs - facts.upstreamMs);
  headers.push(
    'server-timing',
    `queue;dur=${ms(queueMs)}, decide;dur=${ms(decideMs)}, upstream;dur=${ms(facts.upstreamMs)}, gateway;dur=${ms(ownMs)}`,
  );
  if (facts.extra !== undefined) headers.push(...facts.extra);
  if (facts.close) headers.push('connection', 'close');
  return headers;
}

function reasonOf(decision: DecisionRecord | undefined, code: string | undefined): string {
  const reasons = decision?.reasons ?? [];
  if (code === undefined || reasons.includes(code)) return reasons.join(', ');
  return reasons.length === 0 ? code : `${reasons.join(', ')}, ${code}`;
}

function ms(value: number): string {
  return Number.isFinite(value) ? toHundredths(value) : '0';
}

/** `value` as a header may carry it: visible ASCII and space, all else percent-encoded as UTF-8, at most 256 bytes. */
export function headerValue(value: string): string {
  for (let i = 0; i < value.length; i++) {
    const c = value.charCodeAt(i);
    if (c < 0x20 || c > 0x7e || c === 0x25) return encoded(value);
  }
  return value.length > 256 ? value.slice(0, 256) : value;
}

function encoded(value: string): string {
  let out = '';
  for (const char of value.toWellFormed()) {
    const c = char.codePointAt(0) ?? 0;
    const part = c >= 0x20 && c <= 0x7e && c !== 0x25 ? char : encodeURIComponent(char);
    if (out.length + part.length > 256) break;
    out += part;
  }
  return out;
}

/** Copies the upstream's headers that may pass behind `headers`; `skip` names one more that must not. */
export function addUpstreamHeaders(
  headers: string[],
  upstream: { readonly [name: string]: string | readonly string[] | undefined },
  streaming: boolean,
): void {
  const named = upstream['connection'];
  const hop =
    named === undefined || named === 'keep-alive' || named === 'close'
      ? undefined
      : String(named)
          .toLowerCase()
          .split(/\s*,\s*/);
  for (const name in upstream) {
    if (DROPPED.has(name)) continue;
    if (name.startsWith('x-signalbox-') || name.startsWith('x-ratelimit-') || name.startsWith('endpoint-load-metrics'))
      continue;
    if (streaming && name === 'cache-control') continue;
    if (hop !== undefined && name !== 'content-type' && name !== 'content-encoding' && hop.includes(name)) continue;
    const value = upstream[name];
    if (typeof value === 'string') headers.push(name, value);
    else if (value !== undefined) for (const item of value) headers.push(name, item);
  }
}
