import type { Clock, Logger, RandomSource } from './host.ts';
import type { Json, OptionSchema } from './json-schema.ts';
import type { ParsedRequest } from './parsed-request.ts';
import type { Value, ValueType } from './value.ts';
import type { AttemptOutcome, CandidateView, RequestView } from './views.ts';

/** The version of this contract. A plugin states the one it was written for; the host refuses one that it does not know. */
export const API_VERSION = 1;

/** What `setup` receives. Side effects belong in `setup` only; `signal` fires before `close` on reload or stop. */
export interface SetupContext<Options = { readonly [name: string]: Json }> {
  /** Checked against the schema, with defaults filled in, unit literals as canonical numbers. Frozen. */
  readonly options: Options;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signal: AbortSignal;
}

/** The part that every provided name has. */
export interface Provided {
  /** One or two sentences for hover and reference. */
  readonly doc: string;
  /** Options that the name takes in a policy: `softmax(temperature: 0.2)`. Absent: it takes none. */
  readonly options?: OptionSchema;
  /** Names of options, in order, that may be written without their name: `under_load(95%)`. */
  readonly positional?: readonly string[];
  /** Keys this reads: `candidate.power`, `request.output_tokens`, `cluster.saturation`. The host computes these and nothing else. */
  readonly reads?: readonly string[];
  /** What the host does when this throws: `neutral` (default: as if it had no opinion) or `fail` (the request is refused). */
  readonly onError?: 'neutral' | 'fail';
}

/** Something with an end. `close` is idempotent. */
export interface Closeable {
  close?(): void;
}

/**
 * A candidate-scope expression in the policy language over properties, signals and the plugin's options (by name), which the
 * compiler inlines: `(0.1 * queued_tokens + decode_tokens) / throughput`. Numbers for scorers and numeric properties, bool for filters.
 */
export interface ByExpression {
  readonly expression: string;
}

export interface SignalInstance extends Closeable {
  /** The value for this request, unknown being NaN for numeric types and `undefined` for others. */
  evaluate(request: ParsedRequest, view: RequestView): Value | undefined;
}

export interface AsyncSignalInstance extends Closeable {
  evaluate(request: ParsedRequest, view: RequestView, abort: AbortSignal): Promise<Value | undefined>;
}

/** A fact about the request. `known: 'always'` lets proofs take it as known. */
export interface SignalDefinition extends Provided {
  readonly type: ValueType;
  readonly known?: 'always' | 'maybe';
  /** Milliseconds that a decision waits for an asynchronous signal, after which it is unknown. Absent: the signal is synchronous. */
  readonly budgetMs?: number;
  setup(context: SetupContext<never>): SignalInstance | AsyncSignalInstance;
}

export interface PropertyInstance extends Closeable {
  /** Writes `out[i]` for each candidate position i; NaN is unknown. Allocates nothing per candidate and changes no state. */
  fill(request: RequestView, candidates: CandidateView, out: Float64Array): void;
  /** Learns from a finished attempt at `slot`. Called for real traffic only. */
  ended?(slot: number, outcome: AttemptOutcome): void;
  /** The endpoint at `slot` has left the fleet: the next one there is another, of which nothing is known. */
  forget?(slot: number): void;
}

/** A numeric fact about an endpoint, computed for the request in hand. */
export type PropertyDefinition = Provided & { readonly type: ValueType } & (
    | ByExpression
    | { setup(context: SetupContext<never>): PropertyInstance }
  );

export interface FilterInstance extends Closeable {
  /** Writes `out[i]`: 1 the candidate passes, 0 it does not, 2 unknown (which excludes it in `where`). */
  filter(request: RequestView, candidates: CandidateView, out: Uint8Array): void;
}

/** A predicate over one candidate, usable wherever a bool of candidate scope is. */
export type FilterDefinition = Provided & (ByExpression | { setup(context: SetupContext<never>): FilterInstance });

export interface ScorerInstance extends Closeable {
  /** Writes `out[i]` for each candidate position i. Pure over its inputs; allocates nothing per candidate. NaN counts as unknown. */
  score(request: RequestView, candidates: CandidateView, out: Float64Array): void;
  /** Called for real decisions only (never for explain, shadow or tests), with the slot of the endpoint that was reserved. */
  picked?(slot: number): void;
  /** Called when the attempt at `slot` has ended. */
  ended?(slot: number, outcome: AttemptOutcome): void;
  /** The endpoint at `slot` has left the fleet: the next one there is another, of which nothing is known. */
  forget?(slot: number): void;
}

/**
 * An opinion on candidates. Without `cost`, scores are in [0, 1] and 1 is best; the host clamps. With `cost: true` the scorer gives raw
 * cost, lower is better, which the host min–max normalises over the candidates (all equal gives 1). `scope: 'rule'` gives each rule
 * that names it an instance of its own (round robin).
 */
export type ScorerDefinition = Provided & { readonly cost?: boolean; readonly scope?: 'rule' | 'policy' } & (
    | ByExpression
    | { setup(context: SetupContext<never>): ScorerInstance }
  );

export interface PickerInstance extends Closeable {
  /**
   * Chooses which candidates are scored at all: writes distinct positions to `out` and returns how many. Without it all are scored.
   */
  sample?(candidates: CandidateView, random: RandomSource, out: Int32Array): number;
  /**
   * Orders the shortlist: writes up to `k` distinct positions to `out`, best first, and returns how many. `scores[i]` is in [0, 1],
   * higher is better. Without it the host orders by score, ties by the policy's rule.
   */
  pick?(scores: Float64Array, candidates: CandidateView, random: RandomSource, k: number, out: Int32Array): number;
}

/** A way to choose among scored candidates. `random` is seeded from the request seed, so a decision can be replayed. */
export interface PickerDefinition extends Provided {
  setup(context: SetupContext<never>): PickerInstance;
}

/** An argument of an admission predicate: the name of a `define`d thing of this kind, a target, or a value. */
export interface AdmissionArgument {
  readonly name: string;
  readonly kind: 'slo' | 'limit' | 'target' | 'value';
  readonly optional?: boolean;
}

export interface AdmissionInstance extends Closeable {
  /** Whether the predicate holds; `undefined` is unknown. `candidates` are the target's healthy, not draining endpoints. */
  holds(request: RequestView, candidates: CandidateView, args: AdmissionArguments): boolean | undefined;
}

/** Arguments resolved by the host. An slo's objectives are in seconds, NaN where it states none. */
export interface AdmissionArguments {
  readonly slo?: { readonly ttft: number; readonly tpot: number; readonly latency: number };
  readonly limit?: string;
  readonly value?: Value;
}

/** A predicate of request scope over a pool: `sla("interactive", tier "70B")`. */
export interface AdmissionDefinition extends Provided {
  readonly arguments: readonly AdmissionArgument[];
  setup(context: SetupContext<never>): AdmissionInstance;
}

/** Everything one plugin package provides, by kind and then by the name used in policies. */
export interface Provides {
  readonly signal?: { readonly [name: string]: SignalDefinition };
  readonly property?: { readonly [name: string]: PropertyDefinition };
  readonly filter?: { readonly [name: string]: FilterDefinition };
  readonly scorer?: { readonly [name: string]: ScorerDefinition };
  readonly picker?: { readonly [name: string]: PickerDefinition };
  readonly admission?: { readonly [name: string]: AdmissionDefinition };
}

export type PluginKind = keyof Provides;

export interface Plugin {
  /** kebab-case, unique among the plugins of a gateway. */
  readonly name: string;
  readonly apiVersion: number;
  readonly doc?: string;
  /** Options of the package as a whole (`use "…" { refresh: 5m }`); every `setup` gets them merged under its own options. */
  readonly options?: OptionSchema;
  readonly provides: Provides;
}
