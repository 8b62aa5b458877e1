import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChwblError } from './errors.ts';
import { frame } from './hash.ts';
import type { NodeInput, Placement } from './placement.ts';
import { createRendezvous } from './rendezvous.ts';
import { createRing } from './ring.ts';

const kinds: readonly (readonly [string, (nodes: readonly NodeInput[]) => Placement])[] = [
  ['rendezvous', (nodes) => createRendezvous({ nodes })],
  ['ring', (nodes) => createRing({ nodes, vnodes: 24 })],
];

const nodeList = fc.uniqueArray(
  fc.record({
    id: fc.string({ minLength: 1, maxLength: 8 }),
    weight: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 8 })),
  }),
  { minLength: 2, maxLength: 12, selector: (node) => node.id },
);
const keys = Array.from({ length: 300 }, (_, index) => `session-${index}`);

function homes(placement: Placement): (string | undefined)[] {
  return keys.map((key) => placement.pick(key));
}

describe.each(kinds)('%s', (_, create) => {
  test('bug-56: removing a node moves its keys alone, each to its next choice, and all come back with it', () => {
    fc.assert(
      fc.property(nodeList, fc.nat(), (nodes, choice) => {
        const whole = create(nodes);
        const gone = nodes[choice % nodes.length] ?? { id: '' };
        const less = whole.withoutNode(gone.id);
        for (const key of keys) {
          expect(less.order(key)).toEqual(whole.order(key).filter((id) => id !== gone.id));
        }
        expect(homes(less.withNode(gone))).toEqual(homes(whole));
      }),
      { numRuns: 25 },
    );
  });

  test('a changed weight moves keys to that node or from it, never between others', () => {
    fc.assert(
      fc.property(nodeList, fc.nat(), fc.integer({ min: 1, max: 8 }), (nodes, choice, weight) => {
        const before = create(nodes);
        const node = nodes[choice % nodes.length] ?? { id: '', weight: 1 };
        const after = before.withNode({ id: node.id, weight });
        const heavier = weight > (node.weight ?? 1);
        const moves = keys
          .map((key) => ({ from: before.pick(key), to: after.pick(key) }))
          .filter(({ from, to }) => from !== to);
        expect(moves.filter(({ from, to }) => (heavier ? to : from) !== node.id)).toEqual([]);
        const fresh = create([...nodes.filter(({ id }) => id !== node.id), { id: node.id, weight }]);
        expect(homes(after)).toEqual(homes(fresh));
      }),
      { numRuns: 40 },
    );
  });

  test('orders do not depend on how the set of nodes came about', () => {
    fc.assert(
      fc.property(nodeList, (nodes) => {
        const [first, ...rest] = nodes;
        const grown = rest.reduce((placement, node) => placement.withNode(node), create(first ? [first] : []));
        const detour = grown.withNode({ id: 'a passing node' }).withoutNode('a passing node');
        for (const key of keys.slice(0, 40)) {
          const expected = create(nodes).order(key);
          expect(create(nodes.toReversed()).order(key)).toEqual(expected);
          expect(detour.order(key)).toEqual(expected);
          expect(expected.toSorted()).toEqual(nodes.map((node) => node.id).toSorted());
        }
      }),
      { numRuns: 20 },
    );
  });

  test('bug-53: names that run into point numbers keep apart, and a removed node leaves nothing behind', () => {
    const nodes = ['m-1', 'm-11', 'm-111', 'm', '1', '11'].map((id) => ({ id }));
    const whole = create(nodes);
    const served = new Set(keys.map((key) => whole.pick(key)));
    expect(served.size).toBe(nodes.length);
    let left = whole;
    for (const { id } of nodes) {
      left = left.withoutNode(id);
      for (const key of keys) expect(left.order(key)).not.toContain(id);
    }
    expect(left.nodes).toEqual([]);
    expect(left.pick('any')).toBeUndefined();
    expect(left.order('any')).toEqual([]);
    expect(left.among('any', 3)).toEqual([]);
  });

  test('bug-55: one hot key overflows to its next choices in order and never breaks the bound', () => {
    const placement = create(['a', 'b', 'c', 'd', 'e'].map((id) => ({ id })));
    const loads = new Map<string, number>();
    for (let total = 0; total < 500; total++) {
      const id = placement.pick('hot', loads, { bound: 1.25 }) ?? '';
      const load = (loads.get(id) ?? 0) + 1;
      loads.set(id, load);
      expect(load).toBeLessThanOrEqual(Math.ceil((1.25 * (total + 1)) / 5));
    }
    const order = placement.order('hot');
    expect(order.map((id) => loads.get(id) ?? 0)).toEqual([125, 125, 125, 125, 0]);
  });

  test('the bound holds at every assignment, whatever comes and goes', () => {
    const event = fc.record({ key: fc.nat({ max: 15 }), leave: fc.boolean(), which: fc.nat() });
    const factor = fc.integer({ min: 100, max: 200 });
    fc.assert(
      fc.property(nodeList, factor, fc.array(event, { maxLength: 80 }), (nodes, hundredths, events) => {
        const placement = create(nodes);
        const totalWeight = BigInt(nodes.reduce((sum, node) => sum + node.weight, 0));
        const loads = new Map(nodes.map((node) => [node.id, 0]));
        const held: string[] = [];
        for (const { key, leave, which } of events) {
          const [ended] = leave ? held.splice(which % (held.length || 1), 1) : [];
          if (ended !== undefined) loads.set(ended, (loads.get(ended) ?? 0) - 1);
          const id = placement.pick(`key-${key}`, loads, { bound: hundredths / 100 });
          const weight = nodes.find((node) => node.id === id)?.weight ?? 0;
          const load = (loads.get(id ?? '') ?? 0) + 1;
          // load ≤ ceil(c·w/W·(m + 1)) is load - 1 < c·w/W·(m + 1), multiplied out to whole numbers.
          const left = BigInt(load - 1) * 100n * totalWeight;
          expect(left < BigInt(hundredths * weight) * BigInt(held.length + 1)).toBe(true);
          loads.set(id ?? '', load);
          held.push(id ?? '');
        }
      }),
      { numRuns: 100 },
    );
  });

  test('in tokens, the load after is at most the bound plus the one request', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 32_000 }), { minLength: 1, maxLength: 120 });
    fc.assert(
      fc.property(nodeList, sizes, (nodes, amounts) => {
        const placement = create(nodes);
        const totalWeight = nodes.reduce((sum, node) => sum + node.weight, 0);
        const loads = new Map<string, number>();
        let total = 0;
        amounts.forEach((amount, index) => {
          const id = placement.pick(`key-${index % 7}`, loads, { bound: 1.5, unit: 'tokens' });
          const weight = nodes.find((node) => node.id === id)?.weight ?? 0;
          const load = (loads.get(id ?? '') ?? 0) + amount;
          expect(load).toBeLessThanOrEqual(((1.5 * weight) / totalWeight) * total * (1 + 1e-9) + amount);
          loads.set(id ?? '', load);
          total += amount;
        });
      }),
      { numRuns: 60 },
    );
  });

  test('a full node is skipped and the next of the key’s order is taken', () => {
    const placement = create(['a', 'b', 'c'].map((id) => ({ id })));
    for (const key of keys.slice(0, 50)) {
      const [first = '', second = '', third = ''] = placement.order(key);
      expect(placement.pick(key, new Map([[first, 0]]))).toBe(first);
      expect(placement.pick(key, new Map([[first, 9]]))).toBe(second);
      expect(placement.pick(key, (id) => (id === third ? 0 : 9))).toBe(third);
    }
  });

  test('nodes that are not eligible count neither as choice nor in the bound', () => {
    const placement = create(['a', 'b', 'c'].map((id) => ({ id })));
    const key = 'user-100';
    const [first = '', second = '', third = ''] = placement.order(key);
    const loads = new Map([
      [first, 100],
      [second, 1],
      [third, 1],
    ]);
    const withoutFirst = { eligible: (id: string): boolean => id !== first };
    expect(placement.pick(key, loads, withoutFirst)).toBe(placement.withoutNode(first).pick(key, loads));
    expect(placement.pick(key, undefined, withoutFirst)).toBe(second);
    expect(placement.pick(key, loads, { eligible: () => false })).toBeUndefined();
  });

  test('a key’s subset is the head of its order and changes by one node at most', () => {
    fc.assert(
      fc.property(nodeList, fc.nat({ max: 14 }), fc.nat(), (nodes, k, choice) => {
        const whole = create(nodes);
        const gone = nodes[choice % nodes.length]?.id ?? '';
        for (const key of keys.slice(0, 30)) {
          const members = whole.among(key, k);
          expect(members).toEqual(whole.order(key).slice(0, k));
          const lost = members.filter((id) => !whole.withoutNode(gone).among(key, k).includes(id));
          expect(lost.every((id) => id === gone)).toBe(true);
        }
        expect(whole.among('any', nodes.length)).toHaveLength(nodes.length);
      }),
      { numRuns: 15 },
    );
  });

  test('worked example 11: one endpoint removed, only its sessions move, under the bound as well', () => {
    const nodes = ['gpu-0', 'gpu-1', 'gpu-2'].map((id) => ({ id }));
    const sessions = ['user-123-conv-456', 'user-100', 'user-200', 'user-300'];
    for (let user = 0; user < 2000; user++) sessions.push(`user-${1000 + user}`);
    const before = create(nodes);
    // In-flight loads with room under the bound: three nodes, or two, that hold the same.
    const loads = (): number => 12;
    const was = new Map(sessions.map((session) => [session, before.pick(session, loads)]));
    for (const gone of ['gpu-0', 'gpu-1', 'gpu-2']) {
      const after = before.withoutNode(gone);
      const moved = sessions.filter((session) => after.pick(session, loads) !== was.get(session));
      expect(moved.length).toBeGreaterThan(0);
      expect(moved).toEqual(sessions.filter((session) => was.get(session) === gone));
      const back = after.withNode({ id: gone });
      for (const session of sessions) expect(back.pick(session, loads)).toBe(was.get(session));
    }
  });

  test('bad nodes, bounds, loads and counts are refused with a code', () => {
    const placement = create([{ id: 'a' }, { id: 'b' }]);
    const cases: readonly (readonly [string, () => unknown])[] = [
      ['ERR_CHWBL_NODE', () => create([{ id: '' }])],
      ['ERR_CHWBL_NODE', () => create([{ id: 'a' }, { id: 'b' }, { id: 'a' }])],
      ['ERR_CHWBL_NODE', () => create([{ id: 'a', weight: 0 }])],
      ['ERR_CHWBL_NODE', () => create([{ id: 'a', weight: Number.NaN }])],
      ['ERR_CHWBL_NODE', () => placement.withoutNode('c')],
      ['ERR_CHWBL_NODE', () => placement.withNode({ id: 'c', weight: -1 })],
      ['ERR_CHWBL_BOUND', () => placement.pick('k', () => 0, { bound: 0.9 })],
      ['ERR_CHWBL_LOAD', () => placement.pick('k', () => -1)],
      ['ERR_CHWBL_LOAD', () => placement.pick('k', () => 0.5)],
      ['ERR_CHWBL_LOAD', () => placement.pick('k', () => Infinity, { unit: 'tokens' })],
      ['ERR_CHWBL_ARGUMENT', () => placement.among('k', -1)],
    ];
    for (const [code, call] of cases) {
      expect(call).toThrow(ChwblError);
      expect(call).toThrow(expect.objectContaining({ code }));
    }
  });
});

test('a key that falls on a point belongs to that point', () => {
  const ring = createRing({ nodes: ['a', 'b', 'c'].map((id) => ({ id })), vnodes: 50 });
  for (let number = 0; number < 50; number++) {
    for (const id of ['a', 'b', 'c']) expect(ring.pick(frame([id, String(number)]))).toBe(id);
  }
});

test('nodes are listed by id, with default weights', () => {
  const { nodes } = createRendezvous({ nodes: [{ id: 'b' }, { id: 'a', weight: 2 }, { id: 'B' }] });
  expect(nodes).toEqual([
    { id: 'B', weight: 1 },
    { id: 'a', weight: 2 },
    { id: 'b', weight: 1 },
  ]);
});

test('a ring refuses bad vnodes, seeds and more points than it can hold', () => {
  const nodes = [{ id: 'a' }];
  for (const vnodes of [0, 1.5, 70_000, Number.NaN]) expect(() => createRing({ nodes, vnodes })).toThrow(/vnodes is/);
  expect(() => createRing({ nodes, seed: -1 })).toThrow(/seed is -1/);
  expect(() => createRendezvous({ nodes, seed: 2 ** 32 })).toThrow(/seed is/);
  expect(() => createRing({ nodes: [{ id: 'a', weight: 1e9 }] })).toThrow(/2\^24/);
});

test('another seed is another placement of the same nodes', () => {
  const nodes = ['a', 'b', 'c', 'd'].map((id) => ({ id }));
  const moved = keys.filter(
    (key) => createRendezvous({ nodes, seed: 1 }).pick(key) !== createRendezvous({ nodes }).pick(key),
  );
  expect(moved.length / keys.length).toBeGreaterThan(0.6);
});
