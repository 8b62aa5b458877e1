import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Attempt, Forward, Refusal, RequestEnd, Router, RouteOutcome } from '@signalbox/core';
import {
  answerUsage,
  dialectOf,
  errorBody,
  errorEvent,
  isContextExceeded,
  multipartBoundary,
  NO_USAGE,
  parseRequest,
  restoreModel,
  ScannedRequest,
  spliceBody,
  SseReader,
  type StreamDialect,
  type Usage,
} from '@signalbox/openai-wire';
import type { Clock, Logger } from '@signalbox/plugin-api';
import type { DecisionRecord } from '@signalbox/telemetry';
import { addUpstreamHeaders, ownHeaders } from './answer-head.ts';
import { collectBody } from './collect-body.ts';
import type { EndpointPools } from './endpoint-pools.ts';
import { failureOf, refusalOf, retryAfterOf } from './failure.ts';
import type { Identity, ProxyHooks } from './hooks.ts';
import { UNKNOWN_MODEL } from './models.ts';
import type { ProxyLimits } from './limits.ts';
import type { LiveItem, LiveList } from './live-list.ts';
import { isEventStream, isFramed, isJsonType, isReadable } from './media-types.ts';
import type { RequestHead } from './request-head.ts';
import { ProxyRouteRequest } from './route-request.ts';
import { WheelEntry, type TimerWheel } from './timer-wheel.ts';
import { toSend } from './released-body.ts';
import { upstreamHeaders } from './upstream-headers.ts';
import { UpstreamCall, type CallOwner, type UpstreamHeaders } from './upstream-call.ts';

/** What exchanges share: one per proxy. */
export interface ExchangeHost {
  readonly router: Router;
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly pools: EndpointPools;
  readonly limits: ProxyLimits;
  readonly logger: Logger;
  readonly hooks: ProxyHooks;
  readonly reportModel: 'asked' | 'real';
  readonly live: LiveList<Exchange>;
  readonly isClosing: () => boolean;
}

const HEARTBEAT = ': keep-alive\n\n';
const NEVER = Number.POSITIVE_INFINITY;
const SLOWEST_READER_BYTES_PER_MS = 16;

type Phase =
  /** The body is being read. */
  | 'body'
  /** The router has the request: deciding or queued. */
  | 'routing'
  /** Waiting before the next attempt. */
  | 'backoff'
  /** The request is on its way to an endpoint; nothing of the answer has been given to the client. */
  | 'attempt'
  /** The head was sent and the answer is relayed. */
  | 'relay'
  /** All is said; the last bytes are on their way to the client. */
  | 'closing'
  | 'done';

/**
 * One request from its first byte to its end. It owns every timer, every upstream call and the lease of the request, so that whatever
 * happens (an answer, a failure, a client that leaves, a shutdown) passes through `end`, once.
 */
export class Exchange extends WheelEntry implements CallOwner, LiveItem {
  livePrevious: LiveItem | undefined = undefined;
  liveNext: LiveItem | undefined = undefined;

  private readonly host: ExchangeHost;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly path: string;
  private readonly upstreamPath: string;
  private readonly head: RequestHead;
  private readonly receivedMs: number;

  private identity: Identity | undefined;
  private phase: Phase = 'body';
  private parsed: ScannedRequest | undefined;
  private route: ProxyRouteRequest | undefined;
  private forward: Forward | undefined;
  private call: UpstreamCall | undefined;
  private nextAttempt: Attempt | undefined;

  private asked = '';
  private wantsStream = false;
  private understood = false;
  private stores = false;

  private reader: SseReader | undefined;
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  /** A plain answer is held until it is whole. */
  private holding = false;
  private alias: string | undefined;
  private dropUsage = false;
  private usage: Usage = NO_USAGE;

  /** Spent on attempts that failed, and until the head of the present one. */
  private failedMs = 0;
  private headMs = 0;
  private ttftMs: number = Number.NaN;
  private lastEventMs = 0;
  private lastWriteMs = 0;
  private blockedMs: number = NEVER;
  private backoffMs: number = NEVER;
  private closeMs: number = NEVER;
  private status = 0;

  constructor(host: ExchangeHost, request: IncomingMessage, response: ServerResponse, path: string, upstreamPath: string, head: RequestHead) {
    super();
    this.host = host;
    this.request = request;
    this.response = response;
    this.path = path;
    this.upstreamPath = upstreamPath;
    this.head = head;
    this.receivedMs = host.clock.now();
  }

  get decision(): DecisionRecord | undefined {
    return this.forward?.decision;
  }

  start(): void {
    this.host.live.add(this);
    this.response.on('close', this.onClientClose);
    const { head } = this;
    if (head.contentEncoding !== undefined && head.contentEncoding.toLowerCase() !== 'identity') {
      this.refuse(415, 'unsupported_media_type', 'The request body is compressed. Send it without content-encoding.');
      return;
    }
    if (!isReadable(head.contentType)) {
      this.refuse(415, 'unsupported_media_type', 'The content type must be application/json or multipart/form-data.');
      return;
    }
    const identity = this.host.hooks.identify?.(head.credential, this.path);
    if (identity?.kind === 'refuse') {
      this.refuse(identity.status, identity.code, identity.message, identity.retryAfterSeconds);
      return;
    }
    this.identity = identity;
    const declared = head.contentLength === undefined ? 0 : Number(head.contentLength);
    collectBody(this.request, declared, this.host.limits.bodyBytes, this.onBody);
  }

  /** Ends whatever still runs because the process stops. */
  shutDown(): void {
    // To the endpoint it is as if the client had left: nothing speaks against it.
    if (this.phase === 'relay') this.breakOff('draining', 'The gateway is shutting down.', 'client_abort');
    else if (this.phase !== 'closing' && this.phase !== 'done') {
      this.call?.cancel();
      if (this.phase === 'routing') this.route?.onAbort?.();
      const forward = this.forward;
      this.forward = undefined;
      this.refuse(503, 'draining', 'The gateway is shutting down.', 1);
      forward?.finish(this.endRecord('client_abort', 503));
    }
  }

  destroy(): void {
    this.response.destroy();
  }

  private readonly onBody = (body: Buffer | 'too_large'): void => {
    if (this.phase !== 'body') return;
    if (body === 'too_large') {
      const limit = this.host.limits.bodyBytes;
      this.refuse(413, 'request_too_large', `The request body is larger than ${limit} bytes.`);
      return;
    }
    const boundary = this.head.contentType === undefined ? undefined : multipartBoundary(this.head.contentType);
    const isForm = this.head.contentType !== undefined && /^multipart\//i.test(this.head.contentType);
    if (isForm && boundary === undefined) {
      this.refuse(400, 'invalid_request', 'The multipart content type names no boundary.');
      return;
    }
    const maxDepth = this.host.limits.jsonDepth;
    const parsed = parseRequest(this.path, body, isForm && boundary !== undefined ? { maxDepth, boundary } : { maxDepth });
    if (!(parsed instanceof ScannedRequest)) {
      this.refuse(parsed.status, parsed.code, parsed.message, undefined, parsed.param);
      return;
    }
    this.parsed = parsed;
    this.asked = parsed.model;
    this.wantsStream = parsed.stream;
    this.understood = parsed.kind !== 'other';
    this.stores = !this.understood;
    this.admit(parsed);
  };

  private admit(parsed: ScannedRequest): void {
    const { identity } = this;
    if (identity?.allows?.(parsed.model) === false) {
      this.refuse(404, 'model_not_found', UNKNOWN_MODEL, undefined, 'model');
      return;
    }
    const route = new ProxyRouteRequest(this.head, parsed, this.receivedMs, identity?.tenant, identity?.apiKeyName);
    this.route = route;
    this.phase = 'routing';
    let outcome: RouteOutcome | Promise<RouteOutcome>;
    try {
      outcome = this.host.router.route(route);
    } catch (error) {
      this.fault('route', error);
      return;
    }
    if (outcome instanceof Promise) outcome.then(this.onRouted, (error: unknown) => this.fault('route', error));
    else this.onRouted(outcome);
  }

  private readonly onRouted = (outcome: RouteOutcome): void => {
    if (this.phase !== 'routing') {
      // The client left, or the process stops, while the request was queued.
      if (outcome.kind === 'refuse') outcome.finish();
      else outcome.finish(this.endRecord('client_abort', 499));
      return;
    }
    if (outcome.kind === 'refuse') {
      this.refuseBy(outcome);
      return;
    }
    this.forward = outcome;
    this.startAttempt(outcome.attempt);
  };

  private refuseBy(refusal: Refusal): void {
    this.answerError(refusal.status, refusal.code, refusal.message, refusal.retryAfterSeconds, null, refusal.decision);
    refusal.finish();
  }

  private startAttempt(attempt: Attempt): void {
    const { host, parsed } = this;
    if (parsed === undefined) return;
    const now = host.clock.now();
    if (now >= this.deadlineMs()) {
      const call = new UpstreamCall(this, attempt, now);
      this.fail(call, 'timeout', 0);
      return;
    }
    const injectsUsage = this.wantsStream && isTextual(parsed.kind) && !parsed.includeUsage && attempt.target.engine !== 'other';
    const renamed = attempt.model !== undefined && attempt.model !== this.asked;
    const body = spliceBody(parsed, { model: attempt.model, includeUsage: injectsUsage, set: attempt.set, drop: attempt.drop });
    const call = new UpstreamCall(this, attempt, now);
    this.call = call;
    this.phase = 'attempt';
    this.reader = undefined;
    this.held = [];
    this.heldBytes = 0;
    this.holding = false;
    this.alias = renamed && this.understood && host.reportModel === 'asked' ? this.asked : undefined;
    this.dropUsage = injectsUsage;
    this.rearm();
    // Events and usage can be read only where the answer is not compressed.
    const headers = upstreamHeaders(this.head, attempt, this.understood || this.wantsStream);
    const path = attempt.target.basePath + this.upstreamPath;
    host.pools.dispatch(attempt.target, { path, method: 'POST', body: toSend(body, headers), headers }, call);
  }

  callStarted(call: UpstreamCall): void {
    if (call !== this.call) return;
    call.sentMs = this.host.clock.now();
    this.rearm();
  }

  callHead(call: UpstreamCall, status: number, headers: UpstreamHeaders): void {
    if (call !== this.call) return;
    this.headMs = this.host.clock.now() - call.dispatchedMs;
    if (status === 429 || status === 408 || status >= 500 || (status >= 300 && status < 400)) {
      this.fail(call, failureOf(status), status);
      return;
    }
    if (status >= 200 && status < 300 && isEventStream(headers['content-type'])) {
      this.openStream(call, headers);
      return;
    }
    const limit = this.alias === undefined ? this.host.limits.heldAnswerBytes : this.host.limits.rewrittenAnswerBytes;
    const declared = Number(headers['content-length']);
    this.holding = (this.understood || status >= 400) && !(declared > limit);
    if (!this.holding) this.commitPlain(call);
  }

  private openStream(call: UpstreamCall, headers: UpstreamHeaders): void {
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') {
      // Events that we cannot read are relayed as bytes.
      this.commitPlain(call);
      return;
    }
    this.reader = new SseReader({
      dialect: this.dialect(),
      alias: this.alias,
      dropUsageFrames: this.dropUsage,
      maxEventBytes: this.host.limits.eventBytes,
    });
  }

  callData(call: UpstreamCall, chunk: Buffer): void {
    if (call !== this.call) return;
    if (this.reader !== undefined) this.streamData(call, this.reader, chunk);
    else if (this.holding) this.holdAnswer(call, chunk);
    else this.relay(chunk);
  }

  private streamData(call: UpstreamCall, reader: SseReader, chunk: Buffer): void {
    const before = reader.events;
    const out = reader.push(chunk);
    const committed = this.phase === 'relay';
    if (reader.events > before || reader.done) this.lastEventMs = this.host.clock.now();
    if (committed) {
      if (out.length > 0) this.relay(out);
      if (reader.error !== undefined) this.endByEngineError();
      else if (reader.overflowed) this.breakOff('upstream_error', 'An event of the upstream was too long.', 'upstream_error');
      return;
    }
    if (reader.events > 0 || reader.done) {
      this.commitStream(call, out);
      if (reader.error !== undefined) this.endByEngineError();
      return;
    }
    if (reader.error !== undefined) {
      this.fail(call, failureOf(reader.error.status || 200, reader.error.code), reader.error.status || 200);
      return;
    }
    if (out.length > 0) {
      this.held.push(out);
      this.heldBytes += out.length;
    }
    if (reader.overflowed || this.heldBytes > this.host.limits.heldStreamBytes) this.fail(call, 'error', 200);
  }

  private holdAnswer(call: UpstreamCall, chunk: Buffer): void {
    this.held.push(chunk);
    this.heldBytes += chunk.length;
    const limit = this.alias === undefined ? this.host.limits.heldAnswerBytes : this.host.limits.rewrittenAnswerBytes;
    if (this.heldBytes <= limit) return;
    const held = this.held;
    this.held = [];
    this.holding = false;
    this.commitPlain(call);
    for (const piece of held) this.relay(piece);
  }

  callEnd(call: UpstreamCall): void {
    if (call !== this.call) return;
    if (this.reader !== undefined) {
      this.endStream(call, this.reader);
      return;
    }
    if (this.holding) {
      this.answerHeld(call);
      return;
    }
    this.response.end();
    this.finish('ok', this.status);
  }

  private endStream(call: UpstreamCall, reader: SseReader): void {
    const rest = reader.end();
    const complete = reader.isComplete(isFramed(call.headers));
    if (this.phase !== 'relay') {
      if (!complete) {
        const status = reader.error?.status || 200;
        this.fail(call, reader.error === undefined ? 'error' : failureOf(status, reader.error.code), status);
        return;
      }
      this.commitStream(call, rest);
    } else if (complete) {
      if (rest.length > 0) this.relay(rest);
    }
    if (reader.error !== undefined) {
      this.endByEngineError();
      return;
    }
    if (!complete) {
      this.breakOff('upstream_disconnected', 'The upstream closed the stream before it was complete.', 'upstream_disconnected');
      return;
    }
    this.endWell(reader);
  }

  private endWell(reader: SseReader): void {
    this.usage = reader.usage;
    this.response.end();
    const call = this.call;
    this.finish('ok', this.status);
    call?.cancel();
  }

  callFailed(call: UpstreamCall, error: Error): void {
    if (call !== this.call) return;
    this.host.logger.debug('upstream call failed', { request_id: this.head.requestId, endpoint: call.attempt.endpoint, error: error.message });
    if (this.phase === 'relay') {
      // A server that closes right behind its last event has told all.
      if (this.reader?.isComplete(false) === true) {
        this.endWell(this.reader);
        return;
      }
      this.breakOff('upstream_disconnected', 'The upstream disconnected before the answer was complete.', 'upstream_disconnected');
      return;
    }
    if ((error as NodeJS.ErrnoException).code === 'UND_ERR_INVALID_ARG') {
      // A header that we built is not one; the endpoint has no part in it.
      this.fault('dispatch', error);
      return;
    }
    const unsent = Number.isNaN(call.sentMs);
    const race = !unsent && !call.responded && call.reused;
    if (unsent || race || (!call.responded && !this.stores)) this.fail(call, 'connect', call.status, race);
    // The call may have had its effect, so it counts as a 502 of the server, which only a policy's word repeats.
    else if (this.stores) this.fail(call, 'error', 502);
    else this.fail(call, 'error', call.status);
  }

  /** The current attempt failed before anything was given to the client: the router says what comes next. */
  private fail(call: UpstreamCall, cause: Parameters<Forward['next']>[0]['cause'], status: number, keepAliveRace = false): void {
    const forward = this.forward;
    if (forward === undefined) return;
    const now = this.host.clock.now();
    const retryAfterSeconds = retryAfterOf(call.headers['retry-after'], () => this.host.clock.epochMs());
    this.call = undefined;
    call.cancel();
    this.phase = 'routing';
    const durationMs = now - call.dispatchedMs;
    this.failedMs += durationMs;
    this.headMs = 0;
    let step: ReturnType<Forward['next']>;
    try {
      step = forward.next({ cause, status, retryAfterSeconds, durationMs, ...(keepAliveRace ? { keepAliveRace } : {}) });
    } catch (error) {
      this.fault('next', error);
      return;
    }
    if (step.kind === 'refuse') {
      const answer = refusalOf(step, this.reader?.error);
      this.answerError(answer.status, answer.code, answer.message, answer.retryAfterSeconds, null, forward.decision);
      this.endForward('upstream_error', answer.status, status);
      return;
    }
    if (step.waitMs > 0) {
      this.phase = 'backoff';
      this.nextAttempt = step.attempt;
      this.backoffMs = now + step.waitMs;
      this.rearm();
    } else {
      this.startAttempt(step.attempt);
    }
  }

  /** The commit point: the attempt is final, and the body is not needed any more. */
  private commit(call: UpstreamCall, ttftMs: number): void {
    this.phase = 'relay';
    this.forward?.commit(ttftMs);
    this.status = call.status;
    this.parsed?.release();
    this.parsed = undefined;
    this.route = undefined;
  }

  private answerHeaders(call: UpstreamCall, streaming: boolean): string[] {
    const headers = this.ownHeaders(undefined, this.forward?.decision);
    addUpstreamHeaders(headers, call.headers, streaming);
    return headers;
  }

  private commitStream(call: UpstreamCall, out: Uint8Array): void {
    const now = this.host.clock.now();
    this.ttftMs = now - this.receivedMs;
    this.lastEventMs = now;
    this.commit(call, now - call.sentMs);
    const headers = this.answerHeaders(call, true);
    headers.push('cache-control', 'no-cache', 'x-accel-buffering', 'no');
    this.response.writeHead(call.status, headers);
    const held = this.held;
    this.held = [];
    this.heldBytes = 0;
    for (const piece of held) this.relay(piece);
    this.relay(out);
    this.rearm();
  }

  /** Gives out the head of an answer that is relayed as bytes. */
  private commitPlain(call: UpstreamCall): void {
    const now = this.host.clock.now();
    this.lastEventMs = now;
    this.commit(call, Number.NaN);
    const headers = this.answerHeaders(call, false);
    const length = call.headers['content-length'];
    if (typeof length === 'string') headers.push('content-length', length);
    this.response.writeHead(call.status, headers);
    this.rearm();
  }

  /** A plain answer is whole. */
  private answerHeld(call: UpstreamCall): void {
    let body: Uint8Array = this.held.length === 1 ? (this.held[0] ?? EMPTY) : Buffer.concat(this.held, this.heldBytes);
    this.held = [];
    if (call.status >= 400) {
      this.relayRefusal(call, body);
      return;
    }
    const isJson = isJsonType(call.headers['content-type']) && call.headers['content-encoding'] === undefined;
    if (isJson) {
      this.usage = answerUsage(body);
      if (this.alias !== undefined) body = restoreModel(body, this.alias);
    }
    this.commit(call, Number.NaN);
    this.sendWhole(call, body);
    this.finish('ok', call.status);
  }

  /** The upstream refused the request itself: its answer is the client's, unless a fallback takes prompts that are too long. */
  private relayRefusal(call: UpstreamCall, body: Uint8Array): void {
    const forward = this.forward;
    if (forward !== undefined && (call.status === 400 || call.status === 413 || call.status === 422) && isContextExceeded(body)) {
      const now = this.host.clock.now();
      this.call = undefined;
      const step = forward.next({ cause: 'context_exceeded', status: call.status, retryAfterSeconds: Number.NaN, durationMs: now - call.dispatchedMs });
      if (step.kind === 'attempt') {
        this.startAttempt(step.attempt);
        return;
      }
      this.status = call.status;
      this.sendWhole(call, body);
      this.finish('ok', call.status);
      return;
    }
    this.commit(call, Number.NaN);
    this.sendWhole(call, body);
    this.finish('ok', call.status);
  }

  private sendWhole(call: UpstreamCall, body: Uint8Array): void {
    const headers = this.answerHeaders(call, false);
    headers.push('content-length', String(body.length));
    this.response.writeHead(call.status, headers);
    this.response.end(body);
  }

  private relay(bytes: Uint8Array): void {
    const { response } = this;
    const now = this.host.clock.now();
    this.lastWriteMs = now;
    if (this.reader === undefined) this.lastEventMs = now;
    if (response.write(bytes) || this.blockedMs !== NEVER) return;
    this.blockedMs = now;
    this.call?.pause();
    response.once('drain', this.onDrain);
    this.rearm();
  }

  private readonly onDrain = (): void => {
    this.blockedMs = NEVER;
    this.lastWriteMs = this.host.clock.now();
    this.lastEventMs = this.lastWriteMs;
    this.call?.resume();
  };

  private ownHeaders(code: string | undefined, decision: DecisionRecord | undefined): string[] {
    return ownHeaders({
      requestId: this.head.requestId,
      decision,
      code,
      upstreamMs: this.failedMs + this.headMs,
      totalMs: this.host.clock.now() - this.receivedMs,
      extra: decision === undefined ? undefined : this.host.hooks.limitHeaders?.(decision),
      close: this.host.isClosing(),
    });
  }

  /** Refuses a request that has no lease. */
  private refuse(status: number, code: string, message: string, retryAfterSeconds?: number, param: string | null = null): void {
    this.answerError(status, code, message, retryAfterSeconds, param, undefined);
    const durationMs = this.host.clock.now() - this.receivedMs;
    this.host.hooks.unrouted?.({ requestId: this.head.requestId, path: this.path, status, code, durationMs });
  }

  private answerError(
    status: number,
    code: string,
    message: string,
    retryAfterSeconds: number | undefined,
    param: string | null,
    decision: DecisionRecord | undefined,
  ): void {
    const { response } = this;
    const unread = this.phase === 'body' && !this.request.complete;
    this.leave();
    if (response.destroyed || response.headersSent) return;
    const body = Buffer.from(errorBody(this.path, status, code, message, param));
    const headers = this.ownHeaders(code, decision);
    headers.push('content-type', 'application/json', 'content-length', String(body.length));
    const needsRetryAfter = status === 429 || status === 503;
    const seconds = retryAfterSeconds ?? (needsRetryAfter ? 1 : undefined);
    if (status === 401) headers.push('www-authenticate', 'Bearer');
    if (seconds !== undefined) headers.push('retry-after', String(Math.max(1, Math.ceil(seconds))));
    if (unread && !this.host.isClosing()) headers.push('connection', 'close');
    response.writeHead(status, headers);
    if (!unread) {
      response.end(body);
      return;
    }
    // Closing while the upload still runs would reset the connection before the client has read the answer.
    response.write(body);
    this.closeMs = this.host.clock.now() + this.host.limits.lingerMs;
    this.request.on('end', () => response.end());
    this.request.resume();
    this.rearm();
  }

  /** After the commit point: tells the client, then ends the socket without the last chunk, so that raw readers fail too. */
  private breakOff(code: string, message: string, outcome: RequestEnd['outcome']): void {
    const { response, reader } = this;
    const call = this.call;
    this.call = undefined;
    call?.cancel();
    if (reader !== undefined) {
      this.usage = reader.usage;
      response.write(errorEvent(this.dialect(), code, message));
      this.endSocket();
    } else {
      response.destroy();
    }
    this.endForward(outcome, this.status, call?.status ?? 0);
  }

  /** The engine's own error event was relayed; nothing behind it counts. */
  private endByEngineError(): void {
    const call = this.call;
    this.call = undefined;
    call?.cancel();
    this.usage = this.reader?.usage ?? NO_USAGE;
    this.endSocket();
    this.endForward('upstream_error', this.status, call?.status ?? 0);
  }

  private endSocket(): void {
    const socket = this.response.socket;
    this.phase = 'closing';
    if (socket === null) {
      this.response.destroy();
      return;
    }
    this.closeMs = this.host.clock.now() + this.host.limits.stalledReaderMs;
    socket.end();
    this.rearm();
  }

  private fault(where: string, error: unknown): void {
    this.host.logger.error('internal fault', { request_id: this.head.requestId, where, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    if (this.phase === 'done' || this.phase === 'closing') return;
    this.call?.cancel();
    this.call = undefined;
    this.answerError(500, 'internal', 'The gateway failed to handle the request.', undefined, null, this.forward?.decision);
    this.endForward('client_abort', 500, 0);
  }

  private readonly onClientClose = (): void => {
    const { phase } = this;
    this.host.wheel.disarm(this);
    this.host.live.remove(this);
    if (phase === 'done') return;
    this.phase = 'done';
    const call = this.call;
    this.call = undefined;
    call?.cancel();
    if (phase === 'routing') this.route?.onAbort?.();
    if (this.forward !== undefined) {
      this.usage = this.reader?.usage ?? this.usage;
      this.endForward('client_abort', 499, call?.status ?? 0);
    } else if (phase === 'body') {
      const durationMs = this.host.clock.now() - this.receivedMs;
      this.host.hooks.unrouted?.({ requestId: this.head.requestId, path: this.path, status: 499, code: 'client_abort', durationMs });
    }
    this.drop();
  };

  private finish(outcome: RequestEnd['outcome'], status: number): void {
    const upstreamStatus = this.call?.status ?? status;
    this.leave();
    this.endForward(outcome, status, upstreamStatus);
  }

  /** Nothing more will be done for this request but flushing what was written; a reader that does not take it is dropped. */
  private leave(): void {
    this.phase = 'closing';
    const bytes = this.response.writableLength;
    this.closeMs = this.host.clock.now() + this.host.limits.stalledReaderMs + bytes / SLOWEST_READER_BYTES_PER_MS;
    this.drop();
    this.rearm();
  }

  private drop(): void {
    this.call = undefined;
    this.held = [];
    this.parsed?.release();
    this.parsed = undefined;
    this.route = undefined;
    this.reader = undefined;
  }

  private endForward(outcome: RequestEnd['outcome'], status: number, upstreamStatus: number): void {
    const forward = this.forward;
    this.forward = undefined;
    forward?.finish(this.endRecord(outcome, status, upstreamStatus));
  }

  private endRecord(outcome: RequestEnd['outcome'], status: number, upstreamStatus = 0): RequestEnd {
    return {
      outcome,
      status,
      upstreamStatus,
      ttftMs: this.ttftMs,
      durationMs: this.host.clock.now() - this.receivedMs,
      promptTokens: this.usage.promptTokens,
      cachedTokens: this.usage.cachedTokens,
      outputTokens: this.usage.outputTokens,
    };
  }

  private deadlineMs(): number {
    return this.forward?.deadlineMs ?? NEVER;
  }

  /** When this exchange next has to look at the clock. */
  private nextDueMs(): number {
    switch (this.phase) {
      case 'backoff':
        return Math.min(this.backoffMs, this.deadlineMs());
      case 'attempt': {
        const call = this.call;
        if (call === undefined) return this.deadlineMs();
        const { attempt } = call;
        const total = Math.min(this.deadlineMs(), call.dispatchedMs + attempt.attemptTimeoutMs);
        if (Number.isNaN(call.sentMs)) return Math.min(total, call.dispatchedMs + attempt.connectMs);
        return this.wantsStream ? Math.min(total, call.sentMs + attempt.firstTokenMs) : total;
      }
      case 'relay': {
        if (this.blockedMs !== NEVER) return Math.min(this.deadlineMs(), this.blockedMs + this.host.limits.stalledReaderMs);
        const idle = this.lastEventMs + (this.call?.attempt.idleMs ?? NEVER);
        const heartbeat = this.reader === undefined ? NEVER : this.lastWriteMs + this.host.limits.heartbeatMs;
        return Math.min(this.deadlineMs(), idle, heartbeat);
      }
      case 'closing':
        return this.closeMs;
      default:
        return NEVER;
    }
  }

  /** Arms the wheel if something is due earlier than it is armed for; a later due time is found when the wheel comes round. */
  private rearm(): void {
    const due = this.nextDueMs();
    if (due < this.dueMs) this.host.wheel.arm(this, due);
  }

  onDue(nowMs: number): void {
    if (this.phase === 'done') return;
    if (nowMs < this.nextDueMs()) {
      this.rearm();
      return;
    }
    switch (this.phase) {
      case 'backoff': {
        const attempt = this.nextAttempt;
        this.nextAttempt = undefined;
        this.backoffMs = NEVER;
        if (attempt !== undefined) this.startAttempt(attempt);
        break;
      }
      case 'attempt':
        if (this.call !== undefined) this.fail(this.call, this.overdue(this.call, nowMs), this.call.status);
        break;
      case 'relay':
        this.relayDue(nowMs);
        break;
      case 'closing':
        this.response.socket?.destroy();
        this.response.destroy();
        return;
      default:
    }
    this.rearm();
  }

  private overdue(call: UpstreamCall, nowMs: number): 'connect' | 'first_token' | 'timeout' {
    if (nowMs >= Math.min(this.deadlineMs(), call.dispatchedMs + call.attempt.attemptTimeoutMs)) return 'timeout';
    return Number.isNaN(call.sentMs) ? 'connect' : 'first_token';
  }

  private relayDue(nowMs: number): void {
    if (nowMs >= this.deadlineMs()) {
      this.breakOff('upstream_timeout', 'The answer took longer than the request may last.', 'upstream_timeout');
    } else if (this.blockedMs !== NEVER) {
      this.host.logger.info('stalled reader dropped', { request_id: this.head.requestId });
      this.response.socket?.destroy();
      this.response.destroy();
    } else if (nowMs >= this.lastEventMs + (this.call?.attempt.idleMs ?? NEVER)) {
      // A server that has said its last event and keeps the body open has told all.
      if (this.reader?.isComplete(false) === true) {
        this.endWell(this.reader);
        return;
      }
      this.breakOff('upstream_timeout', 'The upstream sent nothing for too long.', 'upstream_timeout');
    } else if (this.reader !== undefined) {
      this.lastWriteMs = nowMs;
      this.response.write(HEARTBEAT);
    }
  }

  private dialect(): StreamDialect {
    return dialectOf(this.path);
  }
}

const EMPTY: Uint8Array = new Uint8Array(0);

function isTextual(kind: string): boolean {
  return kind === 'chat' || kind === 'completion';
}
