// perf: typed arrays indexed by block; `!` on their reads, whose indices come from the pool itself.

/**
 * The KV blocks of one engine: reference counts, the map from block hash to block, and the free list in order of last use. A free block
 * keeps its contents, findable by hash, until it is handed out again: that is the prefix cache, and its eviction is least recently used.
 */
export interface BlockPool {
  readonly size: number;
  /** Blocks that nobody holds, cached contents included. */
  free(): number;
  /** Blocks findable by hash. */
  cached(): number;
  /** The block that holds these contents; undefined if none does. */
  find(hash: number): number | undefined;
  /** True when nobody holds the block. */
  isFree(block: number): boolean;
  /** Takes a reference to a block found by hash. */
  share(block: number): void;
  /** Takes the free block unused for longest, and forgets its contents; undefined when none is free. */
  take(): number | undefined;
  /** Names the contents of a held block. Ignored when another block already has that name. */
  name(block: number, hash: number): void;
  /** Gives one reference back. */
  release(block: number): void;
  /** Forgets all contents that nobody holds. */
  clearCache(): void;
}

const none = -1;

/** A pool of `size` blocks, all free and empty. */
export function createBlockPool(size: number): BlockPool {
  if (!Number.isInteger(size) || size < 1) throw new RangeError(`a block pool needs at least one block, got ${size}`);
  const references = new Int32Array(size);
  const hashes = new Float64Array(size).fill(Number.NaN);
  const byHash = new Map<number, number>();
  const previous = new Int32Array(size);
  const next = new Int32Array(size);
  let head = 0;
  let tail = size - 1;
  let freeCount = size;
  for (let block = 0; block < size; block++) {
    previous[block] = block - 1;
    next[block] = block + 1 < size ? block + 1 : none;
  }

  const unlink = (block: number): void => {
    const before = previous[block]!;
    const after = next[block]!;
    if (before === none) head = after;
    else next[before] = after;
    if (after === none) tail = before;
    else previous[after] = before;
    freeCount--;
  };
  const forget = (block: number): void => {
    const hash = hashes[block]!;
    if (byHash.get(hash) === block) byHash.delete(hash);
    hashes[block] = Number.NaN;
  };

  return {
    size,
    free: () => freeCount,
    cached: () => byHash.size,
    find: (hash) => byHash.get(hash),
    isFree: (block) => references[block] === 0,
    share(block) {
      if (references[block] === 0) unlink(block);
      references[block]!++;
    },
    take() {
      if (head === none) return undefined;
      const block = head;
      unlink(block);
      forget(block);
      references[block] = 1;
      return block;
    },
    name(block, hash) {
      if (byHash.has(hash)) return;
      hashes[block] = hash;
      byHash.set(hash, block);
    },
    release(block) {
      if (references[block]! <= 0) throw new Error(`block ${block} was released more often than taken`);
      if (--references[block]! > 0) return;
      previous[block] = tail;
      next[block] = none;
      if (tail === none) head = block;
      else next[tail] = block;
      tail = block;
      freeCount++;
    },
    clearCache() {
      for (let block = head; block !== none; block = next[block]!) forget(block);
    },
  };
}
