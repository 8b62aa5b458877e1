import { isKnown } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import type { EvaluatorOptions, PolicyProgram, TargetRef } from '@signalbox/policy';
import type { DecisionRecord } from '@signalbox/telemetry';
import type { BoundDestination, BoundRoute, BoundVerdict } from '../bound-policy.ts';
import { createCore } from '../core.ts';
import type { Core } from '../core.ts';
import type { ExplainedCondition, WeighedCondition } from '../explain/condition.ts';
import { explainRecord } from '../explain/explain-record.ts';
import { scorersOf } from '../explain/explain.ts';
import type { Explanation } from '../explain/explain.ts';
import { isKnownTrue } from '../explain/possible.ts';
import type { TargetPool } from '../fleet/pool.ts';
import type { PolicyVersion } from '../policy-version.ts';
import type { RankTerm, RankTier, Ranking } from '../ranking.ts';
import { createRanking } from '../ranking.ts';
import { createSeededRandom } from '../seeded-random.ts';
import { seedKeyHi, seedKeyLo, splitPoint, stickyKey } from '../split-key.ts';
import { RecordedWorld } from './recorded-world.ts';
import { isLaterPlacement, recordedOutcome } from './replay-outcome.ts';
import type { PolicyOutcome, ReplayedDecision, ReplayedEndpoints } from './replay-outcome.ts';

export interface ReplayerOptions {
  readonly program: PolicyProgram;
  /** Plugins that the program names. */
  readonly plugins?: readonly Plugin[];
  /** The value of an environment variable that a `define param` names. */
  readonly environment?: (name: string) => string | undefined;
  /** How expressions are evaluated: `interpreted` where code from strings is forbidden. */
  readonly evaluators?: EvaluatorOptions['mode'];
}

/** A rule as it was looked at on the way. */
export interface ReplayedRule {
  readonly label: string;
  readonly kind: string;
  /** Undefined: not decidable. */
  readonly matched: boolean | undefined;
  readonly when?: ExplainedCondition;
}

/** A replayed decision with the rules that were looked at on the way, in order. */
export interface TracedReplay {
  readonly replayed: ReplayedDecision;
  readonly admission: readonly ReplayedRule[];
  readonly routes: readonly ReplayedRule[];
}

/** Decides recorded requests again under one policy, by what their records hold and nothing else. */
export interface Replayer {
  /** Version id of the policy. */
  readonly policy: string;
  replay(record: DecisionRecord): ReplayedDecision;
  /** The same, and how it came about. */
  trace(record: DecisionRecord): TracedReplay;
  /** The recorded decision explained, with this policy's rules as they come out for it. */
  explain(record: DecisionRecord): Explanation;
  close(): void;
}

/**
 * Replays one record under a program; see `createReplayer`, which is to be used for many. On the version that made the record the outcome
 * is that of the record wherever it is decidable.
 */
export function replayDecision(
  record: DecisionRecord,
  program: PolicyProgram,
  options: Omit<ReplayerOptions, 'program'> = {},
): ReplayedDecision {
  const replayer = createReplayer({ ...options, program });
  try {
    return replayer.replay(record);
  } finally {
    replayer.close();
  }
}

/**
 * A replayer for a program. Conditions are decided by recorded signals, candidates by the recorded shortlist: scores that are expressions
 * are worked out anew from recorded properties, others stand as recorded; ties break by the recorded seed. Which endpoints were up is a
 * fact of the record too: on the version that made it, a destination that the record passed over had nobody; under another policy, one
 * of whose endpoints nothing is recorded is assumed to have had room, and that is said. Whatever else is missing makes a decision not
 * decidable. Throws a SignalboxError where a plugin is missing or the fleet is too large.
 */
export function createReplayer({ program, plugins, environment, evaluators }: ReplayerOptions): Replayer {
  const endpoints = program.definitions.tiers.reduce((sum, tier) => sum + tier.endpoints.length, 0);
  const core = createCore({
    clock: STILL,
    scheduler: NEVER,
    capacity: Math.max(64, endpoints),
    resolveSecret: () => 'unset',
    ...(environment === undefined ? {} : { environment }),
    ...(evaluators === undefined ? {} : { evaluators }),
  });
  const version = core.prepare(program, plugins);
  core.activate(version);
  return new CoreReplayer(core, version);
}

const STILL = { now: () => 0, epochMs: () => 0 };
const NEVER = { setTimer: () => () => {} };

/** Thrown inside a ranking where it comes to a value that was not recorded. */
class NotRecorded extends Error {
  readonly missing: readonly string[];

  constructor(missing: readonly string[]) {
    super('not recorded');
    this.missing = missing;
  }
}

type Settled = Exclude<ReplayedDecision, { readonly kind: 'not_by_policy' }>;

/** Endpoints that a destination had. */
type Candidates =
  | {
      readonly kind: 'recorded';
      readonly destination: BoundDestination;
      readonly fallback: number;
      readonly slots: number[];
    }
  | { readonly kind: 'none' }
  | { readonly kind: 'assumed'; readonly tiers: readonly string[] }
  | { readonly kind: 'unrecorded'; readonly missing: readonly string[] };

class CoreReplayer implements Replayer {
  readonly #core: Core;
  readonly #version: PolicyVersion;
  readonly #world: RecordedWorld;
  readonly #ranking: Ranking;
  readonly #random = createSeededRandom(0);
  /** The record in hand. */
  #record: DecisionRecord | undefined;
  /** This policy made the record, and the record says where. */
  #isOwn = false;
  #assumed: string[] = [];
  #admission: ReplayedRule[] = [];
  #routes: ReplayedRule[] = [];

  constructor(core: Core, version: PolicyVersion) {
    this.#core = core;
    this.#version = version;
    this.#world = new RecordedWorld(version, core.fleet);
    this.#ranking = createRanking(core.fleet);
  }

  get policy(): string {
    return this.#version.id;
  }

  close(): void {
    this.#core.close();
  }

  replay(record: DecisionRecord): ReplayedDecision {
    return this.trace(record).replayed;
  }

  trace(record: DecisionRecord): TracedReplay {
    this.#record = record;
    this.#isOwn = record.policy === this.#version.id && record.decided !== undefined;
    this.#assumed = [];
    this.#admission = [];
    this.#routes = [];
    const replayed = this.#decide(record);
    this.#record = undefined;
    return { replayed, admission: this.#admission, routes: this.#routes };
  }

  explain(record: DecisionRecord): Explanation {
    const traced = this.trace(record);
    const route = this.#version.policy.routes.find(({ rule }) => rule.label === record.route);
    const part = route?.steps[record.decided?.step ?? 0];
    const scorers = this.#isOwn && part?.kind === 'destination' ? scorersOf(part) : [];
    return explainRecord(record, { policy: this.#version.id, traced, scorers });
  }

  #decide(record: DecisionRecord): ReplayedDecision {
    if (recordedOutcome(record) === undefined) {
      if (record.code === 'rate_limited' && record.seed >= 0)
        return undecidable(['what was used of the limits of its tenant']);
      return { kind: 'not_by_policy', code: record.code };
    }
    this.#world.point(record);
    return this.#unknownModel(record) ?? this.#admit() ?? this.#route();
  }

  #unknownModel(record: DecisionRecord): Settled | undefined {
    const refused = record.code === 'model_not_found';
    const known = this.#version.isKnownModel(record.model);
    if (refused) {
      // A key that may not use a model is told that there is none; adapters come and go.
      if (known) return undecidable(['which models its key may use']);
      return this.#settled('model_not_found', '');
    }
    if (known || record.policy === this.#version.id) return undefined;
    return undecidable([`whether ${JSON.stringify(record.model)} was an adapter of some endpoint`]);
  }

  // --- admission

  #admit(): Settled | undefined {
    const waited = this.#record?.reasons.includes('queued') === true;
    for (const { rule, verdict } of this.#version.policy.admission) {
      const condition = rule.when === undefined ? undefined : this.#world.condition(rule.when);
      const matched = condition === undefined ? true : isKnownTrue(condition.possible);
      this.#admission.push(lookedAt(rule.label, rule.verb, matched, condition));
      if (matched === undefined) return undecidable(condition?.missing ?? []);
      if (!matched) continue;
      if (verdict.verb === 'admit') return undefined;
      if (verdict.verb === 'reject') return this.#settled('reject', rule.label);
      // A queue without a condition lets pass whoever has waited, or finds room at once.
      if (rule.when === undefined && (this.#record?.verdict !== 'refused' || !waited || this.#isRefusedLater()))
        continue;
      return this.#settled('queue', rule.label);
    }
    return undefined;
  }

  /** Refused, yet not by a queue of an admission rule. */
  #isRefusedLater(): boolean {
    return this.#record === undefined || recordedOutcome(this.#record)?.verdict !== 'queue';
  }

  // --- routes

  #route(): Settled {
    for (const route of this.#version.policy.routes) {
      const { rule } = route;
      const condition = rule.when === undefined ? undefined : this.#world.condition(rule.when);
      const matched = condition === undefined ? true : isKnownTrue(condition.possible);
      this.#routes.push(lookedAt(rule.label, rule.kind, matched, condition));
      if (matched === undefined) return undecidable(condition?.missing ?? []);
      if (!matched) continue;
      const settled = this.#follow(route);
      if (settled !== undefined) return settled;
    }
    return this.#settled('no_route', '');
  }

  /** The first part of a route that takes the request; undefined where the rules below are to go on. */
  #follow(route: BoundRoute): Settled | undefined {
    const { label } = route.rule;
    for (let step = 0; step < route.steps.length; step++) {
      const part = route.steps[step];
      if (part === undefined || part.kind === 'next') return undefined;
      if (part.kind === 'verdict') {
        const settled = this.#obey(part.verdict, label, step, step + 1 < route.steps.length);
        if (settled !== undefined) return settled;
        continue;
      }
      const candidates = this.#candidatesAt(part, label, step, step + 1 < route.steps.length);
      if (candidates.kind === 'unrecorded') return undecidable(candidates.missing);
      if (candidates.kind !== 'none') return this.#forward(candidates, label, step);
    }
    return { ...this.#settled('no_endpoint', label), outcome: outcomeOf('no_endpoint', label, route.steps.length - 1) };
  }

  #obey(verdict: BoundVerdict, label: string, step: number, more: boolean): Settled | undefined {
    if (verdict.verb === 'admit') return undefined;
    if (verdict.verb === 'reject') return this.#settled('reject', label, step);
    const recorded = this.#record === undefined ? undefined : recordedOutcome(this.#record);
    if (this.#isOwn) {
      // Whether it waits is a fact of the fleet: it waited in vain, was under way already, or there was nothing to wait for.
      if (recorded?.verdict !== 'queue' || recorded.rule !== label || recorded.step !== step) return undefined;
    } else if (recorded?.verdict === 'no_endpoint' && more) {
      return undecidable(['whether an endpoint was there to wait for']);
    }
    return this.#settled('queue', label, step);
  }

  #settled(verdict: PolicyOutcome['verdict'], rule: string, step: number = -1): Extract<Settled, { kind: 'decided' }> {
    return { kind: 'decided', outcome: outcomeOf(verdict, rule, step), assumed: this.#assumed };
  }

  #forward(
    candidates: Extract<Candidates, { readonly kind: 'recorded' | 'assumed' }>,
    rule: string,
    step: number,
  ): Settled {
    if (candidates.kind === 'assumed') {
      const [tier = '', ...others] = candidates.tiers;
      if (others.length > 0) {
        return undecidable([
          `which endpoints of ${candidates.tiers.map((name) => `tier ${JSON.stringify(name)}`).join(', ')} were up`,
        ]);
      }
      this.#assumed.push(`an endpoint of tier ${JSON.stringify(tier)} was up and had room`);
      return {
        kind: 'decided',
        outcome: { verdict: 'forward', rule, step, fallback: -1, tier },
        endpoints: undecidable([`the endpoints of tier ${JSON.stringify(tier)}`]),
        assumed: this.#assumed,
      };
    }
    const { destination, fallback, slots } = candidates;
    const endpoints = this.#endpoints(destination, slots);
    const { tier: tiers, name: names } = this.#core.fleet.texts;
    const picked = endpoints.kind === 'decided' ? slots.find((slot) => names[slot] === endpoints.pick) : undefined;
    const possible = new Set(slots.map((slot) => tiers[slot] ?? ''));
    const tier = picked === undefined ? (possible.size === 1 ? [...possible][0] : undefined) : tiers[picked];
    if (tier === undefined) return endpoints.kind === 'not_decidable' ? endpoints : undecidable(['its tier']);
    return {
      kind: 'decided',
      outcome: { verdict: 'forward', rule, step, fallback, tier },
      endpoints,
      assumed: this.#assumed,
    };
  }

  // --- candidates

  #candidatesAt(destination: BoundDestination, label: string, step: number, more: boolean): Candidates {
    const record = this.#record;
    if (record === undefined) return { kind: 'none' };
    if (this.#isOwn) return this.#ownCandidates(record, destination, label, step);
    return this.#otherCandidates(record, destination, more);
  }

  /** On the version that made the record: where it says that a part of a route was in force, there the shortlist was. */
  #ownCandidates(record: DecisionRecord, destination: BoundDestination, label: string, step: number): Candidates {
    const { decided, route, shortlist } = record;
    const isHere = route === label && decided?.step === step && shortlist.length > 0;
    const used = isHere && decided.fallback >= 0 ? destination.fallbacks[decided.fallback]?.destination : destination;
    if (used === undefined) return { kind: 'none' };
    // Whoever was up for a later part was up for this one, unless attempts failed meanwhile or health was a matter of what else there was.
    if (!isHere && (shortlist.length === 0 || isLaterPlacement(record) || record.reasons.includes('panic')))
      return { kind: 'none' };
    if (isHere && this.#world.strangers.length > 0)
      return { kind: 'unrecorded', missing: this.#world.strangers.map((name) => `who ${name} is`) };
    const slots: number[] = [];
    for (const slot of this.#membersFor(used)) {
      const passed = used.source.where === undefined ? true : this.#passes(used, slot);
      if (passed === true) slots.push(slot);
      else if (passed !== false && isHere) return { kind: 'unrecorded', missing: passed };
    }
    if (slots.length === 0) return { kind: 'none' };
    return { kind: 'recorded', destination: used, fallback: isHere ? decided.fallback : -1, slots };
  }

  /** Under another policy: recorded endpoints were up; of others nothing is known. */
  #otherCandidates(record: DecisionRecord, destination: BoundDestination, more: boolean): Candidates {
    const { source } = destination;
    if (destination.split) {
      const arm = this.#armByKey(record, destination);
      if (typeof arm !== 'number') return { kind: 'unrecorded', missing: arm };
      const pool = destination.arms[arm]?.pool;
      const target = source.targets[arm];
      return pool === undefined || target === undefined
        ? { kind: 'none' }
        : this.#poolCandidates(record, destination, pool, [target.target], more);
    }
    const [{ pool } = { pool: undefined }] = destination.arms;
    if (pool === undefined) return { kind: 'none' };
    return this.#poolCandidates(
      record,
      destination,
      pool,
      source.targets.map(({ target }) => target),
      more,
    );
  }

  #poolCandidates(
    record: DecisionRecord,
    destination: BoundDestination,
    pool: TargetPool,
    targets: readonly TargetRef[],
    more: boolean,
  ): Candidates {
    pool.refresh();
    const recorded = this.#world.slots.filter((slot) => pool.members.includes(slot));
    const slots: number[] = [];
    const missing: string[] = [];
    for (const slot of recorded) {
      const passed = this.#passes(destination, slot);
      if (passed === true) slots.push(slot);
      else if (passed !== false) missing.push(...passed);
    }
    if (slots.length > 0) return { kind: 'recorded', destination, fallback: -1, slots };
    if (missing.length > 0) return { kind: 'unrecorded', missing };
    if (recordedOutcome(record)?.verdict === 'no_endpoint' && (more || pool.members.length > 0)) {
      return { kind: 'unrecorded', missing: [`which endpoints of ${targets.map(targetText).join(', ')} were up`] };
    }
    const others = [...pool.members].filter((slot) => !recorded.includes(slot));
    const undecided: string[] = [];
    const tiers = new Set<string>();
    for (const slot of others) {
      const passed = this.#passes(destination, slot);
      if (passed === true) tiers.add(this.#core.fleet.texts.tier[slot] ?? '');
      else if (passed !== false) undecided.push(...passed);
    }
    if (undecided.length > 0) return { kind: 'unrecorded', missing: [...new Set(undecided)] };
    return tiers.size === 0 ? { kind: 'none' } : { kind: 'assumed', tiers: [...tiers] };
  }

  /** Recorded endpoints that a destination may send to: of a split those of one arm. */
  #membersFor(destination: BoundDestination): readonly number[] {
    const members = (pool: TargetPool): number[] => {
      pool.refresh();
      return this.#world.slots.filter((slot) => pool.members.includes(slot));
    };
    if (!destination.split) return destination.arms.flatMap(({ pool }) => members(pool));
    const record = this.#record;
    const byKey = record === undefined ? undefined : this.#armByKey(record, destination);
    const arms = destination.arms.map(({ pool }) => members(pool));
    const used =
      typeof byKey === 'number' && (arms[byKey]?.length ?? 0) > 0 ? byKey : arms.findIndex((arm) => arm.length > 0);
    if (typeof byKey === 'number' && used >= 0 && used !== byKey) {
      const target = destination.source.targets[byKey]?.target;
      if (target !== undefined) this.#assumed.push(`no endpoint of ${targetText(target)} was up and had room`);
    }
    return arms[used] ?? [];
  }

  /** The arm that a split's key falls to, or what of its key was not recorded. */
  #armByKey(record: DecisionRecord, destination: BoundDestination): number | readonly string[] {
    const at = this.#splitPoint(record, destination);
    if (typeof at !== 'number') return at;
    let start = 0;
    let chosen = -1;
    for (const [index, { share }] of destination.arms.entries()) {
      if (share > 0 || chosen < 0) chosen = index;
      if (at < start + share) break;
      start += share;
    }
    return chosen;
  }

  /** Where the key of a split falls: as recorded on the version that made the record, else by the sticky value, the session or the seed. */
  #splitPoint(record: DecisionRecord, { source }: BoundDestination): number | readonly string[] {
    const { split } = record.keys;
    const recorded =
      split === null
        ? undefined
        : splitPoint(Number.parseInt(split.slice(0, 8), 16), Number.parseInt(split.slice(8), 16));
    if (this.#isOwn && recorded !== undefined) return recorded;
    if (source.with.sticky !== undefined) {
      const sticky = this.#world.value(source.with.sticky);
      if ('missing' in sticky) return sticky.missing;
      if (isKnown(sticky.value)) {
        const { hi, lo } = stickyKey(sticky.value, record.tenant === '' ? undefined : record.tenant);
        return splitPoint(hi, lo);
      }
    }
    const session = Object.hasOwn(record.signals, 'session') ? record.signals['session'] : undefined;
    if (session === null) return splitPoint(seedKeyHi(record.seed), seedKeyLo(record.seed));
    if (recorded === undefined) return ['the session, which is the key of the split'];
    this.#assumed.push('the key of the split is the one that was recorded');
    return recorded;
  }

  /** Whether an endpoint passes `where`, or what of that was not recorded. */
  #passes({ source }: BoundDestination, slot: number): boolean | readonly string[] {
    if (source.where === undefined) return true;
    const { possible, missing } = this.#world.condition(source.where, slot);
    return isKnownTrue(possible) ?? missing;
  }

  // --- order and pick

  #endpoints(destination: BoundDestination, slots: readonly number[]): ReplayedEndpoints {
    const record = this.#record;
    const considered = this.#isOwn ? (record?.decided?.candidates ?? Number.NaN) : Number.NaN;
    const isWhole = considered === slots.length;
    if (!this.#isOwn && slots.length < (record?.shortlist.length ?? 0)) {
      return undecidable(['the candidates that are not on the shortlist']);
    }
    if (!isWhole) {
      if (destination.affinity !== undefined && record?.keys.affinity !== null)
        return undecidable([`the load of the other ${considered - slots.length} candidates`]);
      if (destination.picker?.pick !== undefined)
        return undecidable([`the scores of all ${considered} candidates, of which \`pick\` draws`]);
    }
    // As in the pool: pickers go by position.
    const order = Int32Array.from(slots);
    const pool = destination.arms.flatMap((arm) => [...arm.pool.members]);
    order.sort((a, b) => pool.indexOf(a) - pool.indexOf(b));
    return this.#rank(destination, order, isWhole);
  }

  #rank(destination: BoundDestination, slots: Int32Array, isWhole: boolean): ReplayedEndpoints {
    const { frame } = this.#world;
    const unknown = this.#missingOfFirst(destination, slots, isWhole);
    if (unknown.length > 0) return undecidable(unknown);
    const tiers = destination.tiers.map((tier, index) => this.#recordedTier(destination, tier, index, isWhole));
    const { picker } = destination;
    frame.stamp++;
    this.#random.reset(frame.seed);
    try {
      const count = this.#ranking.rank(
        tiers,
        isWhole || picker?.pick !== undefined ? picker : undefined,
        this.#random,
        frame,
        slots,
        slots.length,
        Math.min(slots.length, frame.slots.length),
      );
      const names = [...frame.slots.subarray(0, count)].map((slot) => this.#core.fleet.texts.name[slot] ?? '');
      return { kind: 'decided', shortlist: names, pick: names[0] ?? '' };
    } catch (error) {
      if (error instanceof NotRecorded) return undecidable(error.missing);
      throw error;
    }
  }

  /** What the first tier of the order reads and no record tells. Later tiers are of no matter until there is a tie. */
  #missingOfFirst(
    { source, tiers, termNames }: BoundDestination,
    slots: Int32Array,
    isWhole: boolean,
  ): readonly string[] {
    if (this.#isOwn) return [];
    return (source.by[0]?.terms ?? []).flatMap(({ scorer }, t) => {
      const isNormalised = (tiers[0]?.length ?? 0) > 1 && tiers[0]?.[t]?.direction !== 'score';
      const names = [...slots].map(
        (slot) => `${termNames[t] ?? scorer.name} of ${this.#core.fleet.texts.name[slot] ?? ''}`,
      );
      if (scorer.kind !== 'expression' || (isNormalised && !isWhole)) return names;
      return [...slots].flatMap((slot) => this.#world.missing(scorer.expression, slot));
    });
  }

  /** A tier of the order whose terms are worked out from what was recorded. */
  #recordedTier(destination: BoundDestination, tier: RankTier, index: number, isWhole: boolean): RankTier {
    const { source } = destination;
    return tier.map((term, t): RankTerm => {
      const scorer = source.by[index]?.terms[t]?.scorer;
      const name = (index === 0 ? destination.termNames[t] : undefined) ?? term.name;
      const isNormalised = tier.length > 1 && term.direction !== 'score';
      const fresh: RankTerm['evaluate'] | undefined =
        scorer?.kind === 'expression' && (!isNormalised || isWhole) ? term.evaluate : undefined;
      const direction = fresh === undefined && tier.length > 1 ? 'score' : term.direction;
      const evaluate: RankTerm['evaluate'] = (host, slots, length, out) => {
        const expression = scorer?.kind === 'expression' ? scorer.expression : undefined;
        const missing = [...slots.subarray(0, length)].flatMap((slot) =>
          expression === undefined ? [] : this.#world.missing(expression, slot),
        );
        if (fresh !== undefined && missing.length === 0) {
          fresh(host, slots, length, out);
          return;
        }
        for (let i = 0; i < length; i++) out[i] = this.#recordedPart(index, name, slots[i] ?? 0, missing);
      };
      return { name: term.name, weight: term.weight, direction, evaluate };
    });
  }

  #recordedPart(tier: number, scorer: string, slot: number, missing: readonly string[]): number {
    const name = this.#core.fleet.texts.name[slot] ?? '';
    const recorded = this.#record?.shortlist.find(({ endpoint }) => endpoint === name);
    const isKept = tier === 0 && this.#isOwn && recorded !== undefined;
    // A part that is unknown is left out of a record.
    if (isKept) return recorded.parts[scorer] ?? Number.NaN;
    throw new NotRecorded(missing.length > 0 ? missing : [`${scorer} of ${name}`]);
  }
}

function undecidable(missing: readonly string[]): {
  readonly kind: 'not_decidable';
  readonly missing: readonly string[];
} {
  return { kind: 'not_decidable', missing: [...new Set(missing)] };
}

function outcomeOf(verdict: PolicyOutcome['verdict'], rule: string, step: number): PolicyOutcome {
  return { verdict, rule, step, fallback: -1, tier: '' };
}

function lookedAt(
  label: string,
  kind: string,
  matched: boolean | undefined,
  condition: WeighedCondition | undefined,
): ReplayedRule {
  return { label, kind, matched, ...(condition === undefined ? {} : { when: condition.explained }) };
}

function targetText(target: TargetRef): string {
  return target.kind === 'any' ? 'any tier' : `${target.kind} ${JSON.stringify(target.name)}`;
}
