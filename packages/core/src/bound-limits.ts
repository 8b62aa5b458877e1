import type { Frame } from './frame.ts';
import type { BoundLimit } from './bound-policy.ts';
import type { LimitLedger } from './limits.ts';
import { frame as frameParts } from '@signalbox/chwbl';
import { textOf } from './property-columns.ts';

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

/** Whether this request would exceed the limit, or one that it is a share of. False where it does not apply. */
export function isOverLimit(
  limits: ReadonlyMap<string, BoundLimit>,
  name: string,
  frame: Frame,
  ledger: LimitLedger,
): boolean {
  const charge = { inputTokens: frame.promptTokens, outputTokens: frame.outputTokens, cost: 0 };
  const seen = new Set<string>();
  for (
    let limit = limits.get(name);
    limit !== undefined && !seen.has(limit.definition.name);
    limit = limits.get(limit.parent ?? '')
  ) {
    seen.add(limit.definition.name);
    const key = limitKey(limit, frame);
    if (key !== undefined && ledger.wouldExceed(limit.definition, key, charge, frame.nowMs)) return true;
  }
  return false;
}
