import { ChwblError } from './errors.ts';
import type { CandidateColumns } from './first-within-bound.ts';
import { firstInOrder, firstWithinBound } from './first-within-bound.ts';
import { hashString } from './hash.ts';
import type { Loads, NodeInput, PickOptions, Placement, PlacementNode } from './placement.ts';
import { checkCount, checkSeed, readLoad, removeNode, replaceNode, toBound, toNodes } from './placement.ts';
import { createRanker } from './ranker.ts';

/** What {@link createRendezvous} takes. */
export interface RendezvousOptions {
  readonly nodes: readonly NodeInput[];
  /** Integer in [0, 2^32), 0 unless given. Gateways that must agree share it. */
  readonly seed?: number;
}

/**
 * A {@link Placement} by weighted rendezvous hashing: every key ranks every node, and each node is first for a share of the
 * keys proportional to its weight. Removing a node moves its own keys alone, each to its next choice.
 *
 * `pick` is O(n), `order` O(n log n), `walk` O(n) and O(log n) a step.
 *
 * @throws ChwblError `ERR_CHWBL_NODE` for a bad or repeated node, `ERR_CHWBL_ARGUMENT` for a bad seed
 */
export function createRendezvous(options: RendezvousOptions): Placement {
  const nodes = toNodes(options.nodes);
  const seed = checkSeed(options.seed ?? 0);
  const columns = toColumns(nodes, seed);

  function idOf(slot: number): string {
    const node = nodes[slot];
    if (node === undefined) throw new ChwblError('ERR_CHWBL_ARGUMENT', `slot ${slot} is not in the placement`);
    return node.id;
  }

  function* walk(key: string): Generator<string, void, undefined> {
    const ranker = createRanker(nodes.length);
    ranker.begin(columns, hashString(key, seed));
    for (let slot = ranker.next(); slot >= 0; slot = ranker.next()) yield idOf(slot);
  }

  return Object.freeze({
    nodes,
    walk,
    order: (key: string): string[] => [...walk(key)],
    among(key: string, k: number): string[] {
      const best = new Int32Array(Math.min(checkCount(k), nodes.length));
      createRanker(nodes.length).top(columns, hashString(key, seed), best.length, best);
      return Array.from(best, idOf);
    },
    pick(key: string, loads?: Loads, pickOptions?: PickOptions): string | undefined {
      const bound = toBound(pickOptions);
      const candidates = pickOptions?.eligible ? keepEligible(columns, nodes, pickOptions.eligible) : columns;
      if (candidates.length === 0) return undefined;
      const hash = hashString(key, seed);
      if (loads === undefined) return idOf(firstInOrder(candidates, hash));
      const column = new Float64Array(nodes.length);
      for (const slot of candidates.slots) column[slot] = readLoad(loads, idOf(slot), bound.unit);
      return idOf(firstWithinBound(candidates, hash, column, bound));
    },
    withNode: (node: NodeInput): Placement => createRendezvous({ nodes: replaceNode(nodes, node), seed }),
    withoutNode: (id: string): Placement => createRendezvous({ nodes: removeNode(nodes, id), seed }),
  });
}

function toColumns(nodes: readonly PlacementNode[], seed: number): CandidateColumns {
  const hashes = nodes.map((node) => hashString(node.id, seed));
  return {
    hashHi: Uint32Array.from(hashes, (hash) => hash.hi),
    hashLo: Uint32Array.from(hashes, (hash) => hash.lo),
    weights: Float64Array.from(nodes, (node) => node.weight),
    slots: Int32Array.from(nodes.keys()),
    length: nodes.length,
  };
}

function keepEligible(
  columns: CandidateColumns,
  nodes: readonly PlacementNode[],
  eligible: (id: string) => boolean,
): CandidateColumns {
  const slots = columns.slots.filter((slot) => {
    const node = nodes[slot];
    return node !== undefined && eligible(node.id);
  });
  return { ...columns, slots, length: slots.length };
}
