import type { RequestValue } from '@signalbox/policy';
import type { AttemptRecord, RowRecord } from '@signalbox/telemetry';
import type { BoundDestination, BoundQueue } from './bound-policy.ts';
import type { Frame } from './frame.ts';
import type { Lease } from './lease.ts';
import type { Charge } from './limits.ts';
import type { PolicyVersion } from './policy-version.ts';
import type { RouteRequest } from './router.ts';

/** Why no endpoint took the request. */
export interface RefusalCause {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Whole seconds ≥ 1; undefined for statuses that carry none. */
  readonly retryAfterSeconds: number | undefined;
  /** Set where overload is the reason: what refused (the label of the queue's rule, or empty) and the class of the request. */
  readonly shed?: { readonly queue: string; readonly class: string };
}

/**
 * What core holds of one request from arrival to end. One object per request; the pipeline moves it along. What is of no use beyond the
 * commit point stands in the frame, whose memory serves the next request.
 */
export class RequestState {
  readonly version: PolicyVersion;
  /** Let go at the commit point, with the body. */
  request: RouteRequest | undefined;
  readonly requestId: string;
  readonly receivedAtMs: number;
  readonly traceId: string;
  readonly hidesModel: boolean;
  readonly tenant: string | undefined;
  readonly model: string;
  readonly path: string;
  readonly stream: boolean;
  readonly promptChars: number;
  deadlineMs: number;

  /** The admission rule that held, or -1. */
  admissionIndex = -1;
  /** Where in the policy the request stands. */
  routeIndex = -1;
  stepIndex = -1;
  destination: BoundDestination | undefined = undefined;
  /** Index into the destination's fallbacks, or -1; `active` is the destination in use, the fallback's or the step's own. */
  fallbackIndex = -1;
  active: BoundDestination | undefined = undefined;
  armIndex = 0;
  /** Index of an admission rule that this request has waited at and need not match again; -1 for none. */
  passedAdmission = -1;

  lease: Lease | undefined = undefined;
  /** Set for explain: the pipeline takes no lease and tells no plugin; the frame's `cursor` says which slot it would have taken. */
  dry = false;
  /** Places to fill on the shortlist; 0 for one more than the retries. */
  shortlistSize = 0;
  attempts: AttemptRecord[] | undefined = undefined;
  attemptStartMs = 0;
  attemptNumber = 0;

  /** It has just come, and may still be refused for the sake of those under way (`Core.shed`). */
  atDoor = false;
  /** The class that an `admit` rule gave it. */
  admittedPriority: RequestValue | undefined = undefined;
  /** Some target had an endpoint that is up or coming: the fleet is full rather than gone. */
  sawAvailable = false;
  refusal: RefusalCause | undefined = undefined;
  place: BoundQueue | undefined = undefined;

  /** The session, where the policy reads what its last turn took. */
  session: string | undefined = undefined;
  queued = false;
  queuedMs = 0;
  retried = false;
  /** A `fallback` gave the endpoint. */
  fellBack = false;
  /** An `else` gave it. */
  wentElse = false;
  charged: { readonly limit: number; readonly key: string; readonly estimate: Charge }[] | undefined = undefined;
  committed = false;
  finished = false;
  record: RowRecord | undefined = undefined;
  /** Its record says where it is, and that will not change. */
  described = false;
  #frame: Frame | undefined;

  constructor(version: PolicyVersion, frame: Frame, request: RouteRequest) {
    const { parsed } = request;
    this.version = version;
    this.#frame = frame;
    this.request = request;
    this.requestId = request.id;
    this.receivedAtMs = request.receivedAtMs;
    this.traceId = request.traceId ?? '';
    this.hidesModel = request.hidesModel ?? false;
    this.tenant = request.tenant;
    this.model = parsed.model ?? '';
    this.path = parsed.path;
    this.stream = parsed.stream;
    this.promptChars =
      parsed.images > 0 || parsed.promptTokensExact === parsed.promptTokensExact ? Number.NaN : parsed.promptChars;
    this.deadlineMs = request.deadlineMs;
  }

  /** Its frame, until that is let go: at the commit point, or with the request. Throws a TypeError afterwards. */
  get frame(): Frame {
    if (this.#frame === undefined) throw new TypeError('the frame of a request is read after it was given back');
    return this.#frame;
  }

  get hasFrame(): boolean {
    return this.#frame !== undefined;
  }

  /** Gives the frame back to the policy version, for the next request. Nothing may read it from then on. */
  releaseFrame(): void {
    if (this.#frame === undefined) return;
    this.version.giveBack(this.#frame);
    this.#frame = undefined;
  }
}
