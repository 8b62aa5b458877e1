import { describe, expect, test } from 'vitest';
import { md5Modulo } from './md5.ts';
import type { NodeInput, Placement } from './placement.ts';
import { createRendezvous } from './rendezvous.ts';
import { createRing } from './ring.ts';

const KEYS = Array.from({ length: 20_000 }, (_, index) => `user-${index}`);

function sharesOf(placement: Placement, placeInOrder = 0): Map<string, number> {
  const counts = new Map(placement.nodes.map((node) => [node.id, 0]));
  for (const key of KEYS) {
    const id = placement.order(key)[placeInOrder] ?? '';
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** Pearson's statistic of the counts against shares proportional to weight. */
function chiSquare(placement: Placement, counts: ReadonlyMap<string, number>): number {
  const totalWeight = placement.nodes.reduce((sum, node) => sum + node.weight, 0);
  return placement.nodes.reduce((sum, { id, weight }) => {
    const expected = (KEYS.length * weight) / totalWeight;
    return sum + ((counts.get(id) ?? 0) - expected) ** 2 / expected;
  }, 0);
}

/** The largest share over its fair value. */
function peak(placement: Placement): number {
  return Math.max(...sharesOf(placement).values()) / (KEYS.length / placement.nodes.length);
}

function equalNodes(count: number): NodeInput[] {
  return Array.from({ length: count }, (_, index) => ({ id: `http://10.0.0.${index}:8000` }));
}

describe('rendezvous shares', () => {
  // 99.9 % points of the chi-square distribution for 9 and 4 degrees of freedom.
  const CHI_SQUARE_9 = 27.88;
  const CHI_SQUARE_4 = 18.47;

  test('equal nodes get equal shares of the keys, as first choice and as second', () => {
    const placement = createRendezvous({ nodes: equalNodes(10) });
    expect(chiSquare(placement, sharesOf(placement, 0))).toBeLessThan(CHI_SQUARE_9);
    expect(chiSquare(placement, sharesOf(placement, 1))).toBeLessThan(CHI_SQUARE_9);
  });

  test('the keys of one node spill evenly over the others', () => {
    const placement = createRendezvous({ nodes: equalNodes(11) });
    const [first] = placement.nodes;
    const seconds = new Map<string, number>();
    let total = 0;
    for (const key of KEYS) {
      const [home, next = ''] = placement.order(key);
      if (home !== first?.id) continue;
      seconds.set(next, (seconds.get(next) ?? 0) + 1);
      total++;
    }
    const expected = total / 10;
    const statistic = [...seconds.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    expect(seconds.size).toBe(10);
    expect(statistic).toBeLessThan(CHI_SQUARE_9);
  });

  test('weights 1, 2, 3, 4 and 10 get shares in proportion', () => {
    const nodes = [1, 2, 3, 4, 10].map((weight) => ({ id: `w${weight}`, weight }));
    const placement = createRendezvous({ nodes });
    expect(chiSquare(placement, sharesOf(placement))).toBeLessThan(CHI_SQUARE_4);
  });

  test('a weight that grows by a tenth moves about the keys that it must', () => {
    const nodes = equalNodes(10);
    const before = createRendezvous({ nodes });
    const after = before.withNode({ id: nodes[0]?.id ?? '', weight: 1.1 });
    const moved = KEYS.filter((key) => before.pick(key) !== after.pick(key)).length;
    const expected = KEYS.length * (1.1 / 10.1 - 1 / 10);
    expect(Math.abs(moved - expected)).toBeLessThan(4 * Math.sqrt(expected));
  });
});

test('rendezvous balances better than a ring, and a ring better with more points', () => {
  const nodes = equalNodes(10);
  const rendezvous = peak(createRendezvous({ nodes }));
  const few = peak(createRing({ nodes, vnodes: 10 }));
  const many = peak(createRing({ nodes, vnodes: 160 }));
  process.stdout.write(
    `largest share over fair share, 10 nodes: rendezvous ${rendezvous.toFixed(3)}, ` +
      `ring of 160 points ${many.toFixed(3)}, ring of 10 points ${few.toFixed(3)}\n`,
  );
  expect(rendezvous).toBeLessThan(many);
  expect(many).toBeLessThan(few);
  expect(rendezvous).toBeLessThan(1.08);
  expect(many).toBeLessThan(1.35);
});

test('ring shares follow weights within the spread that its points leave', () => {
  const nodes = [1, 2, 3, 4].map((weight) => ({ id: `w${weight}`, weight }));
  const counts = sharesOf(createRing({ nodes, vnodes: 400 }));
  for (const { id, weight } of nodes) {
    const ratio = (counts.get(id) ?? 0) / ((KEYS.length * weight) / 10);
    expect(Math.abs(ratio - 1)).toBeLessThan(4 / Math.sqrt(400 * weight));
  }
});

test('a removal moves about a tenth of the keys of ten nodes, where md5 modulo moves about nine tenths', () => {
  const nodes = equalNodes(10);
  const gone = nodes[9]?.id ?? '';
  const share = (placement: Placement): number => {
    const after = placement.withoutNode(gone);
    return KEYS.filter((key) => placement.pick(key) !== after.pick(key)).length / KEYS.length;
  };
  expect(share(createRendezvous({ nodes }))).toBeLessThan(0.115);
  expect(share(createRing({ nodes }))).toBeLessThan(0.14);
  const movedByModulo = KEYS.filter((key) => md5Modulo(key, 10) !== md5Modulo(key, 9)).length / KEYS.length;
  expect(movedByModulo).toBeGreaterThan(0.88);
});
