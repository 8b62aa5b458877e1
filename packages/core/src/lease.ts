// perf: reserve and release are a handful of counter changes; nothing else may allocate here but the lease.
import { change } from './fleet/fleet-table.ts';
import type { FleetTable } from './fleet/fleet-table.ts';
import type { Fleet } from './fleet/fleet.ts';

/** No one request is charged for more, so that 32-bit sums over hundreds of them cannot overflow. */
export const MOST_TOKENS: number = 2 ** 22;

/** Whole tokens in [0, MOST_TOKENS]; unknown is 0. */
export function chargeable(tokens: number): number {
  return tokens > 0 ? Math.min(MOST_TOKENS, Math.ceil(tokens)) : 0;
}

/**
 * What one attempt holds on an endpoint, in exact amounts, until `release`. While `queued`, its prompt counts as still to be prefilled.
 */
export interface Lease {
  readonly slot: number;
  readonly generation: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** The endpoint's ejections when the lease was taken. */
  readonly ejections: number;
  /** What the endpoint held before. */
  readonly requestsBefore: number;
  readonly tokensBefore: number;
  readonly queuedBefore: number;
  readonly decodeBefore: number;
  readonly queued: boolean;
  readonly released: boolean;
}

/** Leases over one fleet. Every method is exact and may be called in any order; a second release does nothing. */
export interface LeaseLedger {
  /** Takes the lease, or undefined if the endpoint's limits leave no room. */
  reserve(slot: number, promptTokens: number, outputTokens: number): Lease | undefined;
  /** The first token has come: the prompt is no longer queued. */
  commit(lease: Lease): void;
  release(lease: Lease): void;
  /** Leases taken and not released. */
  readonly open: number;
  /** Leases taken since the start. */
  readonly started: number;
  /** Times a release would have made a counter negative or met another generation; 0 in a correct program. */
  readonly faults: number;
}

type Held = { -readonly [K in keyof Lease]: Lease[K] };

/** A ledger over the fleet's counters. */
export function createLeaseLedger(fleet: Fleet): LeaseLedger {
  const { table } = fleet;

  const give = (column: Int32Array, slot: number, amount: number): void => {
    if (change(table, column, slot, -amount) < amount) ledger.faults++;
  };

  // perf: counts are fields, for an object literal with a getter is a hash table, in which every call of a method is a look-up.
  const ledger = {
    open: 0,
    started: 0,
    faults: 0,

    reserve(slot: number, promptTokens: number, outputTokens: number): Lease | undefined {
      const lease = table.shared
        ? takeShared(table, slot, promptTokens, outputTokens)
        : takePlain(table, slot, promptTokens, outputTokens);
      if (lease === undefined) return undefined;
      ledger.open++;
      ledger.started++;
      return lease;
    },

    commit(lease: Lease): void {
      if (lease.released || !lease.queued) return;
      (lease as Held).queued = false;
      give(table.waitingRequests, lease.slot, 1);
      give(table.queuedTokens, lease.slot, lease.promptTokens);
    },

    release(lease: Lease): void {
      if (lease.released) return;
      if (lease.queued) ledger.commit(lease);
      (lease as Held).released = true;
      ledger.open--;
      const { slot } = lease;
      if (lease.generation !== table.generation[slot]) {
        ledger.faults++;
        return;
      }
      give(table.inflightRequests, slot, 1);
      give(table.inflightTokens, slot, lease.promptTokens + lease.outputTokens);
      give(table.decodeTokens, slot, lease.outputTokens);
      fleet.freeIfDrained(slot);
    },
  };
  return ledger;
}

/** Takes a lease where other threads may do so too: adds first and checks after, so that no two can both take the last place. */
function takeShared(table: FleetTable, slot: number, promptTokens: number, outputTokens: number): Lease | undefined {
  const { inflightRequests, inflightTokens } = table;
  const requests = Atomics.add(inflightRequests, slot, 1);
  const tokens = Atomics.add(inflightTokens, slot, promptTokens + outputTokens);
  if (!hasRoom(table, slot, requests, tokens, promptTokens + outputTokens)) {
    Atomics.sub(inflightRequests, slot, 1);
    Atomics.sub(inflightTokens, slot, promptTokens + outputTokens);
    return undefined;
  }
  Atomics.add(table.waitingRequests, slot, 1);
  const queued = Atomics.add(table.queuedTokens, slot, promptTokens);
  const decode = Atomics.add(table.decodeTokens, slot, outputTokens);
  return leaseOf(table, slot, promptTokens, outputTokens, requests, tokens, queued, decode);
}

/** Takes a lease on memory that this thread alone writes, for a fraction of the cost. */
function takePlain(table: FleetTable, slot: number, promptTokens: number, outputTokens: number): Lease | undefined {
  const { inflightRequests, inflightTokens, waitingRequests, queuedTokens, decodeTokens } = table;
  const requests = inflightRequests[slot]!;
  const tokens = inflightTokens[slot]!;
  if (!hasRoom(table, slot, requests, tokens, promptTokens + outputTokens)) return undefined;
  const queued = queuedTokens[slot]!;
  const decode = decodeTokens[slot]!;
  inflightRequests[slot] = requests + 1;
  inflightTokens[slot] = tokens + promptTokens + outputTokens;
  waitingRequests[slot] = waitingRequests[slot]! + 1;
  queuedTokens[slot] = queued + promptTokens;
  decodeTokens[slot] = decode + outputTokens;
  return leaseOf(table, slot, promptTokens, outputTokens, requests, tokens, queued, decode);
}

function leaseOf(
  table: FleetTable,
  slot: number,
  promptTokens: number,
  outputTokens: number,
  requestsBefore: number,
  tokensBefore: number,
  queuedBefore: number,
  decodeBefore: number,
): Lease {
  return {
    slot,
    generation: table.generation[slot]!,
    promptTokens,
    outputTokens,
    ejections: table.ejections[slot]!,
    requestsBefore,
    tokensBefore,
    queuedBefore,
    decodeBefore,
    queued: true,
    released: false,
  };
}

/** Whether an endpoint that holds these amounts may take one more request of so many tokens. An idle one takes a request of any size. */
export function hasRoom(
  table: FleetTable,
  slot: number,
  requests: number,
  tokensHeld: number,
  tokens: number,
): boolean {
  const maxRequests = table.maxRequests[slot]!;
  if (requests >= maxRequests) return false;
  const maxTokens = table.maxTokensInFlight[slot]!;
  return !(tokensHeld + tokens > maxTokens) || tokensHeld === 0;
}
