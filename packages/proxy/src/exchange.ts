import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Attempt, AttemptFailure, Forward, Refusal, RequestEnd, RouteOutcome } from '@signalbox/core';
import {
  answerUsage,
  dialectOf,
  errorEvent,
  isContextExceeded,
  isJson,
  multipartBoundary,
  NO_USAGE,
  parseRequest,
  restoreModel,
  ScannedRequest,
  spliceBody,
  SseReader,
  type Usage,
} from '@signalbox/openai-wire';
import type { DecisionRecord } from '@signalbox/telemetry';
import { ClientAnswer, type ErrorAnswer, type UpstreamHead } from './client-answer.ts';
import { collectBody } from './collect-body.ts';
import type { ExchangeHost, LiveExchange } from './exchange-host.ts';
import { earlyFailure, failureOf, refusalOf, retryAfterOf } from './failure.ts';
import type { Identity } from './hooks.ts';
import { UNKNOWN_MODEL } from './models.ts';
import type { LiveItem } from './live-list.ts';
import { isEventStream, isFramed, isJsonType, isReadable } from './media-types.ts';
import type { RequestHead } from './request-head.ts';
import { ProxyRouteRequest } from './route-request.ts';
import { WheelEntry } from './timer-wheel.ts';
import { toSend } from './released-body.ts';
import { upstreamHeaders } from './upstream-headers.ts';
import { UpstreamCall, type CallOwner, type UpstreamHeaders } from './upstream-call.ts';

const NEVER = Number.POSITIVE_INFINITY;
const MODEL_NOT_FOUND: ErrorAnswer = Object.freeze({
  status: 404,
  code: 'model_not_found',
  message: UNKNOWN_MODEL,
  param: 'model',
});

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
export class Exchange extends WheelEntry implements CallOwner, LiveExchange {
  livePrevious: LiveItem | undefined = undefined;
  liveNext: LiveItem | undefined = undefined;

  private readonly host: ExchangeHost;
  private readonly request: IncomingMessage;
  private readonly answer: ClientAnswer;
  private readonly path: string;
  private readonly upstreamPath: string;
  private readonly head: RequestHead;

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
  /** A connection that was kept alive turned out to be dead: this request trusts no other. */
  private raced = false;

  private reader: SseReader | undefined;
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  /** A plain answer is held until it is whole. */
  private holding = false;
  private alias: string | undefined;
  private dropUsage = false;
  private usage: Usage = NO_USAGE;

  /** Spent on attempts that failed. */
  private failedMs = 0;
  private ttftMs: number = Number.NaN;
  /** The head went out before the upstream said anything: the attempt is final, and its failure an error event. */
  private early = false;
  private lastEventMs = 0;
  private backoffMs: number = NEVER;
  private closeMs: number = NEVER;
  private status = 0;

  constructor(
    host: ExchangeHost,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    upstreamPath: string,
    head: RequestHead,
  ) {
    super();
    this.host = host;
    this.request = request;
    this.path = path;
    this.upstreamPath = upstreamPath;
    this.head = head;
    this.answer = new ClientAnswer(host, request, response, path, head.requestId, this.onDrain);
  }

  start(): void {
    this.host.live.add(this);
    this.answer.onClose(this.onClientClose);
    const { head } = this;
    if (head.contentEncoding !== undefined && head.contentEncoding.toLowerCase() !== 'identity') {
      this.refuse({
        status: 415,
        code: 'unsupported_media_type',
        message: 'The request body is compressed. Send it without content-encoding.',
      });
      return;
    }
    if (!isReadable(head.contentType)) {
      this.refuse({
        status: 415,
        code: 'unsupported_media_type',
        message: 'The content type must be application/json or multipart/form-data.',
      });
      return;
    }
    const identity = this.host.hooks.identify?.(head.credential, this.path);
    if (identity?.kind === 'refuse') {
      this.refuse(identity);
      return;
    }
    this.identity = identity;
    const declared = head.contentLength === undefined ? 0 : Number(head.contentLength);
    collectBody(this.request, declared, this.host.limits.bodyBytes, this.onBody);
  }

  /** Ends whatever still runs because the process stops. */
  shutDown(): void {
    // To the endpoint it is as if the client had left: nothing speaks against it.
    if (this.opened()) this.breakOff('draining', 'The gateway is shutting down.', 'client_abort');
    else if (this.phase !== 'closing' && this.phase !== 'done') {
      this.call?.cancel();
      if (this.phase === 'routing') this.route?.onAbort?.();
      const forward = this.forward;
      this.forward = undefined;
      this.refuse({ status: 503, code: 'draining', message: 'The gateway is shutting down.' });
      forward?.finish(this.endRecord('client_abort', 503));
    }
  }

  destroy(): void {
    this.answer.destroy();
  }

  private readonly onBody = (body: Buffer | 'too_large'): void => {
    if (this.phase !== 'body') return;
    if (body === 'too_large') {
      const limit = this.host.limits.bodyBytes;
      this.refuse({
        status: 413,
        code: 'request_too_large',
        message: `The request body is larger than ${limit} bytes.`,
      });
      return;
    }
    const boundary = this.head.contentType === undefined ? undefined : multipartBoundary(this.head.contentType);
    const isForm = this.head.contentType !== undefined && /^multipart\//i.test(this.head.contentType);
    if (isForm && boundary === undefined) {
      this.refuse({ status: 400, code: 'invalid_request', message: 'The multipart content type names no boundary.' });
      return;
    }
    const maxDepth = this.host.limits.jsonDepth;
    const parsed = parseRequest(
      this.path,
      body,
      isForm && boundary !== undefined ? { maxDepth, boundary } : { maxDepth },
    );
    if (!(parsed instanceof ScannedRequest)) {
      this.refuse(parsed);
      return;
    }
    this.parsed = parsed;
    this.asked = parsed.model;
    this.wantsStream = parsed.stream;
    this.understood = parsed.kind !== 'other';
    this.stores = !this.understood || parsed.stores;
    this.admit(parsed);
  };

  private admit(parsed: ScannedRequest): void {
    const { identity } = this;
    const route = new ProxyRouteRequest(
      this.head,
      parsed,
      this.answer.receivedMs,
      identity?.tenant,
      identity?.apiKeyName,
      identity?.allows?.(parsed.model) === false,
    );
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
    // One text for a model that is unknown and one that is not for this caller, so that neither can be probed for.
    const error = refusal.code === 'model_not_found' ? MODEL_NOT_FOUND : refusal;
    this.answerError(error, refusal.decision);
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
    const injectsUsage =
      this.wantsStream && isTextual(parsed.kind) && !parsed.includeUsage && attempt.target.engine !== 'other';
    const renamed = attempt.model !== undefined && attempt.model !== this.asked;
    const body = spliceBody(parsed, {
      model: attempt.model,
      includeUsage: injectsUsage,
      set: attempt.set,
      drop: attempt.drop,
    });
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
    const options = { path, method: 'POST', body: toSend(body, headers, this.wantsStream), headers } as const;
    if (this.raced) host.pools.dispatchFresh(attempt.target, options, call);
    else host.pools.dispatch(attempt.target, options, call, now);
  }

  callStarted(call: UpstreamCall): void {
    if (call !== this.call) return;
    call.sentMs = this.host.clock.now();
    this.rearm();
  }

  callHead(call: UpstreamCall, status: number, headers: UpstreamHeaders): void {
    if (call !== this.call) return;
    this.answer.upstreamMs = this.failedMs + this.host.clock.now() - call.dispatchedMs;
    const load = headers['endpoint-load-metrics'];
    if (typeof load === 'string') this.host.hooks.loadReport?.(call.attempt.target, load);
    if (status === 429 || status === 408 || status >= 500 || (status >= 300 && status < 400)) {
      this.fail(call, failureOf(status), status);
      return;
    }
    const streams = status >= 200 && status < 300 && isEventStream(headers['content-type']);
    if (this.early && !(streams && isPlain(headers))) {
      this.failEarly('error', status);
      return;
    }
    if (streams) {
      this.openStream(call, headers);
      return;
    }
    const limit = this.alias === undefined ? this.host.limits.heldAnswerBytes : this.host.limits.rewrittenAnswerBytes;
    const declared = Number(headers['content-length']);
    this.holding = (this.understood || status >= 400) && !(declared > limit);
    if (!this.holding) this.commitPlain(call);
  }

  private openStream(call: UpstreamCall, headers: UpstreamHeaders): void {
    if (!isPlain(headers)) {
      // Events that we cannot read are relayed as bytes.
      this.commitPlain(call);
      return;
    }
    this.reader = new SseReader({
      dialect: dialectOf(this.path),
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
      else if (reader.overflowed)
        this.breakOff('upstream_error', 'An event of the upstream was too long.', 'upstream_error');
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
    this.answer.end();
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
    if (reader.error !== undefined && !reader.torn) {
      // An error event that is whole but for its blank line; every other error has been given out by `push`.
      if (rest.length > 0) {
        this.relay(rest);
        this.relay(rest.at(-1) === LF ? LINE_END : EVENT_END);
      }
      this.endByEngineError();
      return;
    }
    if (!complete) {
      this.breakOff(
        'upstream_disconnected',
        'The upstream closed the stream before it was complete.',
        'upstream_disconnected',
      );
      return;
    }
    this.endWell(reader);
  }

  private endWell(reader: SseReader): void {
    this.usage = reader.usage;
    this.answer.end();
    const call = this.call;
    this.finish('ok', this.status);
    call?.cancel();
  }

  callFailed(call: UpstreamCall, error: Error): void {
    if (call !== this.call) return;
    this.host.logger.debug('upstream call failed', {
      request_id: this.head.requestId,
      endpoint: call.attempt.endpoint,
      error: error.message,
    });
    if (this.phase === 'relay') {
      // A server that closes right behind its last event has told all.
      if (this.reader?.isComplete(false) === true) {
        this.endWell(this.reader);
        return;
      }
      this.breakOff(
        'upstream_disconnected',
        'The upstream disconnected before the answer was complete.',
        'upstream_disconnected',
      );
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

  callFault(call: UpstreamCall, error: unknown): void {
    if (call === this.call) this.fault('relay', error);
  }

  /** The current attempt failed before anything was given to the client: the router says what comes next. */
  private fail(
    call: UpstreamCall,
    cause: Parameters<Forward['next']>[0]['cause'],
    status: number,
    keepAliveRace = false,
  ): void {
    const forward = this.forward;
    if (forward === undefined) return;
    if (this.early) {
      this.failEarly(cause, status);
      return;
    }
    const now = this.host.clock.now();
    const retryAfterSeconds = retryAfterOf(call.headers['retry-after'], () => this.host.clock.epochMs());
    this.call = undefined;
    call.cancel();
    this.phase = 'routing';
    this.raced ||= keepAliveRace;
    const durationMs = now - call.dispatchedMs;
    this.failedMs += durationMs;
    this.answer.upstreamMs = this.failedMs;
    let step: ReturnType<Forward['next']>;
    try {
      step = forward.next({
        cause,
        status,
        retryAfterSeconds,
        durationMs,
        ...(keepAliveRace ? { keepAliveRace } : {}),
      });
    } catch (error) {
      this.fault('next', error);
      return;
    }
    if (step.kind === 'refuse') {
      const answer = refusalOf(step, this.reader?.error);
      this.answerError(answer, forward.decision);
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

  /** The attempt failed before its first event, behind a head that went out early. */
  private failEarly(cause: AttemptFailure['cause'], status: number): void {
    const { code, message, outcome } = earlyFailure(cause, status);
    this.breakOff(code, message, outcome);
  }

  /** Gives out the head of a stream before the upstream said anything; comments follow until it does. */
  private speakEarly(): void {
    if (!this.early) {
      this.early = true;
      this.status = 200;
      const { call } = this;
      this.answer.openStream(call?.responded === true ? call : EARLY_HEAD, this.forward?.decision);
    }
    this.answer.heartbeat();
  }

  /** Whether a head was given out that an error event can follow. */
  private opened(): boolean {
    return this.phase === 'relay' || (this.phase === 'attempt' && this.early);
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

  private commitStream(call: UpstreamCall, out: Uint8Array): void {
    const now = this.host.clock.now();
    this.ttftMs = now - this.answer.receivedMs;
    this.lastEventMs = now;
    this.commit(call, now - call.sentMs);
    if (!this.early) this.answer.openStream(call, this.forward?.decision);
    const held = this.held;
    this.held = [];
    this.heldBytes = 0;
    for (const piece of held) this.relay(piece);
    this.relay(out);
    this.rearm();
  }

  /** Gives out the head of an answer that is relayed as bytes. */
  private commitPlain(call: UpstreamCall): void {
    this.lastEventMs = this.host.clock.now();
    this.commit(call, Number.NaN);
    this.answer.openPlain(call, this.forward?.decision);
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
    const isJsonAnswer = isJsonType(call.headers['content-type']) && call.headers['content-encoding'] === undefined;
    // The mere close of a connection does not tell that nothing is missing.
    if (isJsonAnswer && !isFramed(call.headers) && !isJson(body)) {
      this.fail(call, 'error', this.stores ? 502 : call.status);
      return;
    }
    if (isJsonAnswer) {
      this.usage = answerUsage(body);
      if (this.alias !== undefined) body = restoreModel(body, this.alias);
    }
    this.commit(call, Number.NaN);
    this.answer.whole(call, body, this.forward?.decision);
    this.finish('ok', call.status);
  }

  /** The upstream refused the request itself: its answer is the client's, unless a fallback takes prompts that are too long. */
  private relayRefusal(call: UpstreamCall, body: Uint8Array): void {
    const forward = this.forward;
    if (
      forward !== undefined &&
      (call.status === 400 || call.status === 413 || call.status === 422) &&
      isContextExceeded(body)
    ) {
      const now = this.host.clock.now();
      this.call = undefined;
      const step = forward.next({
        cause: 'context_exceeded',
        status: call.status,
        retryAfterSeconds: Number.NaN,
        durationMs: now - call.dispatchedMs,
      });
      if (step.kind === 'attempt') {
        this.startAttempt(step.attempt);
        return;
      }
      this.status = call.status;
      this.answer.whole(call, body, this.forward?.decision);
      this.finish('ok', call.status);
      return;
    }
    this.commit(call, Number.NaN);
    this.answer.whole(call, body, this.forward?.decision);
    this.finish('ok', call.status);
  }

  private relay(bytes: Uint8Array): void {
    const goesOn = this.answer.write(bytes);
    if (this.reader === undefined) this.lastEventMs = this.answer.lastWriteMs;
    if (goesOn) return;
    this.call?.pause();
    this.rearm();
  }

  private readonly onDrain = (): void => {
    // The silence was the reader's.
    this.lastEventMs = this.answer.lastWriteMs;
    this.call?.resume();
  };

  /** Refuses a request that has no lease. */
  private refuse(error: ErrorAnswer): void {
    this.answerError(error, undefined);
    this.unrouted(error.status, error.code);
  }

  private unrouted(status: number, code: string): void {
    this.host.hooks.unrouted?.({
      requestId: this.head.requestId,
      traceId: this.head.traceId,
      tenant: this.identity?.tenant ?? '',
      path: this.path,
      status,
      code,
      durationMs: this.answer.ageMs,
    });
  }

  private answerError(error: ErrorAnswer, decision: DecisionRecord | undefined): void {
    const unread = this.phase === 'body';
    this.leave();
    if (!this.answer.error(error, decision, unread)) return;
    this.closeMs = this.host.clock.now() + this.host.limits.lingerMs;
    this.rearm();
  }

  /** After the commit point: tells the client, then ends the socket without the last chunk, so that raw readers fail too. */
  private breakOff(code: string, message: string, outcome: RequestEnd['outcome']): void {
    if (this.reader !== undefined || this.early) this.answer.write(errorEvent(dialectOf(this.path), code, message));
    this.endBroken(outcome);
  }

  /** The engine's own error event was relayed; nothing behind it counts. */
  private endByEngineError(): void {
    this.endBroken('upstream_error');
  }

  private endBroken(outcome: RequestEnd['outcome']): void {
    const { call, reader, status } = this;
    this.call = undefined;
    call?.cancel();
    this.usage = reader?.usage ?? this.usage;
    this.leave();
    if (reader === undefined && !this.early) this.answer.destroy();
    else this.answer.breakOff();
    this.endForward(outcome, status, call?.status ?? 0);
  }

  private fault(where: string, error: unknown): void {
    this.host.logger.error('internal fault', {
      request_id: this.head.requestId,
      where,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    if (this.phase === 'done' || this.phase === 'closing') return;
    if (this.opened()) {
      this.breakOff('internal', 'The gateway failed to relay the answer.', 'client_abort');
      return;
    }
    this.call?.cancel();
    this.call = undefined;
    this.answerError(
      { status: 500, code: 'internal', message: 'The gateway failed to handle the request.' },
      this.forward?.decision,
    );
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
      this.unrouted(499, 'client_abort');
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
    this.closeMs = this.answer.flushedByMs;
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
      durationMs: this.answer.ageMs,
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
        return Math.min(this.overdueMs(call), this.nextWordMs(call));
      }
      case 'relay': {
        const { blockedMs, lastWriteMs } = this.answer;
        if (blockedMs !== NEVER) return Math.min(this.deadlineMs(), blockedMs + this.host.limits.stalledReaderMs);
        const idle = this.lastEventMs + (this.call?.attempt.idleMs ?? NEVER);
        const heartbeat = this.reader === undefined ? NEVER : lastWriteMs + this.host.limits.heartbeatMs;
        return Math.min(this.deadlineMs(), idle, heartbeat);
      }
      case 'closing':
        return this.closeMs;
      default:
        return NEVER;
    }
  }

  /** When the current attempt has taken too long to say anything. */
  private overdueMs(call: UpstreamCall): number {
    const { attempt } = call;
    const total = Math.min(this.deadlineMs(), call.dispatchedMs + attempt.attemptTimeoutMs);
    if (Number.isNaN(call.sentMs)) return Math.min(total, call.dispatchedMs + attempt.connectMs);
    return this.wantsStream ? Math.min(total, call.sentMs + attempt.firstTokenMs) : total;
  }

  /** When the client is to hear something although the upstream has said nothing; Infinity where that is not asked for. */
  private nextWordMs(call: UpstreamCall): number {
    if (this.early) return this.answer.lastWriteMs + this.host.limits.heartbeatMs;
    const afterMs = this.host.earlyHeadMs();
    if (afterMs === NEVER || !this.wantsStream || Number.isNaN(call.sentMs)) return NEVER;
    const isStream = call.responded ? this.reader !== undefined : dialectOf(this.path) !== 'other';
    return isStream ? this.answer.receivedMs + afterMs : NEVER;
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
        if (this.call !== undefined) this.attemptDue(this.call, nowMs);
        break;
      case 'relay':
        this.relayDue(nowMs);
        break;
      case 'closing':
        this.answer.destroy();
        return;
      default:
    }
    this.rearm();
  }

  private attemptDue(call: UpstreamCall, nowMs: number): void {
    if (nowMs >= this.overdueMs(call)) this.fail(call, this.overdue(call, nowMs), call.status);
    else this.speakEarly();
  }

  private overdue(call: UpstreamCall, nowMs: number): 'connect' | 'first_token' | 'timeout' {
    if (nowMs >= Math.min(this.deadlineMs(), call.dispatchedMs + call.attempt.attemptTimeoutMs)) return 'timeout';
    return Number.isNaN(call.sentMs) ? 'connect' : 'first_token';
  }

  private relayDue(nowMs: number): void {
    if (nowMs >= this.deadlineMs()) {
      this.breakOff('upstream_timeout', 'The answer took longer than the request may last.', 'upstream_timeout');
    } else if (this.answer.blockedMs !== NEVER) {
      this.host.logger.info('stalled reader dropped', { request_id: this.head.requestId });
      this.answer.destroy();
    } else if (nowMs >= this.lastEventMs + (this.call?.attempt.idleMs ?? NEVER)) {
      // A server that has said its last event and keeps the body open has told all.
      if (this.reader?.isComplete(false) === true) {
        this.endWell(this.reader);
        return;
      }
      this.breakOff('upstream_timeout', 'The upstream sent nothing for too long.', 'upstream_timeout');
    } else if (this.reader !== undefined) {
      this.answer.heartbeat();
    }
  }
}

const EMPTY: Uint8Array = new Uint8Array(0);
const EARLY_HEAD: UpstreamHead = Object.freeze({ status: 200, headers: { 'content-type': 'text/event-stream' } });
const LF = 0x0a;
const LINE_END: Uint8Array = Uint8Array.of(LF);
const EVENT_END: Uint8Array = Uint8Array.of(LF, LF);

function isTextual(kind: string): boolean {
  return kind === 'chat' || kind === 'completion';
}

function isPlain(headers: UpstreamHeaders): boolean {
  const encoding = headers['content-encoding'];
  return encoding === undefined || encoding === 'identity';
}
