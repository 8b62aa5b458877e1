// perf: once for each request. Numbers and texts are copied into two arrays, and made into objects when somebody reads them (`RowRecord`).
import { hashString } from '@signalbox/chwbl';
import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import { hex64, ROW, RowRecord } from '@signalbox/telemetry';
import type { PlaceLayout } from '@signalbox/telemetry';
import type { BoundDestination } from './bound-policy.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { Frame } from './frame.ts';
import type { RequestState } from './request-state.ts';

const NONE: readonly never[] = Object.freeze([]);
const NO_PLACE: PlaceLayout = Object.freeze({ parts: NONE, properties: NONE });

/** What rows are copied from: a copy that is overwritten costs less than an array that grows. Longer ones grow. */
const ROOM = 128;
const BLANK_NUMBERS: readonly number[] = Array.from({ length: ROOM }, () => Number.NaN);
const BLANK_OTHERS: readonly (Value | undefined)[] = Array.from({ length: ROOM }, () => undefined);

/**
 * The decision record of a request, made of the numbers that were kept. Called once, at the request's end or when somebody asks before.
 * Session and user values stand in it hashed, prompts never.
 */
export function buildDecision(state: RequestState, fleet: Fleet, epochMs: number): RowRecord {
  const { frame, version, active } = state;
  const { policy } = version;
  const { numericSignals, otherSignals } = policy.recordedRow;
  const listed = active === undefined ? 0 : frame.listed;
  const firstNumber = ROW.first + numericSignals.length;
  const firstOther = 1 + otherSignals.length;
  const numbers = BLANK_NUMBERS.slice(0, firstNumber + listed * (active?.row.numbers ?? 0));
  const others = BLANK_OTHERS.slice(0, firstOther + listed * (active?.row.others ?? 0));
  writeHead(numbers, state, frame, listed);
  // perf: an index that no array has costs more than the rest of this, and few requests have met such a rule.
  others[0] = state.admissionIndex < 0 ? '' : (policy.admission[state.admissionIndex]?.rule.label ?? '');
  const { n, v } = frame;
  for (let i = 0; i < numericSignals.length; i++) numbers[ROW.first + i] = n[numericSignals[i]!]!;
  for (let i = 0; i < otherSignals.length; i++) {
    const { index, numeric, isHashed } = otherSignals[i]!;
    const value = numeric ? n[index] : v[index];
    others[1 + i] = isHashed && isKnown(value) ? hashed(String(value)) : value;
  }
  if (active !== undefined) writeShortlist(numbers, firstNumber, others, firstOther, frame, active, fleet);
  const signals = policy.recordedRow.signals;
  const place = active?.row.place ?? NO_PLACE;
  return new RowRecord(
    { signals, place, numbers, others },
    {
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
      route: state.routeIndex < 0 ? '' : (policy.routes[state.routeIndex]?.rule.label ?? ''),
      reasons: NONE,
      queuedMs: state.queuedMs,
      decideMs: frame.decideMs,
      attempts: (state.attempts ??= []),
    },
  );
}

function writeHead(numbers: number[], state: RequestState, frame: Frame, listed: number): void {
  numbers[ROW.listed] = listed;
  numbers[ROW.step] = state.routeIndex < 0 ? -1 : state.stepIndex;
  numbers[ROW.fallback] = state.fallbackIndex;
  numbers[ROW.candidates] = frame.considered;
  numbers[ROW.late] = frame.lateRead;
  numbers[ROW.dropped] = frame.droppedUnavailable;
  numbers[ROW.dropped + 1] = frame.droppedDraining;
  numbers[ROW.dropped + 2] = frame.droppedUnhealthy;
  numbers[ROW.dropped + 3] = frame.droppedCapacity;
  numbers[ROW.dropped + 4] = frame.droppedWhere;
  numbers[ROW.dropped + 5] = frame.droppedSlowStart;
  numbers[ROW.hasAffinity] = frame.affinityState;
  numbers[ROW.affinity] = frame.affinityHi;
  numbers[ROW.affinity + 1] = frame.affinityLo;
  numbers[ROW.hasSplit] = frame.hasSplit ? 1 : 0;
  numbers[ROW.split] = frame.splitHi;
  numbers[ROW.split + 1] = frame.splitLo;
}

function writeShortlist(
  numbers: number[],
  firstNumber: number,
  others: (Value | undefined)[],
  firstOther: number,
  frame: Frame,
  { row, termNames }: BoundDestination,
  fleet: Fleet,
): void {
  const { numericProperties, otherProperties } = row;
  const { name, tier } = fleet.texts;
  const { listed, slots, scores, parts, facts, factValues, shape } = frame;
  let number = firstNumber;
  let other = firstOther;
  for (let place = 0; place < listed; place++) {
    const slot = slots[place]!;
    others[other++] = name[slot] ?? '';
    others[other++] = tier[slot] ?? '';
    numbers[number++] = scores[place]!;
    const firstPart = place * shape.parts;
    for (let t = 0; t < termNames.length; t++) numbers[number++] = parts[firstPart + t]!;
    const firstFact = place * shape.properties;
    for (let i = 0; i < numericProperties.length; i++) numbers[number++] = facts[firstFact + numericProperties[i]!]!;
    for (let i = 0; i < otherProperties.length; i++) others[other++] = factValues[firstFact + otherProperties[i]!];
  }
}

/** A value that must not be readable in a record, as 64 bits of hash: equal values stay equal. */
export function hashed(text: string): string {
  const hash = hashString(text);
  return hex64(hash.hi, hash.lo);
}
