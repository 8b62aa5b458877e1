// perf: built once per answer: our own headers as text, others as a flat list, which node:http writes without a map.
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
  /** More headers as a flat list, for example the tightest rate limit: names and values that need no checking. */
  readonly extra: readonly string[] | undefined;
}

/** What the headers of a request's way say: route to reason, as far as answers of one endpoint mostly have it in common. */
interface WayText {
  readonly route: string;
  readonly tier: string;
  readonly policy: string;
  readonly attempts: number;
  readonly reason: string;
  readonly text: string;
}

/** Endpoints whose text is kept; beyond that all begin anew. */
const MOST_WAYS = 1024;
const ways = new Map<string, WayText>();

/** Our own headers, on every answer: lines that each end with a line break, of visible ASCII and space whatever the facts hold. */
export function ownLines(facts: AnswerFacts): string {
  const { decision, explained, extra, upstreamMs } = facts;
  const reason = reasonOf(decision, facts.code);
  let lines =
    line('x-request-id', facts.requestId) +
    (decision === undefined ? undecided(facts, reason) : wayOf(decision, reason));
  if (explained !== undefined) lines += line('x-signalbox-explain', headerValue(explained));
  const queueMs = decision?.queuedMs ?? 0;
  const decideMs = decision?.decideMs ?? 0;
  const ownMs = Math.max(0, facts.totalMs - queueMs - upstreamMs);
  lines += `server-timing: queue;dur=${ms(queueMs)}, decide;dur=${ms(decideMs)}, upstream;dur=${ms(upstreamMs)}, gateway;dur=${ms(ownMs)}\r\n`;
  if (extra !== undefined)
    for (let i = 0; i + 1 < extra.length; i += 2) lines += line(extra[i] ?? '', extra[i + 1] ?? '');
  return lines;
}

function line(name: string, value: string): string {
  return `${name}: ${value}\r\n`;
}

/** A line with a value that may be any text; none for an empty one. */
function lineOf(name: string, value: string): string {
  return value === '' ? '' : line(name, headerValue(value));
}

function undecided({ policy }: AnswerFacts, reason: string): string {
  return `${lineOf('x-signalbox-policy', policy)}x-signalbox-attempts: 0\r\n${lineOf('x-signalbox-reason', reason)}`;
}

function wayOf({ route, tier, endpoint, policy, attempts }: DecisionRecord, reason: string): string {
  const known = ways.get(endpoint);
  if (
    known !== undefined &&
    known.route === route &&
    known.tier === tier &&
    known.policy === policy &&
    known.attempts === attempts.length &&
    known.reason === reason
  )
    return known.text;
  const text =
    lineOf('x-signalbox-route', route) +
    lineOf('x-signalbox-tier', tier) +
    lineOf('x-signalbox-endpoint', endpoint) +
    lineOf('x-signalbox-policy', policy) +
    line('x-signalbox-attempts', String(attempts.length)) +
    lineOf('x-signalbox-reason', reason);
  if (ways.size >= MOST_WAYS) ways.clear();
  ways.set(endpoint, { route, tier, policy, attempts: attempts.length, reason, text });
  return text;
}

function reasonOf(decision: DecisionRecord | undefined, code: string | undefined): string {
  const reasons = decision?.reasons ?? [];
  const joined = reasons.length === 1 ? (reasons[0] ?? '') : reasons.join(', ');
  if (code === undefined || reasons.includes(code)) return joined;
  return reasons.length === 0 ? code : `${joined}, ${code}`;
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
