import { createSeededRandom } from './seeded-random.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fleet } from './fleet/fleet.ts';
import { chargeable, createLeaseLedger } from './lease.ts';
import type { Lease } from './lease.ts';
import { definitions, tier } from './program.fixture.ts';

function fleetOf(count: number, shared = false): Fleet {
  const fleet = new Fleet({
    capacity: 16,
    allocate: (bytes) => (shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes)),
    random: createSeededRandom(1),
  });
  fleet.apply(definitions([tier('A', count)]));
  return fleet;
}

const COUNTERS = ['inflightRequests', 'inflightTokens', 'queuedTokens', 'decodeTokens', 'waitingRequests'] as const;

test('a lease gives back exactly what it took, once, and its prompt leaves the queue at commit', () => {
  const fleet = fleetOf(1);
  const ledger = createLeaseLedger(fleet);
  const lease = ledger.reserve(0, 100, 30);
  if (lease === undefined) throw new Error('no lease');
  const row = (): number[] => COUNTERS.map((name) => fleet.table[name][0] ?? -1);
  expect(row()).toEqual([1, 130, 100, 30, 1]);
  ledger.commit(lease);
  ledger.commit(lease);
  expect(row()).toEqual([1, 130, 0, 30, 0]);
  ledger.release(lease);
  ledger.release(lease);
  ledger.commit(lease);
  expect(row()).toEqual([0, 0, 0, 0, 0]);
  expect([ledger.open, ledger.started, ledger.faults]).toEqual([0, 1, 0]);
});

test.each([false, true])('a lease keeps what the endpoint held before it (shared memory: %s)', (shared) => {
  const ledger = createLeaseLedger(fleetOf(1, shared));
  const first = ledger.reserve(0, 100, 30);
  if (first === undefined) throw new Error('no lease');
  ledger.commit(first);
  ledger.reserve(0, 7, 5);
  expect(first).toMatchObject({ requestsBefore: 0, tokensBefore: 0, queuedBefore: 0, decodeBefore: 0 });
  expect(ledger.reserve(0, 1, 1)).toMatchObject({
    requestsBefore: 2,
    tokensBefore: 142,
    queuedBefore: 7,
    decodeBefore: 35,
  });
});

test('limits of requests and of tokens hold, and an idle endpoint takes a request of any size', () => {
  const fleet = fleetOf(0);
  fleet.apply(definitions([tier('A', 1, { maxRequests: 2 }), tier('B', 1, { maxTokensInFlight: 100 })]));
  const ledger = createLeaseLedger(fleet);
  expect(
    [ledger.reserve(0, 1, 1), ledger.reserve(0, 1, 1), ledger.reserve(0, 1, 1)].map((lease) => lease !== undefined),
  ).toEqual([true, true, false]);
  const huge = ledger.reserve(1, 5000, 5000);
  expect(huge).toBeDefined();
  expect(ledger.reserve(1, 1, 1)).toBeUndefined();
  if (huge !== undefined) ledger.release(huge);
  expect(
    [ledger.reserve(1, 60, 0), ledger.reserve(1, 40, 0), ledger.reserve(1, 1, 0)].map((lease) => lease !== undefined),
  ).toEqual([true, true, false]);
});

test('amounts that are charged are whole, finite and bounded', () => {
  expect([chargeable(Number.NaN), chargeable(-3), chargeable(2.2), chargeable(Infinity)]).toEqual([0, 0, 3, 2 ** 22]);
});

type Step =
  | { readonly do: 'reserve'; readonly slot: number; readonly prompt: number; readonly output: number }
  | { readonly do: 'commit' | 'release'; readonly which: number }
  | { readonly do: 'turn'; readonly endpoint: number; readonly present: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('reserve' as const), slot: fc.nat(3), prompt: fc.nat(5000), output: fc.nat(2000) }),
  fc.record({ do: fc.constantFrom('commit' as const, 'release' as const), which: fc.nat(40) }),
  fc.record({ do: fc.constant('turn' as const), endpoint: fc.nat(3), present: fc.boolean() }),
);

test('however leases and endpoints come and go, every counter is the sum of the open leases, and 0 at rest', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.boolean(), (steps, shared) => {
      const fleet = fleetOf(4, shared);
      const ledger = createLeaseLedger(fleet);
      const all = tier('A', 4).endpoints;
      const present = new Set([0, 1, 2, 3]);
      const apply = (): void =>
        fleet.apply(definitions([{ ...tier('A', 0), endpoints: all.filter((_, i) => present.has(i)) }]));
      const leases: Lease[] = [];
      const check = (): void => {
        for (let slot = 0; slot < fleet.slotLimit; slot++) {
          const open = leases.filter((lease) => !lease.released && lease.slot === slot);
          const sum = (of: (lease: Lease) => number): number => open.reduce((total, lease) => total + of(lease), 0);
          expect(COUNTERS.map((name) => fleet.table[name][slot])).toEqual([
            open.length,
            sum((lease) => lease.promptTokens + lease.outputTokens),
            sum((lease) => (lease.queued ? lease.promptTokens : 0)),
            sum((lease) => lease.outputTokens),
            sum((lease) => (lease.queued ? 1 : 0)),
          ]);
        }
      };
      for (const one of steps) {
        if (one.do === 'reserve') {
          const name = all[one.slot]?.name ?? '';
          const slot = fleet.slotOf(name);
          const lease = slot === undefined ? undefined : ledger.reserve(slot, one.prompt, one.output);
          if (lease !== undefined) leases.push(lease);
        } else if (one.do === 'turn') {
          if (one.present) present.add(one.endpoint);
          else present.delete(one.endpoint);
          apply();
        } else {
          const lease = leases[one.which % Math.max(1, leases.length)];
          if (lease !== undefined) ledger[one.do](lease);
        }
        check();
      }
      for (const lease of leases) ledger.release(lease);
      check();
      expect([ledger.open, ledger.faults]).toEqual([0, 0]);
      // What left and held nothing is gone from the table.
      expect(fleet.size).toBe(present.size);
    }),
    { numRuns: 200 },
  );
});
