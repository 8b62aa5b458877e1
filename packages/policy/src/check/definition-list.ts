import type {
  Definitions,
  EndpointDefinition,
  GatewayDefinition,
  LimitDefinition,
  TenantDefinition,
  TierDefinition,
} from '../ir.ts';
import type { Span } from '../syntax/span.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Definitions as they are gathered. */
export interface DefinitionList {
  gateway: GatewayDefinition | undefined;
  gatewaySpan: Span | undefined;
  readonly tiers: Mutable<TierDefinition>[];
  /** Endpoints of a `define` of their own, to be put into their tiers. */
  readonly endpoints: EndpointDefinition[];
  readonly slos: Definitions['slos'][number][];
  readonly tenants: TenantDefinition[];
  readonly limits: LimitDefinition[];
  readonly alarms: Definitions['alarms'][number][];
  readonly params: Definitions['params'][number][];
  readonly discoveries: NonNullable<Definitions['discoveries']>[number][];
  readonly profiles: NonNullable<Definitions['profiles']>[number][];
  /** Where each address was first given. */
  readonly addresses: Map<string, Span>;
  /** Where each name of an endpoint was first given. */
  readonly endpointNames: Map<string, Span>;
}

export const createDefinitionList = (): DefinitionList => ({
  gateway: undefined,
  gatewaySpan: undefined,
  tiers: [],
  endpoints: [],
  slos: [],
  tenants: [],
  limits: [],
  alarms: [],
  params: [],
  discoveries: [],
  profiles: [],
  addresses: new Map(),
  endpointNames: new Map(),
});

/** Leaves out what is undefined, as exact optional properties ask. */
export const defined = <T extends object>(value: { readonly [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as T;
