import type { Json, OptionSchema, ValueType } from '@signalbox/plugin-api';
import type { Provider } from '../../ir.ts';

/** What an argument of a callable name takes. `key` is a request-scope expression of any type, or a list of such. */
type ParameterKind = 'value' | 'expression' | 'key' | 'slo' | 'limit' | 'target' | 'window' | 'zone';

export interface Parameter {
  readonly name: string;
  readonly kind: ParameterKind;
  /** For `value` and `expression`: the type it must have. Absent: any. */
  readonly type?: ValueType;
  readonly optional?: boolean;
  readonly default?: Json;
  /** Inclusive limits of a numeric `value`, in canonical units. */
  readonly minimum?: number;
  readonly maximum?: number;
  /** A numeric `value` without a fraction. */
  readonly whole?: boolean;
}

interface EntryBase {
  readonly name: string;
  /** One or two sentences for hover and reference. */
  readonly doc: string;
  readonly provider: Provider;
  readonly parameters: readonly Parameter[];
  /** Options by schema, in place of `parameters`, for names that plugins provide. */
  readonly options?: OptionSchema;
  /** Options that may be written without their name, in order. */
  readonly positional?: readonly string[];
}

/** A request- or cluster-scope value. */
export interface SignalEntry extends EntryBase {
  readonly kind: 'signal';
  readonly type: ValueType;
  readonly known: 'always' | 'maybe';
  /** `caller`: the caller can leave it out, so that a rule on it can fail open. `gateway`: it comes from our own state or clock. */
  readonly origin: 'caller' | 'gateway';
  /** Has a value without any request: cluster values, alarms, parameters, the time. */
  readonly global: boolean;
  /** Read by a key in brackets: `header["x"]`. */
  readonly indexed: boolean;
  /** A text of which `matches` sees the first 16 KiB only. */
  readonly longText: boolean;
}

/** A candidate-scope value: a column of the fleet, a plugin's output, or an expression over other properties. */
export interface PropertyEntry extends EntryBase {
  readonly kind: 'property';
  readonly type: ValueType;
  /** Inlined by the compiler where it is given. */
  readonly expression?: string;
  /** Which way is better for a load balancer, for the fix of a bare property in `by`. */
  readonly better: 'low' | 'high';
}

export interface ScorerEntry extends EntryBase {
  readonly kind: 'scorer';
  readonly cost: boolean;
  readonly instance: 'rule' | 'policy';
  readonly reads: readonly string[];
  readonly expression?: string;
}

export interface PickerEntry extends EntryBase {
  readonly kind: 'picker';
}

/** An admission plugin's name: a predicate of request scope over a pool, or an order of a queue in `by`. */
export interface AdmissionEntry extends EntryBase {
  readonly kind: 'admission';
}

export type CatalogueEntry = SignalEntry | PropertyEntry | ScorerEntry | PickerEntry | AdmissionEntry;

export const builtin: Provider = Object.freeze({ kind: 'builtin' });
