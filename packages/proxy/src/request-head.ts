// perf: one pass over the headers of every request; `!` marks reads of an array of pairs.
import { newRequestId } from './request-id.ts';

/** Hop-by-hop headers (RFC 9110 section 7.6.1), framing that is always our own, and headers that end at the door. */
const DROPPED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'host',
  'content-length',
  'expect',
  'x-request-id',
  'authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'accept-encoding',
  'x-request-deadline-ms',
  'traceparent',
  'tracestate',
]);

const FORWARDED = /^(?:forwarded|x-forwarded-.*|x-real-ip|x-original-.*|x-envoy-.*|true-client-ip)$/;

/**
 * Lower-case forms of the header names that nearly every request carries, as clients usually write them: a look-up makes no string.
 */
const USUAL: ReadonlyMap<string, string> = new Map(
  [
    'host',
    'connection',
    'content-type',
    'content-length',
    'authorization',
    'accept',
    'accept-encoding',
    'accept-language',
    'user-agent',
    'transfer-encoding',
    'expect',
    'cookie',
    'traceparent',
    'x-request-id',
    'x-api-key',
    'x-session-id',
  ].flatMap((name) => [
    [name, name],
    [name.replaceAll(/(?:^|-)[a-z]/g, (part) => part.toUpperCase()), name],
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
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const written = rawHeaders[i]!;
    const name = USUAL.get(written) ?? written.toLowerCase();
    const value = rawHeaders[i + 1]!;
    if (DROPPED.has(name)) {
      switch (name) {
        case 'connection':
          if (value !== 'keep-alive' && value !== 'close') (named ??= []).push(...namesIn(value));
          break;
        case 'x-request-id':
          requestId = requestId === undefined && isRequestId(value) ? value : requestId;
          break;
        case 'authorization':
          bearer = bearerOf(value);
          break;
        case 'x-api-key':
        case 'api-key':
          apiKey = value;
          break;
        case 'content-length':
          contentLength = value;
          break;
        case 'accept-encoding':
          acceptEncoding = value;
          break;
        case 'traceparent':
          // Of two nobody knows which is meant.
          trace = trace === undefined ? value : '';
          break;
        case 'tracestate':
          traceState = traceState === undefined ? value : `${traceState},${value}`;
          break;
        case 'x-request-deadline-ms':
          if (DEADLINE.test(value)) timeoutMs = minimum(timeoutMs, deadlineOf(value, epochMs));
          else deadlineUnreadable = true;
          break;
        default:
      }
      continue;
    }
    if (name === 'content-type') contentType = value;
    else if (name === 'content-encoding')
      contentEncoding = contentEncoding === undefined ? value : `${contentEncoding}, ${value}`;
    else if (name === 'x-stainless-timeout') timeoutMs = minimum(timeoutMs, stainlessOf(value));
    else if (name.startsWith('x-signalbox-') || name.startsWith('x-gateway-destination-endpoint')) continue;
    else if (
      !trusted &&
      (name.charCodeAt(0) === 0x78 || name === 'forwarded' || name === 'true-client-ip') &&
      FORWARDED.test(name)
    )
      continue;
    forwarded.push(name, value);
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
  };
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
