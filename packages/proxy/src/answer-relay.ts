import type { AttemptFailure, Forward, RequestEnd } from '@signalbox/core';
import type { StreamError, Usage } from '@signalbox/openai-wire';
import type { ClientAnswer } from './client-answer.ts';
import type { ExchangeHost } from './exchange-host.ts';
import type { UpstreamCall } from './upstream-call.ts';

/** What a client is told inside of an answer that breaks: a code, and our own words. */
export interface TellableError {
  readonly code: string;
  readonly message: string;
}

/**
 * How the answer of one attempt reaches the client: as events, or as one body. A relay takes what the upstream sends, holds back what may
 * still be replaced by another attempt, and tells its owner what comes of it.
 */
export interface AnswerRelay {
  readonly usage: Usage;
  /** The error that the engine stated in its stream. */
  readonly error: StreamError | undefined;
  /** Whether all that there is to say was said, whatever becomes of the connection. */
  readonly saidAll: boolean;
  /** When the upstream last said something that counts: an event of a stream, any byte of a plain answer. */
  lastEventMs: number;
  /** Since when the client has been sent nothing, if comments are to break such a silence; else Infinity. */
  readonly silentSinceMs: number;
  /** The head has come. */
  begin(): void;
  data(chunk: Buffer): void;
  /** The upstream's body ended by its framing. */
  end(): void;
  /** After the commit point: ends the answer so that the client sees that it is broken, with a word where it has room for one. */
  breakOff(error: TellableError | undefined): void;
}

/** What a relay needs of the exchange that it serves. */
export interface RelayOwner {
  readonly host: ExchangeHost;
  readonly answer: ClientAnswer;
  readonly decision: Forward['decision'] | undefined;
  /** The head of a stream went out before the upstream said anything. */
  readonly early: boolean;
  /** The commit point: the attempt is final. `ttftMs` is NaN where the answer is no stream. */
  commit(call: UpstreamCall, ttftMs: number): void;
  /** Gives bytes to the client, and pauses the upstream while they are not taken. */
  write(bytes: Uint8Array): void;
  /** The attempt failed before the commit point. */
  fail(call: UpstreamCall, cause: AttemptFailure['cause'], status: number): void;
  /** The prompt was too long for the model server: whether another attempt takes the place of this one. */
  replaces(call: UpstreamCall): boolean;
  /** Looks anew at what is due next. */
  rearm(): void;
  /** The answer was given whole. */
  finish(call: UpstreamCall): void;
  /** The answer broke after the commit point. */
  broken(error: TellableError | undefined, outcome: RequestEnd['outcome']): void;
}
