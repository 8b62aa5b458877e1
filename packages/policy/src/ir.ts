import type { Json, Value, ValueType } from '@signalbox/plugin-api';
import type { Span } from './syntax/span.ts';

/**
 * The typed intermediate representation of a checked policy: plain data (structured-cloneable), names resolved, constants folded,
 * groups flattened, plugin expressions inlined. Both evaluators, core's binding, explain and analysis read this and nothing above it.
 *
 * Values: numbers of every dimension are canonical float64s (seconds, bytes, fractions, per second, dollars, plain counts) with NaN
 * for unknown; every other type is a JavaScript value with `undefined` for unknown. Logic is Kleene's three-valued logic.
 */
export interface PolicyProgram {
  readonly irVersion: 1;
  /** The language version the file asks for. */
  readonly language: 1;
  /** Hex SHA-256-like content hash of the sources and of the manifests in use; the policy version's identity. */
  readonly hash: string;
  /** Source files in the order they were read; `Span.file` names one of them. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
  readonly definitions: Definitions;
  /** Plugin packages named by `use`, with checked options, in order. */
  readonly uses: readonly PluginUse[];
  /** All signals the program reads; `signal` expressions hold indices into it. The host computes these and nothing else. */
  readonly signals: readonly SignalRef[];
  /** All properties the program reads; `property` expressions hold indices into it. */
  readonly properties: readonly PropertyRef[];
  readonly admission: readonly AdmissionRule[];
  /** Routes and defaults in the order they are tried. A group's rules carry the group's `when` and-ed to their own. */
  readonly routes: readonly RouteRule[];
}

export type Scope = 'constant' | 'request' | 'candidate';

/** Where a name comes from: the built-in catalogue, or a plugin (its manifest's `name`). */
export type Provider =
  | { readonly kind: 'builtin' }
  | { readonly kind: 'plugin'; readonly plugin: string; readonly use?: number };

/**
 * A request- or cluster-scope value, with the arguments it was written with. `key` is the catalogue key without scope prefix:
 * `complexity`, `header` (args: name), `metadata`, `tenant.region`, `hour` (zone), `within` (window, zone), `over_limit` (limit name),
 * `usage`, `sla` (slo, target), `alarm.hot`, `param.zone`, `cluster.saturation`. Two uses with equal arguments share one entry.
 */
export interface SignalRef {
  readonly key: string;
  readonly type: ValueType;
  readonly known: 'always' | 'maybe';
  readonly provider: Provider;
  readonly arguments: readonly RefArgument[];
  /** Options of a plugin's signal, defaults applied. */
  readonly options?: { readonly [name: string]: Json };
}

/**
 * A candidate-scope value. Plugin properties and filters given by expression are inlined and never appear here; `among` appears with
 * its key expression. A filter given by function appears with type bool.
 */
export interface PropertyRef {
  readonly key: string;
  readonly type: ValueType;
  readonly provider: Provider;
  readonly arguments: readonly RefArgument[];
  readonly options?: { readonly [name: string]: Json };
}

export type RefArgument =
  | { readonly kind: 'value'; readonly name?: string; readonly value: Value }
  | { readonly kind: 'expression'; readonly name?: string; readonly expression: Expression }
  | { readonly kind: 'target'; readonly name?: string; readonly target: TargetRef }
  | { readonly kind: 'definition'; readonly name?: string; readonly definition: 'slo' | 'limit'; readonly of: string };

interface ExpressionBase {
  readonly type: ValueType;
  readonly scope: Scope;
  readonly span: Span;
}

export type Expression =
  | (ExpressionBase & { readonly kind: 'constant'; readonly value: Value })
  | (ExpressionBase & { readonly kind: 'signal'; readonly index: number })
  | (ExpressionBase & { readonly kind: 'property'; readonly index: number })
  | (ExpressionBase & { readonly kind: 'negate'; readonly operand: Expression })
  | (ExpressionBase & {
      readonly kind: 'arithmetic';
      readonly op: '+' | '-' | '*' | '/';
      readonly left: Expression;
      readonly right: Expression;
    })
  /** Unknown if an operand is. `<` and its like are for numbers only. */
  | (ExpressionBase & {
      readonly kind: 'compare';
      readonly op: '==' | '!=' | '<' | '<=' | '>' | '>=';
      readonly left: Expression;
      readonly right: Expression;
    })
  | (ExpressionBase & { readonly kind: 'and' | 'or'; readonly operands: readonly Expression[] })
  | (ExpressionBase & { readonly kind: 'not'; readonly operand: Expression })
  /** low ≤ value ≤ high. */
  | (ExpressionBase & {
      readonly kind: 'between';
      readonly value: Expression;
      readonly low: Expression;
      readonly high: Expression;
    })
  /** True on a match; without one, unknown if a member (or the value) is unknown. `list` is of list type; a constant list or an expression. */
  | (ExpressionBase & { readonly kind: 'in'; readonly value: Expression; readonly list: Expression })
  /** A list literal with at least one member that is not constant. */
  | (ExpressionBase & { readonly kind: 'list'; readonly members: readonly Expression[] })
  /** Searches. For `prompt` only the first 16 KiB are seen, and no match in a longer one is unknown. */
  | (ExpressionBase & {
      readonly kind: 'matches';
      readonly value: Expression;
      readonly pattern: string;
      readonly flags: string;
      readonly prompt: boolean;
    })
  /** Substring, or membership of a list. */
  | (ExpressionBase & { readonly kind: 'contains'; readonly value: Expression; readonly part: Expression })
  /** Never unknown. */
  | (ExpressionBase & { readonly kind: 'exists'; readonly operand: Expression })
  | (ExpressionBase & { readonly kind: 'coalesce'; readonly left: Expression; readonly right: Expression })
  | (ExpressionBase & {
      readonly kind: 'call';
      readonly function: BuiltinFunction;
      readonly arguments: readonly Expression[];
    })
  /**
   * Over the target's healthy, not draining endpoints as a whole (absent: every endpoint). Unknown members are skipped by min, max, avg,
   * sum; `count` counts known true ones; `any` and `all` are Kleene. Over an empty pool: unknown, but count and sum 0.
   */
  | (ExpressionBase & {
      readonly kind: 'aggregate';
      readonly function: 'min' | 'max' | 'avg' | 'sum' | 'count' | 'any' | 'all';
      readonly body: Expression;
      readonly target?: TargetRef;
    });

/**
 * min, max, clamp of values (unknown if an argument is unknown); conversions, whose rubbish is unknown: `number(s)`, `duration(s, unit)`
 * (second argument the constant number of seconds of the unit), `bool(s)`, `list(s, separator)`, `lower(s)`.
 */
export type BuiltinFunction = 'min' | 'max' | 'clamp' | 'number' | 'duration' | 'bool' | 'list' | 'lower';

/** What a route sends to: one tier, one endpoint by name, or all endpoints. Names that no definition knows yet stay names. */
export type TargetRef =
  | { readonly kind: 'tier'; readonly name: string }
  | { readonly kind: 'endpoint'; readonly name: string }
  | { readonly kind: 'any' };

export interface RuleBase {
  /** The label written, else `route 3` or `default` numbered within the file by position. Unique. */
  readonly label: string;
  readonly span: Span;
  /** The span of keyword and label, where findings stand. */
  readonly headSpan: Span;
  /** Absent: always. */
  readonly when?: Expression;
}

export interface AdmissionRule extends RuleBase {
  readonly verb: 'admit' | 'reject' | 'queue';
  readonly by?: readonly OrderKey[];
  readonly with: Modifiers;
}

export interface RouteRule extends RuleBase {
  readonly kind: 'route' | 'default';
  /** The destination, then its `else` parts in order. */
  readonly steps: readonly Step[];
}

export type Step =
  | Destination
  | (Verdict & { readonly kind: 'verdict' })
  /** `else next`: go on with the rules below. */
  | { readonly kind: 'next'; readonly span: Span };

export interface Verdict {
  readonly verb: 'admit' | 'reject' | 'queue';
  readonly by?: readonly OrderKey[];
  readonly with: Modifiers;
  readonly span: Span;
}

/** An order of a queue by an admission plugin such as `weighted_fair(key: tenant.id)`. */
export interface OrderKey {
  readonly key: string;
  readonly provider: Provider;
  readonly arguments: readonly RefArgument[];
  readonly options?: { readonly [name: string]: Json };
}

export interface Destination {
  readonly kind: 'destination';
  readonly span: Span;
  /**
   * Without shares: one pool, the union of the targets in the order written. With shares (fractions that sum to 1): a split.
   */
  readonly targets: readonly { readonly target: TargetRef; readonly share?: number }[];
  readonly split: boolean;
  readonly where?: Expression;
  /** Never empty: `least_tokens` where nothing is written. Each is one tier of the order, `then` breaking ties of those before. */
  readonly by: readonly ScoreSum[];
  readonly pick: PickRef;
  readonly with: Modifiers;
}

/** A weighted sum of scorers. Weights are normalised to sum 1. One term alone compares raw costs. */
export interface ScoreSum {
  readonly terms: readonly ScoreTerm[];
  readonly span: Span;
}

export interface ScoreTerm {
  readonly weight: number;
  readonly scorer: ScorerRef;
}

export type ScorerRef =
  /**
   * An inlined candidate expression: a scorer that its manifest gives as an expression, or `lowest(x)` / `highest(x)`. `direction`
   * `lowest` and `highest` are raw values that the host min–max normalises in a sum; `score` is in [0, 1] and clamped.
   */
  | {
      readonly kind: 'expression';
      readonly name: string;
      readonly expression: Expression;
      readonly direction: 'lowest' | 'highest' | 'score';
      readonly span: Span;
    }
  /** A scorer given by function. `cost`: raw cost, lower is better. */
  | {
      readonly kind: 'function';
      readonly name: string;
      readonly provider: Provider;
      readonly options: { readonly [name: string]: Json };
      readonly cost: boolean;
      readonly instance: 'rule' | 'policy';
      readonly reads: readonly string[];
      readonly span: Span;
    };

export interface PickRef {
  readonly name: string;
  readonly provider: Provider;
  readonly options: { readonly [name: string]: Json };
  readonly span: Span;
}

/** A cause for which a retry or fallback applies. */
export type FailureCause =
  | 'saturated'
  | 'connect'
  | 'error'
  | 'timeout'
  | 'first_token'
  | 'rate_limited'
  | 'context_exceeded';

/** Modifiers after merging a group's with the rule's own. Durations are request-scope expressions in seconds. */
export interface Modifiers {
  readonly affinity?: Affinity;
  readonly timeout?: Expression;
  readonly attemptTimeout?: Expression;
  readonly firstToken?: Expression;
  readonly idle?: Expression;
  /** Without `on`: for what is always safe to repeat (no connection, 503, 429, no first token, an error event before any output). */
  readonly retry?: { readonly attempts: number; readonly on?: readonly FailureCause[] };
  readonly fallbacks?: readonly {
    readonly target: TargetRef;
    readonly on: readonly FailureCause[];
    readonly span: Span;
  }[];
  readonly hedge?: { readonly after?: Expression; readonly share?: number };
  readonly mirror?: readonly { readonly target: TargetRef; readonly share: number }[];
  /** The split's key. */
  readonly sticky?: Expression;
  readonly priority?: Expression;
  readonly prefill?: TargetRef;
  /** Headers sent upstream, name lower-cased. */
  readonly headers?: readonly { readonly name: string; readonly value: Expression }[];
  readonly model?: Expression;
  readonly set?: readonly { readonly field: string; readonly value: Expression }[];
  readonly drop?: readonly string[];
  readonly status?: number;
  readonly retryAfter?: Expression;
  readonly message?: Expression;
  readonly maxWait?: Expression;
  readonly maxDepth?: number;
  readonly overflow?: 'oldest' | 'newest' | 'lowest' | 'refuse';
}

/** Parts of an affinity key are joined as a framed tuple, scoped by tenant; any unknown part means no affinity. */
export interface Affinity {
  readonly key: readonly Expression[];
  /** How the key maps to an endpoint. `modulo_md5`: md5(key) mod n over the tier's endpoints in declared order. */
  readonly method: 'bounded_rendezvous' | 'modulo_md5';
  /** c ≥ 1. */
  readonly bound: number;
  readonly unit: 'requests' | 'tokens';
  readonly span: Span;
}

/** A plugin package named by `use`. */
export interface PluginUse {
  readonly package: string;
  readonly alias?: string;
  readonly plugin: string;
  readonly options: { readonly [name: string]: Json };
  readonly span: Span;
}

/** A secret by reference, never by value. */
export type SecretRef = { readonly env: string } | { readonly file: string };

/** The `define`d things, checked and with defaults, in the order written. Keys that were not written are absent, unless a default is stated. */
export interface Definitions {
  readonly gateway: GatewayDefinition;
  readonly tiers: readonly TierDefinition[];
  readonly slos: readonly {
    readonly name: string;
    readonly ttft?: number;
    readonly tpot?: number;
    readonly latency?: number;
    readonly span: Span;
  }[];
  readonly tenants: readonly TenantDefinition[];
  readonly limits: readonly LimitDefinition[];
  readonly alarms: readonly {
    readonly name: string;
    readonly when: Expression;
    readonly until?: Expression;
    readonly for: number;
    readonly span: Span;
  }[];
  readonly params: readonly {
    readonly name: string;
    readonly env?: string;
    readonly default?: Value;
    readonly type: ValueType;
    readonly span: Span;
  }[];
  /** Endpoints from outside and hardware profiles, with keys and values as written (numbers canonical): for whoever runs them to check. */
  readonly discoveries?: readonly {
    readonly name: string;
    readonly options: { readonly [key: string]: Json };
    readonly span: Span;
  }[];
  readonly profiles?: readonly {
    readonly name: string;
    readonly options: { readonly [key: string]: Json };
    readonly span: Span;
  }[];
}

export interface GatewayDefinition {
  readonly listen: string;
  readonly admin: string;
  readonly workers: number;
  readonly models: readonly string[];
  readonly unknownModel: 'reject' | 'route';
  readonly reportModel: 'alias' | 'real';
  readonly timezone: string;
  readonly bodyLimit: number;
  /** Seconds after which a stream's head is sent although nothing came from upstream. Absent: it waits for the first event. */
  readonly earlyHead?: number;
  /** Which answers say in a header why they went where they went: those to requests that ask for it, or all. Absent: none. */
  readonly explainHeader?: 'off' | 'asked' | 'all';
  /** Seconds: how long connections are still accepted when the gateway is asked to end, and then how long running requests may take. */
  readonly drain: { readonly accept: number; readonly grace: number };
  /** Networks as `10.0.0.0/8`, or single addresses, whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  readonly keys?: SecretRef;
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly cors?: Json;
  readonly audit?: { readonly file: string; readonly record: 'read' | 'all' };
  readonly shared?: { readonly url: string };
  readonly span?: Span;
}

/** Facts that a tier gives to its endpoints and that an endpoint may state for itself. */
export interface EndpointFacts {
  readonly model?: string;
  readonly gpu?: string;
  readonly gpuCount?: number;
  readonly precision?: string;
  readonly modelSize?: number;
  readonly engine?: string;
  readonly maxRequests?: number;
  /** The limit on requests follows what the endpoint bears; `maxRequests` is then the most it may become. */
  readonly adaptiveLimit?: boolean;
  readonly maxTokensInFlight?: number;
  readonly maxBatch?: number;
  readonly contextWindow?: number;
  readonly price?: number;
  readonly zone?: string;
  readonly region?: string;
  readonly labels?: { readonly [name: string]: Value };
  readonly key?: SecretRef;
  readonly ca?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly ejection?: Json;
  readonly role?: 'both' | 'prefill' | 'decode';
  /** Tokens per second stated by the operator (`throughput: 300/s`), which wins over the hardware profile. */
  readonly throughput?: number;
  /** Features of the model: tools, vision, json_schema, embeddings. Absent: unknown. */
  readonly supports?: readonly string[];
}

export interface TierDefinition extends EndpointFacts {
  readonly name: string;
  readonly endpoints: readonly EndpointDefinition[];
  readonly span: Span;
}

/** An endpoint with its tier's facts merged in. Identity is the URL, normalised (no trailing slash, no `/v1` suffix). */
export interface EndpointDefinition extends EndpointFacts {
  readonly name: string;
  readonly url: string;
  readonly tier: string;
  readonly weight: number;
  readonly span: Span;
}

export interface TenantDefinition {
  readonly name: string;
  /** SHA-256 hashes of API keys, lower-case hex. */
  readonly keys: readonly string[];
  readonly class?: 'critical' | 'high' | 'normal' | 'low';
  readonly weight: number;
  readonly limits: readonly string[];
  /** Models that its keys may see and use. Absent: all. */
  readonly models?: readonly string[];
  readonly fields: { readonly [name: string]: Value };
  readonly span: Span;
}

/** `amount` in each window of `windowSeconds`, the unit as written: 200k/min is amount 200000, window 60; $5/h amount 5, window 3600. */
export interface RateLimit {
  readonly amount: number;
  readonly windowSeconds: number;
}

export interface LimitDefinition {
  readonly name: string;
  readonly key: readonly Expression[];
  readonly requests?: RateLimit;
  readonly tokens?: RateLimit;
  readonly inputTokens?: RateLimit;
  readonly outputTokens?: RateLimit;
  readonly cost?: RateLimit;
  readonly concurrency?: number;
  readonly when?: Expression;
  readonly charge: 'reserve' | 'after';
  readonly shareOf?: string;
  readonly span: Span;
}
