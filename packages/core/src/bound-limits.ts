import type { Frame } from './frame.ts';
import type { BoundLimit } from './bound-policy.ts';
import type { Charge, LimitLedger } from './limits.ts';
import { frame as frameParts } from '@signalbox/chwbl';
import type { Fleet } from './fleet/fleet.ts';
import type { TargetPool } from './fleet/pool.ts';
import { requestCost, textOf } from './property-columns.ts';

/** The key under which a limit is charged for this request; undefined where the limit does not apply. */
export function limitKey(limit: BoundLimit, frame: Frame): string | undefined {
  if (limit.when !== undefined && !limit.when(frame)) return undefined;
  const parts: string[] = [];
  for (const part of limit.key) {
    const value = part(frame);
    if (value === undefined || value !== value) return undefined;
    parts.push(textOf(value));
  }
  return frameParts(parts);
}

type Limits = ReadonlyMap<string, BoundLimit>;

/** Whether this request would exceed the limit, or one that it is a share of. False where it does not apply. */
export function isOverLimit(limits: Limits, name: string, frame: Frame, ledger: LimitLedger): boolean {
  return lineageOf(limits, name).some((limit) => {
    const key = limitKey(limit, frame);
    return key !== undefined && ledger.wouldExceed(limit.definition, key, estimateOf(limit, frame), frame.nowMs);
  });
}

/** Seconds until the limit and those that it is a share of have room for this request, at least 1. */
export function limitRetryAfter(limits: Limits, name: string, frame: Frame, ledger: LimitLedger): number {
  let seconds = 1;
  for (const limit of lineageOf(limits, name)) {
    const key = limitKey(limit, frame);
    if (key === undefined) continue;
    seconds = Math.max(seconds, ledger.retryAfterSeconds(limit.definition, key, estimateOf(limit, frame), frame.nowMs));
  }
  return seconds;
}

/** The limit, the one that it is a share of, and so on. */
function lineageOf(limits: Limits, name: string): readonly BoundLimit[] {
  const lineage: BoundLimit[] = [];
  let limit = limits.get(name);
  while (limit !== undefined && !lineage.includes(limit)) {
    lineage.push(limit);
    limit = limits.get(limit.parent ?? '');
  }
  return lineage;
}

function estimateOf(limit: BoundLimit, frame: Frame): Charge {
  const cost = limit.leastCost?.(frame) ?? 0;
  return { inputTokens: frame.promptTokens, outputTokens: frame.outputTokens, cost };
}

/**
 * What a request costs at least, in dollars: at the cheapest endpoint that may be given requests, of those that serve the model it names if
 * there are any. It is not routed yet where this is asked; what it goes to is charged when that is known. 0 where no cost is known.
 */
export function leastCostOver(fleet: Fleet, pool: TargetPool): (frame: Frame) => number {
  return (frame) => {
    pool.refresh();
    const model = frame.parsed?.model;
    let least = Infinity;
    let leastOfModel = Infinity;
    for (const slot of pool.eligible) {
      const cost = requestCost(fleet, slot, frame.promptTokens, frame.outputTokens);
      if (cost < least) least = cost;
      if (cost < leastOfModel && fleet.texts.model[slot] === model) leastOfModel = cost;
    }
    const cost = leastOfModel < Infinity ? leastOfModel : least;
    return cost < Infinity ? cost : 0;
  };
}
