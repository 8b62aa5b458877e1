// perf: refreshed only when the fleet's epoch moves; read by every decision.
import type { TargetRef } from '@signalbox/policy';
import { FLAG, UNAVAILABLE } from './fleet-table.ts';
import type { FleetTable } from './fleet-table.ts';

/** Share of a tier's available endpoints that must be healthy; with fewer, health is ignored and load spread over all (panic). */
const PANIC_SHARE = 0.5;

/** What a pool asks of the fleet. */
export interface PoolSource {
  readonly table: FleetTable;
  /** Lists of slots, one per tier that the target spans, each in declared order. */
  membersOf(target: TargetRef): readonly (readonly number[])[];
}

/**
 * The endpoints of one destination, with those lists that change only when membership, health or state does. Lists are in declared
 * order and must not be written to.
 */
export interface TargetPool {
  readonly targets: readonly TargetRef[];
  /** Every endpoint, whatever its state. */
  readonly members: Int32Array;
  /** Healthy ones that are neither draining, loading nor asleep. */
  readonly healthy: Int32Array;
  /** Those that may be given a request: the healthy ones, or in panic all that are available. */
  readonly eligible: Int32Array;
  /** No available endpoint is healthy: the pool counts as empty where something else remains to be tried. */
  readonly noneHealthy: boolean;
  readonly panic: boolean;
  /** Some eligible endpoint has a limit, is half-open or asked to be left alone, so that each must be looked at. */
  readonly limited: boolean;
  /** Some eligible endpoint is half-open or asked to be left alone. */
  readonly guarded: boolean;
  /** Some endpoint is loading or asleep, and so may come. */
  readonly coming: boolean;
  readonly unhealthyCount: number;
  /** Those of `members` that are draining, cordoned, loading or asleep. */
  readonly unavailableCount: number;
  /** Those that are draining or cordoned. */
  readonly drainingCount: number;
  /** Brings the lists up to date. Cheap when nothing changed. */
  refresh(): void;
}

/** A pool over the union of these targets. */
export function createPool(source: PoolSource, targets: readonly TargetRef[]): TargetPool {
  return new CachedPool(source, targets);
}

const NO_SLOTS = new Int32Array(0);

class CachedPool implements TargetPool {
  readonly targets: readonly TargetRef[];
  members: Int32Array = NO_SLOTS;
  healthy: Int32Array = NO_SLOTS;
  eligible: Int32Array = NO_SLOTS;
  noneHealthy = true;
  panic = false;
  limited = false;
  guarded = false;
  coming = false;
  unhealthyCount = 0;
  unavailableCount = 0;
  drainingCount = 0;
  readonly #source: PoolSource;
  #epoch = -1;

  constructor(source: PoolSource, targets: readonly TargetRef[]) {
    this.#source = source;
    this.targets = targets;
  }

  refresh(): void {
    const epoch = this.#source.table.control[0]!;
    if (epoch !== this.#epoch) this.#rebuild(epoch);
  }

  #rebuild(epoch: number): void {
    const { table } = this.#source;
    const { flags } = table;
    const groups: { available: number[]; healthy: number[] }[] = [];
    const members: number[] = [];
    const seen = new Set<number>();
    for (const target of this.targets) {
      for (const tier of this.#source.membersOf(target)) {
        const group = { available: [] as number[], healthy: [] as number[] };
        for (const slot of tier) {
          if (seen.has(slot)) continue;
          seen.add(slot);
          members.push(slot);
          const bits = flags[slot]!;
          if ((bits & UNAVAILABLE) !== 0) continue;
          group.available.push(slot);
          if ((bits & FLAG.ejected) === 0) group.healthy.push(slot);
        }
        groups.push(group);
      }
    }
    const healthy = groups.flatMap((group) => group.healthy);
    const available = groups.flatMap((group) => group.available);
    this.panic = false;
    const draining = (slot: number): boolean => (flags[slot]! & (FLAG.draining | FLAG.cordoned)) !== 0;
    this.coming = members.some((slot) => !draining(slot) && (flags[slot]! & (FLAG.loading | FLAG.asleep)) !== 0);
    this.drainingCount = members.filter(draining).length;
    const eligible = groups.flatMap((group) => {
      if (group.available.length === 0 || group.healthy.length >= group.available.length * PANIC_SHARE)
        return group.healthy;
      // A tier without a healthy endpoint adds nothing while another of the same pool has some.
      if (group.healthy.length === 0 && healthy.length > 0) return [];
      this.panic = true;
      return group.available;
    });
    this.members = Int32Array.from(members);
    this.healthy = Int32Array.from(healthy);
    this.eligible = Int32Array.from(eligible);
    this.noneHealthy = healthy.length === 0;
    this.unavailableCount = members.length - available.length;
    this.unhealthyCount = available.length - eligible.length;
    this.guarded = eligible.some((slot) => table.busyUntil[slot]! > 0 || (flags[slot]! & FLAG.halfOpen) !== 0);
    this.limited =
      this.guarded ||
      eligible.some((slot) => !Number.isNaN(table.maxRequests[slot]!) || !Number.isNaN(table.maxTokensInFlight[slot]!));
    this.#epoch = epoch;
  }
}
