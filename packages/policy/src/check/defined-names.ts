import type { ValueType } from '@signalbox/plugin-api';
import type { Span } from '../syntax/span.ts';

/** One name that a `define` introduces. `used` counts references, for the finding on unused definitions. */
interface DefinedName {
  readonly name: string;
  readonly span: Span;
  /** Whether it stands in the file that is compiled itself, not in one that it imports. */
  readonly own: boolean;
  used: boolean;
}

/** What the policy and its catalogue file define, gathered before any rule is checked. */
export interface DefinedNames {
  /** Whether any tier is known; where none is, names of tiers go unchecked. */
  tiersKnown: boolean;
  /** Whether a discovery may add tiers that are not known here. */
  tiersOpen: boolean;
  /** Whether there are endpoints whose names are not known. */
  endpointsOpen: boolean;
  /** Kinds of definitions of which one lost its name: an unknown name of such a kind may be that one. */
  readonly lost: Set<string>;
  readonly tiers: Map<string, DefinedName | undefined>;
  readonly endpoints: Map<string, DefinedName | undefined>;
  readonly slos: Map<string, DefinedName>;
  readonly limits: Map<string, DefinedName>;
  readonly tenants: Map<string, DefinedName>;
  readonly alarms: Map<string, DefinedName>;
  readonly params: Map<string, DefinedName & { type: ValueType }>;
  /** Types of tenants' own fields and of labels, as declared by their values. */
  readonly tenantFields: Map<string, ValueType>;
  readonly labels: Map<string, ValueType>;
  /** `gateway.timezone`. */
  timezone: string;
  /** The first use of a tier name that could not be checked. */
  uncheckedTier: Span | undefined;
}

export const createDefinedNames = (): DefinedNames => ({
  tiersKnown: false,
  tiersOpen: false,
  endpointsOpen: false,
  lost: new Set(),
  tiers: new Map(),
  endpoints: new Map(),
  slos: new Map(),
  limits: new Map(),
  tenants: new Map(),
  alarms: new Map(),
  params: new Map(),
  tenantFields: new Map(),
  labels: new Map(),
  timezone: 'UTC',
  uncheckedTier: undefined,
});
