// perf: a column is either the fleet's own array or filled for the candidates in hand into scratch memory made at bind time.
import { createBound, createRanker, frame as frameParts, hashString, markWithinBound } from '@signalbox/chwbl';
import type { CandidateColumns, Hash64, Ranker } from '@signalbox/chwbl';
import type { Value } from '@signalbox/plugin-api';
import type { Column, RefArgument, RequestValue } from '@signalbox/policy';
import { FLAG } from './fleet/fleet-table.ts';
import type { FleetTable } from './fleet/fleet-table.ts';
import type { Fleet } from './fleet/fleet.ts';
import type { ColumnSource, Frame } from './frame.ts';

/** A property of the built-in catalogue, bound to the fleet. */
export interface BoundColumn {
  readonly numeric: boolean;
  readonly source: ColumnSource;
}

/** What a built-in property may be written with. */
export interface PropertyArguments {
  readonly arguments: readonly RefArgument[];
  /** The request-scope value of an argument's expression. */
  readonly valueOf: (argument: RefArgument) => RequestValue;
}

const NO_ARGUMENTS: PropertyArguments = {
  arguments: [],
  valueOf: () => () => undefined,
};

/**
 * Binds a built-in property by its key without scope prefix; undefined for a key that core does not know. Where no engine reports, `running`
 * and `batch_size` are the requests in flight by our own ledger, and `queue_depth` those of them that have not had a first token.
 */
export function bindBuiltinProperty(
  key: string,
  fleet: Fleet,
  given: PropertyArguments = NO_ARGUMENTS,
): BoundColumn | undefined {
  if (key.startsWith('labels.')) return bindLabel(key.slice('labels.'.length), fleet);
  return BUILTIN[key]?.(fleet, given);
}

/** A numeric property that is unknown for every endpoint. */
export function unknownColumn(fleet: Fleet): Column {
  return new Float64Array(fleet.table.capacity).fill(Number.NaN);
}

type Bind = (fleet: Fleet, given: PropertyArguments) => BoundColumn;
type TextName = 'name' | 'tier' | 'model' | 'gpu' | 'precision' | 'zone' | 'region' | 'loras' | 'supports';

const direct =
  (pick: (table: Fleet['table']) => Float64Array | Int32Array): Bind =>
  (fleet) => ({ numeric: true, source: pick(fleet.table) });

const text =
  (name: TextName): Bind =>
  (fleet) => ({ numeric: false, source: fleet.texts[name] as unknown as Column });

const computed =
  (make: (fleet: Fleet) => (frame: Frame, slot: number) => number): Bind =>
  (fleet) => {
    const compute = make(fleet);
    const scratch = new Float64Array(fleet.table.capacity);
    return {
      numeric: true,
      source: (frame, slots, length) => {
        for (let i = 0; i < length; i++) {
          const slot = slots[i]!;
          scratch[slot] = compute(frame, slot);
        }
        return scratch;
      },
    };
  };

const computedValue =
  (make: (fleet: Fleet) => (frame: Frame, slot: number) => Value | undefined): Bind =>
  (fleet) => {
    const compute = make(fleet);
    const scratch: (Value | undefined)[] = [];
    return {
      numeric: false,
      source: (frame, slots, length) => {
        for (let i = 0; i < length; i++) {
          const slot = slots[i]!;
          scratch[slot] = compute(frame, slot);
        }
        return scratch as unknown as Column;
      },
    };
  };

/** The engine's report where it is fresh, else our own counter. */
const reported =
  (engine: (table: Fleet['table']) => Float64Array, own: (table: Fleet['table']) => Int32Array): Bind =>
  (fleet) => {
    const theirs = engine(fleet.table);
    const ours = own(fleet.table);
    const scratch = new Float64Array(fleet.table.capacity);
    return {
      numeric: true,
      source: (_frame, slots, length) => {
        if (fleet.engineFed === 0) return ours;
        for (let i = 0; i < length; i++) {
          const slot = slots[i]!;
          const value = theirs[slot]!;
          scratch[slot] = value === value ? value : ours[slot]!;
        }
        return scratch;
      },
    };
  };

const running = reported(
  (table) => table.running,
  (table) => table.inflightRequests,
);

const BUILTIN: { readonly [key: string]: Bind } = {
  name: text('name'),
  tier: text('tier'),
  model: text('model'),
  gpu: text('gpu'),
  precision: text('precision'),
  zone: text('zone'),
  region: text('region'),
  loras: text('loras'),
  supports: text('supports'),
  state: computedValue((fleet) => (_frame, slot) => fleet.stateOf(slot)),
  healthy: computedValue((fleet) => (_frame, slot) => (fleet.table.flags[slot]! & FLAG.ejected) === 0),
  draining: computedValue((fleet) => (_frame, slot) => fleet.stateOf(slot) === 'draining'),
  has_model: computedValue((fleet) => (frame, slot) => {
    const wanted = frame.parsed?.model;
    if (wanted === undefined) return undefined;
    const served = fleet.texts.model[slot];
    if (served === wanted || fleet.texts.loras[slot]?.includes(wanted) === true) return true;
    return served === undefined ? undefined : false;
  }),

  declared_order: direct((table) => table.declaredOrder),
  weight: direct((table) => table.weight),
  max_requests: direct((table) => table.maxRequests),
  max_tokens_in_flight: direct((table) => table.maxTokensInFlight),
  max_batch: direct((table) => table.maxBatch),
  context_window: direct((table) => table.contextWindow),
  model_size: direct((table) => table.modelSize),
  gpu_count: direct((table) => table.gpuCount),
  gpu_memory: direct((table) => table.gpuMemory),
  price: direct((table) => table.price),
  power: direct((table) => table.power),
  throughput: direct((table) => table.throughput),
  prefill_rate: direct((table) => table.prefillRate),
  prefill_fixed: direct((table) => table.prefillFixed),
  prefill_per_token: direct((table) => table.prefillPerToken),
  decode_a: direct((table) => table.decodeA),
  decode_b: direct((table) => table.decodeB),
  decode_k: direct((table) => table.decodeK),
  decode_p: direct((table) => table.decodeP),
  inflight_requests: direct((table) => table.inflightRequests),
  inflight_tokens: direct((table) => table.inflightTokens),
  queued_tokens: direct((table) => table.queuedTokens),
  decode_tokens: direct((table) => table.decodeTokens),
  waiting_requests: direct((table) => table.waitingRequests),
  kv_cache_used: direct((table) => table.kvCacheUsed),
  lora_slots_free: direct((table) => table.loraSlotsFree),

  queue_depth: reported(
    (table) => table.queueDepth,
    (table) => table.waitingRequests,
  ),
  running,
  batch_size: running,
  load: bindLoad,
  age: computed(
    ({ table }) =>
      (frame, slot) =>
        (frame.nowMs - table.updatedAt[slot]!) / 1000,
  ),
  error_rate: computed((fleet) => (frame, slot) => fleet.health.errorRate(slot, frame.nowMs)),
  prefix_hit: (fleet) => ({ numeric: true, source: unknownColumn(fleet) }),
  predicted_wait: computed(
    ({ table }) =>
      (_frame, slot) =>
        predictedWait(table, slot),
  ),
  predicted_ttft: computed(
    ({ table }) =>
      (frame, slot) =>
        predictedTtft(table, slot, frame.promptTokens),
  ),
  predicted_tpot: computed(
    ({ table }) =>
      (frame, slot) =>
        predictedTpot(table, slot, frame.promptTokens, frame.outputTokens),
  ),
  predicted_latency: computed(
    ({ table }) =>
      (frame, slot) =>
        predictedLatency(table, slot, frame.promptTokens, frame.outputTokens),
  ),
  cost: computed((fleet) => (frame, slot) => requestCost(fleet, slot, frame.promptTokens, frame.outputTokens)),

  under_bound: (fleet, given) => {
    const bound = createBound(numberArgument(given.arguments, 'bound', 0, 1.25));
    const mask = new Uint8Array(fleet.table.capacity);
    const scratch: boolean[] = [];
    const candidates = candidateColumns(fleet);
    return {
      numeric: false,
      source: (_frame, slots, length) => {
        candidates.slots = slots;
        candidates.length = length;
        markWithinBound(candidates, fleet.table.inflightRequests, bound, mask);
        for (let i = 0; i < length; i++) scratch[slots[i]!] = mask[i] === 1;
        return scratch as unknown as Column;
      },
    };
  },
  among: bindAmong,
};

/** Read by most policies, so with a loop of its own. */
function bindLoad({ table }: Fleet): BoundColumn {
  const { queuedTokens, decodeTokens, throughput } = table;
  const scratch = new Float64Array(table.capacity);
  return {
    numeric: true,
    source: (_frame, slots, length) => {
      for (let i = 0; i < length; i++) {
        const slot = slots[i]!;
        scratch[slot] = (0.1 * queuedTokens[slot]! + decodeTokens[slot]!) / throughput[slot]!;
      }
      return scratch;
    },
  };
}

function bindLabel(name: string, fleet: Fleet): BoundColumn {
  return computedValue((bound) => (_frame, slot) => {
    const labels = bound.texts.labels[slot];
    return labels !== undefined && Object.hasOwn(labels, name) ? labels[name] : undefined;
  })(fleet, NO_ARGUMENTS);
}

type Editable = { -readonly [K in keyof CandidateColumns]: CandidateColumns[K] };

/** The fleet as chwbl takes it, for lists of slots set by the caller. */
export function candidateColumns(fleet: Fleet): Editable {
  const { table } = fleet;
  return { hashHi: table.hashHi, hashLo: table.hashLo, weights: table.weight, slots: new Int32Array(0), length: 0 };
}

function bindAmong(fleet: Fleet, given: PropertyArguments): BoundColumn {
  const keyParts = given.arguments
    .filter((argument) => argument.kind === 'expression')
    .map((argument) => given.valueOf(argument));
  const constantKeys = given.arguments.filter((argument) => argument.kind === 'value' && argument.name === 'key');
  const places = Math.max(1, Math.floor(numberArgument(given.arguments, 'places', 0, 1)));
  const grow = given.arguments.some(
    (argument) => argument.kind === 'value' && argument.name === 'grow' && argument.value === true,
  );
  const { capacity } = fleet.table;
  const mask = new Uint8Array(capacity);
  /** Whether an endpoint may take one more, by slot. */
  const takes = new Uint8Array(capacity);
  const scratch: (boolean | undefined)[] = [];
  const candidates = candidateColumns(fleet);
  const bound = createBound();
  let ranker: Ranker | undefined;

  return {
    numeric: false,
    source: (frame, asked, count) => {
      // A key's endpoints are its own while they are full or were tried, too: no others stand in for them.
      const all = asked === frame.candidates ? frame.eligible : undefined;
      const slots = all ?? asked;
      const length = all?.length ?? count;
      const parts: string[] = constantKeys.map((argument) => (argument.kind === 'value' ? String(argument.value) : ''));
      for (const part of keyParts) {
        const value = part(frame);
        if (value === undefined || value !== value) {
          for (let i = 0; i < length; i++) scratch[slots[i]!] = undefined;
          return scratch as unknown as Column;
        }
        parts.push(textOf(value));
      }
      const key: Hash64 = hashString(frameParts(parts));
      ranker ??= createRanker(capacity);
      candidates.slots = slots;
      candidates.length = length;
      ranker.among(candidates, key, places, mask);
      for (let i = 0; i < length; i++) scratch[slots[i]!] = mask[i] === 1;
      if (grow && places < length) widen(ranker, key, asked, count);
      return scratch as unknown as Column;
    },
  };

  /** Lets in the next of the key's order for as long as none of its own that are asked for is below its bound. */
  function widen(order: Ranker, key: Hash64, asked: Int32Array, count: number): void {
    const { slots, length } = candidates;
    markWithinBound(candidates, fleet.table.inflightRequests, bound, mask);
    for (let i = 0; i < length; i++) takes[slots[i]!] = 0;
    for (let i = 0; i < count; i++) takes[asked[i]!] = 1;
    for (let i = 0; i < length; i++) takes[slots[i]!]! &= mask[i]!;
    for (let i = 0; i < length; i++) if (scratch[slots[i]!] === true && takes[slots[i]!] === 1) return;
    order.begin(candidates, key);
    for (let slot = order.next(); slot >= 0; slot = order.next()) {
      scratch[slot] = true;
      if (takes[slot] === 1) return;
    }
  }
}

function numberArgument(given: readonly RefArgument[], name: string, position: number, fallback: number): number {
  const named = given.find((argument) => argument.kind === 'value' && argument.name === name);
  const values = given.filter(
    (argument) => argument.kind === 'value' && argument.name === undefined && typeof argument.value === 'number',
  );
  const argument = named ?? values[position];
  return argument?.kind === 'value' && typeof argument.value === 'number' ? argument.value : fallback;
}

/** A value as text of a hash key, in which different values differ. */
export function textOf(value: Value): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/*
 * Predictions by the endpoint's profile: prompts ahead at the prefill rate, then its own prefill, then one decode step per token with the
 * batch as it would be. Without a profile, by its stated throughput alone: tokens ahead ÷ throughput, 0.1 of a token's time for each
 * prompt token, one for each output token. Seconds; NaN where neither is known.
 */

/** Seconds until the endpoint turns to a new request. */
export function predictedWait(table: FleetTable, slot: number): number {
  const perToken = table.prefillPerToken[slot]!;
  if (perToken === perToken) return (table.queuedTokens[slot]! * perToken) / 1000;
  return (table.queuedTokens[slot]! + table.decodeTokens[slot]!) / table.throughput[slot]!;
}

/** Seconds to the first token. */
export function predictedTtft(table: FleetTable, slot: number, promptTokens: number): number {
  const perToken = table.prefillPerToken[slot]!;
  const own =
    perToken === perToken
      ? (table.prefillFixed[slot]! + perToken * promptTokens) / 1000
      : (0.1 * promptTokens) / table.throughput[slot]!;
  return predictedWait(table, slot) + own;
}

/** Seconds per output token. */
export function predictedTpot(table: FleetTable, slot: number, promptTokens: number, outputTokens: number): number {
  const perToken = table.prefillPerToken[slot]!;
  if (perToken !== perToken) return 1 / table.throughput[slot]!;
  const batch = table.inflightRequests[slot]! + 1;
  const context = table.inflightTokens[slot]! + promptTokens + outputTokens / 2;
  return (table.decodeA[slot]! + table.decodeB[slot]! * batch + (table.decodeK[slot]! * context) / 1000) / 1000;
}

/** Seconds to the last token. */
export function predictedLatency(table: FleetTable, slot: number, promptTokens: number, outputTokens: number): number {
  const perToken = table.prefillPerToken[slot]!;
  if (perToken !== perToken) return predictedWait(table, slot) + outputTokens / table.throughput[slot]!;
  return (
    predictedTtft(table, slot, promptTokens) +
    predictedTpot(table, slot, promptTokens, outputTokens) * Math.max(0, outputTokens - 1)
  );
}

/** Dollars: the endpoint's price for the time that the request's tokens take of it (prompt tokens at 0.1). NaN where unknown. */
export function requestCost(fleet: Fleet, slot: number, promptTokens: number, outputTokens: number): number {
  const { table } = fleet;
  return (table.price[slot]! / 3600) * ((0.1 * promptTokens + outputTokens) / table.throughput[slot]!);
}
