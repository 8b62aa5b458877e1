import type { Clock, Plugin, Value } from '@signalbox/plugin-api';
import type { GivenEndpoint, PolicyProgram, TraceSink } from '@signalbox/policy';
import { createCore } from '../core.ts';
import type { Core } from '../core.ts';
import type { Explanation } from '../explain/explain.ts';
import type { Scheduler } from '../scheduler.ts';
import { requestOfFacts } from './facts.ts';
import type { Facts } from './facts.ts';
import { planFleet } from './given-fleet.ts';
import { clockFact, epochOfFacts, givenKey, givenSignal } from './given-signals.ts';
import type { GivenRequest } from './given-signals.ts';

export interface BenchOptions {
  readonly program: PolicyProgram;
  readonly plugins: readonly Plugin[];
  readonly endpoints: readonly GivenEndpoint[];
  /** The first request; those that follow give a tenant, or a signal that is computed where it is not given, only if this one does. */
  readonly request: GivenRequest;
  readonly evaluators?: 'generated' | 'interpreted';
  /** Told of each boolean leaf that a decision evaluates. */
  readonly trace?: TraceSink;
}

/**
 * A core of its own for one policy and one given fleet: the pipeline of production with values that are given in place of those that it would
 * work out. Its clock stands still, its timers never go off, its ledgers are empty and its seed is always the same, so that equal requests
 * give equal decisions.
 */
export class PolicyBench {
  readonly core: Core;
  readonly #zone: string;
  readonly #readsClock: boolean;
  readonly #epochs = new Map<string, number>();
  #request: GivenRequest;

  /** Throws a SignalboxError where core does: a plugin is missing or its setup fails. */
  constructor(options: BenchOptions) {
    const { program, endpoints, request } = options;
    this.#request = request;
    this.#zone = program.definitions.gateway.timezone;
    this.#readsClock = program.signals.some(({ key }) => CLOCK_KEYS.has(key));
    const fleet = planFleet(program, endpoints);
    const current = (): GivenRequest => this.#request;
    const hasTenant = request.tenant !== undefined;
    const clock: Clock = { now: () => NOW_MS, epochMs: () => this.#epochOf(this.#request.facts) };
    const count = fleet.definitions.tiers.reduce((sum, tier) => sum + tier.endpoints.length, 0);
    this.core = createCore({
      clock,
      scheduler: NO_TIMERS,
      capacity: Math.max(1, count),
      seed: SEED,
      evaluators: options.evaluators ?? 'interpreted',
      resolveSecret: () => 'unset',
      environment: () => undefined,
      given: {
        signal: (signal) => givenSignal(signal, current, hasTenant),
        property: (key): ReadonlyMap<string, Value> | undefined => fleet.columns.get(key),
      },
      ...(options.trace === undefined ? {} : { trace: options.trace }),
    });
    try {
      const given = { ...program, definitions: fleet.definitions };
      this.core.activate(this.core.prepare(given, options.plugins));
      fleet.apply(this.core.fleet, NOW_MS);
    } catch (error) {
      this.core.close();
      throw error;
    }
  }

  /** Decides a request, and changes nothing by it. */
  decide(request: GivenRequest): Explanation {
    this.#request = request;
    return this.core.explain(requestOfFacts(request.facts, request.tenant, NOW_MS));
  }

  #epochOf(facts: Facts): number {
    // A clock of a zone takes long to make.
    if (!this.#readsClock) return 0;
    const key = `${String(clockFact(facts, 'hour', this.#zone))} ${String(clockFact(facts, 'weekday', this.#zone))}`;
    const epochMs = this.#epochs.get(key) ?? epochOfFacts(facts, this.#zone);
    this.#epochs.set(key, epochMs);
    return epochMs;
  }

  close(): void {
    this.core.close();
  }
}

const CLOCK_KEYS: ReadonlySet<string> = new Set(['hour', 'weekday', 'within']);
const SEED = 1;
/** Any time after the start of the clock. */
const NOW_MS = 60_000;
const NO_TIMERS: Scheduler = { setTimer: () => () => {} };

/** How many benches are kept for the next tests: most tests of a policy give no endpoints, or the same. */
const MOST_KEPT = 8;

/**
 * Benches of one policy, made when they are first asked for and used again for tests on the same fleet: a decision changes nothing, so that
 * one after another they are as good as new.
 */
export class PolicyBenches {
  readonly #options: Pick<BenchOptions, 'program' | 'plugins' | 'trace'>;
  readonly #kept = new Map<string, PolicyBench>();

  constructor(options: Pick<BenchOptions, 'program' | 'plugins' | 'trace'>) {
    this.#options = options;
  }

  /** Decides a request on a fleet. Throws a SignalboxError where core does. */
  decide(endpoints: readonly GivenEndpoint[], request: GivenRequest): Explanation {
    const fleet = endpoints.map(({ name, tier, properties }) => ({ name, tier, properties }));
    const key = `${givenKey(request)} ${JSON.stringify(fleet)}`;
    let bench = this.#kept.get(key);
    if (bench === undefined) {
      bench = new PolicyBench({ ...this.#options, endpoints, request });
      for (const [oldest, other] of this.#kept) {
        if (this.#kept.size < MOST_KEPT) break;
        other.close();
        this.#kept.delete(oldest);
      }
      this.#kept.set(key, bench);
    }
    return bench.decide(request);
  }

  close(): void {
    for (const bench of this.#kept.values()) bench.close();
    this.#kept.clear();
  }
}
