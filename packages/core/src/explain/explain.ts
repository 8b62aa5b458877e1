import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import { interpret } from '@signalbox/policy';
import type { Expression, InterpretedEvaluators, PolicyProgram, Span, TraceNode } from '@signalbox/policy';
import type { BoundDestination } from '../bound-policy.ts';
import { FLAG } from '../fleet/fleet-table.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { everyLate, readLate } from '../late-signals.ts';
import { chargeable, hasRoom } from '../lease.ts';
import type { Outcome, Pipeline } from '../pipeline.ts';
import type { RequestState } from '../request-state.ts';

/** A condition with what each of its parts came to. Unknown is null. */
export interface ExplainedCondition {
  /** As it is written. */
  readonly text: string;
  readonly result: boolean | null;
  /** The comparisons and predicates that it is made of, in order. */
  readonly leaves: readonly {
    readonly text: string;
    readonly result: boolean | null;
    readonly reads: { readonly [name: string]: Value | null };
  }[];
}

export interface ExplainedRule {
  readonly label: string;
  /** admit, reject, queue; or route, default. */
  readonly kind: string;
  readonly matched: boolean;
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

/** Why a request would go where: plain JSON data. */
export interface Explanation {
  readonly policy: string;
  readonly generation: number;
  readonly seed: number;
  readonly signals: { readonly [name: string]: Value | null };
  readonly estimate: { readonly promptTokens: number; readonly outputTokens: number };
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
  /** Every endpoint of the destination that was used, or tried last. */
  readonly candidates: readonly ExplainedCandidate[];
}

/** Runs the pipeline dry for a filled state whose frame lists as many endpoints as there are, and says what happened. */
export function explain(
  state: RequestState,
  services: { readonly fleet: Fleet; readonly pipeline: Pipeline },
): Explanation {
  const { frame, version } = state;
  const { policy, program } = version;
  const { fleet } = services;
  // What a request need not know, its reader wants to.
  readLate(frame, everyLate(frame.shape.late));
  const outcome = services.pipeline.decide(state);
  const tracer = interpret(program);
  const condition = (expression: Expression, slot?: number): ExplainedCondition =>
    explainCondition(program, tracer, expression, state, slot);

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
  const picked = outcome === 'leased' ? state.drySlot : -1;
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

function explainCandidates(
  state: RequestState,
  destination: BoundDestination,
  fleet: Fleet,
  picked: number,
  condition: (expression: Expression, slot: number) => ExplainedCondition,
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
          : !pool.eligible.includes(slot)
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
      const place = frame.slots.subarray(0, frame.listed).indexOf(slot);
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

function explainCondition(
  program: PolicyProgram,
  tracer: InterpretedEvaluators,
  expression: Expression,
  state: RequestState,
  slot?: number,
): ExplainedCondition {
  const node = tracer.traceExpression(expression, state.frame, slot);
  const leaves: ExplainedCondition['leaves'][number][] = [];
  const visit = (part: TraceNode): void => {
    if (part.kind === 'and' || part.kind === 'or' || part.kind === 'not') {
      part.operands.forEach(visit);
      return;
    }
    leaves.push({
      text: textAt(program, part.span),
      result: boolOf(part.result),
      reads: Object.fromEntries(part.reads.map((read) => [read.name, read.value ?? null])),
    });
  };
  visit(node);
  return { text: textAt(program, expression.span), result: boolOf(node.result), leaves };
}

const boolOf = (value: Value | undefined): boolean | null => (typeof value === 'boolean' ? value : null);

function textAt(program: PolicyProgram, span: Span): string {
  return program.files.find((file) => file.path === span.file)?.text.slice(span.start, span.end) ?? '';
}
