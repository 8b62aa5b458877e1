/** Which requests a fault is for. All that is given must hold. */
export interface FaultMatch {
  /** The exact path. Without it a fault is for POST requests under /v1/ only, so that health checks and scrapes go on. */
  readonly path?: string;
  readonly model?: string;
  readonly stream?: boolean;
}

/** A fault, done to the requests it matches. Several knobs together work in the order listed. */
export interface Fault {
  readonly match?: FaultMatch;
  /** How many requests it is done to; default all. */
  readonly times?: number;
  /** How many matching requests are let through first; default 0. */
  readonly skip?: number;
  /** Real milliseconds before anything is answered. */
  readonly delayMs?: number;
  /**
   * `accept`: the connection is accepted and never read (every connection, whatever the match). `headers`: the request is read, nothing
   * is answered. `stream`: the answer stops after `hangAfterEvents` token events; a whole answer stops after its head.
   */
  readonly hangAt?: 'accept' | 'headers' | 'stream';
  /** Default 1. */
  readonly hangAfterEvents?: number;
  /** Resets the connection when so many bytes of the answer are out, counted from the status line. */
  readonly resetAtByte?: number;
  /** Ends the connection in order (FIN) at that byte, short of the answer's end. */
  readonly endAtByte?: number;
  /** Answers this status with an error body. */
  readonly errorStatus?: number;
  readonly errorCode?: string;
  readonly errorMessage?: string;
  /** Value of the `Retry-After` header beside `errorStatus`. */
  readonly retryAfter?: number | string;
  /** After so many token events the stream carries an error event and `[DONE]`, as vLLM does. */
  readonly errorEventAfter?: number;
}

/** What a fault is matched against. */
export interface FaultTarget {
  readonly method: string;
  readonly path: string;
  readonly model?: string;
  readonly stream?: boolean;
}

/** The faults in force; each keeps count of how often it was met. */
export interface FaultBook {
  set(faults: readonly Fault[]): void;
  list(): readonly (Fault & { readonly done: number })[];
  /** The first fault that the request meets and that has times left, counted as done. */
  take(target: FaultTarget): Fault | undefined;
  /** The same for a new connection: `hangAt: 'accept'` alone. */
  takeConnection(): Fault | undefined;
}

export function createFaultBook(initial: readonly Fault[] = []): FaultBook {
  let entries: { fault: Fault; met: number; done: number }[] = [];
  const set = (faults: readonly Fault[]): void => {
    entries = faults.map((fault) => ({ fault, met: 0, done: 0 }));
  };
  const take = (meets: (fault: Fault) => boolean): Fault | undefined => {
    for (const entry of entries) {
      if (!meets(entry.fault) || entry.done >= (entry.fault.times ?? Infinity)) continue;
      if (entry.met++ < (entry.fault.skip ?? 0)) continue;
      entry.done++;
      return entry.fault;
    }
    return undefined;
  };
  set(initial);
  return {
    set,
    list: () => entries.map(({ fault, done }) => ({ ...fault, done })),
    take: (target) => take((fault) => fault.hangAt !== 'accept' && matches(fault.match, target)),
    takeConnection: () => take((fault) => fault.hangAt === 'accept'),
  };
}

function matches(match: FaultMatch | undefined, target: FaultTarget): boolean {
  if (
    match?.path === undefined ? target.method !== 'POST' || !target.path.startsWith('/v1/') : match.path !== target.path
  )
    return false;
  if (match?.model !== undefined && match.model !== target.model) return false;
  return match?.stream === undefined || match.stream === (target.stream ?? false);
}

const knobs: Readonly<Record<string, (value: unknown) => boolean>> = {
  match: (value) => typeof value === 'object' && value !== null,
  times: isCount,
  skip: isCount,
  delayMs: isCount,
  hangAt: (value) => value === 'accept' || value === 'headers' || value === 'stream',
  hangAfterEvents: isCount,
  resetAtByte: isCount,
  endAtByte: isCount,
  errorStatus: (value) => Number.isInteger(value) && Number(value) >= 400 && Number(value) <= 599,
  errorCode: (value) => typeof value === 'string',
  errorMessage: (value) => typeof value === 'string',
  retryAfter: (value) => typeof value === 'string' || isCount(value),
  errorEventAfter: isCount,
};

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** Faults out of parsed JSON, one or a list; or a sentence that says what is wrong. */
export function parseFaults(json: unknown): { readonly faults: readonly Fault[] } | { readonly problem: string } {
  const list: readonly unknown[] = Array.isArray(json) ? json : [json];
  for (const [index, entry] of list.entries()) {
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
      return { problem: `fault ${index} is not an object` };
    for (const [key, value] of Object.entries(entry)) {
      const isValid = knobs[key];
      if (isValid === undefined)
        return { problem: `fault ${index} has an unknown knob "${key}"; known are ${Object.keys(knobs).join(', ')}` };
      if (!isValid(value)) return { problem: `fault ${index}: ${JSON.stringify(value)} is no value for "${key}"` };
    }
  }
  return { faults: list as readonly Fault[] };
}
