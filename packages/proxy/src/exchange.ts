import type { IncomingMessage } from 'node:http';
import type { Attempt, AttemptFailure, Forward, Refusal, RequestEnd, RouteOutcome } from '@signalbox/core';
import {
  dialectOf,
  multipartBoundary,
  NO_USAGE,
  parseRequest,
  ScannedRequest,
  type Usage,
} from '@signalbox/openai-wire';
import type { DecisionRecord } from '@signalbox/telemetry';
import type { AnswerRelay, RelayOwner, TellableError } from './answer-relay.ts';
import { planAttempt } from './attempt-plan.ts';
import { ClientAnswer, type AnswerOwner, type ErrorAnswer, type UpstreamHead } from './client-answer.ts';
import { collectBody, type BodyOwner } from './collect-body.ts';
import { breakOffEvents, EventRelay } from './event-relay.ts';
import type { ExchangeHost, LiveExchange } from './exchange-host.ts';
import { earlyFailure, failureOf, refusalOf, retryAfterOf } from './failure.ts';
import type { Identity } from './hooks.ts';
import type { LinedResponse } from './lined-response.ts';
import type { LiveItem } from './live-list.ts';
import { isEventStream, isReadable } from './media-types.ts';
import { UNKNOWN_MODEL } from './models.ts';
import { PlainRelay } from './plain-relay.ts';
import type { RequestHead } from './request-head.ts';
import { ProxyRouteRequest } from './route-request.ts';
import { WheelEntry } from './timer-wheel.ts';
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
export class Exchange extends WheelEntry implements AnswerOwner, BodyOwner, CallOwner, LiveExchange, RelayOwner {
  livePrevious: LiveItem | undefined = undefined;
  liveNext: LiveItem | undefined = undefined;

  readonly host: ExchangeHost;
  readonly answer: ClientAnswer;
  private readonly request: IncomingMessage;
  private readonly path: string;
  private readonly upstreamPath: string;
  /** Let go at the commit point, but for the id. */
  private head: RequestHead | undefined;
  private readonly requestId: string;
  private readonly traceId: string;

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

  private relay: AnswerRelay | undefined;
  /** The client's name for the model, where the answer is to be given it back. */
  private alias: string | undefined;
  private dropUsage = false;
  private usage: Usage = NO_USAGE;

  /** Spent on attempts that failed. */
  private failedMs = 0;
  private ttftMs: number = Number.NaN;
  /** The head went out before the upstream said anything: the attempt is final, and its failure an error event. */
  early = false;
  private backoffMs: number = NEVER;
  private closeMs: number = NEVER;
  private status = 0;

  constructor(
    host: ExchangeHost,
    request: IncomingMessage,
    response: LinedResponse,
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
    this.requestId = head.requestId;
    this.traceId = head.traceId;
    this.answer = new ClientAnswer(host, request, response, path, head, this);
  }

  start(): void {
    this.host.live.add(this);
    this.answer.onClose(this.onClientClose);
    const { head } = this;
    if (head === undefined) return;
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
    if (head.deadlineUnreadable) {
      this.refuse({
        status: 400,
        code: 'invalid_request',
        message: 'The header x-request-deadline-ms must be a number of milliseconds, from now or since 1970.',
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
    collectBody(this.request, declared, this.host.limits.bodyBytes, this);
  }

  /** Ends whatever still runs because the process stops. */
  shutDown(): void {
    // To the endpoint it is as if the client had left: nothing speaks against it.
    if (this.opened()) this.broken({ code: 'draining', message: 'The gateway is shutting down.' }, 'client_abort');
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

  bodyRead(body: Buffer | 'too_large'): void {
    const { head } = this;
    if (this.phase !== 'body' || head === undefined) return;
    if (body === 'too_large') {
      const limit = this.host.limits.bodyBytes;
      this.refuse({
        status: 413,
        code: 'request_too_large',
        message: `The request body is larger than ${limit} bytes.`,
      });
      return;
    }
    const { contentType } = head;
    const isForm = contentType !== undefined && contentType !== 'application/json' && /^multipart\//i.test(contentType);
    const boundary = isForm ? multipartBoundary(contentType) : undefined;
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
    this.admit(head, parsed);
  }

  private admit(head: RequestHead, parsed: ScannedRequest): void {
    const { identity } = this;
    const route = new ProxyRouteRequest(
      head,
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
    if (outcome instanceof Promise) {
      outcome.then(
        (late) => this.routed(late),
        (error: unknown) => this.fault('route', error),
      );
    } else this.routed(outcome);
  }

  private routed(outcome: RouteOutcome): void {
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
  }

  private refuseBy(refusal: Refusal): void {
    // One text for a model that is unknown and one that is not for this caller, so that neither can be probed for.
    const error = refusal.code === 'model_not_found' ? MODEL_NOT_FOUND : refusal;
    this.answerError(error, refusal.decision);
    refusal.finish();
  }

  private startAttempt(attempt: Attempt): void {
    const { host, head, parsed } = this;
    if (head === undefined || parsed === undefined) return;
    const now = host.clock.now();
    if (now >= this.deadlineMs()) {
      const call = new UpstreamCall(this, attempt, now);
      this.fail(call, 'timeout', 0);
      return;
    }
    const plan = planAttempt({ head, parsed, upstreamPath: this.upstreamPath }, attempt);
    const call = new UpstreamCall(this, attempt, now);
    this.call = call;
    this.phase = 'attempt';
    this.relay = undefined;
    this.alias = plan.renamed && host.reportModel() === 'asked' ? this.asked : undefined;
    this.dropUsage = plan.dropUsage;
    this.rearm();
    if (this.raced) host.pools.dispatchFresh(attempt.target, plan.options, call);
    else host.pools.dispatch(attempt.target, plan.options, call, now);
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
    const isStream = status >= 200 && status < 300 && isEventStream(headers['content-type']);
    if (this.early && !(isStream && isPlain(headers))) {
      this.failEarly('error', status);
      return;
    }
    this.relay = this.relayOf(call, headers, isStream);
    this.relay.begin();
  }

  private relayOf(call: UpstreamCall, headers: UpstreamHeaders, isStream: boolean): AnswerRelay {
    const { alias } = this;
    if (isStream && isPlain(headers))
      return new EventRelay(this, call, { dialect: dialectOf(this.path), alias, dropUsage: this.dropUsage });
    // Events that we cannot read are relayed as bytes.
    return new PlainRelay(this, call, { alias, understood: this.understood && !isStream, stores: this.stores });
  }

  callData(call: UpstreamCall, chunk: Buffer): void {
    if (call === this.call) this.relay?.data(chunk);
  }

  callEnd(call: UpstreamCall): void {
    if (call === this.call) this.relay?.end();
  }

  callFailed(call: UpstreamCall, error: Error): void {
    if (call !== this.call) return;
    this.host.logger.debug('upstream call failed', {
      request_id: this.requestId,
      endpoint: call.attempt.endpoint,
      error: error.message,
    });
    if (this.phase === 'relay') {
      // A server that closes right behind its last event has told all.
      if (this.relay?.saidAll === true) {
        this.answer.end();
        this.finish(call);
        return;
      }
      const message = 'The upstream disconnected before the answer was complete.';
      this.broken({ code: 'upstream_disconnected', message }, 'upstream_disconnected');
      return;
    }
    if ((error as NodeJS.ErrnoException).code === 'UND_ERR_INVALID_ARG') {
      this.refuseHeader(error);
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
  fail(call: UpstreamCall, cause: AttemptFailure['cause'], status: number, keepAliveRace = false): void {
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
      const answer = refusalOf(step, this.relay?.error);
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
    this.broken({ code, message }, outcome);
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

  get decision(): DecisionRecord | undefined {
    return this.forward?.decision;
  }

  /** The commit point: the attempt is final, and the body is not needed any more. */
  commit(call: UpstreamCall, ttftMs: number): void {
    this.phase = 'relay';
    if (!Number.isNaN(ttftMs)) this.ttftMs = this.answer.ageMs;
    this.forward?.commit(ttftMs);
    this.status = call.status;
    this.parsed?.release();
    this.parsed = undefined;
    this.route = undefined;
    this.head = undefined;
  }

  /** A fallback may take prompts that are too long. */
  replaces(call: UpstreamCall): boolean {
    const step = this.forward?.next({
      cause: 'context_exceeded',
      status: call.status,
      retryAfterSeconds: Number.NaN,
      durationMs: this.host.clock.now() - call.dispatchedMs,
    });
    if (step?.kind !== 'attempt') return false;
    this.startAttempt(step.attempt);
    return true;
  }

  write(bytes: Uint8Array): void {
    if (this.answer.write(bytes)) return;
    this.call?.pause();
    this.rearm();
  }

  drained(): void {
    // The silence was the reader's.
    if (this.relay !== undefined) this.relay.lastEventMs = this.answer.lastWriteMs;
    this.call?.resume();
  }

  /** Refuses a request that has no lease. */
  private refuse(error: ErrorAnswer): void {
    this.answerError(error, undefined);
    this.unrouted(error.status, error.code);
  }

  private unrouted(status: number, code: string): void {
    this.host.hooks.unrouted?.({
      requestId: this.requestId,
      traceId: this.traceId,
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

  /** After the commit point: the client sees that the answer is broken, and nothing behind that counts. */
  broken(error: TellableError | undefined, outcome: RequestEnd['outcome']): void {
    const { call, relay, status } = this;
    this.call = undefined;
    call?.cancel();
    this.usage = relay?.usage ?? this.usage;
    this.leave();
    if (relay === undefined) breakOffEvents(this.answer, dialectOf(this.path), error);
    else relay.breakOff(error);
    this.endForward(outcome, status, call?.status ?? 0);
  }

  /** A policy makes a header of what the caller wrote, and no header may hold that. The endpoint has no part in it. */
  private refuseHeader(error: Error): void {
    this.host.logger.info('a header of the policy cannot be sent', {
      request_id: this.requestId,
      error: error.message,
    });
    const refusal = {
      status: 400,
      code: 'invalid_request',
      message: 'The routing policy makes a header of a part of this request that holds characters no header may hold.',
    };
    if (this.opened()) {
      this.broken(refusal, 'client_abort');
      return;
    }
    this.call = undefined;
    this.answerError(refusal, this.forward?.decision);
    this.endForward('client_abort', refusal.status, 0);
  }

  private fault(where: string, error: unknown): void {
    this.host.logger.error('internal fault', {
      request_id: this.requestId,
      where,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    if (this.phase === 'done' || this.phase === 'closing') return;
    if (this.opened()) {
      this.broken({ code: 'internal', message: 'The gateway failed to relay the answer.' }, 'client_abort');
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
      this.usage = this.relay?.usage ?? this.usage;
      this.endForward('client_abort', 499, call?.status ?? 0);
    } else if (phase === 'body') {
      this.unrouted(499, 'client_abort');
    }
    this.drop();
  };

  finish(call: UpstreamCall): void {
    this.usage = this.relay?.usage ?? this.usage;
    this.leave();
    this.endForward('ok', call.status, call.status);
    call.cancel();
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
    this.parsed?.release();
    this.parsed = undefined;
    this.route = undefined;
    this.relay = undefined;
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

  /** When the upstream has been silent for too long. */
  private idleAtMs(): number {
    return (this.relay?.lastEventMs ?? NEVER) + (this.call?.attempt.idleMs ?? NEVER);
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
        const { blockedMs } = this.answer;
        if (blockedMs !== NEVER) return Math.min(this.deadlineMs(), blockedMs + this.host.limits.stalledReaderMs);
        const idle = this.idleAtMs();
        const heartbeat = (this.relay?.silentSinceMs ?? NEVER) + this.host.limits.heartbeatMs;
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
    const isStream = call.responded ? this.relay instanceof EventRelay : dialectOf(this.path) !== 'other';
    return isStream ? this.answer.receivedMs + afterMs : NEVER;
  }

  /** Arms the wheel if something is due earlier than it is armed for; a later due time is found when the wheel comes round. */
  rearm(): void {
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
      this.broken(
        { code: 'upstream_timeout', message: 'The answer took longer than the request may last.' },
        'upstream_timeout',
      );
    } else if (this.answer.blockedMs !== NEVER) {
      this.host.logger.info('stalled reader dropped', { request_id: this.requestId });
      this.answer.destroy();
    } else if (nowMs >= this.idleAtMs()) {
      // A server that has said its last event and keeps the body open has told all.
      if (this.relay?.saidAll === true && this.call !== undefined) {
        this.answer.end();
        this.finish(this.call);
        return;
      }
      this.broken({ code: 'upstream_timeout', message: 'The upstream sent nothing for too long.' }, 'upstream_timeout');
    } else if (this.relay !== undefined && this.relay.silentSinceMs !== NEVER) {
      this.answer.heartbeat();
    }
  }
}

const EARLY_HEAD: UpstreamHead = Object.freeze({ status: 200, headers: { 'content-type': 'text/event-stream' } });
function isPlain(headers: UpstreamHeaders): boolean {
  const encoding = headers['content-encoding'];
  return encoding === undefined || encoding === 'identity';
}
