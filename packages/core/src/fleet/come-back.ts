// perf: read for each pool that has nobody for a request; slots are in bounds, for they come from the fleet.
import { FLAG, UNAVAILABLE } from './fleet-table.ts';
import type { FleetTable } from './fleet-table.ts';

/**
 * Milliseconds until the first of these endpoints may be asked again, where each that is up is ejected or asked to be left alone. 0 where
 * one is neither, and infinite where none is up: then nobody knows.
 */
export function comesBackInMs(table: FleetTable, slots: Int32Array, nowMs: number): number {
  let leastMs = Infinity;
  for (let i = 0; i < slots.length && leastMs > 0; i++) {
    const slot = slots[i]!;
    const flags = table.flags[slot]!;
    if ((flags & UNAVAILABLE) !== 0) continue;
    const untilMs = (flags & FLAG.ejected) === 0 ? 0 : table.ejectedUntil[slot]!;
    leastMs = Math.min(leastMs, Math.max(0, untilMs - nowMs, table.busyUntil[slot]! - nowMs));
  }
  return leastMs;
}
