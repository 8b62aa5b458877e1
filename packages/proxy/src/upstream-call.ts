import type { Attempt } from '@signalbox/core';
import type { Dispatcher } from 'undici';
import type { Connection, ConnectionAware } from './endpoint-pools.ts';

export type UpstreamHeaders = { readonly [name: string]: string | string[] | undefined };

const NO_HEADERS: UpstreamHeaders = Object.freeze({});

/** What a call reports to its exchange. Calls that were cancelled report nothing more. */
export interface CallOwner {
  callStarted(call: UpstreamCall): void;
  callHead(call: UpstreamCall, status: number, headers: UpstreamHeaders): void;
  callData(call: UpstreamCall, chunk: Buffer): void;
  callEnd(call: UpstreamCall): void;
  callFailed(call: UpstreamCall, error: Error): void;
  /** Our own code threw while it took something of the call. */
  callFault(call: UpstreamCall, error: unknown): void;
}

/** One attempt on the wire: an undici handler that can be cancelled in every phase, the opening of the connection included. */
export class UpstreamCall implements ConnectionAware {
  readonly attempt: Attempt;
  readonly dispatchedMs: number;
  connection: Connection | undefined = undefined;
  /** When the request was written to a socket; NaN before. */
  sentMs: number = Number.NaN;
  /** The socket had carried a request before. */
  reused = false;
  /** The first byte of a response was seen. */
  responded = false;
  status = 0;
  headers: UpstreamHeaders = NO_HEADERS;
  private readonly owner: CallOwner;
  private controller: Dispatcher.DispatchController | undefined;
  private over = false;

  constructor(owner: CallOwner, attempt: Attempt, nowMs: number) {
    this.owner = owner;
    this.attempt = attempt;
    this.dispatchedMs = nowMs;
  }

  /** Ends the call now and for good: the socket is destroyed, whether it is open or being opened. */
  cancel(): void {
    if (this.over) return;
    this.over = true;
    if (this.controller !== undefined) this.controller.abort(cancelled());
    else this.connection?.opening?.destroy(cancelled());
  }

  /** The headers have been read for the last time; a stream may go on for long. */
  releaseHeaders(): void {
    this.headers = NO_HEADERS;
  }

  pause(): void {
    this.controller?.pause();
  }

  resume(): void {
    this.controller?.resume();
  }

  get paused(): boolean {
    return this.controller?.paused ?? false;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.connection !== undefined) this.reused = this.connection.requests++ > 0;
    if (this.over) controller.abort(cancelled());
    else this.owner.callStarted(this);
  }

  onResponseStarted(): void {
    this.responded = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    // Else every header stays in memory as a Buffer until the stream ends, and with it all that was read at once.
    controller.rawHeaders = null;
    if (this.over || status < 200) return;
    this.status = status;
    this.headers = headers;
    try {
      this.owner.callHead(this, status, headers);
    } catch (fault) {
      this.owner.callFault(this, fault);
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.over) return;
    try {
      this.owner.callData(this, chunk);
    } catch (fault) {
      this.owner.callFault(this, fault);
    }
  }

  onResponseEnd(): void {
    if (this.over) return;
    this.over = true;
    try {
      this.owner.callEnd(this);
    } catch (fault) {
      this.owner.callFault(this, fault);
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.over) return;
    this.over = true;
    try {
      this.owner.callFailed(this, error);
    } catch (fault) {
      this.owner.callFault(this, fault);
    }
  }
}

function cancelled(): Error {
  return Object.assign(new Error('the call was cancelled'), { code: 'SIGNALBOX_CANCELLED' });
}
