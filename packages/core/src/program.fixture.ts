import type { Clock, ParsedRequest, Value, ValueType } from '@signalbox/plugin-api';
import type {
  AdmissionRule,
  Definitions,
  Destination,
  EndpointDefinition,
  Expression,
  LimitDefinition,
  Modifiers,
  PolicyProgram,
  PropertyRef,
  RefArgument,
  RouteRule,
  ScoreSum,
  SignalRef,
  Span,
  Step,
  TargetRef,
  TierDefinition,
} from '@signalbox/policy';
import type { DecisionRecord } from '@signalbox/telemetry';
import { createCore } from './core.ts';
import type { Core, CoreOptions } from './core.ts';
import type { Forward, Refusal, RequestEnd, RouteOutcome, RouteRequest } from './router.ts';
import { MOST_DELAY_MS } from './scheduler.ts';
import type { Scheduler } from './scheduler.ts';

/** Builders for programs, requests and time, for the tests of this package. */

export const SPAN: Span = Object.freeze({ file: 'test.route', start: 0, end: 0 });
const BUILTIN = { kind: 'builtin' } as const;

/** Collects signals and properties as expressions name them. */
export class ProgramBuilder {
  readonly signals: SignalRef[] = [];
  readonly properties: PropertyRef[] = [];

  signal(key: string, type: ValueType = 'string', args: readonly RefArgument[] = []): Expression {
    let index = this.signals.findIndex(
      (ref) => ref.key === key && JSON.stringify(ref.arguments) === JSON.stringify(args),
    );
    if (index < 0) index = this.signals.push({ key, type, known: 'maybe', provider: BUILTIN, arguments: args }) - 1;
    return { kind: 'signal', index, type, scope: 'request', span: SPAN };
  }

  property(key: string, type: ValueType = 'count', args: readonly RefArgument[] = []): Expression {
    let index = this.properties.findIndex(
      (ref) => ref.key === key && JSON.stringify(ref.arguments) === JSON.stringify(args),
    );
    if (index < 0) index = this.properties.push({ key, type, provider: BUILTIN, arguments: args }) - 1;
    return { kind: 'property', index, type, scope: 'candidate', span: SPAN };
  }

  lowest(key: string): ScoreSum {
    return lowest(this.property(key), key);
  }

  /** `(0.1 * queued_tokens + decode_tokens) / (throughput ?? 1)` */
  leastTokens(): ScoreSum {
    const sum = arithmetic(
      '+',
      arithmetic('*', constant(0.1), this.property('queued_tokens')),
      this.property('decode_tokens'),
    );
    const rate: Expression = {
      kind: 'coalesce',
      left: this.property('throughput', 'rate'),
      right: constant(1),
      type: 'rate',
      scope: 'candidate',
      span: SPAN,
    };
    return lowest(arithmetic('/', sum, rate), 'least_tokens');
  }

  program(parts: {
    readonly tiers: readonly TierDefinition[];
    readonly routes: readonly RouteRule[];
    readonly admission?: readonly AdmissionRule[];
    readonly definitions?: Partial<Definitions>;
    readonly hash?: string;
  }): PolicyProgram {
    return {
      irVersion: 1,
      language: 1,
      hash: parts.hash ?? 'feedfacecafebeef',
      files: [],
      definitions: definitions(parts.tiers, parts.definitions),
      uses: [],
      signals: this.signals,
      properties: this.properties,
      admission: parts.admission ?? [],
      routes: parts.routes,
    };
  }
}

export function definitions(tiers: readonly TierDefinition[], more: Partial<Definitions> = {}): Definitions {
  return {
    gateway: {
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      workers: 1,
      models: [],
      unknownModel: 'reject',
      reportModel: 'alias',
      timezone: 'UTC',
      bodyLimit: 20 * 2 ** 20,
      drain: { accept: 10, grace: 300 },
      trustedProxies: [],
    },
    tiers,
    slos: [],
    tenants: [],
    limits: [],
    alarms: [],
    params: [],
    ...more,
  };
}

/** A tier of `count` endpoints (or with these names) with the given facts. */
export function tier(
  name: string,
  count: number,
  facts: Partial<EndpointDefinition> = {},
  host: string = name,
): TierDefinition {
  return {
    name,
    span: SPAN,
    endpoints: Array.from({ length: count }, (_, i) => ({
      name: `${name}/${i + 1}`,
      url: `http://${host.toLowerCase()}-${i + 1}.test:8000`,
      tier: name,
      weight: 1,
      span: SPAN,
      ...facts,
    })),
  };
}

export const constant = (value: Value): Expression => ({
  kind: 'constant',
  value,
  type: typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'bool' : 'string',
  scope: 'constant',
  span: SPAN,
});

export const arithmetic = (op: '+' | '-' | '*' | '/', left: Expression, right: Expression): Expression => ({
  kind: 'arithmetic',
  op,
  left,
  right,
  type: 'number',
  scope: left.scope === 'candidate' || right.scope === 'candidate' ? 'candidate' : 'request',
  span: SPAN,
});

export const compare = (
  op: '==' | '!=' | '<' | '<=' | '>' | '>=',
  left: Expression,
  right: Expression,
): Expression => ({
  kind: 'compare',
  op,
  left,
  right,
  type: 'bool',
  scope: left.scope,
  span: SPAN,
});

export const lowest = (expression: Expression, name: string = 'lowest'): ScoreSum => ({
  span: SPAN,
  terms: [{ weight: 1, scorer: { kind: 'expression', name, expression, direction: 'lowest', span: SPAN } }],
});

export const toTier = (name: string): TargetRef => ({ kind: 'tier', name });

export function destination(
  target: string | TargetRef,
  by: readonly ScoreSum[],
  more: { readonly where?: Expression; readonly with?: Modifiers; readonly pick?: Destination['pick'] } = {},
): Destination {
  return {
    kind: 'destination',
    span: SPAN,
    targets: [{ target: typeof target === 'string' ? toTier(target) : target }],
    split: false,
    by,
    pick: more.pick ?? { name: 'best', provider: BUILTIN, options: {}, span: SPAN },
    with: more.with ?? {},
    ...(more.where === undefined ? {} : { where: more.where }),
  };
}

export function split(
  arms: readonly (readonly [share: number, tier: string])[],
  by: readonly ScoreSum[],
  modifiers: Modifiers = {},
): Destination {
  return {
    ...destination('', by, { with: modifiers }),
    split: true,
    targets: arms.map(([share, name]) => ({ target: toTier(name), share })),
  };
}

export const route = (label: string, steps: readonly Step[], when?: Expression): RouteRule => ({
  kind: when === undefined ? 'default' : 'route',
  label,
  span: SPAN,
  headSpan: SPAN,
  steps,
  ...(when === undefined ? {} : { when }),
});

export const verdict = (verb: 'admit' | 'reject' | 'queue', modifiers: Modifiers = {}): Step => ({
  kind: 'verdict',
  verb,
  with: modifiers,
  span: SPAN,
});

export const admission = (
  verb: 'admit' | 'reject' | 'queue',
  label: string,
  when?: Expression,
  more: Partial<Pick<AdmissionRule, 'by' | 'with'>> = {},
): AdmissionRule => ({
  verb,
  label,
  span: SPAN,
  headSpan: SPAN,
  with: {},
  ...more,
  ...(when === undefined ? {} : { when }),
});

export const limit = (name: string, key: readonly Expression[], more: Partial<LimitDefinition>): LimitDefinition => ({
  name,
  key,
  charge: 'reserve',
  span: SPAN,
  ...more,
});

export function parsed(
  more: Partial<ParsedRequest> & { readonly text?: string; readonly fields?: { readonly [key: string]: string } } = {},
): ParsedRequest {
  const { text = 'hello there', fields = {}, ...rest } = more;
  return {
    path: '/v1/chat/completions',
    kind: 'chat',
    model: 'm',
    stream: false,
    includeUsage: false,
    maxTokens: Number.NaN,
    user: undefined,
    promptCacheKey: undefined,
    tools: 0,
    images: 0,
    jsonSchema: false,
    reasoning: false,
    promptChars: [...text].length,
    promptTokensExact: Number.NaN,
    bodyBytes: text.length,
    metadata: (key) => fields[key],
    toolNames: () => [],
    messages: () => [{ role: 'user', text, images: 0 }],
    prompt: () => text,
    systemPrompt: () => undefined,
    firstUserMessage: () => text,
    lastUserMessage: () => text,
    ...rest,
  };
}

export function request(
  more: Partial<RouteRequest> & { readonly body?: Parameters<typeof parsed>[0] } = {},
): RouteRequest {
  const { body, ...rest } = more;
  return { id: 'req', parsed: parsed(body), headers: {}, receivedAtMs: 0, deadlineMs: Infinity, ...rest };
}

/** A clock and timers that move only when told. */
export class FakeTime implements Clock, Scheduler {
  nowMs = 0;
  readonly #timers = new Map<number, { readonly atMs: number; readonly run: () => void }>();
  #next = 0;

  now(): number {
    return this.nowMs;
  }

  epochMs(): number {
    return 1_700_000_000_000 + this.nowMs;
  }

  setTimer(delayMs: number, run: () => void): () => void {
    if (!(delayMs <= MOST_DELAY_MS)) throw new RangeError(`a timer of ${delayMs} ms would go off at once`);
    const id = this.#next++;
    this.#timers.set(id, { atMs: this.nowMs + delayMs, run });
    return () => void this.#timers.delete(id);
  }

  get timers(): number {
    return this.#timers.size;
  }

  advance(ms: number): void {
    const until = this.nowMs + ms;
    for (;;) {
      let first: readonly [number, { readonly atMs: number; readonly run: () => void }] | undefined;
      for (const entry of this.#timers) if (first === undefined || entry[1].atMs < first[1].atMs) first = entry;
      if (first === undefined || first[1].atMs > until) break;
      this.#timers.delete(first[0]);
      this.nowMs = Math.max(this.nowMs, first[1].atMs);
      first[1].run();
    }
    this.nowMs = until;
  }
}

export interface TestCore {
  readonly core: Core;
  readonly time: FakeTime;
  readonly records: DecisionRecord[];
  /** Routes a request that is expected to be settled at once. */
  send(more?: Parameters<typeof request>[0]): Forward | Refusal;
  /** The same, expected to be forwarded. */
  forward(more?: Parameters<typeof request>[0]): Forward;
  refuse(more?: Parameters<typeof request>[0]): Refusal;
}

export function testCore(
  program: PolicyProgram,
  more: Partial<CoreOptions> & { readonly plugins?: Parameters<Core['prepare']>[1] } = {},
): TestCore {
  const { plugins, ...options } = more;
  const time = new FakeTime();
  const records: DecisionRecord[] = [];
  const core = createCore({
    clock: time,
    scheduler: time,
    capacity: 64,
    onDecision: (record) => records.push(record),
    ...options,
  });
  core.activate(core.prepare(program, plugins));
  const send: TestCore['send'] = (given) => {
    const outcome: RouteOutcome | Promise<RouteOutcome> = core.router.route(
      request({ receivedAtMs: time.nowMs, ...given }),
    );
    if (outcome instanceof Promise) throw new Error('expected an outcome at once');
    return outcome;
  };
  return {
    core,
    time,
    records,
    send,
    forward(given) {
      const outcome = send(given);
      if (outcome.kind !== 'forward') throw new Error(`expected a forward, got ${outcome.code}: ${outcome.message}`);
      return outcome;
    },
    refuse(given) {
      const outcome = send(given);
      if (outcome.kind !== 'refuse') throw new Error(`expected a refusal, got ${outcome.attempt.endpoint}`);
      return outcome;
    },
  };
}

export const OK: RequestEnd = Object.freeze({
  outcome: 'ok',
  status: 200,
  upstreamStatus: 200,
  ttftMs: 10,
  durationMs: 100,
  promptTokens: 10,
  cachedTokens: 0,
  outputTokens: 20,
});
