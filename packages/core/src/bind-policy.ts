import { createBound, frame as frameParts } from '@signalbox/chwbl';
import { isKnown, isNumericType, SignalboxError } from '@signalbox/plugin-api';
import type { PickerInstance, Plugin, ScorerInstance } from '@signalbox/plugin-api';
import { conjuncts, readsOf } from '@signalbox/policy';
import type {
  CandidateValue,
  Destination,
  Evaluators,
  Expression,
  FailureCause,
  Modifiers,
  OrderKey,
  PickRef,
  PolicyProgram,
  RequestValue,
  ScoreTerm,
  TargetRef,
  Verdict,
} from '@signalbox/policy';
import type {
  BoundDestination,
  BoundFallback,
  BoundModifiers,
  BoundPolicy,
  BoundQueue,
  BoundStep,
  BoundVerdict,
  Learner,
  QueueOrder,
  SignalStep,
} from './bound-policy.ts';
import { CatalogueBinder } from './bind-catalogue.ts';
import type { BindContext } from './bind-catalogue.ts';
import { textAt } from './explain/condition.ts';
import { isPersonal, PROMPT_KEYS, recordedProperties, signalName } from './recorded-facts.ts';
import type { TargetPool } from './fleet/pool.ts';
import type { LateReads } from './late-signals.ts';
import type { Frame } from './frame.ts';
import { FrameCandidateView, FrameRequestView } from './plugins/views.ts';
import { textOf, unknownColumn } from './property-columns.ts';
import type { RankPicker, RankTerm, RankTier } from './ranking.ts';
import { placeRow, signalRow } from './record-row.ts';

/** Retries where none are written. */
const DEFAULT_RETRIES = 2;
const DEFAULT_RETRY_CAUSES: readonly FailureCause[] = ['connect', 'saturated', 'rate_limited', 'first_token', 'error'];
const DEFAULT_MAX_DEPTH = 1000;

const CLOCK_KEYS: readonly string[] = ['hour', 'weekday', 'within'];

/**
 * Binds a program: resolves every signal, property, scorer, picker and target to functions over the fleet's columns, and sets plugins up.
 * Throws SignalboxError when a plugin is missing or its setup fails; instances set up before that are released.
 */
export function bindPolicy(program: PolicyProgram, evaluators: Evaluators, context: BindContext): BoundPolicy {
  const names = new CatalogueBinder(program, evaluators, context);
  try {
    return new PolicyBinder(program, evaluators, context, names).bind();
  } catch (error) {
    for (const held of names.held) context.instances.release(held);
    throw error;
  }
}

/** Binds the rules of a program, over names that are bound by another. */
class PolicyBinder {
  readonly #program: PolicyProgram;
  readonly #evaluators: Evaluators;
  readonly #context: BindContext;
  readonly #names: CatalogueBinder;
  #partCount = 1;
  #shortlist = DEFAULT_RETRIES + 1;

  constructor(program: PolicyProgram, evaluators: Evaluators, context: BindContext, names: CatalogueBinder) {
    this.#program = program;
    this.#evaluators = evaluators;
    this.#context = context;
    this.#names = names;
  }

  bind(): BoundPolicy {
    const program = this.#program;
    const { definitions } = program;
    this.#names.bind();

    const boundAdmission = program.admission.map((rule, index) => ({
      rule,
      when: rule.when === undefined ? undefined : this.#evaluators.predicate(rule.when),
      verdict: this.#bindVerdict(rule, `admission:${rule.label}`, rule.label, rule.when === undefined ? index : -1),
    }));
    const boundRoutes = program.routes.map((rule) => ({
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
    // Only now is it known which signals a plugin reads.
    const { atOnce, late } = this.#names.signalSteps();
    const withLateReads = <Rule extends { readonly rule: { readonly when?: Expression } }>(
      bound: Rule,
    ): Rule & { readonly late: LateReads | undefined } => ({ ...bound, late: this.#lateReads(bound.rule.when, late) });
    const everywhere = this.#evaluators.targets.map((target) => this.#context.fleet.pool([target]));

    const recordedSignals: BoundPolicy['recordedSignals'] = program.signals.map((signal, index) => ({
      index,
      name: signalName(signal),
      numeric: isNumericType(signal.type),
      as: PROMPT_KEYS.has(signal.key) ? 'omitted' : isPersonal(signal) ? 'hash' : 'value',
      late: bitOf(index, late),
    }));

    return {
      shape: {
        signals: this.#names.signalCount,
        late,
        columns: this.#names.columns,
        pools: everywhere,
        shortlist: this.#shortlist,
        parts: this.#partCount,
        properties: program.properties.length,
      },
      evaluators: this.#evaluators,
      signals: atOnce,
      asyncSignals: this.#names.asyncSignals,
      recordedSignals,
      recordedRow: signalRow(recordedSignals),
      propertyNames: this.#names.columnNames,
      propertyNumeric: this.#names.columnNumeric,
      admission: boundAdmission.map(withLateReads),
      routes: boundRoutes.map(withLateReads),
      limits: [...this.#names.limits.values()],
      alarms,
      tenants: new Map(definitions.tenants.map((tenant) => [tenant.name, tenant])),
      readsSessionTokens: this.#names.reads('session_tokens'),
      readsClock: CLOCK_KEYS.some((key) => this.#names.reads(key)),
      learners: this.#names.learners,
      instances: this.#names.held,
    };
  }

  // --- rules

  #lateReads(when: Expression | undefined, late: readonly SignalStep[]): LateReads | undefined {
    const maskOf = (expression: Expression): number =>
      readsOf(this.#program, expression).signals.reduce((mask, index) => mask | bitOf(index, late), 0);
    const mask = when === undefined ? 0 : maskOf(when);
    if (mask === 0) return undefined;
    const [, ...parts] = conjuncts(when);
    const gates = parts.filter((part) => maskOf(part) === 0).map((part) => this.#evaluators.predicate(part));
    return { mask, gates };
  }

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
    const termNames = this.#termNames(source);
    const { columnNames, columnNumeric } = this.#names;
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
      row: placeRow(
        termNames,
        recorded.map((index) => ({
          index,
          name: columnNames[index] ?? '',
          numeric: columnNumeric[index] === true,
        })),
      ),
      learners,
    };
    const fallbacks = (source.with.fallbacks ?? []).map((fallback): BoundFallback => ({
      on: new Set(fallback.on),
      destination: { ...base, arms: [{ pool: this.#targetPool(fallback.target), share: 1 }], split: false },
    }));
    return { ...base, fallbacks };
  }

  /** What the parts of a score are called in records, each by a name of its own: `lowest(x)` as it is written. */
  #termNames(source: Destination): readonly string[] {
    const names = (source.by[0]?.terms ?? []).map(({ scorer }) =>
      scorer.name === 'lowest' || scorer.name === 'highest'
        ? textAt(this.#program, scorer.span).replaceAll(/\s+/g, ' ') || scorer.name
        : scorer.name,
    );
    return names.map((name, index) => {
      const before = names.slice(0, index).filter((other) => other === name).length;
      return before === 0 ? name : `${name} #${before + 1}`;
    });
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
    const plugin = this.#names.plugin(scorer.provider.kind === 'plugin' ? scorer.provider.plugin : '');
    const name = nameIn(plugin, 'scorer', scorer.name);
    const held = this.#names.acquire(
      plugin,
      'scorer',
      name,
      scorer.provider,
      scorer.options,
      scorer.instance === 'rule' ? rule : '',
    );
    const instance = held.instance as ScorerInstance;
    if (instance.picked !== undefined || instance.ended !== undefined)
      learners.push(this.#names.guarded(held, instance));
    const reads = this.#names.bindReads(held.reads);
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
    const plugin = this.#names.plugin(ref.provider.plugin);
    const held = this.#names.acquire(
      plugin,
      'picker',
      nameIn(plugin, 'picker', ref.name),
      ref.provider,
      ref.options,
      '',
    );
    const instance = held.instance as PickerInstance;
    if (instance.sample === undefined && instance.pick === undefined) return undefined;
    const candidates = new FrameCandidateView(this.#names.bindReads(held.reads), unknownColumn(this.#context.fleet));
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

/** The bit of a signal among the late ones; 0 for one that is not late. */
function bitOf(index: number, late: readonly SignalStep[]): number {
  const place = late.findIndex((step) => step.index === index);
  return place < 0 ? 0 : 1 << place;
}

/** A policy may write a plugin's name with the alias of its `use` before it. */
function nameIn(plugin: Plugin, kind: 'scorer' | 'picker', written: string): string {
  const provided = plugin.provides[kind];
  if (provided?.[written] !== undefined) return written;
  const dot = written.indexOf('.');
  const bare = written.slice(dot + 1);
  return dot >= 0 && provided?.[bare] !== undefined ? bare : written;
}
