import type { DecisionRecord } from '@signalbox/telemetry';
import type { PolicyOutcome, ReplayedDecision } from '../replay/replay-outcome.ts';
import { isLaterPlacement, recordedOutcome } from '../replay/replay-outcome.ts';
import type { ReplayedRule, TracedReplay } from '../replay/replayer.ts';
import type { ExplainedCandidate, ExplainedRule, ExplainedScorer, Explanation } from './explain.ts';

/** A policy to explain a record by: its id, its scorers, and what it makes of the record. */
export interface RecordReplay {
  readonly policy: string;
  readonly traced: TracedReplay;
  /** Of the destination in use, where it is known. */
  readonly scorers: readonly ExplainedScorer[];
}

/**
 * A recorded decision explained: what the record says of signals, candidates and attempts, and, where a policy is given, how its rules
 * came out with the recorded values. Candidates are those of the shortlist; of the others the record counts what removed them.
 */
export function explainRecord(record: DecisionRecord, replay?: RecordReplay): Explanation {
  const outcome = recordedOutcome(record);
  const isForwarded = record.verdict === 'routed';
  const { decided } = record;
  const inRoute = record.route !== '';
  return {
    policy: record.policy,
    generation: known(record.generation),
    seed: known(record.seed),
    signals: record.signals,
    estimate: null,
    admission: replay?.traced.admission.map(ruleOf) ?? [],
    routes: replay?.traced.routes.map(ruleOf) ?? [],
    outcome: isForwarded ? 'forward' : outcome?.verdict === 'queue' ? 'queue' : 'refuse',
    decided: decidedOf(record, outcome),
    route: inRoute ? record.route : null,
    step: inRoute && decided !== undefined && decided.step >= 0 ? decided.step : null,
    fallback: decided !== undefined && decided.fallback >= 0,
    affinity: record.reasons.includes('affinity_hit')
      ? 'hit'
      : record.reasons.includes('affinity_repin')
        ? 'repin'
        : null,
    panic: record.reasons.includes('panic'),
    endpoint: isForwarded ? record.endpoint : null,
    tier: isForwarded ? record.tier : null,
    refusal: isForwarded ? null : { status: record.status, code: record.code, message: '', retryAfterSeconds: null },
    queue: outcome?.verdict === 'queue' ? outcome.rule : null,
    queueDepth: null,
    limits: [],
    steps: [],
    scorers: replay?.scorers ?? [],
    ties: [],
    pick: null,
    record: {
      requestId: record.requestId,
      timeMs: record.timeMs,
      status: record.status,
      attempts: record.attempts.map((attempt) => ({
        endpoint: attempt.endpoint,
        outcome: attempt.outcome,
        status: attempt.status,
      })),
      dropped: record.dropped,
      notes: notesOf(record, outcome, replay),
    },
    candidates: record.shortlist.map((one, index) => candidateOf(record, one, index)),
  };
}

const known = (value: number): number | null => (Number.isNaN(value) ? null : value);

function ruleOf({ label, kind, matched, when }: ReplayedRule): ExplainedRule {
  return { label, kind, matched: matched ?? null, ...(when === undefined ? {} : { when }) };
}

function decidedOf({ route, decided }: DecisionRecord, outcome: PolicyOutcome | undefined): Explanation['decided'] {
  if (outcome === undefined || outcome.rule === '') return null;
  if (route !== '') return { phase: 'route', label: route, step: Math.max(0, decided?.step ?? 0) };
  return { phase: 'admission', label: outcome.rule, step: 0 };
}

function candidateOf(
  { endpoint: served }: DecisionRecord,
  { endpoint, tier, score, parts }: DecisionRecord['shortlist'][number],
  index: number,
): ExplainedCandidate {
  return {
    endpoint,
    tier,
    verdict: endpoint === served ? 'picked' : 'eligible',
    rank: index + 1,
    ...(Number.isNaN(score) ? {} : { score }),
    parts,
  };
}

function notesOf(
  record: DecisionRecord,
  outcome: PolicyOutcome | undefined,
  replay: RecordReplay | undefined,
): readonly string[] {
  const notes: string[] = [];
  if (record.attempts.length > 0 && isLaterPlacement(record)) {
    notes.push('attempts failed: the candidates are those of the choice after them');
  }
  if (replay === undefined) {
    notes.push('its rules are not shown: no policy is given that made it');
    return notes;
  }
  const { replayed } = replay.traced;
  const isOwn = replay.policy === record.policy;
  if (!isOwn && replayed.kind !== 'not_by_policy')
    notes.push(`the rules are those of policy ${replay.policy}, which did not make this decision`);
  notes.push(verdictNote(replayed, outcome, isOwn));
  return notes;
}

function verdictNote(replayed: ReplayedDecision, was: PolicyOutcome | undefined, isOwn: boolean): string {
  if (replayed.kind === 'not_by_policy') return `no rule had a say: ${replayed.code}`;
  if (replayed.kind === 'not_decidable') return `not decidable again: ${listed(replayed.missing)} not recorded`;
  if (was !== undefined && isSameOutcome(was, replayed.outcome))
    return isOwn ? 'decided again by what was recorded, with the same outcome' : 'it would decide the same';
  return `decided again by what was recorded, it comes to ${outcomeText(replayed.outcome)}`;
}

function listed(missing: readonly string[]): string {
  return `${missing.join(', ')} ${missing.length === 1 ? 'was' : 'were'}`;
}

/** Whether two outcomes are the same rule, part, fallback, verdict and tier. */
export function isSameOutcome(left: PolicyOutcome, right: PolicyOutcome): boolean {
  return (
    left.verdict === right.verdict &&
    left.rule === right.rule &&
    left.step === right.step &&
    left.fallback === right.fallback &&
    left.tier === right.tier
  );
}

/** An outcome in words: `tier "34B" by "easy"`, `reject by "over quota"`. */
export function outcomeText({ verdict, rule, tier }: PolicyOutcome): string {
  const by = rule === '' ? '' : ` by ${JSON.stringify(rule)}`;
  return verdict === 'forward' ? `tier ${JSON.stringify(tier)}${by}` : `${verdict}${by}`;
}
