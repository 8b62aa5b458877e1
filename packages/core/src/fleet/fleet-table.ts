// perf: columns are read for every candidate of every decision; in-bounds by construction.

/**
 * Where core takes its memory from: a zeroed buffer of this many bytes. A gateway with workers hands out one SharedArrayBuffer; a browser
 * or a test a plain ArrayBuffer.
 */
export type AllocateMemory = (byteLength: number) => ArrayBuffer | SharedArrayBuffer;

const INT_COLUMNS = [
  /** Requests leased and not yet released. */
  'inflightRequests',
  /** Prompt tokens and predicted output tokens of the requests in flight. */
  'inflightTokens',
  /** Prompt tokens of the requests in flight that have not had their first token. */
  'queuedTokens',
  /** Predicted output tokens of the requests in flight. */
  'decodeTokens',
  /** Requests in flight that have not had their first token. */
  'waitingRequests',
  /** Goes up each time the slot is freed, so that a lease of an earlier tenant can be told. */
  'generation',
  /** Bits of `FLAG`. */
  'flags',
  /** Failures since the last success. */
  'failuresInRow',
  /** Ejections since the endpoint was last long healthy. */
  'ejections',
] as const;

const FLOAT_COLUMNS = [
  /** The declared weight, or a share of it during a slow start. */
  'weight',
  'declaredWeight',
  'declaredOrder',
  /** The limit in force: as declared, or as an adaptive limit has it at present. */
  'maxRequests',
  'maxTokensInFlight',
  'maxBatch',
  'contextWindow',
  'modelSize',
  'gpuCount',
  'gpuMemory',
  'price',
  'power',
  'throughput',
  'prefillRate',
  'prefillFixed',
  'prefillPerToken',
  'decodeA',
  'decodeB',
  'decodeK',
  'decodeP',
  'queueDepth',
  'running',
  'kvCacheUsed',
  'loraSlotsFree',
  /** Milliseconds of the clock at which the engine-fed columns were written. */
  'updatedAt',
  /** Milliseconds of the clock until which the endpoint is ejected; 0 when it is not. */
  'ejectedUntil',
  /** Milliseconds of the clock until which the server asked to be left alone; 0 when it did not. */
  'busyUntil',
  'attemptsDecayed',
  'failuresDecayed',
  'decayedAt',
  /** Milliseconds of the clock at which a slow start began; NaN when there is none. */
  'slowStartAt',
] as const;

type IntName = (typeof INT_COLUMNS)[number];
type FloatName = (typeof FLOAT_COLUMNS)[number];

/** Bits of the `flags` column. */
export const FLAG: {
  readonly [name in 'used' | 'draining' | 'loading' | 'asleep' | 'ejected' | 'halfOpen' | 'cordoned']: number;
} = Object.freeze({
  used: 1,
  /** No longer in the policy, or drained or cordoned by an operator: no new requests. */
  draining: 2,
  loading: 4,
  asleep: 8,
  ejected: 16,
  /** After an ejection: one request at a time, whose result decides. */
  halfOpen: 32,
  /** Set by an operator; survives reloads. */
  cordoned: 64,
});

/** Flags with which an endpoint takes no request whatever its health. */
export const UNAVAILABLE: number = FLAG.draining | FLAG.loading | FLAG.asleep | FLAG.cordoned;

/**
 * Endpoint state as a struct of arrays over one block of memory, indexed by slot. Counters are integers that change by `change`; every
 * other column has one writer. NaN is unknown.
 */
export type FleetTable = { readonly [name in IntName]: Int32Array } & { readonly [name in FloatName]: Float64Array } & {
  readonly capacity: number;
  /** Halves of the 64-bit hash of the endpoint's identity. */
  readonly hashHi: Uint32Array;
  readonly hashLo: Uint32Array;
  /** `control[0]`: goes up when membership, health or state changes. */
  readonly control: Int32Array;
  readonly shared: boolean;
};

/** Lays out a table for `capacity` endpoints. Tables over the same shared buffer are views of one fleet. */
export function createFleetTable(capacity: number, allocate: AllocateMemory): FleetTable {
  if (!Number.isInteger(capacity) || capacity < 1)
    throw new RangeError(`fleet capacity is ${capacity}; expected a whole number of at least 1`);
  const floatBytes = FLOAT_COLUMNS.length * capacity * 8;
  const intBytes = (INT_COLUMNS.length + 2) * capacity * 4;
  const buffer = allocate(floatBytes + intBytes + 64);
  let offset = 0;
  const float = (): Float64Array => {
    offset += capacity * 8;
    return new Float64Array(buffer, offset - capacity * 8, capacity);
  };
  const int = (): Int32Array => {
    offset += capacity * 4;
    return new Int32Array(buffer, offset - capacity * 4, capacity);
  };
  const hash = (): Uint32Array => {
    offset += capacity * 4;
    return new Uint32Array(buffer, offset - capacity * 4, capacity);
  };
  // Written out: an object that gets this many properties by computed names becomes a hash table, in which every read is a look-up.
  return {
    capacity,
    shared: typeof SharedArrayBuffer !== 'undefined' && buffer instanceof SharedArrayBuffer,
    weight: float(),
    declaredWeight: float(),
    declaredOrder: float(),
    maxRequests: float(),
    maxTokensInFlight: float(),
    maxBatch: float(),
    contextWindow: float(),
    modelSize: float(),
    gpuCount: float(),
    gpuMemory: float(),
    price: float(),
    power: float(),
    throughput: float(),
    prefillRate: float(),
    prefillFixed: float(),
    prefillPerToken: float(),
    decodeA: float(),
    decodeB: float(),
    decodeK: float(),
    decodeP: float(),
    queueDepth: float(),
    running: float(),
    kvCacheUsed: float(),
    loraSlotsFree: float(),
    updatedAt: float(),
    ejectedUntil: float(),
    busyUntil: float(),
    attemptsDecayed: float(),
    failuresDecayed: float(),
    decayedAt: float(),
    slowStartAt: float(),
    inflightRequests: int(),
    inflightTokens: int(),
    queuedTokens: int(),
    decodeTokens: int(),
    waitingRequests: int(),
    generation: int(),
    flags: int(),
    failuresInRow: int(),
    ejections: int(),
    hashHi: hash(),
    hashLo: hash(),
    control: new Int32Array(buffer, offset, 2),
  };
}

/** Adds `amount` to a counter and returns its value before. Atomic on shared memory, plain (and four times as fast) otherwise. */
export function change(table: FleetTable, column: Int32Array, slot: number, amount: number): number {
  if (table.shared) return Atomics.add(column, slot, amount);
  const before = column[slot]!;
  column[slot] = before + amount;
  return before;
}

const STATIC_FLOATS: readonly FloatName[] = FLOAT_COLUMNS.slice(0, FLOAT_COLUMNS.indexOf('queueDepth'));

/** Forgets all that was known of a slot, counters apart. */
export function clearSlot(table: FleetTable, slot: number): void {
  for (const name of STATIC_FLOATS) table[name][slot] = Number.NaN;
  clearEngineColumns(table, slot);
  table.ejectedUntil[slot] = 0;
  table.busyUntil[slot] = 0;
  table.attemptsDecayed[slot] = 0;
  table.failuresDecayed[slot] = 0;
  table.decayedAt[slot] = 0;
  table.slowStartAt[slot] = Number.NaN;
  table.failuresInRow[slot] = 0;
  table.ejections[slot] = 0;
  table.flags[slot] = 0;
}

/** Makes what an engine reports unknown: it has not been heard of, or not lately. */
export function clearEngineColumns(table: FleetTable, slot: number): void {
  table.queueDepth[slot] = Number.NaN;
  table.running[slot] = Number.NaN;
  table.kvCacheUsed[slot] = Number.NaN;
  table.loraSlotsFree[slot] = Number.NaN;
  table.updatedAt[slot] = Number.NaN;
}
