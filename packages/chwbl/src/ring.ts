// perf: points live in two parallel arrays, since a ring of 1,000 nodes has some 160,000 of them.
import { boundLimit, withinLimit } from './bound.ts';
import { ChwblError } from './errors.ts';
import { hashParts, hashString } from './hash.ts';
import type { Loads, NodeInput, PickOptions, Placement, PlacementNode } from './placement.ts';
import { checkCount, checkSeed, readLoad, removeNode, replaceNode, toBound, toNodes } from './placement.ts';

/** What {@link createRing} takes. */
export interface RingOptions {
  readonly nodes: readonly NodeInput[];
  /** Points on the ring of a node of weight 1, integer in [1, 65536], 160 unless given. Weight w has round(vnodes · w), at least 1. */
  readonly vnodes?: number;
  /** Integer in [0, 2^32), 0 unless given. */
  readonly seed?: number;
}

/**
 * A {@link Placement} by a ring of virtual nodes, in the manner of Ketama: a key belongs to the node of the first point at or
 * after its own place, and its order is the sequence of distinct nodes met from there clockwise.
 *
 * A node's points depend on its own id and weight alone, so a change of one node moves no key between two others. The point
 * numbers i are framed with the id (`3:m-11:1` is point 1 of `m-1`), so that no two nodes share points by their names.
 *
 * A look-up without loads is O(log P) for P points; `pick` with loads adds O(n) for their sum, and `order` and `walk` the
 * steps of the walk. A change of nodes is O(P).
 *
 * @throws ChwblError `ERR_CHWBL_NODE` for a bad or repeated node, `ERR_CHWBL_ARGUMENT` for bad vnodes or seed, or when the
 *   weights ask for more than 2^24 points
 */
export function createRing(options: RingOptions): Placement {
  const { vnodes = 160, seed = 0 } = options;
  if (!Number.isInteger(vnodes) || vnodes < 1 || vnodes > 65536) {
    throw new ChwblError('ERR_CHWBL_ARGUMENT', `vnodes is ${vnodes}; expected an integer from 1 to 65536`);
  }
  checkSeed(seed);
  const nodes = toNodes(options.nodes);
  return placementOn({ nodes, vnodes, seed, points: layPoints(nodes, vnodes, seed) });
}

/** Places on the ring, ascending, each with the id of its node. */
interface RingPoints {
  readonly places: Float64Array;
  readonly owners: readonly string[];
}

interface Ring {
  readonly nodes: readonly PlacementNode[];
  readonly vnodes: number;
  readonly seed: number;
  readonly points: RingPoints;
}

function placementOn(ring: Ring): Placement {
  const { nodes, vnodes, seed, points } = ring;

  function startOf(key: string): number {
    return firstAtOrAfter(points.places, placeOf(hashString(key, seed)));
  }

  function* walk(key: string): Generator<string, void, undefined> {
    const { places, owners } = points;
    const met = new Set<string>();
    const start = startOf(key);
    for (let step = 0; step < places.length && met.size < nodes.length; step++) {
      const owner = owners[(start + step) % places.length]!;
      if (met.has(owner)) continue;
      met.add(owner);
      yield owner;
    }
  }

  return Object.freeze({
    nodes,
    walk,
    order: (key: string): string[] => [...walk(key)],
    among(key: string, k: number): string[] {
      const count = checkCount(k);
      const members: string[] = [];
      for (const id of walk(key)) {
        if (members.length === count) break;
        members.push(id);
      }
      return members;
    },
    pick(key: string, loads?: Loads, pickOptions?: PickOptions): string | undefined {
      const bound = toBound(pickOptions);
      if (loads === undefined && pickOptions?.eligible === undefined) {
        return nodes.length === 0 ? undefined : points.owners[startOf(key)];
      }
      const eligible = nodes.filter((node) => pickOptions?.eligible?.(node.id) ?? true);
      const limits = new Map<string, number>();
      const heldBy = new Map<string, number>();
      if (loads !== undefined) {
        for (const { id } of eligible) heldBy.set(id, readLoad(loads, id, bound.unit));
      }
      const totalWeight = eligible.reduce((sum, node) => sum + node.weight, 0);
      const totalLoad = eligible.reduce((sum, node) => sum + (heldBy.get(node.id) ?? 0), 0);
      for (const { id, weight } of eligible) {
        limits.set(id, loads === undefined ? Infinity : boundLimit(bound, { weight, totalWeight, totalLoad }));
      }
      for (const id of walk(key)) {
        const limit = limits.get(id);
        if (limit !== undefined && withinLimit(bound, heldBy.get(id) ?? 0, limit)) return id;
      }
      return undefined;
    },
    withNode(input: NodeInput): Placement {
      const changed = toNodes(replaceNode(nodes, input));
      const own = changed.filter((node) => node.id === input.id);
      const added = layPoints(own, vnodes, seed);
      return placementOn({ nodes: changed, vnodes, seed, points: merge(pointsWithout(points, input.id), added) });
    },
    withoutNode: (id: string): Placement =>
      placementOn({ nodes: toNodes(removeNode(nodes, id)), vnodes, seed, points: pointsWithout(points, id) }),
  });
}

function layPoints(nodes: readonly PlacementNode[], vnodes: number, seed: number): RingPoints {
  const counts = nodes.map((node) => Math.max(1, Math.round(vnodes * node.weight)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total > 2 ** 24) {
    throw new ChwblError(
      'ERR_CHWBL_ARGUMENT',
      `ring: vnodes ${vnodes} and the weights ask for ${total} points; expected at most 2^24 (scale the weights down)`,
    );
  }
  const placed: { readonly place: number; readonly owner: string }[] = [];
  nodes.forEach(({ id }, index) => {
    for (let number = 0; number < counts[index]!; number++) {
      placed.push({ place: placeOf(hashParts([id, String(number)], seed)), owner: id });
    }
  });
  placed.sort((one, other) => one.place - other.place || (one.owner < other.owner ? -1 : 1));
  return { places: Float64Array.from(placed, (point) => point.place), owners: placed.map((point) => point.owner) };
}

function pointsWithout({ places, owners }: RingPoints, id: string): RingPoints {
  return {
    places: places.filter((_, index) => owners[index] !== id),
    owners: owners.filter((owner) => owner !== id),
  };
}

function merge(one: RingPoints, other: RingPoints): RingPoints {
  const length = one.places.length + other.places.length;
  const places = new Float64Array(length);
  const owners: string[] = [];
  let left = 0;
  let right = 0;
  for (let at = 0; at < length; at++) {
    const takeLeft =
      right === other.places.length ||
      (left < one.places.length &&
        (one.places[left]! - other.places[right]! || (one.owners[left]! < other.owners[right]! ? -1 : 1)) < 0);
    const source = takeLeft ? one : other;
    const index = takeLeft ? left++ : right++;
    places[at] = source.places[index]!;
    owners.push(source.owners[index]!);
  }
  return { places, owners };
}

/** A place on the ring: the top 53 bits of a hash, an exact double. */
function placeOf({ hi, lo }: { readonly hi: number; readonly lo: number }): number {
  return hi * 2 ** 21 + (lo >>> 11);
}

/** The index of the first place at or after `place`: index 0 when the ring closes before the next one. */
function firstAtOrAfter(places: Float64Array, place: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (places[middle]! < place) low = middle + 1;
    else high = middle;
  }
  return low === places.length ? 0 : low;
}
