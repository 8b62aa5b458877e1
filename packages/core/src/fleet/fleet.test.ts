import { expect, test } from 'vitest';
import { createLeaseLedger } from '../lease.ts';
import { definitions, tier, toTier } from '../program.fixture.ts';
import { createSeededRandom } from '../seeded-random.ts';
import { Fleet } from './fleet.ts';
import type { EndpointStatus } from './fleet.ts';
import { FLAG } from './fleet-table.ts';

const fleetOf = (capacity = 16): Fleet =>
  new Fleet({
    capacity,
    allocate: (bytes) => new ArrayBuffer(bytes),
    random: createSeededRandom(1),
    resolveSecret: (ref) => ('env' in ref && ref.env === 'KEY' ? 'k-1' : undefined),
  });

test('an endpoint keeps slot, counters, health and target object over a reload that renames and re-tiers it', () => {
  const fleet = fleetOf();
  const ledger = createLeaseLedger(fleet);
  fleet.apply(definitions([tier('A', 2)]));
  const slot = fleet.slotOf('A/2') ?? -1;
  ledger.reserve(slot, 10, 5);
  const target = fleet.endpointTargets[slot];
  const [, second] = tier('A', 2).endpoints;
  if (second === undefined) throw new Error('no endpoint');
  fleet.apply(
    definitions([{ ...tier('B', 0), endpoints: [{ ...second, name: 'b', tier: 'B', headers: { 'X-Y': 'z' } }] }]),
  );
  expect(fleet.slotOf('b')).toBe(slot);
  expect(fleet.table.inflightTokens[slot]).toBe(15);
  expect(fleet.endpointTargets[slot]).toBe(target);
  expect(target?.headers).toEqual([{ name: 'x-y', value: 'z' }]);
  expect(fleet.size).toBe(1);
});

test('a removed endpoint drains, and its slot is freed with a new generation once its last lease ends', () => {
  const fleet = fleetOf();
  const ledger = createLeaseLedger(fleet);
  fleet.apply(definitions([tier('A', 2)]));
  const slot = fleet.slotOf('A/1') ?? -1;
  const generation = fleet.table.generation[slot] ?? 0;
  const lease = ledger.reserve(slot, 1, 1);
  fleet.apply(definitions([]));
  expect(fleet.status(0).map((row) => [row.name, row.state, row.defined])).toEqual([['A/1', 'draining', false]]);
  if (lease !== undefined) ledger.release(lease);
  expect(fleet.status(0)).toEqual([]);
  expect(fleet.table.generation[slot]).toBe(generation + 1);
  fleet.apply(definitions([tier('C', 2)]));
  expect([fleet.slotOf('C/1'), fleet.slotOf('C/2')].toSorted()).toEqual([0, 1]);
});

test('adapters of an endpoint that has left are resident nowhere', () => {
  const fleet = fleetOf();
  const ledger = createLeaseLedger(fleet);
  fleet.apply(definitions([tier('A', 1)]));
  const slot = fleet.slotOf('A/1') ?? -1;
  fleet.feed(slot, { loras: ['mine'] }, 0);
  const lease = ledger.reserve(slot, 1, 1);
  fleet.apply(definitions([]));
  expect([...fleet.adapters()]).toEqual(['mine']);
  if (lease !== undefined) ledger.release(lease);
  expect([...fleet.adapters()]).toEqual([]);
});

test('definitions that do not fit are refused and change nothing', () => {
  const fleet = fleetOf(2);
  fleet.apply(definitions([tier('A', 2)]));
  expect(() => fleet.apply(definitions([tier('A', 2), tier('B', 1)]))).toThrow(/2 are in use/);
  expect(fleet.slotOf('A/1')).toBe(0);
  expect(() => fleet.check(definitions([tier('A', 1, { key: { env: 'NO' } })]))).toThrow(/environment variable NO/);
});

test('one URL in two tiers has a row in each', () => {
  const fleet = fleetOf();
  fleet.apply(definitions([tier('A', 1, {}, 'same'), tier('B', 1, {}, 'same')]));
  expect(fleet.status(0).map((row) => row.name)).toEqual(['A/1', 'B/1']);
});

test('an address is split into origin and base path, and a key becomes a header', () => {
  const fleet = fleetOf();
  fleet.apply(
    definitions([tier('A', 1, { url: 'http://gpu.test:8000/team/v1', key: { env: 'KEY' }, engine: 'vllm' })]),
  );
  expect(fleet.endpointTargets[0]).toEqual({
    origin: 'http://gpu.test:8000',
    basePath: '/team',
    headers: [{ name: 'authorization', value: 'Bearer k-1' }],
    ca: undefined,
    engine: 'vllm',
  });
});

test('throughput is what the operator states, else the profile, else the mean of the tier', () => {
  const fleet = fleetOf();
  const [first, second, third] = tier('A', 3, { modelSize: 8e9 }).endpoints;
  if (first === undefined || second === undefined || third === undefined) throw new Error('no endpoints');
  fleet.apply(
    definitions([
      { ...tier('A', 0), endpoints: [{ ...first, throughput: 300 }, { ...second, throughput: 500 }, third] },
      tier('B', 1, { gpu: 'H100', modelSize: 8e9 }),
    ]),
  );
  expect([...fleet.table.throughput.subarray(0, 3)]).toEqual([300, 500, 400]);
  expect(fleet.table.throughput[3]).toBeGreaterThan(100);
  expect(fleet.table.gpuMemory[3]).toBe(80 * 2 ** 30);
});

test('a pool leaves out what is cordoned, loading or asleep, in declared order, and cordons survive a reload', () => {
  const fleet = fleetOf();
  fleet.apply(definitions([tier('A', 4)]));
  const pool = fleet.pool([toTier('A')]);
  expect(fleet.cordon('A/1', true)).toBe(true);
  expect(fleet.cordon('nobody', true)).toBe(false);
  fleet.setState(1, 'loading', 0);
  pool.refresh();
  expect([...pool.eligible]).toEqual([2, 3]);
  fleet.apply(definitions([tier('A', 4)]));
  fleet.setState(1, 'ready', 0);
  pool.refresh();
  expect([...pool.eligible]).toEqual([1, 2, 3]);
  fleet.cordon('A/1', false);
  pool.refresh();
  expect([...pool.eligible]).toEqual([0, 1, 2, 3]);
});

test('a cordon is the address’s: it outlasts a new name and a time without the endpoint', () => {
  const fleet = fleetOf();
  const [first] = tier('A', 1).endpoints;
  if (first === undefined) throw new Error('no endpoint');
  const cordons = (): unknown[] => fleet.status(0).map(({ name, state, cordoned }) => [name, state, cordoned]);
  fleet.apply(definitions([tier('A', 1)]));
  fleet.cordon('A/1', true);
  fleet.apply(definitions([{ ...tier('A', 0), endpoints: [{ ...first, name: 'renamed' }] }]));
  expect(cordons()).toEqual([['renamed', 'draining', true]]);
  expect(fleet.cordon('A/1', false)).toBe(false);
  fleet.apply(definitions([]));
  expect(cordons()).toEqual([]);
  fleet.apply(definitions([tier('A', 1)]));
  expect(cordons()).toEqual([['A/1', 'draining', true]]);
  fleet.cordon('A/1', false);
  expect(cordons()).toEqual([['A/1', 'ready', false]]);
});

test('the status tells what is left of an ejection, and what share a slow start gives', () => {
  const fleet = fleetOf();
  fleet.apply(definitions([tier('A', 2)]));
  const slot = fleet.slotOf('A/1') ?? -1;
  const row = (nowMs: number): unknown => {
    fleet.health.expire(nowMs);
    const [{ healthy, halfOpen, ejectedForMs, slowStartShare }] = fleet.status(nowMs) as [EndpointStatus];
    return { healthy, halfOpen, ejectedForMs, slowStartShare };
  };
  const calm = { healthy: true, halfOpen: false, ejectedForMs: Number.NaN, slowStartShare: 1 };
  expect(row(0)).toEqual(calm);
  for (let i = 0; i < 5; i++) fleet.health.failed(slot, 0, 0);
  const until = fleet.table.ejectedUntil[slot] ?? 0;
  expect(until).toBeGreaterThanOrEqual(10_000);
  expect(row(4000)).toEqual({ ...calm, healthy: false, ejectedForMs: until - 4000 });
  expect(row(until)).toEqual({ ...calm, halfOpen: true });
  fleet.health.succeeded(slot, until, 1);
  expect(row(until)).toEqual({ ...calm, slowStartShare: 0.1 });
  expect(row(until + 15_000)).toEqual({ ...calm, slowStartShare: 0.5 });
  expect(row(until + 30_000)).toEqual(calm);
});

test('under half of a tier healthy, health is ignored; a tier with none is left out beside one that has some', () => {
  const fleet = fleetOf();
  fleet.apply(definitions([tier('A', 4), tier('B', 2)]));
  const eject = (...slots: number[]): void => {
    for (const slot of slots) fleet.table.flags[slot] = (fleet.table.flags[slot] ?? 0) | FLAG.ejected;
    Atomics.add(fleet.table.control, 0, 1);
  };
  const a = fleet.pool([toTier('A')]);
  const both = fleet.pool([toTier('A'), toTier('B')]);
  eject(0, 1);
  a.refresh();
  expect([[...a.eligible], a.panic, a.noneHealthy]).toEqual([[2, 3], false, false]);
  eject(2);
  a.refresh();
  expect([[...a.eligible], [...a.healthy], a.panic]).toEqual([[0, 1, 2, 3], [3], true]);
  eject(3);
  a.refresh();
  both.refresh();
  expect([a.noneHealthy, both.noneHealthy, [...both.eligible]]).toEqual([true, false, [4, 5]]);
});

test('engine reports go stale after three scrapes', () => {
  const fleet = fleetOf();
  fleet.apply(definitions([tier('A', 1)]));
  fleet.feed(0, { queueDepth: 3, running: Number.POSITIVE_INFINITY }, 1000);
  expect([fleet.table.queueDepth[0], fleet.table.running[0], fleet.engineFed]).toEqual([3, Number.NaN, 1]);
  fleet.expireSamples(2500);
  expect(fleet.engineFed).toBe(1);
  fleet.expireSamples(2600);
  expect([fleet.table.queueDepth[0], fleet.engineFed]).toEqual([Number.NaN, 0]);
});
