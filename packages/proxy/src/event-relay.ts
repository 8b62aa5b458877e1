import { errorEvent, SseReader, type StreamDialect, type StreamError, type Usage } from '@signalbox/openai-wire';
import type { AnswerRelay, RelayOwner, TellableError } from './answer-relay.ts';
import type { ClientAnswer } from './client-answer.ts';
import { failureOf } from './failure.ts';
import { isFramed } from './media-types.ts';
import type { UpstreamCall } from './upstream-call.ts';

const LF = 0x0a;
const LINE_END: Uint8Array = Uint8Array.of(LF);
const EVENT_END: Uint8Array = Uint8Array.of(LF, LF);

export interface EventRelayOptions {
  readonly dialect: StreamDialect;
  /** The model's name to put into the events; undefined leaves them untouched. */
  readonly alias: string | undefined;
  /** Leave out the usage that only we asked for. */
  readonly dropUsage: boolean;
}

/**
 * Relays a stream of events. Up to the first event with output everything is held, so that another attempt may still take the place of
 * this one; from then on whole events go out as they come.
 */
export class EventRelay implements AnswerRelay {
  lastEventMs = 0;
  private readonly owner: RelayOwner;
  private readonly call: UpstreamCall;
  private readonly dialect: StreamDialect;
  private readonly reader: SseReader;
  private readonly framed: boolean;
  private committed = false;
  private held: Uint8Array[] | undefined;
  private heldBytes = 0;

  constructor(owner: RelayOwner, call: UpstreamCall, options: EventRelayOptions) {
    this.owner = owner;
    this.call = call;
    this.dialect = options.dialect;
    this.framed = isFramed(call.headers);
    this.reader = new SseReader({
      dialect: options.dialect,
      alias: options.alias,
      dropUsageFrames: options.dropUsage,
      maxEventBytes: owner.host.limits.eventBytes,
    });
  }

  get usage(): Usage {
    return this.reader.usage;
  }

  get error(): StreamError | undefined {
    return this.reader.error;
  }

  /** A server that has said its last event has told all, even if it closes right behind it or keeps the body open. */
  get saidAll(): boolean {
    return this.reader.isComplete(false);
  }

  get silentSinceMs(): number {
    return this.owner.answer.lastWriteMs;
  }

  begin(): void {}

  data(chunk: Buffer): void {
    const { reader } = this;
    const before = reader.events;
    const out = reader.push(chunk);
    if (!this.committed) {
      this.hold(out);
      return;
    }
    if (reader.events > before || reader.done) this.lastEventMs = this.owner.host.clock.now();
    if (out.length > 0) this.owner.write(out);
    if (reader.error !== undefined) this.owner.broken(undefined, 'upstream_error');
    else if (reader.overflowed) {
      const error = { code: 'upstream_error', message: 'An event of the upstream was too long.' };
      this.owner.broken(error, 'upstream_error');
    }
  }

  /** Whole events, possibly none, before the first that has output. */
  private hold(out: Uint8Array): void {
    const { reader } = this;
    if (reader.events > 0 || reader.done) {
      this.commit(out);
      if (reader.error !== undefined) this.owner.broken(undefined, 'upstream_error');
      return;
    }
    if (reader.error !== undefined) {
      const status = reader.error.status || 200;
      this.owner.fail(this.call, failureOf(status, reader.error.code), status);
      return;
    }
    if (out.length > 0) {
      (this.held ??= []).push(out);
      this.heldBytes += out.length;
    }
    // An event that has not ended is held too.
    const heldBytes = this.heldBytes + reader.heldBytes;
    if (reader.overflowed || heldBytes > this.owner.host.limits.heldStreamBytes)
      this.owner.fail(this.call, 'error', 200);
  }

  private commit(out: Uint8Array): void {
    const { owner, call, held } = this;
    this.committed = true;
    this.lastEventMs = owner.host.clock.now();
    this.held = undefined;
    owner.commit(call, this.lastEventMs - call.sentMs);
    if (!owner.early) owner.answer.openStream(call, owner.decision);
    call.releaseHeaders();
    if (held !== undefined) for (const piece of held) owner.write(piece);
    owner.write(out);
    owner.rearm();
  }

  end(): void {
    const { reader, owner, call } = this;
    const rest = reader.end();
    const complete = reader.isComplete(this.framed);
    if (!this.committed) {
      if (!complete) {
        const status = reader.error?.status || 200;
        owner.fail(call, reader.error === undefined ? 'error' : failureOf(status, reader.error.code), status);
        return;
      }
      this.commit(rest);
    } else if (complete && rest.length > 0) {
      owner.write(rest);
    }
    if (reader.error !== undefined && !reader.torn) {
      // An error event that is whole but for its blank line; every other error has been given out by `push`.
      if (rest.length > 0) {
        owner.write(rest);
        owner.write(rest.at(-1) === LF ? LINE_END : EVENT_END);
      }
      owner.broken(undefined, 'upstream_error');
    } else if (complete) {
      owner.answer.end();
      owner.finish(call);
    } else {
      const message = 'The upstream closed the stream before it was complete.';
      owner.broken({ code: 'upstream_disconnected', message }, 'upstream_disconnected');
    }
  }

  breakOff(error: TellableError | undefined): void {
    breakOffEvents(this.owner.answer, this.dialect, error);
  }
}

/** Ends a stream of events that is broken: with an event that says why, and without the last chunk, so that raw readers see it too. */
export function breakOffEvents(answer: ClientAnswer, dialect: StreamDialect, error: TellableError | undefined): void {
  if (error !== undefined) answer.write(Buffer.from(errorEvent(dialect, error.code, error.message)));
  answer.breakOff();
}
