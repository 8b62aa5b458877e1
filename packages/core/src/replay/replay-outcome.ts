import type { DecisionRecord } from '@signalbox/telemetry';

/** What a policy makes of a request. */
export interface PolicyOutcome {
  /** `forward` to an endpoint of the tier; refused or queued by a rule; or refused because there was no endpoint, no rule or no such model. */
  readonly verdict: 'forward' | 'reject' | 'queue' | 'no_endpoint' | 'no_route' | 'model_not_found';
  /** Label of the rule that settled it; empty where none did. */
  readonly rule: string;
  /** Which part of the route: 0 its destination, then its `else` parts; -1 for admission rules and where there is none. */
  readonly step: number;
  /** Which `fallback` of the destination; -1 for the destination itself. */
  readonly fallback: number;
  /** Empty where it is not forwarded. */
  readonly tier: string;
}

/** Which endpoint, as far as the record tells. */
export type ReplayedEndpoints =
  | { readonly kind: 'decided'; readonly shortlist: readonly string[]; readonly pick: string }
  | { readonly kind: 'not_decidable'; readonly missing: readonly string[] };

/** A recorded request decided again. */
export type ReplayedDecision =
  | {
      readonly kind: 'decided';
      readonly outcome: PolicyOutcome;
      /** Absent where it is not forwarded. */
      readonly endpoints?: ReplayedEndpoints;
      /** What was taken for granted as no record tells it: that an endpoint of a tier was up and had room. */
      readonly assumed: readonly string[];
    }
  /** What a decision would need and was not recorded. */
  | { readonly kind: 'not_decidable'; readonly missing: readonly string[] }
  /** No rule had a say: refused at the door, too late, or the client left. */
  | { readonly kind: 'not_by_policy'; readonly code: string };

/** What the policy made of a request when it was recorded; undefined where no rule had a say. */
export function recordedOutcome(record: DecisionRecord): PolicyOutcome | undefined {
  const { decided, route, attempts, shortlist } = record;
  const admission = decided?.admission ?? '';
  const base = { rule: route, step: decided?.step ?? -1, fallback: decided?.fallback ?? -1, tier: '' };
  if (record.verdict === 'routed') {
    return { ...base, verdict: 'forward', tier: shortlist[0]?.tier || (attempts[0]?.tier ?? record.tier) };
  }
  const byRule = { ...base, rule: route === '' ? admission : route };
  if (record.verdict === 'rejected') return { ...byRule, verdict: 'reject' };
  switch (record.code) {
    case 'queue_full':
    case 'queue_timeout':
      return { ...byRule, verdict: 'queue' };
    case 'shed':
      return (record.shed?.queue ?? '') === '' ? undefined : { ...byRule, verdict: 'queue' };
    case 'no_endpoint':
      return { ...base, verdict: 'no_endpoint' };
    case 'no_route':
      return { ...base, verdict: 'no_route', rule: '', step: -1, fallback: -1 };
    case 'model_not_found':
      return { ...base, verdict: 'model_not_found', rule: '', step: -1, fallback: -1 };
    default:
      return undefined;
  }
}

/** Whether the shortlist of a record is not that of its first attempt: attempts failed, and others took their place. */
export function isLaterPlacement({ attempts, shortlist, reasons }: DecisionRecord): boolean {
  return attempts.length > 1 || reasons.includes('retried') || attempts[0]?.endpoint !== shortlist[0]?.endpoint;
}
