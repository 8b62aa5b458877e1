import type { AsyncSignalInstance, AttemptOutcome, Value } from '@signalbox/plugin-api';
import type {
  AdmissionRule,
  Affinity,
  Destination,
  FailureCause,
  LimitDefinition,
  Modifiers,
  RequestPredicate,
  RequestValue,
  RouteRule,
  TenantDefinition,
  Verdict,
} from '@signalbox/policy';
import type { CandidateFilter, Evaluators } from '@signalbox/policy';
import type { Bound } from '@signalbox/chwbl';
import type { PlaceRow, SignalRow } from './record-row.ts';
import type { TargetPool } from './fleet/pool.ts';
import type { Frame, FrameShape } from './frame.ts';
import type { LateReads } from './late-signals.ts';
import type { HeldInstance } from './plugins/instance-registry.ts';
import type { RankPicker, RankTier } from './ranking.ts';
import type { RequestField } from './signals/signal-producers.ts';

/*
 * A policy with every name resolved: what `bindPolicy` makes of a program at load time and the pipeline runs at request time. All of it is
 * functions, arrays and pools; nothing is looked up by name from here on.
 */

/** A bound policy: rules in order, and what fills a frame. */
export interface BoundPolicy {
  readonly shape: FrameShape;
  readonly evaluators: Evaluators;
  /** Producers of signals, in the order they must run; those of `shape.late` are not among them. */
  readonly signals: readonly SignalStep[];
  readonly asyncSignals: readonly AsyncSignal[];
  readonly recordedSignals: readonly {
    readonly index: number;
    readonly name: string;
    readonly numeric: boolean;
    readonly as: 'value' | 'hash' | 'omitted';
    /** Its bit among the late signals; 0 for one that every request has. */
    readonly late: number;
  }[];
  /** How they stand in the row of a record. */
  readonly recordedRow: SignalRow;
  readonly propertyNames: readonly string[];
  readonly propertyNumeric: readonly boolean[];
  readonly admission: readonly BoundAdmission[];
  readonly routes: readonly BoundRoute[];
  readonly limits: readonly BoundLimit[];
  readonly alarms: readonly BoundAlarm[];
  readonly tenants: ReadonlyMap<string, TenantDefinition>;
  readonly readsSessionTokens: boolean;
  readonly readsClock: boolean;
  /** Properties that learn from finished attempts. */
  readonly learners: readonly Learner[];
  readonly instances: readonly HeldInstance[];
}

export interface SignalStep {
  readonly index: number;
  readonly numeric: boolean;
  /** Where the signal is a field of the request, which is read without a call. */
  readonly field: RequestField | undefined;
  readonly produce: (frame: Frame) => Value | undefined;
}

export interface AsyncSignal {
  readonly index: number;
  readonly numeric: boolean;
  readonly budgetMs: number;
  readonly held: HeldInstance;
  start(frame: Frame, abort: AbortSignal): ReturnType<AsyncSignalInstance['evaluate']>;
}

/** Something told of real decisions and of how attempts ended. */
export interface Learner {
  picked?(slot: number): void;
  ended?(slot: number, outcome: AttemptOutcome): void;
}

export interface BoundAdmission {
  readonly rule: AdmissionRule;
  readonly when: RequestPredicate | undefined;
  readonly late: LateReads | undefined;
  readonly verdict: BoundVerdict;
}

export interface BoundVerdict {
  readonly verb: Verdict['verb'];
  readonly with: BoundModifiers;
  /** For `queue`. */
  readonly place: BoundQueue | undefined;
}

/** A queue that a rule or an `else` sends to. */
export interface BoundQueue {
  /** Identity over reloads. */
  readonly key: string;
  readonly label: string;
  /** The rule waits for its own condition to end; without one, for a place at an endpoint. */
  readonly admission: number;
  readonly maxDepth: number;
  readonly overflow: 'oldest' | 'newest' | 'lowest' | 'refuse';
  readonly order: QueueOrder;
  readonly with: BoundModifiers;
}

/** How a queue orders its entries inside a class. */
export type QueueOrder =
  /** Earliest deadline first; newest first past half full. */
  | { readonly kind: 'default' }
  | { readonly kind: 'deadline' }
  /** The key with the fewest weighted tokens served. */
  | {
      readonly kind: 'weighted_fair';
      readonly key: RequestValue;
      readonly inputWeight: number;
      readonly outputWeight: number;
    };

export interface BoundRoute {
  readonly rule: RouteRule;
  readonly when: RequestPredicate | undefined;
  readonly late: LateReads | undefined;
  readonly steps: readonly BoundStep[];
}

export type BoundStep =
  | BoundDestination
  | { readonly kind: 'verdict'; readonly verdict: BoundVerdict }
  | { readonly kind: 'next' };

export interface BoundDestination {
  readonly kind: 'destination';
  readonly source: Destination;
  /** One pool, or the arms of a split. */
  readonly arms: readonly { readonly pool: TargetPool; readonly share: number }[];
  readonly split: boolean;
  readonly where: CandidateFilter | undefined;
  readonly tiers: readonly RankTier[];
  readonly picker: RankPicker | undefined;
  readonly affinity: BoundAffinity | undefined;
  readonly retries: number;
  readonly retryOn: ReadonlySet<FailureCause>;
  /** Causes of `retry` were not written: 500s are not among them, but an error event before any output is. */
  readonly retryByDefault: boolean;
  readonly fallbacks: readonly BoundFallback[];
  readonly with: BoundModifiers;
  /** Indices of the properties read by `where` and `by`, for the record. */
  readonly recorded: readonly number[];
  readonly termNames: readonly string[];
  /** How `recorded` and parts of scores stand in the row of a record. */
  readonly row: PlaceRow;
  readonly learners: readonly Learner[];
}

export interface BoundFallback {
  readonly on: ReadonlySet<FailureCause>;
  readonly destination: BoundDestination;
}

export interface BoundAffinity {
  readonly source: Affinity;
  readonly key: readonly RequestValue[];
  readonly method: Affinity['method'];
  readonly bound: Bound;
}

/** Modifiers as functions of the request. Durations in seconds. */
export interface BoundModifiers {
  readonly source: Modifiers;
  readonly timeout: RequestValue | undefined;
  readonly attemptTimeout: RequestValue | undefined;
  readonly firstToken: RequestValue | undefined;
  readonly idle: RequestValue | undefined;
  readonly sticky: RequestValue | undefined;
  readonly priority: RequestValue | undefined;
  readonly headers: readonly { readonly name: string; readonly value: RequestValue }[];
  readonly model: RequestValue | undefined;
  readonly set: readonly { readonly field: string; readonly value: RequestValue }[];
  readonly drop: readonly string[];
  readonly status: number | undefined;
  readonly retryAfter: RequestValue | undefined;
  readonly message: RequestValue | undefined;
  readonly maxWait: RequestValue | undefined;
}

export interface BoundLimit {
  readonly definition: LimitDefinition;
  readonly when: RequestPredicate | undefined;
  readonly key: readonly RequestValue[];
  readonly parent: string | undefined;
  /** What a request that is not routed yet costs at least, in dollars; undefined where the limit has no `cost`. */
  readonly leastCost: ((frame: Frame) => number) | undefined;
}

export interface BoundAlarm {
  readonly name: string;
  readonly when: RequestPredicate;
  readonly until: RequestPredicate | undefined;
  readonly forMs: number;
}
