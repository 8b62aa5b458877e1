import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const MIB = 2 ** 20;
/** Room for the garbage of some five hundred requests between two collections; what is beyond costs memory and saves next to no CPU time. */
const SEMI_SPACE_MIB = 16;
const LOOK_MS = 250;

/** How the young generation of a heap is measured and steered. */
export interface YoungGeneration {
  /** Bytes of both halves, as far as they are in use. */
  readonly bytes: () => number;
  /** By what the space is multiplied when V8 makes it larger. */
  readonly setGrowthFactor: (factor: 1 | 2) => void;
}

const OWN: YoungGeneration = {
  bytes: () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')?.space_size ?? 0,
  setGrowthFactor: (factor) => setFlagsFromString(`--semi-space-growth-factor=${factor}`),
};

/** Gives what is to be called now and then: it holds the space where it is once it has its size, and lets it grow while it is smaller. */
export function youngGenerationBound({ bytes, setGrowthFactor }: YoungGeneration = OWN): () => void {
  let grows = true;
  return () => {
    const mayGrow = bytes() < 2 * SEMI_SPACE_MIB * MIB;
    if (mayGrow === grows) return;
    grows = mayGrow;
    setGrowthFactor(mayGrow ? 2 : 1);
  };
}

/**
 * Keeps each half of V8's young generation from growing beyond 16 MiB: behind a gateway that holds thousands of streams open, more is memory
 * for nothing (docs/adr/0014-young-generation.md). Whoever starts Node with a size of their own keeps it; `options` are those of the start.
 * Returns how to stop.
 */
export function boundYoungGeneration(options: readonly string[] = startOptions()): () => void {
  if (options.some((option) => /^--(?:min|max)[-_]semi[-_]space[-_]size/.test(option))) return () => {};
  const timer = setInterval(youngGenerationBound(), LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function startOptions(): string[] {
  return [...process.execArgv, ...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/)];
}
