// perf: typed-array reads are in bounds: slots come from this class.
import { hashString } from '@signalbox/chwbl';
import { SignalboxError } from '@signalbox/plugin-api';
import type { RandomSource, Value } from '@signalbox/plugin-api';
import type { Definitions, EndpointDefinition, SecretRef, TargetRef } from '@signalbox/policy';
import type { EndpointTarget } from '../router.ts';
import { createAdaptiveLimits } from './adaptive-limit.ts';
import type { AdaptiveLimits } from './adaptive-limit.ts';
import { endpointRates } from './endpoint-profile.ts';
import type { AllocateMemory, FleetTable } from './fleet-table.ts';
import { clearEngineColumns, clearSlot, createFleetTable, FLAG } from './fleet-table.ts';
import { DEFAULT_EJECTION, readEjection } from './ejection-rules.ts';
import type { EjectionRules } from './ejection-rules.ts';
import { createHealth } from './health.ts';
import type { Health } from './health.ts';
import { createPool } from './pool.ts';
import type { TargetPool } from './pool.ts';

/** What an engine says of itself. A field left out is unknown. */
export interface EngineSample {
  readonly queueDepth?: number;
  readonly running?: number;
  /** A fraction. */
  readonly kvCacheUsed?: number;
  readonly loras?: readonly string[];
  readonly loraSlotsFree?: number;
  readonly state?: 'ready' | 'loading' | 'asleep';
}

/** One endpoint as status pages and metrics show it. Names, never addresses. */
export interface EndpointStatus {
  readonly slot: number;
  /** Tells one holder of the slot from the next. */
  readonly generation: number;
  readonly name: string;
  readonly tier: string;
  readonly model: string | undefined;
  readonly state: EndpointState;
  readonly healthy: boolean;
  readonly halfOpen: boolean;
  /** Milliseconds until an ejected endpoint may be tried again; NaN for one that is not ejected. */
  readonly ejectedForMs: number;
  /** Share of its weight that it gets: from 0.1 up in a slow start, else 1. */
  readonly slowStartShare: number;
  /** Taken out of routing by an operator. */
  readonly cordoned: boolean;
  /** False once the policy in force no longer names it and it only drains. */
  readonly defined: boolean;
  readonly inflightRequests: number;
  readonly inflightTokens: number;
  readonly queuedTokens: number;
  readonly decodeTokens: number;
  /** Most requests in flight: `max_requests`, or what an adaptive limit makes of it at present; NaN without either. */
  readonly maxRequests: number;
  /** Per second; NaN where unknown. */
  readonly throughput: number;
  readonly queueDepth: number;
  readonly running: number;
  readonly kvCacheUsed: number;
  readonly errorRate: number;
  readonly ejections: number;
}

export type EndpointState = 'ready' | 'loading' | 'asleep' | 'draining';

export interface FleetOptions {
  readonly capacity: number;
  readonly allocate: AllocateMemory;
  readonly random: RandomSource;
  /** The text behind a secret reference; undefined if there is none. Without a resolver, endpoints that need a key are refused. */
  readonly resolveSecret?: (ref: SecretRef) => string | undefined;
  /** Called when an endpoint that the policy no longer names has ended its last request. */
  readonly onGone?: (target: EndpointTarget, slot: number) => void;
}

/** A non-numeric fact about each slot, by slot; `undefined` is unknown. */
export interface FleetTexts {
  readonly name: (string | undefined)[];
  readonly tier: (string | undefined)[];
  readonly model: (string | undefined)[];
  readonly gpu: (string | undefined)[];
  readonly precision: (string | undefined)[];
  readonly zone: (string | undefined)[];
  readonly region: (string | undefined)[];
  readonly loras: (readonly string[] | undefined)[];
  readonly supports: (readonly string[] | undefined)[];
  readonly labels: ({ readonly [name: string]: Value } | undefined)[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Engine samples older than this are unknown: three scrapes of 500 ms. */
const STALE_AFTER_MS = 1500;
const EXPIRY_EVERY_MS = 100;

/**
 * All endpoints: those of the policy in force, and removed ones until their last request ends. Identity is the URL, so counters, health
 * and learned values survive reloads; where one URL stands in several tiers of a policy, each tier after the first has a row of its own.
 */
export class Fleet {
  readonly table: FleetTable;
  readonly texts: FleetTexts;
  readonly health: Health;
  readonly adaptive: AdaptiveLimits;
  readonly endpointTargets: (EndpointTarget | undefined)[] = [];
  /** Slots of the policy in force by tier, in declared order. */
  readonly #tiers = new Map<string, number[]>();
  readonly #byName = new Map<string, number>();
  readonly #byIdentity = new Map<string, number>();
  readonly #identities: (string | undefined)[] = [];
  readonly #ejection: (EjectionRules | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #resolveSecret: FleetOptions['resolveSecret'];
  readonly #onGone: FleetOptions['onGone'];
  readonly #drained = new Set<string>();
  readonly #pools = new Map<string, TargetPool>();
  #used = 0;
  #begun = false;
  #engineFed = 0;
  #nextExpiryMs = -Infinity;
  #adapters: ReadonlySet<string> | undefined;

  constructor(options: FleetOptions) {
    this.table = createFleetTable(options.capacity, options.allocate);
    this.texts = {
      name: [],
      tier: [],
      model: [],
      gpu: [],
      precision: [],
      zone: [],
      region: [],
      loras: [],
      supports: [],
      labels: [],
    };
    this.#resolveSecret = options.resolveSecret;
    this.adaptive = createAdaptiveLimits(this.table);
    this.#onGone = options.onGone;
    this.health = createHealth(
      {
        table: this.table,
        tierSlotsOf: (slot) => this.#tiers.get(this.texts.tier[slot] ?? '') ?? [],
        rulesOf: (slot) => this.#ejection[slot] ?? DEFAULT_EJECTION,
        changed: () => this.#changed(),
      },
      options.random,
    );
  }

  /** One past the highest slot in use. */
  get slotLimit(): number {
    return this.#identities.length;
  }

  /** Endpoints in use, draining ones among them. */
  get size(): number {
    return this.#used;
  }

  /** How many slots hold fresh engine samples; 0 lets readers skip the question. */
  get engineFed(): number {
    return this.#engineFed;
  }

  /** Throws a SignalboxError `fleet_full`, `secret_missing` or `ejection_invalid` if these definitions cannot be applied; changes nothing. */
  check(definitions: Definitions): void {
    let fresh = 0;
    for (const { identity, endpoint } of identified(definitions)) {
      if (!this.#byIdentity.has(identity)) fresh++;
      readEjection(endpoint.ejection, endpoint.name);
      if (endpoint.key !== undefined && this.#secret(endpoint.key) === undefined) {
        const where = 'env' in endpoint.key ? `environment variable ${endpoint.key.env}` : `file ${endpoint.key.file}`;
        throw new SignalboxError(
          `endpoint ${JSON.stringify(endpoint.name)}: its key is to come from the ${where}, which is not set. Set it, or remove \`key\`.`,
          { code: 'secret_missing', source: 'gateway' },
        );
      }
    }
    if (this.#used + fresh > this.table.capacity) {
      throw new SignalboxError(
        `the policy needs ${fresh} more endpoints, but the fleet table has room for ${this.table.capacity} and ${this.#used} are in use. Start the gateway with a larger capacity.`,
        { code: 'fleet_full', source: 'gateway' },
      );
    }
  }

  /**
   * Brings the fleet to these definitions: known endpoints keep slot and counters, new ones join, missing ones drain. Those that join at
   * `nowMs` (milliseconds of the clock) start slowly, save the first fleet.
   */
  apply(definitions: Definitions, nowMs: number = 0): void {
    this.check(definitions);
    const { table } = this;
    const startSlowly = this.#begun;
    this.#begun = true;
    this.#tiers.clear();
    this.#byName.clear();
    // Versions keep the pools they have; tiers that are gone must not be remembered for ever.
    this.#pools.clear();
    for (const tier of definitions.tiers) this.#tiers.set(tier.name, []);
    const kept = new Set<number>();
    let order = 0;
    for (const { identity, endpoint } of identified(definitions)) {
      const known = this.#byIdentity.get(identity);
      const slot = known ?? this.#join(identity);
      kept.add(slot);
      table.declaredOrder[slot] = order++;
      this.#describe(slot, endpoint);
      if (known === undefined && startSlowly) this.health.startSlowly(slot, nowMs);
      else this.health.weigh(slot, nowMs);
      const tier = this.#tiers.get(endpoint.tier);
      if (tier === undefined) this.#tiers.set(endpoint.tier, [slot]);
      else tier.push(slot);
      this.#byName.set(endpoint.name, slot);
    }
    this.#fillTierMeans();
    for (let slot = 0; slot < this.#identities.length; slot++) {
      if (this.#identities[slot] === undefined || kept.has(slot)) continue;
      table.flags[slot] = table.flags[slot]! | FLAG.draining;
      this.freeIfDrained(slot);
    }
    this.#adapters = undefined;
    this.#changed();
  }

  /** Frees a slot that is no longer in the policy and holds nothing. To be called after each release at a draining endpoint. */
  freeIfDrained(slot: number): void {
    const { table } = this;
    const identity = this.#identities[slot];
    if (identity === undefined || table.inflightRequests[slot] !== 0 || this.#isDefined(slot)) return;
    this.#byIdentity.delete(identity);
    this.#identities[slot] = undefined;
    if (table.updatedAt[slot] === table.updatedAt[slot]) this.#engineFed--;
    table.flags[slot] = 0;
    table.generation[slot] = (table.generation[slot]! + 1) | 0;
    for (const column of Object.values(this.texts) as unknown[][]) column[slot] = undefined;
    const target = this.endpointTargets[slot];
    this.endpointTargets[slot] = undefined;
    this.#adapters = undefined;
    if (target !== undefined) this.#onGone?.(target, slot);
    this.#free.push(slot);
    this.#used--;
    this.#changed();
  }

  /** The slots of a target, one list per tier. A name that nothing defines has none. */
  membersOf(target: TargetRef): readonly (readonly number[])[] {
    if (target.kind === 'any') return [...this.#tiers.values()];
    if (target.kind === 'tier') return [this.#tiers.get(target.name) ?? []];
    const slot = this.#byName.get(target.name);
    return slot === undefined ? [] : [[slot]];
  }

  /** The pool of these targets, shared by all who ask for the same. */
  pool(targets: readonly TargetRef[]): TargetPool {
    const key = JSON.stringify(targets.map((target) => [target.kind, target.kind === 'any' ? '' : target.name]));
    let pool = this.#pools.get(key);
    if (pool === undefined) this.#pools.set(key, (pool = createPool(this, targets)));
    return pool;
  }

  slotOf(name: string): number | undefined {
    return this.#byName.get(name);
  }

  /** Writes what an engine reports. Values that are not finite are unknown. */
  feed(slot: number, sample: EngineSample, nowMs: number): void {
    const { table } = this;
    if (table.updatedAt[slot] !== table.updatedAt[slot]) this.#engineFed++;
    table.queueDepth[slot] = finite(sample.queueDepth);
    table.running[slot] = finite(sample.running);
    table.kvCacheUsed[slot] = finite(sample.kvCacheUsed);
    table.loraSlotsFree[slot] = finite(sample.loraSlotsFree);
    table.updatedAt[slot] = nowMs;
    if (sample.loras !== undefined) {
      this.texts.loras[slot] = Object.freeze([...sample.loras]);
      this.#adapters = undefined;
    }
    if (sample.state !== undefined) this.setState(slot, sample.state, nowMs);
  }

  /** Makes engine samples unknown that are older than three scrapes. Looks at most ten times a second. */
  expireSamples(nowMs: number): void {
    if (this.#engineFed === 0 || nowMs < this.#nextExpiryMs) return;
    this.#nextExpiryMs = nowMs + EXPIRY_EVERY_MS;
    for (let slot = 0; slot < this.#identities.length; slot++) {
      if (nowMs - this.table.updatedAt[slot]! <= STALE_AFTER_MS) continue;
      if (this.table.updatedAt[slot] !== this.table.updatedAt[slot]) continue;
      clearEngineColumns(this.table, slot);
      this.#engineFed--;
    }
  }

  /** One that becomes ready at `nowMs` starts slowly. */
  setState(slot: number, state: 'ready' | 'loading' | 'asleep', nowMs: number): void {
    const flags = this.table.flags[slot]!;
    const next =
      (flags & ~(FLAG.loading | FLAG.asleep)) |
      (state === 'loading' ? FLAG.loading : state === 'asleep' ? FLAG.asleep : 0);
    if (next === flags) return;
    this.table.flags[slot] = next;
    if (state === 'ready') this.health.startSlowly(slot, nowMs);
    this.#changed();
  }

  /**
   * Cordons or uncordons an endpoint of the policy in force. The cordon is the address's, so that it outlasts reloads, other names, and a
   * time without the endpoint. False if there is none of that name.
   */
  cordon(name: string, cordoned: boolean): boolean {
    const slot = this.#byName.get(name);
    const identity = slot === undefined ? undefined : this.#identities[slot];
    if (slot === undefined || identity === undefined) return false;
    if (cordoned) this.#drained.add(identity);
    else this.#drained.delete(identity);
    const flags = this.table.flags[slot]!;
    this.table.flags[slot] = cordoned ? flags | FLAG.cordoned : flags & ~FLAG.cordoned;
    this.#changed();
    return true;
  }

  stateOf(slot: number): EndpointState {
    const flags = this.table.flags[slot]!;
    if ((flags & (FLAG.draining | FLAG.cordoned)) !== 0) return 'draining';
    if ((flags & FLAG.loading) !== 0) return 'loading';
    return (flags & FLAG.asleep) !== 0 ? 'asleep' : 'ready';
  }

  /** Adapters that are resident somewhere. */
  adapters(): ReadonlySet<string> {
    if (this.#adapters === undefined) this.#adapters = new Set(this.texts.loras.flatMap((loras) => loras ?? []));
    return this.#adapters;
  }

  /** Every endpoint in use, in declared order, draining ones last. */
  status(nowMs: number): EndpointStatus[] {
    const rows: EndpointStatus[] = [];
    const { table, texts } = this;
    for (let slot = 0; slot < this.#identities.length; slot++) {
      if (this.#identities[slot] === undefined) continue;
      const flags = table.flags[slot]!;
      rows.push({
        slot,
        generation: table.generation[slot]!,
        name: texts.name[slot] ?? '',
        tier: texts.tier[slot] ?? '',
        model: texts.model[slot],
        state: this.stateOf(slot),
        healthy: (flags & FLAG.ejected) === 0,
        halfOpen: (flags & FLAG.halfOpen) !== 0,
        ejectedForMs: (flags & FLAG.ejected) === 0 ? Number.NaN : Math.max(0, table.ejectedUntil[slot]! - nowMs),
        slowStartShare: this.health.slowStartShare(slot, nowMs),
        cordoned: (flags & FLAG.cordoned) !== 0,
        defined: this.#isDefined(slot),
        inflightRequests: table.inflightRequests[slot]!,
        inflightTokens: table.inflightTokens[slot]!,
        queuedTokens: table.queuedTokens[slot]!,
        decodeTokens: table.decodeTokens[slot]!,
        maxRequests: table.maxRequests[slot]!,
        throughput: table.throughput[slot]!,
        queueDepth: table.queueDepth[slot]!,
        running: table.running[slot]!,
        kvCacheUsed: table.kvCacheUsed[slot]!,
        errorRate: this.health.errorRate(slot, nowMs),
        ejections: table.ejections[slot]!,
      });
    }
    const order = (row: EndpointStatus): number => (row.defined ? table.declaredOrder[row.slot]! : Infinity);
    return rows.sort((a, b) => order(a) - order(b) || a.slot - b.slot);
  }

  #changed(): void {
    Atomics.add(this.table.control, 0, 1);
  }

  #isDefined(slot: number): boolean {
    return (this.table.flags[slot]! & FLAG.used) !== 0 && (this.table.flags[slot]! & FLAG.draining) === 0;
  }

  #join(identity: string): number {
    const slot = this.#free.pop() ?? this.#identities.length;
    clearSlot(this.table, slot);
    this.adaptive.clear(slot);
    this.table.flags[slot] = FLAG.used | (this.#drained.has(identity) ? FLAG.cordoned : 0);
    const hash = hashString(identity);
    this.table.hashHi[slot] = hash.hi;
    this.table.hashLo[slot] = hash.lo;
    this.#identities[slot] = identity;
    this.#byIdentity.set(identity, slot);
    this.#used++;
    return slot;
  }

  #describe(slot: number, endpoint: EndpointDefinition): void {
    const { table, texts } = this;
    const rates = endpointRates(endpoint);
    table.flags[slot] = table.flags[slot]! & ~FLAG.draining;
    table.declaredWeight[slot] = endpoint.weight;
    this.adaptive.configure(slot, endpoint.adaptiveLimit === true, endpoint.maxRequests ?? Number.NaN);
    table.maxTokensInFlight[slot] = endpoint.maxTokensInFlight ?? Number.NaN;
    table.maxBatch[slot] = rates.maxBatch;
    table.contextWindow[slot] = endpoint.contextWindow ?? Number.NaN;
    table.modelSize[slot] = rates.modelSize;
    table.gpuCount[slot] = endpoint.gpuCount ?? (endpoint.gpu === undefined ? Number.NaN : 1);
    table.gpuMemory[slot] = rates.gpuMemory;
    table.price[slot] = endpoint.price ?? Number.NaN;
    table.power[slot] = rates.power;
    table.throughput[slot] = rates.throughput;
    table.prefillRate[slot] = rates.prefillRate;
    table.prefillFixed[slot] = rates.prefillFixedMs;
    table.prefillPerToken[slot] = rates.prefillPerTokenMs;
    table.decodeA[slot] = rates.decodeAMs;
    table.decodeB[slot] = rates.decodeBMs;
    table.decodeK[slot] = rates.decodeKMs;
    table.decodeP[slot] = rates.decodePMs;
    texts.name[slot] = endpoint.name;
    texts.tier[slot] = endpoint.tier;
    texts.model[slot] = endpoint.model;
    texts.gpu[slot] = endpoint.gpu;
    texts.precision[slot] = endpoint.precision;
    texts.zone[slot] = endpoint.zone;
    texts.region[slot] = endpoint.region;
    texts.supports[slot] = endpoint.supports;
    texts.labels[slot] = endpoint.labels;
    this.#ejection[slot] = readEjection(endpoint.ejection, endpoint.name);
    this.#address(slot, endpoint);
  }

  /** Keeps the object that an earlier version gave out, so that a pool of connections kept by identity stays. */
  #address(slot: number, endpoint: EndpointDefinition): void {
    const url = new URL(endpoint.url);
    const secret = endpoint.key === undefined ? undefined : this.#secret(endpoint.key);
    const next: EndpointTarget = {
      origin: url.origin,
      basePath: url.pathname.replace(/\/+$/, '').replace(/\/v1$/, ''),
      headers: Object.freeze([
        ...Object.entries(endpoint.headers ?? {}).map(([name, value]) => ({ name: name.toLowerCase(), value })),
        ...(secret === undefined ? [] : [{ name: 'authorization', value: `Bearer ${secret}` }]),
      ]),
      ca: endpoint.ca,
      engine: endpoint.engine ?? 'auto',
    };
    const known = this.endpointTargets[slot];
    if (known === undefined || known.origin !== next.origin) this.endpointTargets[slot] = next;
    else Object.assign(known as Mutable<EndpointTarget>, next);
  }

  #secret(ref: SecretRef): string | undefined {
    return this.#resolveSecret?.(ref);
  }

  /** An endpoint of unknown throughput counts as the mean of its tier's known ones. */
  #fillTierMeans(): void {
    const { throughput } = this.table;
    for (const slots of this.#tiers.values()) {
      const known = slots.filter((slot) => throughput[slot] === throughput[slot]);
      if (known.length === 0 || known.length === slots.length) continue;
      const mean = known.reduce((sum, slot) => sum + throughput[slot]!, 0) / known.length;
      for (const slot of slots) if (throughput[slot] !== throughput[slot]) throughput[slot] = mean;
    }
  }
}

function finite(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) ? value : Number.NaN;
}

function identified(definitions: Definitions): { readonly identity: string; readonly endpoint: EndpointDefinition }[] {
  const seen = new Set<string>();
  const rows: { readonly identity: string; readonly endpoint: EndpointDefinition }[] = [];
  for (const tier of definitions.tiers) {
    for (const endpoint of tier.endpoints) {
      const identity = seen.has(endpoint.url) ? `${endpoint.url}#${tier.name}` : endpoint.url;
      if (seen.has(identity)) continue;
      seen.add(identity);
      rows.push({ identity, endpoint });
    }
  }
  return rows;
}
