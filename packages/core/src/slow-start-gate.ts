// perf: outside of a slow start, one comparison for each decision.
import type { FleetTable } from './fleet/fleet-table.ts';
import type { Fleet } from './fleet/fleet.ts';

/** Turns that an endpoint may save up while its strategy does not choose it. */
const MOST_SAVED = 4;

/**
 * Holds endpoints in a slow start to their share, whatever chooses among them. Each decision gives such a candidate the share of a turn that
 * its weight is of all candidates' weights, which is max(10 %, t ÷ 30 s) of its usual one; it stands among the candidates while it has a
 * whole turn saved up, and a pick takes one. So it gets its share of the requests at most, in even order and without chance. A strategy
 * that reads the weight itself finds the gate open: it asks for no more than that share.
 *
 * Where all candidates are in a slow start nobody is held back, and where none is, nothing happens. Affinity does not pass here: it weighs
 * the order of each key, so that keys move to the endpoint one by one and stay.
 */
export class SlowStartGate {
  readonly #fleet: Fleet;
  readonly #table: FleetTable;
  readonly #turns: Float64Array;
  /** The start that the turns are of. */
  readonly #startedAt: Float64Array;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#table = fleet.table;
    this.#turns = new Float64Array(fleet.table.capacity);
    this.#startedAt = new Float64Array(fleet.table.capacity).fill(Number.NaN);
  }

  /** Whether any endpoint of the fleet may be in a slow start. */
  isNeeded(nowMs: number): boolean {
    return nowMs < this.#fleet.health.slowUntilMs;
  }

  /** Copies the candidates that have a turn from `slots` to `out`, which may be the same; returns how many. `dry` gives no turns. */
  pass(slots: Int32Array, length: number, out: Int32Array, dry: boolean): number {
    const { weight, slowStartAt } = this.#table;
    let total = 0;
    let slow = 0;
    for (let i = 0; i < length; i++) {
      const slot = slots[i]!;
      total += weight[slot]!;
      if (slowStartAt[slot] === slowStartAt[slot]) slow++;
    }
    let passed = 0;
    for (let i = 0; i < length; i++) {
      const slot = slots[i]!;
      const from = slowStartAt[slot]!;
      if (from === from && slow < length && !this.#hasTurn(slot, from, dry ? 0 : weight[slot]! / total)) continue;
      out[passed++] = slot;
    }
    return passed;
  }

  #hasTurn(slot: number, from: number, share: number): boolean {
    const turns = this.#turns;
    if (this.#startedAt[slot] !== from) {
      this.#startedAt[slot] = from;
      turns[slot] = 0;
    }
    const saved = Math.min(MOST_SAVED, turns[slot]! + share);
    turns[slot] = saved;
    return saved >= 1;
  }

  /** The endpoint was picked. */
  picked(slot: number): void {
    const turns = this.#turns[slot]!;
    this.#turns[slot] = turns > 1 ? turns - 1 : 0;
  }
}
