import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import { interpret } from '@signalbox/policy';
import type { Expression, InterpretedEvaluators, PolicyProgram, Step, TargetRef, TraceNode } from '@signalbox/policy';
import { isOverLimit, limitKey } from '../bound-limits.ts';
import type { BoundDestination, BoundQueue } from '../bound-policy.ts';
import { FLAG } from '../fleet/fleet-table.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { everyLate, readLate } from '../late-signals.ts';
import { chargeable, hasRoom } from '../lease.ts';
import type { LimitLedger } from '../limits.ts';
import type { Outcome, Pipeline } from '../pipeline.ts';
import type { RequestState } from '../request-state.ts';
import { readName, textAt, weighCondition } from './condition.ts';
import type { ExplainedCondition, LeafFacts } from './condition.ts';
import { possibleOf } from './possible.ts';

export interface ExplainedRule {
  readonly label: string;
  /** admit, reject, queue; or route, default. */
  readonly kind: string;
  /** Null: not decidable by what was recorded. */
  readonly matched: boolean | null;
  /** Absent: the rule has no condition. */
  readonly when?: ExplainedCondition;
}

export interface ExplainedCandidate {
  readonly endpoint: string;
  readonly tier: string;
  /** `picked`, `eligible`, or what removed it. */
  readonly verdict:
    | 'picked'
    | 'eligible'
    | 'draining'
    | 'loading'
    | 'asleep'
    | 'ejected'
    | 'capacity'
    | 'busy'
    | 'where'
    | 'slow_start';
  /** For `where`: the condition as it came out for this endpoint. */
  readonly where?: ExplainedCondition;
  /** Place on the shortlist, from 1; absent where the endpoint was not scored. */
  readonly rank?: number;
  readonly score?: number;
  readonly parts?: { readonly [scorer: string]: number };
}

/** One part of a route that was looked at: its destination, a `fallback`, or an `else` part. */
export interface ExplainedStep {
  readonly route: string;
  /** 0 the destination, then the `else` parts. */
  readonly step: number;
  /** Much as it is written: `to tier "70B" where …`. */
  readonly text: string;
  /** `no_candidate`: nobody was left of a destination. `passed`: it gave the request on. */
  readonly result: 'taken' | 'no_candidate' | 'passed';
  /** Of a destination that had no candidate: each endpoint with what removed it. */
  readonly candidates?: readonly ExplainedCandidate[];
}

/** A scorer of the destination's first sum. */
export interface ExplainedScorer {
  /** As its part is called. */
  readonly name: string;
  /** Weights sum to 1. */
  readonly weight: number;
  /** Whether the lowest or highest value is best, or it is a score from 0 to 1. In a sum all are made such scores. */
  readonly direction: 'lowest' | 'highest' | 'score';
}

/** A limit that applies to the request. */
export interface ExplainedLimit {
  readonly name: string;
  /** The used share, this request not counted; null where unknown. */
  readonly used: number | null;
  /** This request would exceed it. */
  readonly exceeded: boolean;
}

/** What a record tells beyond the decision: how the request went. */
export interface ExplainedRecord {
  readonly requestId: string;
  readonly timeMs: number;
  /** The status that the client saw. */
  readonly status: number;
  readonly attempts: readonly { readonly endpoint: string; readonly outcome: string; readonly status: number }[];
  /** How many endpoints were left out, by what removed them. */
  readonly dropped: { readonly [reason: string]: number };
  /** What the reader should know of how this explanation came about, a sentence each. */
  readonly notes: readonly string[];
}

/** Why a request would go where: plain JSON data. */
export interface Explanation {
  readonly policy: string;
  /** Null where it was not recorded, as the seed. */
  readonly generation: number | null;
  readonly seed: number | null;
  readonly signals: { readonly [name: string]: Value | null };
  /** Null where it was not recorded. */
  readonly estimate: { readonly promptTokens: number; readonly outputTokens: number } | null;
  /** Admission rules as far as they were looked at. */
  readonly admission: readonly ExplainedRule[];
  /** Routes as far as they were looked at. */
  readonly routes: readonly ExplainedRule[];
  readonly outcome: 'forward' | 'refuse' | 'queue';
  /**
   * The rule that settled what becomes of the request, and which part of it (0, then its `else` parts). Null where none did: an unknown
   * model, a tenant's limit, no route.
   */
  readonly decided: { readonly phase: 'admission' | 'route'; readonly label: string; readonly step: number } | null;
  readonly route: string | null;
  /** Which part of the route: 0 its destination, then its `else` parts. */
  readonly step: number | null;
  readonly fallback: boolean;
  readonly affinity: 'hit' | 'repin' | null;
  readonly panic: boolean;
  readonly endpoint: string | null;
  readonly tier: string | null;
  readonly refusal: {
    readonly status: number;
    readonly code: string;
    readonly message: string;
    /** Null where the answer carries none. */
    readonly retryAfterSeconds: number | null;
  } | null;
  readonly queue: string | null;
  /** Requests in that queue. */
  readonly queueDepth: number | null;
  readonly limits: readonly ExplainedLimit[];
  /** Parts of matched routes as far as they were looked at. */
  readonly steps: readonly ExplainedStep[];
  /** What the order of the candidates is made of: the scorers, those that break ties, and the picker. */
  readonly scorers: readonly ExplainedScorer[];
  readonly ties: readonly string[];
  readonly pick: string | null;
  /** Present where a recorded decision is explained. */
  readonly record?: ExplainedRecord;
  /** Every endpoint of the destination that was used, or tried last. */
  readonly candidates: readonly ExplainedCandidate[];
}

/** What an explanation asks. */
export interface ExplainServices {
  readonly fleet: Fleet;
  readonly pipeline: Pipeline;
  readonly limits: LimitLedger;
  /** How many wait in a queue. */
  readonly queueDepth: (place: BoundQueue) => number;
}

type ConditionOf = (expression: Expression, slot?: number) => ExplainedCondition;

/** Runs the pipeline dry for a filled state whose frame lists as many endpoints as there are, and says what happened. */
export function explain(state: RequestState, services: ExplainServices): Explanation {
  const { frame, version } = state;
  const { policy, program } = version;
  const { fleet } = services;
  // What a request need not know, its reader wants to.
  readLate(frame, everyLate(frame.shape.late));
  const outcome = services.pipeline.decide(state);
  const tracer = interpret(program);
  const condition: ConditionOf = (expression, slot) =>
    weighCondition(program, expression, (leaf) => leafFacts(program, tracer, leaf, state, slot)).explained;

  const admission: ExplainedRule[] = [];
  for (const { rule, when } of policy.admission) {
    const matched = when === undefined || when(frame);
    admission.push({
      label: rule.label,
      kind: rule.verb,
      matched,
      ...(rule.when === undefined ? {} : { when: condition(rule.when) }),
    });
    if (matched) break;
  }
  const routes: ExplainedRule[] = [];
  for (let r = 0; r <= (state.routeIndex >= 0 ? state.routeIndex : -1); r++) {
    const route = policy.routes[r];
    if (route === undefined) break;
    const { rule, when } = route;
    routes.push({
      label: rule.label,
      kind: rule.kind,
      matched: when === undefined || when(frame),
      ...(rule.when === undefined ? {} : { when: condition(rule.when) }),
    });
  }
  const signals: { [name: string]: Value | null } = {};
  for (const signal of policy.recordedSignals) {
    const value = signal.numeric ? frame.n[signal.index] : frame.v[signal.index];
    signals[signal.name] = isKnown(value) ? value : null;
  }
  const picked = outcome === 'leased' ? (frame.slots[frame.cursor] ?? -1) : -1;
  const used = state.active ?? state.destination;
  const inRoute = outcome !== 'refused' || state.refusal?.code === 'no_endpoint';
  return {
    policy: version.id,
    generation: version.generation,
    seed: frame.seed,
    signals,
    estimate: { promptTokens: frame.promptTokens, outputTokens: frame.outputTokens },
    admission,
    routes,
    outcome: outcome === 'leased' ? 'forward' : outcome === 'queued' ? 'queue' : 'refuse',
    decided: decidedBy(state, outcome, admission),
    route: inRoute ? (policy.routes[state.routeIndex]?.rule.label ?? null) : null,
    step: inRoute && state.routeIndex >= 0 ? state.stepIndex : null,
    fallback: state.fellBack,
    affinity: frame.affinityState === 0 ? null : frame.affinityState === 1 ? 'hit' : 'repin',
    panic: frame.panic,
    endpoint: fleet.texts.name[picked] ?? null,
    tier: fleet.texts.tier[picked] ?? null,
    refusal:
      state.refusal === undefined
        ? null
        : {
            status: state.refusal.status,
            code: state.refusal.code,
            message: state.refusal.message,
            retryAfterSeconds: state.refusal.retryAfterSeconds ?? null,
          },
    queue: state.place?.label ?? null,
    queueDepth: state.place === undefined ? null : services.queueDepth(state.place),
    limits: explainLimits(state, services.limits),
    steps: explainSteps(state, outcome, fleet, condition),
    scorers: used === undefined ? [] : scorersOf(used),
    ties:
      used === undefined
        ? []
        : used.source.by.slice(1).map((sum) => sum.terms.map(({ scorer }) => scorer.name).join(' + ')),
    pick: used?.source.pick.name ?? null,
    candidates: used === undefined ? [] : explainCandidates(state, used, fleet, picked, condition),
  };
}

/** Codes of refusals that a rule is the reason for. */
const RULE_CODES: ReadonlySet<string> = new Set(['rejected', 'no_endpoint']);

function decidedBy(state: RequestState, outcome: Outcome, admission: readonly ExplainedRule[]): Explanation['decided'] {
  if (outcome === 'refused' && !RULE_CODES.has(state.refusal?.code ?? '')) return null;
  const route = state.version.policy.routes[state.routeIndex];
  if (route !== undefined) return { phase: 'route', label: route.rule.label, step: state.stepIndex };
  const rule = admission.at(-1);
  return rule === undefined || !rule.matched ? null : { phase: 'admission', label: rule.label, step: 0 };
}

function explainLimits({ frame, version }: RequestState, ledger: LimitLedger): ExplainedLimit[] {
  return version.policy.limits.flatMap((limit) => {
    const key = limitKey(limit, frame);
    if (key === undefined) return [];
    const { name } = limit.definition;
    const used = ledger.usage(limit.definition, key, frame.nowMs);
    return [
      { name, used: isKnown(used) ? used : null, exceeded: isOverLimit(version.limitsByName, name, frame, ledger) },
    ];
  });
}

/** Names, weights and directions of a destination's first sum. */
export function scorersOf({ tiers, termNames }: BoundDestination): ExplainedScorer[] {
  return (tiers[0] ?? []).map(({ name, weight, direction }, t) => ({ name: termNames[t] ?? name, weight, direction }));
}

function explainSteps(state: RequestState, outcome: Outcome, fleet: Fleet, condition: ConditionOf): ExplainedStep[] {
  const { routes } = state.version.policy;
  const list: ExplainedStep[] = [];
  for (let r = 0; r <= state.routeIndex; r++) {
    const route = routes[r];
    if (route === undefined || !(route.when === undefined || route.when(state.frame))) continue;
    const isLast = r === state.routeIndex;
    const until = isLast && outcome !== 'refused' ? state.stepIndex : route.steps.length - 1;
    for (let step = 0; step <= until; step++) {
      const part = route.steps[step];
      const source = route.rule.steps[step];
      if (part === undefined || source === undefined) break;
      const base = { route: route.rule.label, step, text: stepText(state, source) };
      const isSettled = isLast && step === state.stepIndex;
      if (part.kind !== 'destination') {
        list.push({ ...base, result: isSettled ? 'taken' : 'passed' });
        if (isSettled || part.kind === 'next') break;
        continue;
      }
      const isTaken = isSettled && outcome === 'leased';
      if (isTaken && !state.fellBack) list.push({ ...base, result: 'taken' });
      else {
        const candidates = explainCandidates(state, part, fleet, NOBODY, condition);
        list.push({ ...base, result: 'no_candidate', candidates });
      }
      const fallback = isTaken && state.fellBack ? part.source.with.fallbacks?.[state.fallbackIndex] : undefined;
      if (fallback !== undefined)
        list.push({ ...base, text: `fallback ${targetText(fallback.target)}`, result: 'taken' });
    }
  }
  return list;
}

function stepText({ version: { program } }: RequestState, step: Step): string {
  if (step.kind === 'next') return 'next';
  if (step.kind === 'verdict') return step.verb;
  const targets = step.targets.map(({ target, share }) =>
    share === undefined ? targetText(target) : `${Number((share * 100).toFixed(4))}% ${targetText(target)}`,
  );
  const where = step.where === undefined ? '' : ` where ${textAt(program, step.where.span).replaceAll(/\s+/g, ' ')}`;
  return `to ${targets.join(', ')}${where}`;
}

function targetText(target: TargetRef): string {
  return target.kind === 'any' ? 'any' : `${target.kind} ${JSON.stringify(target.name)}`;
}

/** No slot: of a destination that gave no endpoint. */
const NOBODY = -2;

function explainCandidates(
  state: RequestState,
  destination: BoundDestination,
  fleet: Fleet,
  picked: number,
  condition: ConditionOf,
): ExplainedCandidate[] {
  const { frame } = state;
  const { table, texts } = fleet;
  const { where } = destination.source;
  const tokens = chargeable(frame.promptTokens) + chargeable(frame.outputTokens);
  const list: ExplainedCandidate[] = [];
  for (const { pool } of destination.arms) {
    pool.refresh();
    for (const slot of pool.members) {
      const base = { endpoint: texts.name[slot] ?? '', tier: texts.tier[slot] ?? '' };
      const flags = table.flags[slot] ?? 0;
      const held = table.inflightRequests[slot] ?? 0;
      const removed =
        fleet.stateOf(slot) !== 'ready'
          ? (fleet.stateOf(slot) as 'draining' | 'loading' | 'asleep')
          : !pool.eligible.includes(slot) || (picked === NOBODY && pool.noneHealthy)
            ? 'ejected'
            : (table.busyUntil[slot] ?? 0) > frame.nowMs
              ? 'busy'
              : ((flags & FLAG.halfOpen) !== 0 && held > 0) ||
                  !hasRoom(table, slot, held, table.inflightTokens[slot] ?? 0, tokens)
                ? 'capacity'
                : undefined;
      if (removed !== undefined) {
        list.push({ ...base, verdict: removed });
        continue;
      }
      if (where !== undefined) {
        const explained = condition(where, slot);
        if (explained.result !== true) {
          list.push({ ...base, verdict: 'where', where: explained });
          continue;
        }
      }
      const place = picked === NOBODY ? -1 : frame.slots.subarray(0, frame.listed).indexOf(slot);
      list.push({
        ...base,
        verdict: slot === picked ? 'picked' : place < 0 && frame.droppedSlowStart > 0 ? 'slow_start' : 'eligible',
        ...(place < 0 ? {} : scored(state, destination, place)),
      });
    }
  }
  return list;
}

function scored(
  state: RequestState,
  destination: BoundDestination,
  place: number,
): Pick<ExplainedCandidate, 'rank'> & Partial<Pick<ExplainedCandidate, 'score' | 'parts'>> {
  const { frame } = state;
  const parts: { [scorer: string]: number } = {};
  destination.termNames.forEach((name, t) => {
    const part = frame.parts[place * frame.shape.parts + t];
    if (part !== undefined && part === part) parts[name] = part;
  });
  const score = frame.scores[place];
  return { rank: place + 1, ...(score !== undefined && score === score ? { score } : {}), parts };
}

function leafFacts(
  program: PolicyProgram,
  tracer: InterpretedEvaluators,
  leaf: Expression,
  { frame }: RequestState,
  slot: number | undefined,
): LeafFacts {
  const node = tracer.traceExpression(leaf, frame, slot);
  const reads = node.reads.map((read): [string, Value | null] => [readName(program, read), read.value ?? null]);
  const aggregates = aggregatesIn(node).map((one): [string, Value | null] => [
    textAt(program, one.span) || 'aggregate',
    one.result ?? null,
  ]);
  return { possible: possibleOf(node.result), reads: Object.fromEntries([...reads, ...aggregates]), missing: [] };
}

function aggregatesIn(node: TraceNode): readonly TraceNode[] {
  return node.kind === 'aggregate' ? [node] : node.operands.flatMap(aggregatesIn);
}
