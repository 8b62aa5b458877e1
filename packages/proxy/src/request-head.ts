// perf: one pass over the headers of every request; `!` marks reads of an array of pairs.
import { newRequestId } from './request-id.ts';

/** What is done with a header: sent on as it is, read and sent on, read and kept back, or only kept back. */
type Part =
  | 'sent'
  | 'type'
  | 'encoding'
  | 'patience'
  | 'connection'
  | 'id'
  | 'bearer'
  | 'key'
  | 'length'
  | 'accepts'
  | 'trace'
  | 'state'
  | 'deadline'
  | 'explain'
  | 'kept';

/** By lower-case name: hop-by-hop headers (RFC 9110 section 7.6.1), framing that is always our own, and what is read or ends at the door. */
const PARTS: ReadonlyMap<string, Part> = new Map<string, Part>([
  ['connection', 'connection'],
  ['keep-alive', 'kept'],
  ['proxy-connection', 'kept'],
  ['proxy-authenticate', 'kept'],
  ['proxy-authorization', 'kept'],
  ['te', 'kept'],
  ['trailer', 'kept'],
  ['transfer-encoding', 'kept'],
  ['upgrade', 'kept'],
  ['http2-settings', 'kept'],
  ['host', 'kept'],
  ['content-length', 'length'],
  ['expect', 'kept'],
  ['x-request-id', 'id'],
  ['authorization', 'bearer'],
  ['x-api-key', 'key'],
  ['api-key', 'key'],
  ['cookie', 'kept'],
  ['accept-encoding', 'accepts'],
  ['x-request-deadline-ms', 'deadline'],
  ['x-signalbox-explain', 'explain'],
  ['traceparent', 'trace'],
  ['tracestate', 'state'],
  ['content-type', 'type'],
  ['content-encoding', 'encoding'],
  ['x-stainless-timeout', 'patience'],
  ['accept', 'sent'],
  ['accept-language', 'sent'],
  ['user-agent', 'sent'],
  ['x-session-id', 'sent'],
]);

const FORWARDED = /^(?:forwarded|x-forwarded-.*|x-real-ip|x-original-.*|x-envoy-.*|true-client-ip)$/;

interface KnownHeader {
  /** Lower case. */
  readonly name: string;
  readonly part: Part;
}

/** The names of `PARTS` as clients usually write them: one look-up says all of a header, and makes no string. */
const KNOWN: ReadonlyMap<string, KnownHeader> = new Map(
  [...PARTS].flatMap(([name, part]) => [
    [name, { name, part }],
    [name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase()), { name, part }],
  ]),
);

/** What the proxy reads of a request's headers. Header names are lower case. */
export interface RequestHead {
  readonly requestId: string;
  /** Bearer token of `authorization`, else `x-api-key` or `api-key`; undefined if the caller sent none. */
  readonly credential: string | undefined;
  readonly contentType: string | undefined;
  /** Several are joined by `, `. */
  readonly contentEncoding: string | undefined;
  /** As written; `undefined` where it is absent. */
  readonly contentLength: string | undefined;
  readonly acceptEncoding: string | undefined;
  /** The trace of the caller (W3C Trace Context), 32 hexadecimal digits; empty if it named none or none that is valid. */
  readonly traceId: string;
  /** Headers to send upstream as a flat list of names and values: hop-by-hop, internal and credential headers left out. */
  readonly forwarded: readonly string[];
  /** Milliseconds that the caller waits at most, from now; 0 or less if that is over, NaN if it did not say. */
  readonly timeoutMs: number;
  /** An `x-request-deadline-ms` is no number, so that nobody knows how long the caller waits. */
  readonly deadlineUnreadable: boolean;
  /** The caller wants to be told why its request goes where it goes. */
  readonly asksExplanation: boolean;
}

/**
 * Reads the raw headers of one request. `trusted` says whether the peer is a known proxy, whose forwarding headers may pass;
 * `epochMs` is the wall clock, by which an absolute deadline is understood.
 */
export function readHead(rawHeaders: readonly string[], trusted: boolean, epochMs: () => number): RequestHead {
  const forwarded: string[] = [];
  let requestId: string | undefined;
  let bearer: string | undefined;
  let apiKey: string | undefined;
  let contentType: string | undefined;
  let contentEncoding: string | undefined;
  let contentLength: string | undefined;
  let acceptEncoding: string | undefined;
  let trace: string | undefined;
  let traceState: string | undefined;
  let named: string[] | undefined;
  let timeoutMs = Number.NaN;
  let deadlineUnreadable = false;
  let asksExplanation = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const written = rawHeaders[i]!;
    const value = rawHeaders[i + 1]!;
    const known = KNOWN.get(written) ?? headerOf(written.toLowerCase(), trusted);
    switch (known.part) {
      case 'type':
        contentType = value;
        break;
      case 'encoding':
        contentEncoding = contentEncoding === undefined ? value : `${contentEncoding}, ${value}`;
        break;
      case 'patience':
        timeoutMs = minimum(timeoutMs, stainlessOf(value));
        break;
      case 'connection':
        if (value !== 'keep-alive' && value !== 'close') (named ??= []).push(...namesIn(value));
        continue;
      case 'id':
        requestId = requestId === undefined && isRequestId(value) ? value : requestId;
        continue;
      case 'bearer':
        bearer = bearerOf(value);
        continue;
      case 'key':
        apiKey = value;
        continue;
      case 'length':
        contentLength = value;
        continue;
      case 'accepts':
        acceptEncoding = value;
        continue;
      case 'trace':
        // Of two nobody knows which is meant.
        trace = trace === undefined ? value : '';
        continue;
      case 'state':
        traceState = traceState === undefined ? value : `${traceState},${value}`;
        continue;
      case 'deadline':
        if (DEADLINE.test(value)) timeoutMs = minimum(timeoutMs, deadlineOf(value, epochMs));
        else deadlineUnreadable = true;
        continue;
      case 'explain':
        asksExplanation = true;
        continue;
      case 'kept':
        continue;
      default:
    }
    forwarded.push(known.name, value);
  }
  const traceId = trace === undefined ? '' : traceIdOf(trace);
  if (traceId !== '') {
    forwarded.push('traceparent', trace!);
    if (traceState !== undefined) forwarded.push('tracestate', traceState);
  }
  return {
    requestId: requestId ?? newRequestId(),
    traceId,
    credential: bearer ?? apiKey,
    contentType,
    contentEncoding,
    contentLength,
    acceptEncoding,
    forwarded: named === undefined ? forwarded : without(forwarded, named),
    timeoutMs,
    deadlineUnreadable,
    asksExplanation,
  };
}

/** A header by a name that clients seldom write, in lower case. */
function headerOf(name: string, trusted: boolean): KnownHeader {
  return { name, part: PARTS.get(name) ?? (endsHere(name, trusted) ? 'kept' : 'sent') };
}

function endsHere(name: string, trusted: boolean): boolean {
  if (name.startsWith('x-signalbox-') || name.startsWith('x-gateway-destination-endpoint')) return true;
  return !trusted && FORWARDED.test(name);
}

/** 1 to 256 visible ASCII characters. */
export function isRequestId(value: string): boolean {
  if (value.length === 0 || value.length > 256) return false;
  for (let i = 0; i < value.length; i++) {
    const c = value.charCodeAt(i);
    if (c < 0x21 || c > 0x7e) return false;
  }
  return true;
}

/**
 * The trace id of a `traceparent` (https://www.w3.org/TR/trace-context/, section 3.2); empty if the value is not valid. Versions to come
 * may append fields.
 */
export function traceIdOf(traceparent: string): string {
  const [, version, traceId = ''] =
    /^([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:$|-)/.exec(traceparent) ?? [];
  if (version === undefined || version === 'ff') return '';
  return version === '00' && traceparent.length !== 55 ? '' : traceId;
}

function bearerOf(value: string): string {
  return /^bearer /i.test(value) ? value.slice(7).trim() : value;
}

function minimum(a: number, b: number): number {
  if (Number.isNaN(a)) return b;
  return Number.isNaN(b) ? a : Math.min(a, b);
}

/** A whole number or a decimal; below 0 too, as of a caller that counts what is left of its own time. */
const DEADLINE = /^[+-]?\d+(?:\.\d+)?$/;

/** Milliseconds of a number of seconds; NaN for 0, to which the OpenAI clients cut what is under a second, and for what is no number. */
function stainlessOf(value: string): number {
  const seconds = Number(value);
  return seconds > 0 ? seconds * 1000 : Number.NaN;
}

/** A number of milliseconds from now; values beyond 10^11 are an absolute time in milliseconds since 1970. */
function deadlineOf(value: string, epochMs: () => number): number {
  const number = Number(value);
  return number > 1e11 ? number - epochMs() : number;
}

function namesIn(value: string): string[] {
  return value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
}

/** `content-type` stays even where `Connection` names it: without it the body would be read differently behind us. */
function without(headers: readonly string[], names: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (name === 'content-type' || !names.includes(name)) kept.push(name, headers[i + 1]!);
  }
  return kept;
}

/** A head's forwarded headers by name, several values joined by `, `: what the router may read. */
export function toHeaderRecord(forwarded: readonly string[]): { readonly [name: string]: string | undefined } {
  const record: { [name: string]: string | undefined } = Object.create(null) as { [name: string]: string | undefined };
  for (let i = 0; i < forwarded.length; i += 2) {
    const name = forwarded[i]!;
    const before = record[name];
    record[name] = before === undefined ? forwarded[i + 1]! : `${before}, ${forwarded[i + 1]!}`;
  }
  return record;
}
