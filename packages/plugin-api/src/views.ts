import type { Value } from './value.ts';

/**
 * What a scorer, filter, property or picker sees of the request in hand: the signals that it declared in `reads`, and the seed of all
 * randomness and tie breaks. Keys are written with their scope: `request.prompt_tokens`, `cluster.saturation`.
 */
export interface RequestView {
  /** A uint32 from a counter of the gateway's own, recorded with the decision; never taken from the client. */
  readonly seed: number;
  /** The value of a numeric signal in canonical units; NaN when it is unknown or was not declared in `reads`. */
  number(key: string): number;
  /** The value of any signal; `undefined` when it is unknown or was not declared in `reads`. */
  value(key: string): Value | undefined;
}

/** A numeric column of the fleet table, indexed by **slot** (not by position). NaN is unknown. Read only. */
export interface NumberColumn {
  readonly [slot: number]: number;
}

/** A column of texts or lists of the fleet table, indexed by slot. `undefined` is unknown. Read only. */
export interface ValueColumn {
  readonly [slot: number]: Value | undefined;
}

/**
 * The endpoints still in the running for one request. Position i (0 ≤ i < length) stands for the endpoint in `slots[i]`; columns are
 * indexed by slot. The object and its arrays belong to the host and are valid only during the call.
 */
export interface CandidateView {
  readonly length: number;
  readonly slots: Int32Array;
  /** The numeric property `key` (`candidate.queued_tokens`), which must be declared in `reads`; every value NaN otherwise. */
  column(key: string): NumberColumn;
  /** The text, bool or list property `key`, which must be declared in `reads`; every value undefined otherwise. */
  values(key: string): ValueColumn;
}

/** How one attempt at an endpoint ended, as stateful plugins and predictors learn it. Durations are in milliseconds, NaN if unknown. */
export interface AttemptOutcome {
  readonly ok: boolean;
  /** `ok`, or the cause: `connect`, `timeout`, `first_token`, `error`, `saturated`, `rate_limited`, `context_exceeded`, `client_abort`. */
  readonly reason: string;
  readonly status: number;
  readonly ttftMs: number;
  readonly durationMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /**
   * What the gateway's ledger held for the endpoint at the moment this attempt was leased, the attempt itself not counted: requests in
   * flight, their prompt tokens and output tokens to come together, prompt tokens not yet prefilled, output tokens still to come. Absent
   * where the host did not record it; predictors need it to tell a slow endpoint from a busy one.
   */
  readonly before?: {
    readonly inflightRequests: number;
    readonly inflightTokens?: number;
    readonly queuedTokens: number;
    readonly decodeTokens: number;
  };
}
