import { hashString } from '@signalbox/chwbl';
import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { DecisionRecord, ShortlistRecord } from '@signalbox/telemetry';
import type { BoundDestination } from './bound-policy.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { RequestState } from './request-state.ts';

const hex = (hi: number, lo: number): string =>
  (hi >>> 0).toString(16).padStart(8, '0') + (lo >>> 0).toString(16).padStart(8, '0');

/**
 * The decision record of a request, made of the numbers that were kept. Called once, at the request's end or when somebody asks before.
 * Session and user values stand in it hashed, prompts never.
 */
export function buildDecision(state: RequestState, fleet: Fleet, epochMs: number): DecisionRecord {
  const { frame, version } = state;
  const { policy } = version;
  const signals: { [name: string]: Value | null } = { ...policy.blankSignals };
  for (const signal of policy.recordedSignals) {
    if (signal.as === 'omitted' || (signal.late & ~frame.lateRead) !== 0) continue;
    const value = signal.numeric ? frame.n[signal.index] : frame.v[signal.index];
    signals[signal.name] = !isKnown(value) ? null : signal.as === 'hash' ? hashed(String(value)) : value;
  }
  const dropped: { [reason: string]: number } = {};
  if (frame.droppedUnavailable > 0) dropped['unavailable'] = frame.droppedUnavailable;
  if (frame.droppedDraining > 0) dropped['draining'] = frame.droppedDraining;
  if (frame.droppedUnhealthy > 0) dropped['unhealthy'] = frame.droppedUnhealthy;
  if (frame.droppedCapacity > 0) dropped['capacity'] = frame.droppedCapacity;
  if (frame.droppedWhere > 0) dropped['where'] = frame.droppedWhere;
  if (frame.droppedSlowStart > 0) dropped['slow_start'] = frame.droppedSlowStart;
  return {
    v: 1,
    requestId: state.requestId,
    timeMs: epochMs,
    seed: frame.seed,
    traceId: state.traceId,
    tenant: state.tenant ?? '',
    model: state.model,
    path: state.path,
    stream: state.stream,
    policy: version.id,
    generation: version.generation,
    verdict: 'refused',
    route: policy.routes[state.routeIndex]?.rule.label ?? '',
    decided: {
      admission: policy.admission[state.admissionIndex]?.rule.label ?? '',
      step: state.routeIndex < 0 ? -1 : state.stepIndex,
      fallback: state.fallbackIndex,
      candidates: frame.considered,
    },
    reasons: [],
    signals,
    queuedMs: state.queuedMs,
    decideMs: state.decideMs,
    shortlist: shortlistOf(state, fleet),
    dropped,
    keys: {
      affinity: frame.affinityState === 0 ? null : hex(frame.affinityHi, frame.affinityLo),
      split: frame.hasSplit ? hex(frame.splitHi, frame.splitLo) : null,
    },
    attempts: (state.attempts ??= []),
    servedModel: '',
    tier: '',
    endpoint: '',
    status: 0,
    code: '',
    ttftMs: Number.NaN,
    durationMs: Number.NaN,
    inputTokens: Number.NaN,
    cachedTokens: Number.NaN,
    outputTokens: Number.NaN,
  };
}

function shortlistOf(state: RequestState, fleet: Fleet): ShortlistRecord[] {
  const { frame, active } = state;
  if (active === undefined) return [];
  const list: ShortlistRecord[] = [];
  const { propertyNumeric, propertyNames } = state.version.policy;
  const { recorded } = active;
  for (let place = 0; place < frame.listed; place++) {
    const slot = frame.slots[place] ?? 0;
    const parts = partsOf(frame.parts, place * frame.shape.parts, active);
    const properties: { [name: string]: Value | null } = { ...active.blankProperties };
    for (const property of recorded) {
      const at = place * frame.shape.properties + property;
      const value = propertyNumeric[property] === true ? frame.facts[at] : frame.factValues[at];
      properties[propertyNames[property] ?? ''] = isKnown(value) ? value : null;
    }
    const score = frame.scores[place] ?? Number.NaN;
    list.push({ endpoint: fleet.texts.name[slot] ?? '', tier: fleet.texts.tier[slot] ?? '', score, parts, properties });
  }
  return list;
}

/** The parts of one place on the shortlist that are known. */
function partsOf(
  values: Float64Array,
  first: number,
  { termNames, blankParts }: BoundDestination,
): { readonly [scorer: string]: number } {
  const parts: { [scorer: string]: number } = { ...blankParts };
  let unknown = false;
  for (let t = 0; t < termNames.length; t++) {
    const part = values[first + t] ?? Number.NaN;
    parts[termNames[t] ?? ''] = part;
    if (part !== part) unknown = true;
  }
  return unknown ? Object.fromEntries(Object.entries(parts).filter(([, part]) => part === part)) : parts;
}

/** A value that must not be readable in a record, as 64 bits of hash: equal values stay equal. */
export function hashed(text: string): string {
  const hash = hashString(text);
  return hex(hash.hi, hash.lo);
}
