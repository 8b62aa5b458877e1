import { isNumericType, SignalboxError } from '@signalbox/plugin-api';
import type {
  AdmissionInstance,
  AsyncSignalInstance,
  FilterInstance,
  Json,
  Plugin,
  PluginKind,
  PropertyInstance,
  SignalDefinition,
  SignalInstance,
  Value,
} from '@signalbox/plugin-api';
import { expressionRoles, readsOf, referenceName } from '@signalbox/policy';
import type {
  Column,
  Evaluators,
  Expression,
  PolicyProgram,
  PropertyRef,
  Provider,
  RefArgument,
  SignalRef,
  TargetRef,
} from '@signalbox/policy';
import type { AsyncSignal, BoundLimit, Learner, SignalStep } from './bound-policy.ts';
import { isOverLimit, leastCostOver, limitKey } from './bound-limits.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { ColumnSource, Frame } from './frame.ts';
import { givenColumn } from './given-values.ts';
import type { GivenValues } from './given-values.ts';
import { MOST_LATE_SIGNALS } from './late-signals.ts';
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
  unknownColumn,
} from './property-columns.ts';
import { PROMPT_KEYS } from './recorded-facts.ts';
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
  /** What stands in place of signals and properties, for tests of policies. */
  readonly given?: GivenValues;
}

/** Where a catalogue key ended up: an index into the frame's signals or columns. */
interface Place {
  readonly index: number;
  readonly numeric: boolean;
}

type SignalOrder = 0 | 1 | 2 | 3;

/**
 * Binds the names of a program: every signal and property that it or a plugin reads becomes a place in the frame, filled by core or by an
 * instance of a plugin. Instances that were set up stand in `held`, those that learn in `learners`.
 */
export class CatalogueBinder {
  readonly held: HeldInstance[] = [];
  readonly learners: Learner[] = [];
  readonly columns: ColumnSource[] = [];
  readonly columnNames: string[] = [];
  readonly columnNumeric: boolean[] = [];
  readonly asyncSignals: AsyncSignal[] = [];
  /** The policy's limits by name. */
  readonly limits: Map<string, BoundLimit> = new Map();
  readonly #program: PolicyProgram;
  readonly #evaluators: Evaluators;
  readonly #context: BindContext;
  readonly #steps: (SignalStep & { readonly order: SignalOrder })[] = [];
  /** Extra signals and columns that plugins read and the program does not, by key. */
  readonly #extraSignals = new Map<string, Place>();
  readonly #extraColumns = new Map<string, Place>();
  readonly #boundSignals = new Set<number>();
  /** Signals that a plugin reads, by index. */
  readonly #readByPlugins = new Set<number>();
  #signalCount: number;

  constructor(program: PolicyProgram, evaluators: Evaluators, context: BindContext) {
    this.#program = program;
    this.#evaluators = evaluators;
    this.#context = context;
    this.#signalCount = program.signals.length;
  }

  /** Binds what the program names. Limits come first, as signals read them; indices of its own signals and properties are fixed, so these come first. */
  bind(): void {
    const { signals, properties, definitions } = this.#program;
    const { fleet } = this.#context;
    for (const limit of definitions.limits) {
      this.limits.set(limit.name, {
        definition: limit,
        when: limit.when === undefined ? undefined : this.#evaluators.predicate(limit.when),
        key: limit.key.map((part) => this.#evaluators.value(part)),
        parent: limit.shareOf,
        leastCost: limit.cost === undefined ? undefined : leastCostOver(fleet, fleet.pool([{ kind: 'any' }])),
      });
    }
    properties.forEach((property, index) => {
      this.columnNames[index] = referenceName(property);
      this.columnNumeric[index] = isNumericType(property.type);
    });
    this.columns.length = properties.length;
    properties.forEach((property, index) => {
      this.columns[index] = this.#bindProperty(property);
    });
    signals.forEach((signal, index) => this.#bindSignal(signal, index));
  }

  /** Places for signals, those that only plugins read among them. */
  get signalCount(): number {
    return this.#signalCount;
  }

  /**
   * What fills the signals, in the order in which they may read one another: at once, or, for the costly ones that nothing but conditions
   * of rules reads, when a rule comes to them.
   */
  signalSteps(): { readonly atOnce: readonly SignalStep[]; readonly late: readonly SignalStep[] } {
    const program = this.#program;
    const inRules = readByRules(program);
    const beyondRules = new Set([...readBeyondRules(program), ...this.#readByPlugins]);
    const isLate = ({ index }: SignalStep): boolean =>
      inRules.has(index) && !beyondRules.has(index) && isCostly(program.signals[index]);
    const steps = this.#steps.toSorted((a, b) => a.order - b.order);
    const late = steps.filter(isLate).slice(0, MOST_LATE_SIGNALS);
    return { atOnce: steps.filter((step) => !late.includes(step)), late };
  }

  /** Whether the program or a plugin reads this signal. */
  reads(key: string): boolean {
    return this.#program.signals.some((signal) => signal.key === key) || this.#extraSignals.has(key);
  }

  // --- signals

  /** Binds a signal of the program, unless it is bound: one that another reads is bound, and so worked out, before it. */
  #bindSignal(signal: SignalRef, index: number): void {
    if (this.#boundSignals.has(index)) return;
    this.#boundSignals.add(index);
    const numeric = isNumericType(signal.type);
    const given = this.#context.given?.signal(signal);
    if (given !== undefined) this.#bindGivenSignal(signal.key, index, numeric, given);
    else if (signal.key === 'over_limit' || signal.key === 'usage') {
      this.#addStep(2, index, numeric, this.#bindLimitSignal(signal));
    } else if (signal.provider.kind === 'plugin') {
      const plugin = this.plugin(signal.provider.plugin);
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
    const held = this.acquire(plugin, 'signal', name, provider, options, '');
    const reads = this.bindReads(held.reads);
    const definition: SignalDefinition | undefined = plugin.provides.signal?.[name];
    const { guard } = this.#context;
    if (definition?.budgetMs !== undefined) {
      const instance = held.instance as AsyncSignalInstance;
      this.asyncSignals.push({
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
        takeEstimate(frame, name, value);
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
        const limit = this.limits.get(name);
        const key = limit === undefined ? undefined : limitKey(limit, frame);
        return limit === undefined || key === undefined ? undefined : limits.usage(limit.definition, key, frame.nowMs);
      };
    }
    return (frame) => isOverLimit(this.limits, name, frame, limits);
  }

  /** An admission plugin's predicate over a target's healthy endpoints. */
  #bindPredicate(signal: SignalRef, index: number, numeric: boolean, plugin: Plugin, provider: Provider): void {
    const held = this.acquire(plugin, 'admission', signal.key, provider, signal.options ?? {}, '');
    const reads = this.bindReads(held.reads);
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
      this.#readByPlugins.add(own);
      this.#bindSignal(ref, own);
      return { index: own, numeric: isNumericType(ref.type) };
    }
    const extra = this.#extraSignals.get(key);
    if (extra !== undefined) return extra;
    const provider = this.#providerOf('signal', key);
    const definition = provider?.provides.signal?.[key];
    const given = this.#context.given?.signal({ key, arguments: [] });
    if (given !== undefined) return this.#addGivenSignal(key, definition, given);
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

  /** A place for a signal that only plugins read and that a test gives. */
  #addGivenSignal(key: string, definition: SignalDefinition | undefined, given: () => Value | undefined): Place {
    const builtin = bindBuiltinSignal(key, [], this.#context.sources);
    const numeric = definition === undefined ? builtin?.numeric === true : isNumericType(definition.type);
    const place = { index: this.#signalCount++, numeric };
    this.#extraSignals.set(key, place);
    this.#bindGivenSignal(key, place.index, numeric, given);
    return place;
  }

  #bindGivenSignal(key: string, index: number, numeric: boolean, given: () => Value | undefined): void {
    this.#addStep(0, index, numeric, (frame) => {
      const value = given();
      takeEstimate(frame, key, value);
      return value;
    });
  }

  // --- properties

  #bindProperty(property: PropertyRef): ColumnSource {
    return givenColumn(this.#bindOwnProperty(property), property.key, this.#context);
  }

  #bindOwnProperty(property: PropertyRef): ColumnSource {
    if (property.provider.kind === 'plugin') {
      const plugin = this.plugin(property.provider.plugin);
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
    const held = this.acquire(plugin, 'property', name, provider, options, '');
    const instance = held.instance as PropertyInstance;
    const fillColumn = instance.fill.bind(instance);
    const reads = this.bindReads(held.reads);
    const request = new FrameRequestView(reads);
    const candidates = new FrameCandidateView(reads, unknownColumn(this.#context.fleet));
    const { guard, fleet } = this.#context;
    const { capacity } = fleet.table;
    const values = new Float64Array(capacity);
    const column = new Float64Array(capacity).fill(Number.NaN);
    if (instance.ended !== undefined) this.learners.push(this.guarded(held, instance));
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
    const held = this.acquire(plugin, 'filter', name, provider, options, '');
    const instance = held.instance as FilterInstance;
    const reads = this.bindReads(held.reads);
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
    const place = { index: this.columns.length, numeric };
    this.#extraColumns.set(key, place);
    this.columnNames[place.index] = key;
    this.columnNumeric[place.index] = numeric;
    this.columns.length = place.index + 1;
    this.columns[place.index] = givenColumn(bind(), key, this.#context);
    return place;
  }

  // --- plugins

  plugin(name: string): Plugin {
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

  acquire(
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

  bindReads(reads: readonly string[]): BoundReads {
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

  guarded(held: HeldInstance, instance: Learner): Learner {
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
}

/** An estimate from elsewhere takes the place of core's own, in leases and limits too. */
function takeEstimate(frame: Frame, name: string, value: Value | undefined): void {
  if (typeof value !== 'number' || !(value >= 0)) return;
  if (name === 'prompt_tokens') frame.promptTokens = value;
  if (name === 'output_tokens') {
    const most = frame.parsed?.maxTokens ?? Number.NaN;
    frame.outputTokens = most < value ? most : value;
  }
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

/** Signals of core that look at the text of the prompt. */
const TEXT_KEYS: ReadonlySet<string> = new Set([
  ...PROMPT_KEYS,
  'tool_names',
  'turns',
  'questions',
  'words',
  'complexity.textbook',
  'complexity',
  'conversation',
]);

/** Whether to work a signal out takes more than a look at the head of the request, and does nothing but give its value. */
function isCostly(signal: SignalRef | undefined): boolean {
  if (signal === undefined) return false;
  if (signal.provider.kind === 'builtin') return TEXT_KEYS.has(signal.key);
  // Those two take the place of core's own estimates, which every lease needs.
  return signal.key !== 'prompt_tokens' && signal.key !== 'output_tokens';
}

/** The signals that a program reads in the conditions of its rules. */
function readByRules(program: PolicyProgram): ReadonlySet<number> {
  const conditions = [...program.admission, ...program.routes].flatMap(({ when }) => when ?? []);
  return new Set(conditions.flatMap((when) => readsOf(program, when).signals));
}

function withoutCondition<Rule extends { readonly when?: Expression }>(rule: Rule): Rule {
  const copy: { -readonly [Key in keyof Rule]: Rule[Key] } = { ...rule };
  delete copy.when;
  return copy;
}

/** The signals that a program reads elsewhere than in the conditions of its rules. */
function readBeyondRules(program: PolicyProgram): ReadonlySet<number> {
  const elsewhere = expressionRoles({
    ...program,
    admission: program.admission.map(withoutCondition),
    routes: program.routes.map(withoutCondition),
  });
  return new Set(elsewhere.flatMap(({ expression }) => readsOf(program, expression).signals));
}
