import type { Scheduler } from '@signalbox/core';
import type { PolicyService } from './policy-service.ts';
import type { Call, MessageEnd, Reply } from './worker-protocol.ts';

/** A running worker. */
export interface WorkerHandle extends MessageEnd {
  terminate(): void;
  addEventListener(type: 'message' | 'error', listener: (event: { readonly data: unknown }) => void): void;
}

export interface WorkerClientOptions {
  readonly start: () => WorkerHandle;
  readonly scheduler: Scheduler;
  /** Milliseconds that one call may take of a worker that is loaded. A worker that takes longer is ended, and the next call has a new one. */
  readonly limitMs: number;
  /** Milliseconds that a worker may take to load. */
  readonly startLimitMs?: number;
}

/** Why there is no answer. `superseded`: a later call of the same method took its place before it was begun. */
export class NoAnswer extends Error {
  readonly reason: 'too_slow' | 'superseded' | 'fault';

  constructor(reason: NoAnswer['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

interface Waiting {
  readonly call: Call;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: NoAnswer) => void;
}

const START_LIMIT_MS = 15_000;

/**
 * The service in a worker, seen from the page. One call is under way at a time; of those that wait, the latest of each method stands and the
 * others are superseded. Whatever a policy does to the worker, the page gets an answer or a `NoAnswer` in time.
 */
export class WorkerClient {
  readonly #options: WorkerClientOptions;
  readonly #waiting = new Map<keyof PolicyService, Waiting>();
  #worker: WorkerHandle | undefined;
  #isReady = false;
  #current: Waiting | undefined;
  #cancelLimit: (() => void) | undefined;
  #calls = 0;

  constructor(options: WorkerClientOptions) {
    this.#options = options;
  }

  call<M extends keyof PolicyService>(method: M, ...given: Parameters<PolicyService[M]>): ReturnType<PolicyService[M]> {
    const promise = new Promise((resolve, reject) => {
      this.#waiting.get(method)?.reject(new NoAnswer('superseded', 'a later call took its place'));
      // Deleted first, so that the order of the map is that in which calls came.
      this.#waiting.delete(method);
      this.#waiting.set(method, { call: { id: ++this.#calls, method, argument: given[0] }, resolve, reject });
    });
    this.#next();
    return promise as ReturnType<PolicyService[M]>;
  }

  close(): void {
    this.#stop();
    const gone = new NoAnswer('superseded', 'the page let go of the worker');
    this.#settle(({ reject }) => reject(gone));
    for (const { reject } of this.#waiting.values()) reject(gone);
    this.#waiting.clear();
  }

  #next(): void {
    const [first] = this.#waiting;
    if (this.#current !== undefined || first === undefined) return;
    const [method, waiting] = first;
    this.#waiting.delete(method);
    this.#current = waiting;
    if (this.#worker === undefined) this.#begin();
    else if (this.#isReady) this.#send(this.#worker, waiting);
  }

  #send(worker: WorkerHandle, { call }: Waiting): void {
    const { limitMs, scheduler } = this.#options;
    this.#cancelLimit?.();
    this.#cancelLimit = scheduler.setTimer(limitMs, () =>
      this.#fail('too_slow', `it took longer than ${limitMs / 1000} s and was stopped`),
    );
    worker.postMessage(call);
  }

  #begin(): void {
    const { start, startLimitMs = START_LIMIT_MS, scheduler } = this.#options;
    const worker = start();
    this.#worker = worker;
    this.#isReady = false;
    this.#cancelLimit = scheduler.setTimer(startLimitMs, () => this.#fail('fault', 'the worker did not start'));
    worker.addEventListener('message', ({ data }) => {
      if (worker === this.#worker) this.#receive(data as Reply);
    });
    worker.addEventListener('error', () => {
      if (worker === this.#worker) this.#fail('fault', 'the worker could not be loaded, or failed');
    });
  }

  #receive(reply: Reply): void {
    if (reply.kind === 'ready') {
      this.#isReady = true;
      if (this.#worker !== undefined && this.#current !== undefined) this.#send(this.#worker, this.#current);
      return;
    }
    if (reply.id !== this.#current?.call.id) return;
    this.#settle((waiting) => {
      if (reply.kind === 'result') waiting.resolve(reply.value as never);
      else waiting.reject(new NoAnswer('fault', reply.message));
    });
    this.#next();
  }

  #fail(reason: NoAnswer['reason'], message: string): void {
    this.#stop();
    this.#settle((waiting) => waiting.reject(new NoAnswer(reason, message)));
    this.#next();
  }

  #stop(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #settle(how: (waiting: Waiting) => void): void {
    const waiting = this.#current;
    this.#current = undefined;
    this.#cancelLimit?.();
    if (waiting !== undefined) how(waiting);
  }
}
