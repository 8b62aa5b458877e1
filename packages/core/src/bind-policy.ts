import { createBound, frame as frameParts } from '@signalbox/chwbl';
import { isKnown, isNumericType, SignalboxError } from '@signalbox/plugin-api';
import type {
  AdmissionInstance,
  AsyncSignalInstance,
  FilterInstance,
  Json,
  PickerInstance,
  Plugin,
  PluginKind,
  PropertyInstance,
  ScorerInstance,
  SignalDefinition,
  SignalInstance,
  Value,
} from '@signalbox/plugin-api';
import { referenceName } from '@signalbox/policy';
import type {
  CandidateValue,
  Column,
  Destination,
  Evaluators,
  Expression,
  FailureCause,
  Modifiers,
  OrderKey,
  PickRef,
  PolicyProgram,
  PropertyRef,
  Provider,
  RefArgument,
  RequestValue,
  ScoreTerm,
  SignalRef,
  TargetRef,
  Verdict,
} from '@signalbox/policy';
import type {
  AsyncSignal,
  BoundDestination,
  BoundFallback,
  BoundLimit,
  BoundModifiers,
  BoundPolicy,
  BoundQueue,
  BoundStep,
  BoundVerdict,
  Learner,
  QueueOrder,
  SignalStep,
} from './bound-policy.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { TargetPool } from './fleet/pool.ts';
import type { ColumnSource, Frame } from './frame.ts';
import type { LimitLedger } from './limits.ts';
import type { PluginGuard } from './plugins/guard.ts';
import { PluginFailure } from './plugins/guard.ts';
import type { HeldInstance, InstanceRegistry } from './plugins/instance-registry.ts';
import { FrameCandidateView, FrameRequestView } from './plugins/views.ts';
import type { BoundReads } from './plugins/views.ts';
import {
  bindBuiltinProperty,
  predictedLatency,
  predictedTpot,
  predictedTtft,
  textOf,
  unknownColumn,
} from './property-columns.ts';
import type { RankPicker, RankTerm, RankTier } from './ranking.ts';
import { bindBuiltinSignal } from './signals/signal-producers.ts';
import type { SignalSources } from './signals/signal-producers.ts';

/** What a policy is bound to. */
export interface BindContext {
  readonly fleet: Fleet;
  readonly sources: SignalSources;
  readonly limits: LimitLedger;
  readonly instances: InstanceRegistry;
  readonly guard: PluginGuard;
  /** Plugins that are loaded, by their own name. */
  readonly plugins: ReadonlyMap<string, Plugin>;
}

/** Retries where none are written. */
const DEFAULT_RETRIES = 2;
const DEFAULT_RETRY_CAUSES: readonly FailureCause[] = ['connect', 'saturated', 'rate_limited', 'first_token', 'error'];
const DEFAULT_MAX_DEPTH = 1000;

const PROMPT_KEYS: ReadonlySet<string> = new Set(['prompt', 'system_prompt', 'first_user_message', 'prefix']);
const HASHED_KEYS: ReadonlySet<string> = new Set(['user', 'session', 'conversation']);
/** Headers and metadata that carry who or which session: `x-session-id`, `user_id`, `email` … */
const PERSONAL_NAMES = /session|user|account|email|conversation|auth|token|key|cookie/;
const CLOCK_KEYS: ReadonlySet<string> = new Set(['hour', 'weekday', 'within']);

/**
 * Binds a program: resolves every signal, property, scorer, picker and target to functions over the fleet's columns, and sets plugins up.
 * Throws SignalboxError when a plugin is missing or its setup fails; instances set up before that are released.
 */
export function bindPolicy(program: PolicyProgram, evaluators: Evaluators, context: BindContext): BoundPolicy {
  const binder = new Binder(program, evaluators, context);
  try {
    return binder.bind();
  } catch (error) {
    for (const held of binder.held) context.instances.release(held);
    throw error;
  }
}

/** Where a catalogue key ended up: an index into the frame's signals or columns. */
interface Place {
  readonly index: number;
  readonly numeric: boolean;
}

type SignalOrder = 0 | 1 | 2 | 3;

class Binder {
  readonly held: HeldInstance[] = [];
  readonly #program: PolicyProgram;
  readonly #evaluators: Evaluators;
  readonly #context: BindContext;
  readonly #columns: ColumnSource[] = [];
  readonly #columnNames: string[] = [];
  readonly #columnNumeric: boolean[] = [];
  readonly #steps: (SignalStep & { readonly order: SignalOrder })[] = [];
  readonly #async: AsyncSignal[] = [];
  /** Extra signals and columns that plugins read and the program does not, by key. */
  readonly #extraSignals = new Map<string, Place>();
  readonly #extraColumns = new Map<string, Place>();
  readonly #learners: Learner[] = [];
  readonly #limits = new Map<string, BoundLimit>();
  readonly #boundSignals = new Set<number>();
  #signalCount: number;
  #partCount = 1;
  #shortlist = DEFAULT_RETRIES + 1;

  constructor(program: PolicyProgram, evaluators: Evaluators, context: BindContext) {
    this.#program = program;
    this.#evaluators = evaluators;
    this.#context = context;
    this.#signalCount = program.signals.length;
  }

  bind(): BoundPolicy {
    const program = this.#program;
    const { definitions } = program;
    for (const limit of definitions.limits) {
      this.#limits.set(limit.name, {
        definition: limit,
        when: limit.when === undefined ? undefined : this.#evaluators.predicate(limit.when),
        key: limit.key.map((part) => this.#evaluators.value(part)),
        parent: limit.shareOf,
      });
    }
    // Indices of the program's own properties are fixed, so their columns come first.
    program.properties.forEach((property, index) => {
      this.#columnNames[index] = referenceName(property);
      this.#columnNumeric[index] = isNumericType(property.type);
    });
    this.#columns.length = program.properties.length;
    program.properties.forEach((property, index) => {
      this.#columns[index] = this.#bindProperty(property);
    });
    program.signals.forEach((signal, index) => this.#bindSignal(signal, index));

    const admission = program.admission.map((rule, index) => ({
      rule,
      when: rule.when === undefined ? undefined : this.#evaluators.predicate(rule.when),
      verdict: this.#bindVerdict(rule, `admission:${rule.label}`, rule.label, rule.when === undefined ? index : -1),
    }));
    const routes = program.routes.map((rule) => ({
      rule,
      when: rule.when === undefined ? undefined : this.#evaluators.predicate(rule.when),
      steps: rule.steps.map((step, index): BoundStep => {
        if (step.kind === 'next') return { kind: 'next' };
        if (step.kind === 'verdict') {
          return { kind: 'verdict', verdict: this.#bindVerdict(step, `route:${rule.label}:${index}`, rule.label, -1) };
        }
        return this.#bindDestination(step, rule.label);
      }),
    }));
    const alarms = definitions.alarms.map((alarm) => ({
      name: alarm.name,
      when: this.#evaluators.predicate(alarm.when),
      until: alarm.until === undefined ? undefined : this.#evaluators.predicate(alarm.until),
      forMs: alarm.for * 1000,
    }));
    const everywhere = this.#evaluators.targets.map((target) => this.#context.fleet.pool([target]));

    const recordedSignals: BoundPolicy['recordedSignals'] = program.signals.map((signal, index) => ({
      index,
      name: signalName(signal),
      numeric: isNumericType(signal.type),
      as: PROMPT_KEYS.has(signal.key) ? 'omitted' : isPersonal(signal) ? 'hash' : 'value',
    }));

    return {
      shape: {
        signals: this.#signalCount,
        columns: this.#columns,
        pools: everywhere,
        shortlist: this.#shortlist,
        parts: this.#partCount,
        properties: program.properties.length,
      },
      evaluators: this.#evaluators,
      signals: this.#steps.toSorted((a, b) => a.order - b.order),
      asyncSignals: this.#async,
      promptSignals: program.signals.flatMap((signal, index) => (PROMPT_KEYS.has(signal.key) ? [index] : [])),
      recordedSignals,
      blankSignals: Object.fromEntries(
        recordedSignals.filter(({ as }) => as !== 'omitted').map(({ name }) => [name, null]),
      ),
      propertyNames: this.#columnNames,
      propertyNumeric: this.#columnNumeric,
      admission,
      routes,
      limits: [...this.#limits.values()],
      alarms,
      tenants: new Map(definitions.tenants.map((tenant) => [tenant.name, tenant])),
      readsSessionTokens:
        program.signals.some((signal) => signal.key === 'session_tokens') || this.#extraSignals.has('session_tokens'),
      readsClock:
        program.signals.some((signal) => CLOCK_KEYS.has(signal.key)) ||
        [...CLOCK_KEYS].some((key) => this.#extraSignals.has(key)),
      learners: this.#learners,
      instances: this.held,
    };
  }

  // --- signals

  /** Binds a signal of the program, unless it is bound: one that another reads is bound, and so worked out, before it. */
  #bindSignal(signal: SignalRef, index: number): void {
    if (this.#boundSignals.has(index)) return;
    this.#boundSignals.add(index);
    const numeric = isNumericType(signal.type);
    if (signal.key === 'over_limit' || signal.key === 'usage') {
      this.#addStep(2, index, numeric, this.#bindLimitSignal(signal));
    } else if (signal.provider.kind === 'plugin') {
      const plugin = this.#plugin(signal.provider.plugin);
      if (plugin.provides.admission?.[signal.key] !== undefined)
        this.#bindPredicate(signal, index, numeric, plugin, signal.provider);
      else this.#bindPluginSignal(plugin, signal.key, signal.provider, signal.options ?? {}, index, numeric);
    } else if (signal.key === 'sla') {
      this.#addStep(3, index, numeric, this.#bindBuiltinSla(signal));
    } else {
      const bound = bindBuiltinSignal(signal.key, signal.arguments, this.#context.sources);
      if (bound !== undefined && bound.numeric === numeric) {
        this.#steps.push({ order: 0, index, numeric, field: bound.field, produce: bound.produce });
      } else this.#addStep(0, index, numeric, bound?.produce ?? (() => undefined));
    }
  }

  #addStep(order: SignalOrder, index: number, numeric: boolean, produce: (frame: Frame) => Value | undefined): void {
    this.#steps.push({ order, index, numeric, field: undefined, produce: numeric ? numberOr(produce) : produce });
  }

  #bindPluginSignal(
    plugin: Plugin,
    name: string,
    provider: Provider,
    options: { readonly [name: string]: Json },
    index: number,
    numeric: boolean,
  ): void {
    const held = this.#acquire(plugin, 'signal', name, provider, options, '');
    const reads = this.#bindReads(held.reads);
    const definition: SignalDefinition | undefined = plugin.provides.signal?.[name];
    const { guard } = this.#context;
    if (definition?.budgetMs !== undefined) {
      const instance = held.instance as AsyncSignalInstance;
      this.#async.push({
        index,
        numeric,
        budgetMs: definition.budgetMs,
        held,
        start: (frame, abort) => {
          // One for each request, as several wait at a time; it is blind once the wait is over, because the frame then serves others.
          const view = new FrameRequestView(reads);
          view.frame = frame;
          abort.addEventListener('abort', () => (view.frame = undefined), { once: true });
          return frame.parsed === undefined ? Promise.resolve(undefined) : instance.evaluate(frame.parsed, view, abort);
        },
      });
      return;
    }
    const instance = held.instance as SignalInstance;
    const view = new FrameRequestView(reads);
    this.#addStep(1, index, numeric, (frame) => {
      if (frame.parsed === undefined) return undefined;
      view.frame = frame;
      try {
        const value = instance.evaluate(frame.parsed, view);
        // A plugin's estimate takes the place of core's own, in leases and limits too.
        if (name === 'prompt_tokens' && typeof value === 'number' && value >= 0) frame.promptTokens = value;
        if (name === 'output_tokens' && typeof value === 'number' && value >= 0) frame.outputTokens = value;
        return value;
      } catch (error) {
        guard.failed(held, error);
        return undefined;
      }
    });
  }

  #bindLimitSignal(signal: SignalRef): (frame: Frame) => Value | undefined {
    const argument = signal.arguments.find((one) => one.kind === 'definition');
    const name = argument?.kind === 'definition' ? argument.of : '';
    const { limits } = this.#context;
    if (signal.key === 'usage') {
      return (frame) => {
        const limit = this.#limits.get(name);
        const key = limit === undefined ? undefined : limitKey(limit, frame);
        return limit === undefined || key === undefined ? undefined : limits.usage(limit.definition, key, frame.nowMs);
      };
    }
    return (frame) => isOverLimit(this.#limits, name, frame, limits);
  }

  /** An admission plugin's predicate over a target's healthy endpoints. */
  #bindPredicate(signal: SignalRef, index: number, numeric: boolean, plugin: Plugin, provider: Provider): void {
    const held = this.#acquire(plugin, 'admission', signal.key, provider, signal.options ?? {}, '');
    const reads = this.#bindReads(held.reads);
    const request = new FrameRequestView(reads);
    const candidates = new FrameCandidateView(reads, unknownColumn(this.#context.fleet));
    const instance = held.instance as AdmissionInstance;
    const pool = this.#context.fleet.pool([targetArgument(signal.arguments)]);
    const slo = this.#sloArgument(signal.arguments);
    const limit = signal.arguments.find((one) => one.kind === 'definition' && one.definition === 'limit');
    const value = signal.arguments.find((one) => one.kind === 'value');
    const expression = signal.arguments.find((one) => one.kind === 'expression');
    const valueOf = expression?.kind === 'expression' ? this.#evaluators.value(expression.expression) : undefined;
    const { guard } = this.#context;
    this.#addStep(3, index, numeric, (frame) => {
      pool.refresh();
      request.frame = frame;
      candidates.frame = frame;
      candidates.slots = pool.healthy;
      candidates.length = pool.healthy.length;
      const given = valueOf === undefined ? (value?.kind === 'value' ? value.value : undefined) : valueOf(frame);
      try {
        return instance.holds(request, candidates, {
          ...(slo === undefined ? {} : { slo }),
          ...(limit?.kind === 'definition' ? { limit: limit.of } : {}),
          ...(given === undefined ? {} : { value: given }),
        });
      } catch (error) {
        guard.failed(held, error);
        return undefined;
      }
    });
  }

  #sloArgument(
    given: readonly RefArgument[],
  ): { readonly ttft: number; readonly tpot: number; readonly latency: number } | undefined {
    const argument = given.find((one) => one.kind === 'definition' && one.definition === 'slo');
    if (argument?.kind !== 'definition') return undefined;
    const slo = this.#program.definitions.slos.find((one) => one.name === argument.of);
    return { ttft: slo?.ttft ?? Number.NaN, tpot: slo?.tpot ?? Number.NaN, latency: slo?.latency ?? Number.NaN };
  }

  /** True when a healthy endpoint of the target is predicted to meet every stated objective; unknown when none can be predicted. */
  #bindBuiltinSla(signal: SignalRef): (frame: Frame) => Value | undefined {
    const pool = this.#context.fleet.pool([targetArgument(signal.arguments)]);
    const slo = this.#sloArgument(signal.arguments);
    const { table } = this.#context.fleet;
    return (frame) => {
      if (slo === undefined) return undefined;
      pool.refresh();
      let unknown = false;
      for (const slot of pool.healthy) {
        const misses = [
          slo.ttft - predictedTtft(table, slot, frame.promptTokens),
          slo.tpot - predictedTpot(table, slot, frame.promptTokens, frame.outputTokens),
          slo.latency - predictedLatency(table, slot, frame.promptTokens, frame.outputTokens),
        ].filter((_, i) => !Number.isNaN([slo.ttft, slo.tpot, slo.latency][i]));
        if (misses.every((slack) => slack >= 0)) return true;
        if (misses.every((slack) => !(slack < 0))) unknown = true;
      }
      return unknown ? undefined : false;
    };
  }

  /** The place of a request- or cluster-scope key that a plugin reads. */
  #signalPlace(key: string): Place | undefined {
    const own = this.#program.signals.findIndex((signal) => signal.key === key && signal.arguments.length === 0);
    const ref = this.#program.signals[own];
    if (ref !== undefined) {
      this.#bindSignal(ref, own);
      return { index: own, numeric: isNumericType(ref.type) };
    }
    const extra = this.#extraSignals.get(key);
    if (extra !== undefined) return extra;
    const provider = this.#providerOf('signal', key);
    const definition = provider?.provides.signal?.[key];
    if (provider !== undefined && definition !== undefined) {
      const numeric = isNumericType(definition.type);
      const place = { index: this.#signalCount++, numeric };
      this.#extraSignals.set(key, place);
      this.#bindPluginSignal(provider, key, { kind: 'plugin', plugin: provider.name }, {}, place.index, numeric);
      return place;
    }
    const bound = bindBuiltinSignal(key, [], this.#context.sources);
    if (bound === undefined) return undefined;
    const place = { index: this.#signalCount++, numeric: bound.numeric };
    this.#extraSignals.set(key, place);
    this.#addStep(0, place.index, bound.numeric, bound.produce);
    return place;
  }

  // --- properties

  #bindProperty(property: PropertyRef): ColumnSource {
    if (property.provider.kind === 'plugin') {
      const plugin = this.#plugin(property.provider.plugin);
      const options = property.options ?? {};
      return plugin.provides.filter?.[property.key] === undefined
        ? this.#bindPluginProperty(plugin, property.key, property.provider, options)
        : this.#bindPluginFilter(plugin, property.key, property.provider, options);
    }
    const bound = bindBuiltinProperty(property.key, this.#context.fleet, {
      arguments: property.arguments,
      valueOf: (argument) =>
        argument.kind === 'expression' ? this.#evaluators.value(argument.expression) : () => undefined,
    });
    if (bound !== undefined) return bound.source;
    const unknown = isNumericType(property.type) ? unknownColumn(this.#context.fleet) : ([] as unknown as Column);
    return () => unknown;
  }

  #bindPluginProperty(
    plugin: Plugin,
    name: string,
    provider: Provider,
    options: { readonly [name: string]: Json },
  ): ColumnSource {
    const held = this.#acquire(plugin, 'property', name, provider, options, '');
    const instance = held.instance as PropertyInstance;
    const fillColumn = instance.fill.bind(instance);
    const reads = this.#bindReads(held.reads);
    const request = new FrameRequestView(reads);
    const candidates = new FrameCandidateView(reads, unknownColumn(this.#context.fleet));
    const { guard, fleet } = this.#context;
    const { capacity } = fleet.table;
    const values = new Float64Array(capacity);
    const column = new Float64Array(capacity).fill(Number.NaN);
    if (instance.ended !== undefined) this.#learners.push(this.#guarded(held, instance));
    let filledFor: Frame | undefined;
    let filledStamp = -1;
    let filledSlots: Int32Array | undefined;
    let filledLength = -1;
    return (frame, slots, length) => {
      if (frame === filledFor && frame.stamp === filledStamp && slots === filledSlots && length === filledLength)
        return column;
      request.frame = frame;
      candidates.frame = frame;
      candidates.slots = slots;
      candidates.length = length;
      try {
        values.fill(Number.NaN, 0, length);
        fillColumn(request, candidates, values);
      } catch (error) {
        guard.failed(held, error);
        values.fill(Number.NaN, 0, length);
      }
      for (let i = 0; i < length; i++) column[slots[i] ?? 0] = values[i] ?? Number.NaN;
      filledFor = frame;
      filledStamp = frame.stamp;
      filledSlots = slots;
      filledLength = length;
      return column;
    };
  }

  #bindPluginFilter(
    plugin: Plugin,
    name: string,
    provider: Provider,
    options: { readonly [name: string]: Json },
  ): ColumnSource {
    const held = this.#acquire(plugin, 'filter', name, provider, options, '');
    const instance = held.instance as FilterInstance;
    const reads = this.#bindReads(held.reads);
    const request = new FrameRequestView(reads);
    const candidates = new FrameCandidateView(reads, unknownColumn(this.#context.fleet));
    const { guard } = this.#context;
    const out = new Uint8Array(this.#context.fleet.table.capacity);
    const column: (boolean | undefined)[] = [];
    return (frame, slots, length) => {
      request.frame = frame;
      candidates.frame = frame;
      candidates.slots = slots;
      candidates.length = length;
      try {
        out.fill(2, 0, length);
        instance.filter(request, candidates, out);
      } catch (error) {
        guard.failed(held, error);
        out.fill(2, 0, length);
      }
      for (let i = 0; i < length; i++) column[slots[i] ?? 0] = out[i] === 1 ? true : out[i] === 0 ? false : undefined;
      return column as unknown as Column;
    };
  }

  /** The place of a candidate-scope key that a plugin reads. */
  #columnPlace(key: string): Place | undefined {
    const own = this.#program.properties.findIndex(
      (property) => property.key === key && property.arguments.length === 0,
    );
    const ref = this.#program.properties[own];
    // While the program's own columns are being bound, a later one has no source yet; it is found when it is asked for.
    if (ref !== undefined) return { index: own, numeric: isNumericType(ref.type) };
    const extra = this.#extraColumns.get(key);
    if (extra !== undefined) return extra;
    const provider = this.#providerOf('property', key);
    const definition = provider?.provides.property?.[key];
    if (provider !== undefined && definition !== undefined && 'setup' in definition) {
      return this.#addColumn(key, isNumericType(definition.type), () =>
        this.#bindPluginProperty(provider, key, { kind: 'plugin', plugin: provider.name }, {}),
      );
    }
    const bound = bindBuiltinProperty(key, this.#context.fleet);
    return bound === undefined ? undefined : this.#addColumn(key, bound.numeric, () => bound.source);
  }

  #addColumn(key: string, numeric: boolean, bind: () => ColumnSource): Place {
    const place = { index: this.#columns.length, numeric };
    this.#extraColumns.set(key, place);
    this.#columnNames[place.index] = key;
    this.#columnNumeric[place.index] = numeric;
    this.#columns.length = place.index + 1;
    this.#columns[place.index] = bind();
    return place;
  }

  // --- plugins

  #plugin(name: string): Plugin {
    const plugin = this.#context.plugins.get(name);
    if (plugin !== undefined) return plugin;
    throw new SignalboxError(
      `the policy uses plugin "${name}", which is not loaded. Install it and add it to the gateway's dependencies.`,
      {
        code: 'plugin_missing',
        source: 'gateway',
      },
    );
  }

  #providerOf(kind: 'signal' | 'property', key: string): Plugin | undefined {
    for (const plugin of this.#context.plugins.values()) {
      const definition = plugin.provides[kind]?.[key];
      if (definition !== undefined && 'setup' in definition) return plugin;
    }
    return undefined;
  }

  #acquire(
    plugin: Plugin,
    kind: PluginKind,
    name: string,
    provider: Provider,
    options: { readonly [name: string]: Json },
    rule: string,
  ): HeldInstance {
    const use = provider.kind === 'plugin' && provider.use !== undefined ? this.#program.uses[provider.use] : undefined;
    const held = this.#context.instances.acquire({
      plugin,
      kind,
      name,
      packageOptions: use?.options ?? {},
      options,
      rule,
    });
    this.held.push(held);
    return held;
  }

  #bindReads(reads: readonly string[]): BoundReads {
    const numbers = new Map<string, number>();
    const values = new Map<string, number>();
    const numberColumns = new Map<string, number>();
    const valueColumns = new Map<string, number>();
    for (const key of reads) {
      if (key.startsWith('candidate.')) {
        const place = this.#columnPlace(key.slice('candidate.'.length));
        if (place !== undefined) (place.numeric ? numberColumns : valueColumns).set(key, place.index);
        continue;
      }
      const place = this.#signalPlace(key.startsWith('request.') ? key.slice('request.'.length) : key);
      if (place !== undefined) (place.numeric ? numbers : values).set(key, place.index);
    }
    return { numbers, values, numberColumns, valueColumns };
  }

  #guarded(held: HeldInstance, instance: Learner): Learner {
    const { guard } = this.#context;
    const safely = (run: () => void): void => {
      try {
        run();
      } catch (error) {
        try {
          guard.failed(held, error);
        } catch (failure) {
          // The decision has been made: there is no request left to refuse.
          if (!(failure instanceof PluginFailure)) throw failure;
        }
      }
    };
    return {
      ...(instance.picked === undefined ? {} : { picked: (slot: number) => safely(() => instance.picked?.(slot)) }),
      ...(instance.ended === undefined
        ? {}
        : {
            ended: (slot: number, outcome: Parameters<NonNullable<Learner['ended']>>[1]) =>
              safely(() => instance.ended?.(slot, outcome)),
          }),
    };
  }

  // --- rules

  #bindVerdict(
    verdict: Pick<Verdict, 'verb' | 'by' | 'with'>,
    key: string,
    label: string,
    admission: number,
  ): BoundVerdict {
    const modifiers = this.#bindModifiers(verdict.with);
    const place: BoundQueue | undefined =
      verdict.verb === 'queue'
        ? {
            key,
            label,
            admission,
            maxDepth: verdict.with.maxDepth ?? DEFAULT_MAX_DEPTH,
            overflow: verdict.with.overflow ?? 'refuse',
            order: this.#bindOrder(verdict.by),
            with: modifiers,
          }
        : undefined;
    return { verb: verdict.verb, with: modifiers, place };
  }

  #bindOrder(by: readonly OrderKey[] | undefined): QueueOrder {
    const first = by?.[0];
    if (first === undefined) return { kind: 'default' };
    if (first.key === 'deadline') return { kind: 'deadline' };
    if (first.key !== 'weighted_fair') {
      throw new SignalboxError(`a queue cannot be ordered by "${first.key}"; use weighted_fair(key: …) or deadline`, {
        code: 'unknown_order',
        source: 'gateway',
      });
    }
    const parts = first.arguments.flatMap((one) =>
      one.kind === 'expression' ? [this.#evaluators.value(one.expression)] : [],
    );
    const key: RequestValue = (frame) => {
      const values = parts.map((part) => part(frame));
      if (!values.every(isKnown)) return undefined;
      return values.length === 1 ? values[0] : frameParts(values.map(textOf));
    };
    const weight = (name: string, otherwise: number): number => {
      const argument = first.arguments.find((one) => one.kind === 'value' && one.name === name);
      const given = argument?.kind === 'value' ? argument.value : first.options?.[name];
      return typeof given === 'number' ? given : otherwise;
    };
    return {
      kind: 'weighted_fair',
      key,
      inputWeight: weight('input_weight', 1),
      outputWeight: weight('output_weight', 2),
    };
  }

  #bindDestination(source: Destination, label: string): BoundDestination {
    const retries = source.with.retry?.attempts ?? DEFAULT_RETRIES;
    this.#shortlist = Math.max(this.#shortlist, retries + 1);
    const learners: Learner[] = [];
    const tiers = source.by.map((sum): RankTier => sum.terms.map((term) => this.#bindTerm(term, label, learners)));
    this.#partCount = Math.max(this.#partCount, tiers[0]?.length ?? 1);
    const recorded = recordedProperties(source);
    const termNames = source.by[0]?.terms.map((term) => term.scorer.name) ?? [];
    const { fleet } = this.#context;
    const arms = source.split
      ? source.targets.map(({ target, share }) => ({ pool: fleet.pool([target]), share: share ?? 0 }))
      : [{ pool: fleet.pool(source.targets.map(({ target }) => target)), share: 1 }];
    const base: BoundDestination = {
      kind: 'destination',
      source,
      arms,
      split: source.split,
      where: source.where === undefined ? undefined : this.#evaluators.filter(source.where),
      tiers,
      picker: this.#bindPicker(source.pick),
      affinity:
        source.with.affinity === undefined
          ? undefined
          : {
              source: source.with.affinity,
              key: source.with.affinity.key.map((part) => this.#evaluators.value(part)),
              method: source.with.affinity.method,
              bound: createBound(source.with.affinity.bound, source.with.affinity.unit),
            },
      retries,
      retryOn: new Set(source.with.retry?.on ?? DEFAULT_RETRY_CAUSES),
      retryByDefault: source.with.retry?.on === undefined,
      fallbacks: [],
      with: this.#bindModifiers(source.with),
      recorded,
      termNames,
      blankParts: Object.fromEntries(termNames.map((name) => [name, Number.NaN])),
      blankProperties: Object.fromEntries(recorded.map((property) => [this.#columnNames[property] ?? '', null])),
      learners,
    };
    const fallbacks = (source.with.fallbacks ?? []).map((fallback): BoundFallback => ({
      on: new Set(fallback.on),
      destination: { ...base, arms: [{ pool: this.#targetPool(fallback.target), share: 1 }], split: false },
    }));
    return { ...base, fallbacks };
  }

  #targetPool(target: TargetRef): TargetPool {
    return this.#context.fleet.pool([target]);
  }

  #bindTerm(term: ScoreTerm, rule: string, learners: Learner[]): RankTerm {
    const { scorer, weight } = term;
    if (scorer.kind === 'expression') {
      return {
        name: scorer.name,
        weight,
        direction: scorer.direction,
        evaluate: this.#evaluators.score(scorer.expression),
      };
    }
    const plugin = this.#plugin(scorer.provider.kind === 'plugin' ? scorer.provider.plugin : '');
    const name = nameIn(plugin, 'scorer', scorer.name);
    const held = this.#acquire(
      plugin,
      'scorer',
      name,
      scorer.provider,
      scorer.options,
      scorer.instance === 'rule' ? rule : '',
    );
    const instance = held.instance as ScorerInstance;
    if (instance.picked !== undefined || instance.ended !== undefined) learners.push(this.#guarded(held, instance));
    const reads = this.#bindReads(held.reads);
    const request = new FrameRequestView(reads);
    const candidates = new FrameCandidateView(reads, unknownColumn(this.#context.fleet));
    const { guard } = this.#context;
    const evaluate: CandidateValue = (host, slots, length, out) => {
      request.frame = host as Frame;
      candidates.frame = host as Frame;
      candidates.slots = slots;
      candidates.length = length;
      try {
        instance.score(request, candidates, out);
      } catch (error) {
        guard.failed(held, error);
        // Neutral: equal for all.
        out.fill(0, 0, length);
      }
    };
    return {
      name: scorer.name,
      weight,
      direction: scorer.cost ? 'lowest' : 'score',
      evaluate,
      onInvalid: (count) => guard.invalid(held, count),
    };
  }

  #bindPicker(ref: PickRef): RankPicker | undefined {
    if (ref.provider.kind === 'builtin') return undefined;
    const plugin = this.#plugin(ref.provider.plugin);
    const held = this.#acquire(plugin, 'picker', nameIn(plugin, 'picker', ref.name), ref.provider, ref.options, '');
    const instance = held.instance as PickerInstance;
    if (instance.sample === undefined && instance.pick === undefined) return undefined;
    const candidates = new FrameCandidateView(this.#bindReads(held.reads), unknownColumn(this.#context.fleet));
    const { guard } = this.#context;
    const point = (frame: Frame, slots: Int32Array, length: number): FrameCandidateView => {
      candidates.frame = frame;
      candidates.slots = slots;
      candidates.length = length;
      return candidates;
    };
    const safely = (run: () => number): number => {
      try {
        return run();
      } catch (error) {
        guard.failed(held, error);
        return 0;
      }
    };
    return {
      sample:
        instance.sample === undefined
          ? undefined
          : (frame, slots, length, random, out) =>
              safely(() => instance.sample?.(point(frame, slots, length), random, out) ?? 0),
      pick:
        instance.pick === undefined
          ? undefined
          : (frame, scores, slots, length, random, k, out) =>
              safely(() => instance.pick?.(scores, point(frame, slots, length), random, k, out) ?? 0),
    };
  }

  #bindModifiers(source: Modifiers): BoundModifiers {
    const value = (expression: Expression | undefined): RequestValue | undefined => {
      if (expression === undefined) return undefined;
      if (expression.kind !== 'constant') return this.#evaluators.value(expression);
      const constant = expression.value;
      return () => constant;
    };
    const required = (expression: Expression): RequestValue => value(expression) ?? (() => undefined);
    return {
      source,
      timeout: value(source.timeout),
      attemptTimeout: value(source.attemptTimeout),
      firstToken: value(source.firstToken),
      idle: value(source.idle),
      sticky: value(source.sticky),
      priority: value(source.priority),
      headers: (source.headers ?? []).map((header) => ({ name: header.name, value: required(header.value) })),
      model: value(source.model),
      set: (source.set ?? []).map((field) => ({ field: field.field, value: required(field.value) })),
      drop: source.drop ?? [],
      status: source.status,
      retryAfter: value(source.retryAfter),
      message: value(source.message),
      maxWait: value(source.maxWait),
    };
  }
}

/** The key under which a limit is charged for this request; undefined where the limit does not apply. */
export function limitKey(limit: BoundLimit, frame: Frame): string | undefined {
  if (limit.when !== undefined && !limit.when(frame)) return undefined;
  const parts: string[] = [];
  for (const part of limit.key) {
    const value = part(frame);
    if (value === undefined || value !== value) return undefined;
    parts.push(textOf(value));
  }
  return frameParts(parts);
}

/** Whether this request would exceed the limit, or one that it is a share of. False where it does not apply. */
export function isOverLimit(
  limits: ReadonlyMap<string, BoundLimit>,
  name: string,
  frame: Frame,
  ledger: LimitLedger,
): boolean {
  const charge = { inputTokens: frame.promptTokens, outputTokens: frame.outputTokens, cost: 0 };
  const seen = new Set<string>();
  for (
    let limit = limits.get(name);
    limit !== undefined && !seen.has(limit.definition.name);
    limit = limits.get(limit.parent ?? '')
  ) {
    seen.add(limit.definition.name);
    const key = limitKey(limit, frame);
    if (key !== undefined && ledger.wouldExceed(limit.definition, key, charge, frame.nowMs)) return true;
  }
  return false;
}

/** A signal as records and traces name it: `complexity`, `header["x-tier"]`. */
export function signalName(signal: SignalRef): string {
  const argument = signal.arguments[0];
  if ((signal.key === 'header' || signal.key === 'metadata') && argument?.kind === 'value') {
    return `${signal.key}[${JSON.stringify(argument.value)}]`;
  }
  return referenceName(signal);
}

/** Whether a signal tells one user or session from another, so that records hold its hash only. */
function isPersonal(signal: SignalRef): boolean {
  if (HASHED_KEYS.has(signal.key)) return true;
  const argument = signal.arguments[0];
  const name = argument?.kind === 'value' && typeof argument.value === 'string' ? argument.value.toLowerCase() : '';
  return (signal.key === 'header' || signal.key === 'metadata') && PERSONAL_NAMES.test(name);
}

const numberOr =
  (produce: (frame: Frame) => Value | undefined): ((frame: Frame) => number) =>
  (frame) => {
    const value = produce(frame);
    return typeof value === 'number' ? value : Number.NaN;
  };

function targetArgument(given: readonly RefArgument[]): TargetRef {
  const argument = given.find((one) => one.kind === 'target');
  return argument?.kind === 'target' ? argument.target : { kind: 'any' };
}

/** A policy may write a plugin's name with the alias of its `use` before it. */
function nameIn(plugin: Plugin, kind: 'scorer' | 'picker', written: string): string {
  const provided = plugin.provides[kind];
  if (provided?.[written] !== undefined) return written;
  const dot = written.indexOf('.');
  const bare = written.slice(dot + 1);
  return dot >= 0 && provided?.[bare] !== undefined ? bare : written;
}

/** Properties of the candidate in hand that a destination reads, ascending. */
function recordedProperties(destination: Destination): readonly number[] {
  const found = new Set<number>();
  const visit = (expression: Expression): void => {
    switch (expression.kind) {
      case 'property':
        found.add(expression.index);
        return;
      case 'negate':
      case 'not':
      case 'exists':
        return visit(expression.operand);
      case 'arithmetic':
      case 'compare':
      case 'coalesce':
        visit(expression.left);
        return visit(expression.right);
      case 'and':
      case 'or':
        return expression.operands.forEach(visit);
      case 'between':
        return [expression.value, expression.low, expression.high].forEach(visit);
      case 'in':
        return [expression.value, expression.list].forEach(visit);
      case 'list':
        return expression.members.forEach(visit);
      case 'matches':
        return visit(expression.value);
      case 'contains':
        return [expression.value, expression.part].forEach(visit);
      case 'call':
        return expression.arguments.forEach(visit);
      default:
    }
  };
  if (destination.where !== undefined) visit(destination.where);
  for (const sum of destination.by)
    for (const { scorer } of sum.terms) if (scorer.kind === 'expression') visit(scorer.expression);
  return [...found].sort((a, b) => a - b);
}
