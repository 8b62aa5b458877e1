/** The mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The smallest value that at least a share `q` of the values do not exceed (nearest rank); NaN of nothing. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

/** A ratio and the interval that holds 95 % of its resamples. */
export interface Ratio {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/** A value with the position in the trace of the request that it belongs to. */
export interface Placed {
  readonly index: number;
  readonly value: number;
}

/**
 * `figure(subject) ÷ figure(baseline)` with a paired block bootstrap: blocks of `blockLength` neighbouring requests are drawn with replacement,
 * the same for both, with all values of all runs. Blocks, because a queue makes neighbours alike; paired, because both saw the same requests.
 * @param random numbers in [0, 1)
 */
export function bootstrapRatio(
  subject: readonly Placed[],
  baseline: readonly Placed[],
  figure: (values: readonly number[]) => number,
  random: () => number,
  blockLength: number = 25,
  resamples: number = 1000,
): Ratio {
  const subjectBlocks = toBlocks(subject, blockLength);
  const baselineBlocks = toBlocks(baseline, blockLength);
  const count = Math.max(subjectBlocks.length, baselineBlocks.length);
  const ratios = new Float64Array(resamples);
  for (let sample = 0; sample < resamples; sample++) {
    const above: number[] = [];
    const below: number[] = [];
    for (let i = 0; i < count; i++) {
      const block = Math.floor(random() * count);
      above.push(...(subjectBlocks[block] ?? []));
      below.push(...(baselineBlocks[block] ?? []));
    }
    ratios[sample] = figure(above) / figure(below);
  }
  const values = (placed: readonly Placed[]): number[] => placed.map(({ value }) => value);
  return {
    ratio: figure(values(subject)) / figure(values(baseline)),
    low: quantile([...ratios], 0.025),
    high: quantile([...ratios], 0.975),
  };
}

function toBlocks(placed: readonly Placed[], blockLength: number): readonly (readonly number[])[] {
  const blocks: number[][] = [];
  for (const { index, value } of placed) (blocks[Math.floor(index / blockLength)] ??= []).push(value);
  return Array.from(blocks, (block) => block ?? []);
}

/** Numbers in [0, 1) from a 32-bit seed: mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
