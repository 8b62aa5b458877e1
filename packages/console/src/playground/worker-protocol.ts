import type { PolicyService } from './policy-service.ts';

/** A method of the service with its argument, numbered. */
export interface Call {
  readonly id: number;
  readonly method: keyof PolicyService;
  readonly argument: unknown;
}

export type Reply =
  /** The worker is loaded: calls may come. */
  | { readonly kind: 'ready' }
  | { readonly id: number; readonly kind: 'result'; readonly value: unknown }
  | { readonly id: number; readonly kind: 'fault'; readonly message: string };

/** The end of a channel to a worker, or to the page from within one. */
export interface MessageEnd {
  postMessage(message: unknown): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
}

/** Answers the calls that come in, one after another, until the worker ends. */
export function servePolicyCalls(port: MessageEnd, service: PolicyService): void {
  let previous: Promise<unknown> = Promise.resolve();
  port.addEventListener('message', ({ data }) => {
    const call = data as Call;
    previous = previous.then(async () => port.postMessage(await answer(service, call)));
  });
  port.postMessage({ kind: 'ready' } satisfies Reply);
}

async function answer(service: PolicyService, { id, method, argument }: Call): Promise<Reply> {
  try {
    const run = service[method] as (argument: unknown) => Promise<unknown>;
    return { id, kind: 'result', value: await run(argument) };
  } catch (error) {
    return { id, kind: 'fault', message: error instanceof Error ? error.message : String(error) };
  }
}
