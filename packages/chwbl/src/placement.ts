import type { Bound, LoadUnit } from './bound.ts';
import { createBound } from './bound.ts';
import { ChwblError } from './errors.ts';

/** A node as given: an id, unique in its placement, and a weight (1 unless given; 1e-9 to 1e9; only ratios matter). */
export interface NodeInput {
  readonly id: string;
  readonly weight?: number;
}

/** A node as held. */
export interface PlacementNode {
  readonly id: string;
  readonly weight: number;
}

/** The load of a node now. A node that a map does not name has load 0. */
export type Loads = ReadonlyMap<string, number> | ((id: string) => number);

/** How {@link Placement.pick} chooses. */
export interface PickOptions {
  /** c of the bound, at least 1; 1.25 unless given. */
  readonly bound?: number;
  /** What the loads count; `requests` unless given. */
  readonly unit?: LoadUnit;
  /** Leaves out nodes that cannot take the request; the bound is then taken over the others. All are eligible unless given. */
  readonly eligible?: (id: string) => boolean;
}

/**
 * Where keys belong among a set of nodes. Immutable: a change of nodes gives a new placement. The order of a key depends on
 * the set of nodes and weights alone, not on the sequence in which they came.
 */
export interface Placement {
  /** By id, in code unit order. */
  readonly nodes: readonly PlacementNode[];

  /** The ids of all nodes in the order in which the key prefers them. */
  order(key: string): string[];

  /** The same, one by one, worked out as far as it is read. */
  walk(key: string): Iterable<string>;

  /** The key's own subset: the first k of its order, all when k is at least the number of nodes. */
  among(key: string, k: number): string[];

  /**
   * The first node of the key's order whose load is within the bound; without loads, the first. The caller adds the request
   * to that node's load. `undefined` only when no node is eligible.
   *
   * @throws ChwblError `ERR_CHWBL_BOUND` for a bound below 1, `ERR_CHWBL_LOAD` for a load that cannot be counted
   */
  pick(key: string, loads?: Loads, options?: PickOptions): string | undefined;

  /** With this node added, or given another weight. */
  withNode(node: NodeInput): Placement;

  /** Without this node. @throws ChwblError `ERR_CHWBL_NODE` when it is not there */
  withoutNode(id: string): Placement;
}

/** Nodes checked, with default weights, frozen and sorted by id. */
export function toNodes(inputs: readonly NodeInput[]): readonly PlacementNode[] {
  const nodes = inputs.map(toNode).toSorted((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
  nodes.forEach((node, index) => {
    if (index > 0 && nodes[index - 1]?.id === node.id) {
      throw new ChwblError('ERR_CHWBL_NODE', `node ${JSON.stringify(node.id)} is given twice; ids must differ`);
    }
  });
  return Object.freeze(nodes);
}

/** The nodes with one added or replaced. */
export function replaceNode(nodes: readonly PlacementNode[], input: NodeInput): NodeInput[] {
  return [...nodes.filter((node) => node.id !== input.id), input];
}

/** The nodes without one, which must be there. */
export function removeNode(nodes: readonly PlacementNode[], id: string): PlacementNode[] {
  const rest = nodes.filter((node) => node.id !== id);
  if (rest.length === nodes.length) {
    throw new ChwblError('ERR_CHWBL_NODE', `node ${JSON.stringify(id)} is not in the placement; nothing to remove`);
  }
  return rest;
}

/** The seed, checked: an integer in [0, 2^32). */
export function checkSeed(seed: number): number {
  if (Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32) return seed;
  throw new ChwblError('ERR_CHWBL_ARGUMENT', `seed is ${seed}; expected an integer from 0 to 2^32 - 1`);
}

/** The number of places asked for, checked. */
export function checkCount(k: number): number {
  if (Number.isInteger(k) && k >= 0) return k;
  throw new ChwblError('ERR_CHWBL_ARGUMENT', `k is ${k}; expected an integer of at least 0`);
}

/** The bound that the options ask for. */
export function toBound(options: PickOptions | undefined): Bound {
  return createBound(options?.bound, options?.unit);
}

/** The load of a node, checked: at least 0 and finite, whole where requests are counted. */
export function readLoad(loads: Loads, id: string, unit: LoadUnit): number {
  const load = typeof loads === 'function' ? loads(id) : (loads.get(id) ?? 0);
  const countable = unit === 'requests' ? Number.isSafeInteger(load) : Number.isFinite(load);
  if (countable && load >= 0) return load;
  const expected = unit === 'requests' ? 'a whole number of at least 0' : 'a finite number of at least 0';
  throw new ChwblError(
    'ERR_CHWBL_LOAD',
    `load of node ${JSON.stringify(id)} is ${load}; expected ${expected} (unit ${unit})`,
  );
}

function toNode(input: NodeInput): PlacementNode {
  const { id, weight = 1 } = input;
  if (typeof id !== 'string' || id === '') {
    throw new ChwblError('ERR_CHWBL_NODE', `node id is ${JSON.stringify(id)}; expected a string that is not empty`);
  }
  if (!(weight >= 1e-9 && weight <= 1e9)) {
    throw new ChwblError(
      'ERR_CHWBL_NODE',
      `weight of node ${JSON.stringify(id)} is ${weight}; expected a number from 1e-9 to 1e9 (leave a node out instead of weight 0)`,
    );
  }
  return Object.freeze({ id, weight });
}
