import type { IncomingMessage } from 'node:http';
import { errorBody } from '@signalbox/openai-wire';
import type { DecisionRecord } from '@signalbox/telemetry';
import { addUpstreamHeaders, ownLines } from './answer-head.ts';
import type { ExchangeHost } from './exchange-host.ts';
import type { LinedResponse } from './lined-response.ts';
import type { RequestHead } from './request-head.ts';
import type { UpstreamHeaders } from './upstream-call.ts';

const HEARTBEAT = ': keep-alive\n\n';
const NEVER = Number.POSITIVE_INFINITY;
const SLOWEST_READER_BYTES_PER_MS = 16;

/** Larger pieces are not copied into one with their framing. */
const COPIED_BYTES = 16 * 1024;
const CR = 0x0d;
const LF = 0x0a;

/** A chunk of no bytes would end the body. */
function isWorthCopying(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length <= COPIED_BYTES;
}

/**
 * `bytes` as one chunk of a body in chunks (RFC 9112 section 7.1), ready for the socket. `ServerResponse.write` hands the socket four pieces and
 * a tick of the loop to join them, which costs more than the copy.
 */
function chunkOf(bytes: Uint8Array): Buffer {
  const size = bytes.length.toString(16);
  const { length } = size;
  const chunk = Buffer.allocUnsafe(length + bytes.length + 4);
  for (let i = 0; i < length; i++) chunk[i] = size.charCodeAt(i);
  chunk[length] = CR;
  chunk[length + 1] = LF;
  chunk.set(bytes, length + 2);
  chunk[chunk.length - 2] = CR;
  chunk[chunk.length - 1] = LF;
  return chunk;
}

/** An error that the gateway answers itself. */
export interface ErrorAnswer {
  readonly status: number;
  readonly code: string;
  /** Our own words. */
  readonly message: string;
  readonly retryAfterSeconds?: number | undefined;
  readonly param?: string | null;
}

/** Whom a `ClientAnswer` tells of its client. */
export interface AnswerOwner {
  /** A blocked client takes bytes again. */
  drained(): void;
}

/** The upstream's answer as far as the head of ours depends on it. */
export interface UpstreamHead {
  readonly status: number;
  readonly headers: UpstreamHeaders;
}

/**
 * What the client of one request gets: one head, the bytes behind it with backpressure, and an end that is either whole or visibly
 * broken. It decides nothing.
 */
export class ClientAnswer {
  readonly requestId: string;
  private readonly asksExplanation: boolean;
  readonly receivedMs: number;
  /** When bytes were last given to the socket. */
  lastWriteMs = 0;
  /** Since when the client takes nothing while bytes wait for it; Infinity if it takes them. */
  blockedMs: number = NEVER;
  /** Time spent upstream until the first byte, failed attempts included. */
  upstreamMs = 0;
  /** The head has left, and chunks may go straight to the socket. */
  private headSent = false;
  private readonly host: ExchangeHost;
  private readonly request: IncomingMessage;
  private readonly response: LinedResponse;
  private readonly path: string;
  private readonly owner: AnswerOwner;

  constructor(
    host: ExchangeHost,
    request: IncomingMessage,
    response: LinedResponse,
    path: string,
    head: RequestHead,
    owner: AnswerOwner,
  ) {
    this.host = host;
    this.request = request;
    this.response = response;
    this.path = path;
    this.requestId = head.requestId;
    this.asksExplanation = head.asksExplanation;
    this.owner = owner;
    this.receivedMs = host.clock.now();
    // The close that follows says all there is to know.
    response.on('error', ignore);
  }

  onClose(callback: () => void): void {
    this.response.on('close', callback);
  }

  get ageMs(): number {
    return this.host.clock.now() - this.receivedMs;
  }

  /** Until when what was written must have left. */
  get flushedByMs(): number {
    return (
      this.host.clock.now() +
      this.host.limits.stalledReaderMs +
      this.response.writableLength / SLOWEST_READER_BYTES_PER_MS
    );
  }

  /** The head of a stream of events. */
  openStream(upstream: UpstreamHead, decision: DecisionRecord | undefined): void {
    const headers: string[] = [];
    addUpstreamHeaders(headers, upstream.headers, true);
    headers.push('cache-control', 'no-cache', 'x-accel-buffering', 'no');
    this.writeHead(upstream.status, undefined, decision, headers);
  }

  /** The head of an answer whose bytes are relayed as they come. */
  openPlain(upstream: UpstreamHead, decision: DecisionRecord | undefined): void {
    const headers: string[] = [];
    addUpstreamHeaders(headers, upstream.headers, false);
    const length = upstream.headers['content-length'];
    if (typeof length === 'string') headers.push('content-length', length);
    this.writeHead(upstream.status, undefined, decision, headers);
  }

  whole(upstream: UpstreamHead, body: Uint8Array, decision: DecisionRecord | undefined): void {
    const headers: string[] = [];
    addUpstreamHeaders(headers, upstream.headers, false);
    headers.push('content-length', String(body.length));
    this.writeHead(upstream.status, undefined, decision, headers);
    this.response.end(body);
  }

  /** False when the client has just stopped taking bytes, and the upstream is to pause. */
  write(bytes: Uint8Array): boolean {
    const now = this.host.clock.now();
    this.lastWriteMs = now;
    const { response } = this;
    const { socket } = response;
    const isDirect = this.headSent && socket?.writable === true && isWorthCopying(bytes);
    const taken = isDirect ? socket.write(chunkOf(bytes)) : response.write(bytes);
    // From now on nothing of this answer waits in front of the socket.
    this.headSent ||= socket !== null && response.chunkedEncoding;
    if (taken || this.blockedMs !== NEVER) return true;
    this.blockedMs = now;
    const drain = (): void => this.drained();
    if (isDirect) socket.once('drain', drain);
    else response.once('drain', drain);
    return false;
  }

  private drained(): void {
    if (this.blockedMs === NEVER) return;
    this.blockedMs = NEVER;
    this.lastWriteMs = this.host.clock.now();
    this.owner.drained();
  }

  heartbeat(): void {
    this.lastWriteMs = this.host.clock.now();
    this.response.write(HEARTBEAT);
  }

  end(): void {
    this.response.end();
  }

  /** Ends the socket without the last chunk, so that raw readers see that the answer is broken. */
  breakOff(): void {
    const { socket } = this.response;
    // A pipelined answer whose turn has not come has no socket yet.
    if (socket === null) this.response.destroy();
    else socket.end();
  }

  destroy(): void {
    this.response.socket?.destroy();
    this.response.destroy();
  }

  /**
   * Answers an error, unless a head was given out. With `unread`, the upload still runs: the rest of it is read and thrown away, since a
   * close would reset the connection before the client has read the answer; true then, and the caller bounds the time of that.
   */
  error(error: ErrorAnswer, decision: DecisionRecord | undefined, unread: boolean): boolean {
    const { request, response } = this;
    if (response.destroyed || response.headersSent) return false;
    const lingers = unread && !request.complete;
    const body = Buffer.from(errorBody(this.path, error.status, error.code, error.message, error.param ?? null));
    const headers = ['content-type', 'application/json', 'content-length', String(body.length)];
    addErrorHeaders(headers, error.status, error.retryAfterSeconds);
    if (lingers && !this.host.isClosing()) headers.push('connection', 'close');
    this.writeHead(error.status, error.code, decision, headers);
    if (!lingers) {
      response.end(body);
      return false;
    }
    response.write(body);
    request.on('end', () => response.end());
    request.resume();
    return true;
  }

  /** Our own headers, and `headers` behind them. `code` is that of an error of our own. */
  private writeHead(
    status: number,
    code: string | undefined,
    decision: DecisionRecord | undefined,
    headers: string[],
  ): void {
    const { hooks } = this.host;
    const lines = ownLines({
      requestId: this.requestId,
      decision,
      policy: hooks.policy?.() ?? '',
      code,
      explained: decision === undefined ? undefined : hooks.explain?.(decision, this.asksExplanation),
      upstreamMs: this.upstreamMs,
      totalMs: this.ageMs,
      extra: decision === undefined ? undefined : hooks.limitHeaders?.(decision),
    });
    if (this.host.isClosing()) headers.push('connection', 'close');
    this.response.writeLined(status, lines, headers);
  }
}

/** 429 and 503 always say when to come back: whole seconds, at least 1. */
export function addErrorHeaders(headers: string[], status: number, retryAfterSeconds: number | undefined): void {
  if (status === 401) headers.push('www-authenticate', 'Bearer');
  const seconds = retryAfterSeconds ?? (status === 429 || status === 503 ? 1 : undefined);
  if (seconds !== undefined) headers.push('retry-after', String(Math.max(1, Math.ceil(seconds))));
}

function ignore(): void {}
