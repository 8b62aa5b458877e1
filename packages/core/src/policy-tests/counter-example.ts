import { isNumericType } from '@signalbox/plugin-api';
import type { Plugin, RandomSource, Value, ValueType } from '@signalbox/plugin-api';
import { interpret, operandsOf } from '@signalbox/policy';
import type {
  EvaluationHost,
  Expression,
  GivenEndpoint,
  PolicyChecks,
  PolicyEnsure,
  PolicyProgram,
  SignalRef,
  Witness,
} from '@signalbox/policy';
import type { Explanation } from '../explain/explain.ts';
import { createSeededRandom } from '../seeded-random.ts';
import { factId, factsOf } from './facts.ts';
import type { Facts } from './facts.ts';
import { canBeGiven, givenText } from './given-text.ts';
import { isAgainst } from './outcomes.ts';
import { PolicyBench } from './policy-bench.ts';

/** A request that an `ensure` speaks of and that shows it to be wrong. */
export interface CounterExample {
  /** As in a test: `given complexity = 51`, and of endpoints that are away `given endpoint "a" { draining: true }`. */
  readonly text: string;
  readonly explanation: Explanation;
}

export interface Search {
  /** Requests that the `ensure` speaks of and that were decided. */
  readonly tried: number;
  readonly found: CounterExample | undefined;
}

export interface SearchOptions {
  readonly program: PolicyProgram;
  readonly checks: PolicyChecks;
  readonly plugins: readonly Plugin[];
  /** Decisions to make for each `ensure`. */
  readonly requests: number;
  /** Seeds the choice of requests; the same seed tries the same ones. */
  readonly seed: number;
}

/** A fleet from which some endpoints are missing. */
interface Stage {
  readonly bench: PolicyBench;
  readonly missing: readonly string[];
}

/** How many requests are made up for each that is decided: most may be none that the `ensure` speaks of. */
const DRAWS_PER_REQUEST = 20;
/** Fleets that are tried beside the whole one: so many from which one tier is missing, and from which endpoints are as chance has it. */
const WITHOUT_A_TIER = 8;
const BY_CHANCE = 3;

/**
 * Looks for requests that an `ensure` speaks of and that do not end as it says: values at and beside every constant of the policy, unknown
 * where that can be, in all combinations as chance has them; on the whole fleet, and on ones from which endpoints are missing.
 */
export class CounterExampleSearch {
  readonly #options: SearchOptions;
  readonly #pools: readonly { readonly id: string; readonly values: readonly (Value | undefined)[] }[];
  readonly #conditions: ReturnType<typeof interpret>;
  readonly #benches: Stage[] = [];

  /** Throws a SignalboxError where the policy cannot be bound. */
  constructor(options: SearchOptions) {
    const { program, checks, seed } = options;
    this.#options = options;
    this.#pools = valuePools([program, checks.conditions]);
    this.#conditions = interpret(checks.conditions);
    const random = createSeededRandom(seed);
    // What the first request gives may be given by those that follow.
    const facts: Facts = new Map(
      this.#pools.flatMap(({ id, values }) => {
        const value = values.find((one) => one !== undefined);
        return value === undefined ? [] : [[id, value] as const];
      }),
    );
    for (const missing of missingEndpoints(program, random)) {
      const endpoints = missing.map((name): GivenEndpoint => ({
        name,
        properties: { draining: true },
        span: { file: '', start: 0, end: 0 },
      }));
      const bench = new PolicyBench({
        program,
        plugins: options.plugins,
        endpoints,
        request: { facts, tenant: undefined },
      });
      this.#benches.push({ bench, missing });
    }
  }

  /** Looks for a counter-example; a request that is suspected to be one is tried first, on every fleet. */
  search(ensure: PolicyEnsure, suspect?: Witness): Search {
    const { requests, seed } = this.#options;
    const random = createSeededRandom(seed);
    if (suspect !== undefined) {
      for (const on of this.#benches) {
        const found = this.#try(ensure, factsOf(suspect.facts), on);
        if (found !== undefined) return { tried: 1, found };
      }
    }
    let tried = 0;
    for (let draw = 0; draw < requests * DRAWS_PER_REQUEST && tried < requests; draw++) {
      const facts = this.#draw(random);
      const on = this.#benches[tried % this.#benches.length];
      if (on === undefined || !this.#concerns(ensure, facts)) continue;
      tried++;
      const found = this.#try(ensure, facts, on);
      if (found !== undefined) return { tried, found };
    }
    return { tried, found: undefined };
  }

  /** What the request shows against the ensure, without the facts without which the same rule decides. */
  #try(ensure: PolicyEnsure, facts: Facts, stage: Stage): CounterExample | undefined {
    let shown = this.#against(ensure, facts, stage);
    if (shown === undefined) return undefined;
    let needed = facts;
    for (const id of facts.keys()) {
      const fewer = new Map(needed);
      fewer.delete(id);
      const again = this.#concerns(ensure, fewer) ? this.#against(ensure, fewer, stage) : undefined;
      if (again?.decided?.label !== shown.decided?.label || again === undefined) continue;
      needed = fewer;
      shown = again;
    }
    const programs = [this.#options.program, this.#options.checks.conditions];
    const given = needed.size === 0 ? [] : [`given ${givenText({ facts: needed, tenant: undefined }, programs)}`];
    const text = [...given, ...stage.missing.map(awayText)].join('\n');
    return { text: text === '' ? 'any request' : text, explanation: shown };
  }

  /** How the request is decided, where that is against the ensure. */
  #against({ outcome, mode }: PolicyEnsure, facts: Facts, { bench }: Stage): Explanation | undefined {
    const explanation = bench.decide({ facts, tenant: undefined });
    return isAgainst(outcome, mode, explanation, this.#options.program) ? explanation : undefined;
  }

  close(): void {
    for (const { bench } of this.#benches) bench.close();
  }

  #draw(random: RandomSource): Facts {
    const facts = new Map<string, Value>();
    for (const { id, values } of this.#pools) {
      const value = values[Math.floor(random.next() * values.length)];
      if (value !== undefined) facts.set(id, value);
    }
    return facts;
  }

  #concerns({ when }: PolicyEnsure, facts: Facts): boolean {
    if (when === undefined) return true;
    if (when.kind === 'constant') return when.value === true;
    return this.#conditions.predicate(when)(hostOf(this.#options.checks.conditions, facts));
  }
}

/** Names of the endpoints that are away, for each fleet to try. */
function missingEndpoints(program: PolicyProgram, random: RandomSource): readonly (readonly string[])[] {
  const tiers = program.definitions.tiers.map((tier) => tier.endpoints.map(({ name }) => name));
  const filled = tiers.filter((names) => names.length > 0);
  const names = filled.flat();
  const byChance = Array.from({ length: names.length > 1 ? BY_CHANCE : 0 }, () =>
    names.filter(() => random.next() < 0.5),
  );
  return [[], ...filled.slice(0, WITHOUT_A_TIER), ...byChance];
}

const awayText = (name: string): string => `given endpoint ${JSON.stringify(name)} { draining: true }`;

/** Facts as evaluators read them. Where no endpoint is, aggregates are unknown. */
function hostOf(program: PolicyProgram, facts: Facts): EvaluationHost {
  const n = new Float64Array(program.signals.length).fill(Number.NaN);
  const v = program.signals.map((signal, index) => {
    const value = facts.get(factId(signal.key, signal.arguments));
    if (isNumericType(signal.type) && typeof value === 'number') n[index] = value;
    return isNumericType(signal.type) ? undefined : value;
  });
  const nobody = new Int32Array(0);
  return { n, v, column: () => [], pool: () => ({ slots: nobody, length: 0 }) };
}

/** The values to try of each signal that a fact can state, by `factId`: undefined is unknown. */
function valuePools(
  programs: readonly PolicyProgram[],
): readonly { readonly id: string; readonly values: readonly (Value | undefined)[] }[] {
  const signals = new Map<string, SignalRef>();
  const constants = new Map<string, Set<Value>>();
  for (const program of programs) {
    for (const signal of program.signals)
      if (canBeGiven(signal, program.definitions.gateway.timezone))
        signals.set(factId(signal.key, signal.arguments), signal);
    for (const expression of rootsOf(program)) collect(program, expression, constants);
  }
  return [...signals].map(([id, { type, known }]) => ({
    id,
    values: [...valuesOf(type, [...(constants.get(id) ?? [])]), ...(known === 'always' ? [] : [undefined])],
  }));
}

function rootsOf(program: PolicyProgram): readonly Expression[] {
  const rules = [...program.admission, ...program.routes].flatMap(({ when }) => when ?? []);
  const destinations = program.routes.flatMap(({ steps }) =>
    steps.flatMap((step) => (step.kind === 'destination' && step.where !== undefined ? [step.where] : [])),
  );
  return [...rules, ...destinations];
}

/** Notes every constant that a leaf of the expression holds against a signal. */
function collect(program: PolicyProgram, expression: Expression, constants: Map<string, Set<Value>>): void {
  const operands = operandsOf(expression);
  const found = operands.flatMap((operand) => (operand.kind === 'constant' ? constantsOf(operand.value) : []));
  const patterns = expression.kind === 'matches' ? literalsOf(expression.pattern) : [];
  for (const signal of operands.flatMap((operand) => signalsOf(program, operand))) {
    const id = factId(signal.key, signal.arguments);
    const known = constants.get(id) ?? new Set<Value>();
    constants.set(id, known);
    for (const value of [...found, ...patterns]) known.add(value);
  }
  for (const operand of operands) collect(program, operand, constants);
}

function constantsOf(value: Value): readonly Value[] {
  return Array.isArray(value) ? value : [value];
}

function signalsOf(program: PolicyProgram, expression: Expression): readonly SignalRef[] {
  if (expression.kind !== 'signal') return operandsOf(expression).flatMap((operand) => signalsOf(program, operand));
  const signal = program.signals[expression.index];
  return signal === undefined ? [] : [signal];
}

/** Texts that are likely to match a pattern: its alternatives without what is not text in them. */
function literalsOf(pattern: string): readonly string[] {
  return pattern
    .split('|')
    .map((part) => part.replaceAll(/\\[bBdDsSwW]|[\^$()[\]{}+*?]/g, '').replaceAll(/\\(.)/g, '$1'))
    .filter((part) => part !== '');
}

function valuesOf(type: ValueType, constants: readonly Value[]): readonly Value[] {
  if (typeof type === 'object' && 'enum' in type) return type.enum;
  if (typeof type === 'object')
    return [[], ...constants.filter((value) => typeof value === 'string').map((one) => [one])];
  switch (type) {
    case 'bool':
      return [true, false];
    case 'string':
      return [...constants.filter((value) => typeof value === 'string'), 'something else'];
    default: {
      const numbers = constants.filter((value) => typeof value === 'number');
      const step = type === 'number' || type === 'count' ? 1 : 0.001;
      return [
        ...new Set([0, ...numbers.flatMap((number) => [number - step, number, number + step]), ...beyond(numbers)]),
      ].filter((number) => number >= 0);
    }
  }
}

function beyond(numbers: readonly number[]): readonly number[] {
  const most = Math.max(1, ...numbers);
  return [most * 2];
}
