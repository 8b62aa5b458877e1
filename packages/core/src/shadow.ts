import { fillSignals } from './fill-signals.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { Learned } from './learned.ts';
import type { Outcome, Pipeline } from './pipeline.ts';
import { openFrame } from './policy-version.ts';
import type { PolicyVersion } from './policy-version.ts';
import { RequestState } from './request-state.ts';

/** What a policy makes of a request, before anything is sent. */
export interface Verdict {
  readonly outcome: 'forward' | 'queue' | 'refuse';
  /** The rule that settled it: of a route, or of admission; empty where none did. */
  readonly rule: string;
  /** Tier and endpoint to be tried first; empty where the request is not forwarded. */
  readonly tier: string;
  readonly endpoint: string;
  /** Code of the refusal, else empty. */
  readonly code: string;
}

/** One request as the version in force and its shadow decided it, at the same moment and on the same fleet. */
export interface ShadowComparison {
  readonly requestId: string;
  readonly inForce: Verdict;
  /** Absent where the shadow failed. */
  readonly shadow?: Verdict;
  /** What the shadow failed of. */
  readonly error?: string;
  /** Milliseconds that the shadow took. */
  readonly tookMs: number;
}

/** A version that decides live requests along with the one in force, and has no effect. */
export interface Shadow {
  readonly version: PolicyVersion;
  /** Share of the requests that it decides, 0 to 1. */
  readonly share: number;
  /** Must not throw. */
  readonly onCompared: (comparison: ShadowComparison) => void;
}

/** What came of one shadow decision. */
export type ShadowDecision = { readonly verdict: Verdict } | { readonly error: string };

/**
 * Decides what `live` is about to be decided, by another version, on the fleet as it stands and with the same seed: it takes no lease, is
 * charged to no limit, tells no plugin, and whatever it fails of stays here.
 */
export function decideInShadow(
  version: PolicyVersion,
  live: RequestState,
  { fleet, pipeline, learned }: { readonly fleet: Fleet; readonly pipeline: Pipeline; readonly learned: Learned },
  epochMs: number,
): ShadowDecision {
  const { request } = live;
  if (request === undefined) return { error: 'the request is over' };
  const frame = version.enter();
  try {
    const { nowMs, seed } = live.frame;
    openFrame(frame, request, version, { nowMs, epochMs, seed });
    const state = new RequestState(version, frame, request);
    state.dry = true;
    state.atDoor = live.atDoor;
    fillSignals(state, learned);
    return { verdict: verdictOf(state, pipeline.decide(state), fleet) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  } finally {
    version.giveBack(frame);
    version.leave();
  }
}

/** A decision of the pipeline in words. */
export function verdictOf(state: RequestState, outcome: Outcome, { texts }: Fleet): Verdict {
  const { policy } = state.version;
  const rule = policy.routes[state.routeIndex]?.rule.label ?? policy.admission[state.admissionIndex]?.rule.label ?? '';
  if (outcome === 'queued') return { outcome: 'queue', rule, tier: '', endpoint: '', code: '' };
  if (outcome === 'refused')
    return { outcome: 'refuse', rule, tier: '', endpoint: '', code: state.refusal?.code ?? '' };
  const slot = (state.dry ? state.frame.slots[state.frame.cursor] : state.lease?.slot) ?? -1;
  return { outcome: 'forward', rule, tier: texts.tier[slot] ?? '', endpoint: texts.name[slot] ?? '', code: '' };
}
