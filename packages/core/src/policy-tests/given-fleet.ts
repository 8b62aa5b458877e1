import type { Value } from '@signalbox/plugin-api';
import { operandsOf } from '@signalbox/policy';
import type {
  Definitions,
  Destination,
  EndpointDefinition,
  EndpointFacts,
  Expression,
  GivenEndpoint,
  PolicyProgram,
  TargetRef,
  TierDefinition,
} from '@signalbox/policy';
import { expressionRoles } from '@signalbox/policy';
import { FLAG } from '../fleet/fleet-table.ts';
import type { EngineSample, Fleet } from '../fleet/fleet.ts';

/** The fleet that a test takes place on. */
export interface GivenFleet {
  readonly definitions: Definitions;
  /** Stated values by property and name of the endpoint. Some are filled by `apply`. */
  readonly columns: ReadonlyMap<string, ReadonlyMap<string, Value>>;
  /** Brings a fleet, in which the definitions are in force, into the state that the test gives. */
  apply(fleet: Fleet, nowMs: number): void;
}

/** Throughput, in tokens per second, of an endpoint of which a test gives the load and nothing tells it: a power of two, so that the load comes out exact. */
const PLAIN_THROUGHPUT = 1024;

/**
 * The policy's fleet with what a test gives. An endpoint that the policy defines keeps its place and all that is not given. Endpoints by
 * other names take the place of all that their tier has. A tier that rules send to and of which neither knows an endpoint has one, idle, of
 * which nothing is known.
 */
export function planFleet(program: PolicyProgram, endpoints: readonly GivenEndpoint[]): GivenFleet {
  const { definitions } = program;
  const defined = new Map(definitions.tiers.flatMap((tier) => tier.endpoints.map((one) => [one.name, one] as const)));
  const tierOf = (given: GivenEndpoint): string => given.tier ?? defined.get(given.name)?.tier ?? '';
  const isNew = (given: GivenEndpoint): boolean => defined.get(given.name)?.tier !== tierOf(given);
  const replaced = new Set(endpoints.filter(isNew).map(tierOf));
  const moved = new Set(endpoints.filter((given) => isNew(given) && defined.has(given.name)).map(({ name }) => name));
  const byName = new Map(endpoints.map((given) => [given.name, given]));

  const tiers: TierDefinition[] = definitions.tiers.map((tier) => ({
    ...tier,
    endpoints: replaced.has(tier.name)
      ? endpoints.filter((given) => tierOf(given) === tier.name).map((given) => describe(given, tier, defined))
      : tier.endpoints
          .filter(({ name }) => !moved.has(name))
          .map((one) => withGiven(one, byName.get(one.name)?.properties ?? {})),
  }));
  for (const name of replaced) {
    if (tiers.some((tier) => tier.name === name)) continue;
    const tier: TierDefinition = { name, endpoints: [], span: NOWHERE };
    const own = endpoints.filter((given) => tierOf(given) === name);
    tiers.push({ ...tier, endpoints: own.map((given) => describe(given, tier, defined)) });
  }
  const columns = columnsOf(endpoints);
  return {
    definitions: { ...definitions, tiers: withStandIns(program, tiers) },
    columns,
    apply: (fleet, nowMs) => {
      for (const given of endpoints) applyState(fleet, given, columns, nowMs);
    },
  };
}

const NOWHERE = { file: '', start: 0, end: 0 };

function describe(
  given: GivenEndpoint,
  tier: TierDefinition,
  defined: ReadonlyMap<string, EndpointDefinition>,
): EndpointDefinition {
  const { name: _name, endpoints: _endpoints, span: _span, ...facts } = tier;
  const known = defined.get(given.name);
  const url = given.properties['url'];
  const base: EndpointDefinition =
    known?.tier === tier.name
      ? known
      : {
          ...facts,
          name: given.name,
          url: typeof url === 'string' ? url : `http://endpoint.test/${encodeURIComponent(given.name)}`,
          tier: tier.name,
          weight: 1,
          span: given.span,
        };
  return withGiven(base, given.properties);
}

/** Properties of an endpoint that are facts of its definition, by their names there. */
const FACTS: { readonly [property: string]: keyof EndpointFacts | 'weight' } = {
  model: 'model',
  gpu: 'gpu',
  gpu_count: 'gpuCount',
  precision: 'precision',
  model_size: 'modelSize',
  max_requests: 'maxRequests',
  max_tokens_in_flight: 'maxTokensInFlight',
  max_batch: 'maxBatch',
  context_window: 'contextWindow',
  price: 'price',
  zone: 'zone',
  region: 'region',
  throughput: 'throughput',
  supports: 'supports',
  weight: 'weight',
};

function withGiven(endpoint: EndpointDefinition, properties: GivenEndpoint['properties']): EndpointDefinition {
  const stated = Object.entries(properties);
  const facts = stated.flatMap(([name, value]) => {
    const fact = Object.hasOwn(FACTS, name) ? FACTS[name] : undefined;
    return fact === undefined ? [] : [[fact, value] as const];
  });
  const labels = stated.flatMap(([name, value]) =>
    name.startsWith('labels.') ? [[name.slice('labels.'.length), value] as const] : [],
  );
  return {
    ...endpoint,
    ...Object.fromEntries(facts),
    ...(labels.length === 0 ? {} : { labels: { ...endpoint.labels, ...Object.fromEntries(labels) } }),
  };
}

type Columns = Map<string, Map<string, Value>>;

function columnsOf(endpoints: readonly GivenEndpoint[]): Columns {
  const columns: Columns = new Map();
  const columnOf = (key: string): Map<string, Value> => {
    const column = columns.get(key) ?? new Map<string, Value>();
    columns.set(key, column);
    return column;
  };
  for (const { name, properties } of endpoints) {
    for (const [key, value] of Object.entries(properties)) if (key !== 'model') columnOf(key).set(name, value);
    if ('running' in properties !== 'batch_size' in properties) {
      const running = properties['running'] ?? properties['batch_size'];
      if (running !== undefined) for (const key of ['running', 'batch_size']) columnOf(key).set(name, running);
    }
    // `load` is written out where a policy reads it, so it is given by what it is made of.
    if ('load' in properties) for (const key of ['decode_tokens', 'throughput']) columnOf(key);
  }
  return columns;
}

function applyState(fleet: Fleet, given: GivenEndpoint, columns: Columns, nowMs: number): void {
  const slot = fleet.slotOf(given.name);
  if (slot === undefined) return;
  const { properties } = given;
  const { table } = fleet;
  const number = (key: string): number | undefined => {
    const value = properties[key];
    return typeof value === 'number' ? value : undefined;
  };
  const counters = [
    ['inflight_requests', table.inflightRequests],
    ['inflight_tokens', table.inflightTokens],
    ['queued_tokens', table.queuedTokens],
    ['decode_tokens', table.decodeTokens],
  ] as const;
  for (const [key, column] of counters) column[slot] = Math.round(number(key) ?? 0);
  const load = number('load');
  if (load !== undefined) {
    const throughput = table.throughput[slot];
    const rate = throughput !== undefined && throughput > 0 ? throughput : PLAIN_THROUGHPUT;
    const decodeTokens = number('decode_tokens') ?? decodeTokensOfLoad(load, number('queued_tokens') ?? 0, rate);
    table.throughput[slot] = rate;
    table.decodeTokens[slot] = Math.round(decodeTokens);
    columns.get('decode_tokens')?.set(given.name, decodeTokens);
    columns.get('throughput')?.set(given.name, rate);
  }
  const sample = sampleOf(properties, number);
  if (Object.keys(sample).length > 0) fleet.feed(slot, sample, nowMs);
  const { state } = properties;
  if (state === 'loading' || state === 'asleep') fleet.setState(slot, state, nowMs);
  if (state === 'draining' || properties['draining'] === true) fleet.cordon(given.name, true);
  if (properties['healthy'] === false) eject(fleet, slot);
}

/** Takes an endpoint for failed until it is told otherwise. */
export function eject(fleet: Fleet, slot: number): void {
  const { table } = fleet;
  table.flags[slot] = (table.flags[slot] ?? 0) | FLAG.ejected;
  table.ejectedUntil[slot] = Number.POSITIVE_INFINITY;
  Atomics.add(table.control, 0, 1);
}

/** Decode tokens at which (0.1 · queued + decode) ÷ throughput is this load to the last bit, where there are such. */
function decodeTokensOfLoad(load: number, queuedTokens: number, throughput: number): number {
  let tokens = load * throughput - 0.1 * queuedTokens;
  for (let tries = 0; tries < 8; tries++) {
    const reached = (0.1 * queuedTokens + tokens) / throughput;
    if (reached === load) break;
    tokens += (reached < load ? 1 : -1) * Math.max(Number.MIN_VALUE, Math.abs(tokens) * Number.EPSILON);
  }
  return tokens;
}

function sampleOf(properties: GivenEndpoint['properties'], number: (key: string) => number | undefined): EngineSample {
  const queueDepth = number('queue_depth');
  const running = number('running') ?? number('batch_size');
  const kvCacheUsed = number('kv_cache_used');
  const loraSlotsFree = number('lora_slots_free');
  const { loras } = properties;
  return {
    ...(queueDepth === undefined ? {} : { queueDepth }),
    ...(running === undefined ? {} : { running }),
    ...(kvCacheUsed === undefined ? {} : { kvCacheUsed }),
    ...(loraSlotsFree === undefined ? {} : { loraSlotsFree }),
    ...(Array.isArray(loras) ? { loras: loras.map(String) } : {}),
  };
}

// --- endpoints that nobody names

/** A fleet that is found at run time has no endpoints in the policy, and tests of the rules are to run all the same. */
function withStandIns(program: PolicyProgram, tiers: readonly TierDefinition[]): readonly TierDefinition[] {
  const { definitions } = program;
  const isFound = (definitions.discoveries ?? []).length > 0;
  const isDefined = new Set(definitions.tiers.map(({ name }) => name));
  const known = new Map(tiers.map((tier) => [tier.name, tier]));
  const names = new Set(tiers.flatMap(({ endpoints }) => endpoints.map(({ name }) => name)));
  for (const target of targetsOf(program)) {
    if (target.kind === 'any') continue;
    const tierName = target.kind === 'tier' ? target.name : '';
    const tier = known.get(tierName) ?? { name: tierName, endpoints: [], span: NOWHERE };
    if (target.kind === 'tier' ? tier.endpoints.length > 0 : names.has(target.name)) continue;
    if (isDefined.has(tierName) && !isFound) continue;
    const name = target.kind === 'tier' ? `${tierName}/1` : target.name;
    names.add(name);
    const { endpoints, name: _name, span: _span, ...facts } = tier;
    const standIn: EndpointDefinition = {
      ...facts,
      name,
      url: `http://endpoint.test/${encodeURIComponent(name)}`,
      tier: tierName,
      weight: 1,
      span: NOWHERE,
    };
    known.set(tierName, { ...tier, endpoints: [...endpoints, standIn] });
  }
  return [...known.values()];
}

/** What a program's rules send to or range over. */
function targetsOf(program: PolicyProgram): readonly TargetRef[] {
  const targets: TargetRef[] = [];
  const visit = (expression: Expression): void => {
    if (expression.kind === 'aggregate' && expression.target !== undefined) targets.push(expression.target);
    operandsOf(expression).forEach(visit);
  };
  for (const { expression } of expressionRoles(program)) visit(expression);
  for (const { steps } of program.routes)
    for (const step of steps) if (step.kind === 'destination') targets.push(...targetsOfDestination(step));
  return targets;
}

function targetsOfDestination({ targets, with: modifiers }: Destination): readonly TargetRef[] {
  return [...targets.map(({ target }) => target), ...(modifiers.fallbacks ?? []).map(({ target }) => target)];
}
