import { answerUsage, isContextExceeded, isJson, NO_USAGE, restoreModel, type Usage } from '@signalbox/openai-wire';
import type { AnswerRelay, RelayOwner } from './answer-relay.ts';
import { isFramed, isJsonType } from './media-types.ts';
import type { UpstreamCall } from './upstream-call.ts';

const EMPTY: Uint8Array = new Uint8Array(0);

export interface PlainRelayOptions {
  /** The model's name to put into the answer; undefined leaves it untouched. */
  readonly alias: string | undefined;
  /** Whether the answer is one that can be understood, and so is worth holding. */
  readonly understood: boolean;
  /** The call may have had an effect that is not to be had twice: an answer that is lost counts as a 502, which only a policy's word repeats. */
  readonly stores: boolean;
}

/**
 * Relays an answer that is no stream of events. One of bounded size is held until it is whole, so that a lost one can be replaced; any
 * other goes out as it comes, and its head is the commit point.
 */
export class PlainRelay implements AnswerRelay {
  readonly error: undefined = undefined;
  readonly saidAll: boolean = false;
  readonly silentSinceMs: number = Number.POSITIVE_INFINITY;
  usage: Usage = NO_USAGE;
  lastEventMs = 0;
  private readonly owner: RelayOwner;
  private readonly call: UpstreamCall;
  private readonly alias: string | undefined;
  private readonly stores: boolean;
  private readonly limitBytes: number;
  private held: Uint8Array[] | undefined;
  private heldBytes = 0;

  constructor(owner: RelayOwner, call: UpstreamCall, options: PlainRelayOptions) {
    this.owner = owner;
    this.call = call;
    this.alias = options.alias;
    this.stores = options.stores;
    const { limits } = owner.host;
    this.limitBytes = this.alias === undefined ? limits.heldAnswerBytes : limits.rewrittenAnswerBytes;
    const declared = Number(call.headers['content-length']);
    if ((options.understood || call.status >= 400) && !(declared > this.limitBytes)) this.held = [];
  }

  begin(): void {
    if (this.held === undefined) this.commit();
  }

  data(chunk: Buffer): void {
    const { held } = this;
    if (held === undefined) {
      this.write(chunk);
      return;
    }
    held.push(chunk);
    this.heldBytes += chunk.length;
    if (this.heldBytes <= this.limitBytes) return;
    this.held = undefined;
    this.commit();
    for (const piece of held) this.write(piece);
  }

  end(): void {
    const { held } = this;
    if (held !== undefined) {
      this.answerWhole(held);
      return;
    }
    this.owner.answer.end();
    this.owner.finish(this.call);
  }

  breakOff(): void {
    this.owner.answer.destroy();
  }

  private write(bytes: Uint8Array): void {
    this.owner.write(bytes);
    this.lastEventMs = this.owner.answer.lastWriteMs;
  }

  private commit(): void {
    this.lastEventMs = this.owner.host.clock.now();
    this.owner.commit(this.call, Number.NaN);
    this.owner.answer.openPlain(this.call, this.owner.decision);
    this.owner.rearm();
  }

  private answerWhole(held: readonly Uint8Array[]): void {
    const { owner, call } = this;
    let body: Uint8Array = held.length === 1 ? (held[0] ?? EMPTY) : Buffer.concat(held, this.heldBytes);
    this.held = undefined;
    if (call.status >= 400) {
      // The upstream refused the request itself: its answer is the client's, unless a fallback takes prompts that are too long.
      const tooLong = (call.status === 400 || call.status === 413 || call.status === 422) && isContextExceeded(body);
      if (tooLong && owner.replaces(call)) return;
      if (!tooLong) owner.commit(call, Number.NaN);
    } else {
      const isJsonAnswer = isJsonType(call.headers['content-type']) && call.headers['content-encoding'] === undefined;
      // The mere close of a connection does not tell that nothing is missing.
      if (isJsonAnswer && !isFramed(call.headers) && !isJson(body)) {
        owner.fail(call, 'error', this.stores ? 502 : call.status);
        return;
      }
      if (isJsonAnswer) {
        this.usage = answerUsage(body);
        if (this.alias !== undefined) body = restoreModel(body, this.alias);
      }
      owner.commit(call, Number.NaN);
    }
    owner.answer.whole(call, body, owner.decision);
    owner.finish(call);
  }
}
