/** The least float64 above `x`; infinity stays. */
export function nextUp(x: number): number {
  if (x === Infinity || Number.isNaN(x)) return x;
  if (x === 0) return Number.MIN_VALUE;
  const rank = rankOf(x);
  return ofRank(rank + 1n);
}

/** The greatest float64 below `x`; minus infinity stays. */
export const nextDown = (x: number): number => -nextUp(-x);

const SIGN = 1n << 63n;

/** The place of a float64 in the order of all of them; both zeros are 0. */
function rankOf(x: number): bigint {
  const bits = new BigInt64Array(new Float64Array([x]).buffer)[0] ?? 0n;
  return bits >= 0n ? bits : -(bits + SIGN);
}

function ofRank(rank: bigint): number {
  const bits = rank >= 0n ? rank : -rank - SIGN;
  const value = new Float64Array(new BigInt64Array([bits]).buffer)[0] ?? 0;
  return value === 0 ? 0 : value;
}

/** The least float64 for which a condition holds that, once it holds, holds for all greater ones; undefined where it holds for none. */
export function leastDouble(holds: (x: number) => boolean): number | undefined {
  if (!holds(Infinity)) return undefined;
  let below = rankOf(-Infinity);
  if (holds(-Infinity)) return -Infinity;
  let at = rankOf(Infinity);
  while (at - below > 1n) {
    const middle = (at + below) / 2n;
    if (holds(ofRank(middle))) at = middle;
    else below = middle;
  }
  return ofRank(at);
}

/** The greatest float64 for which a condition holds that, once it fails, fails for all greater ones; undefined where it holds for none. */
export function greatestDouble(holds: (x: number) => boolean): number | undefined {
  const mirrored = leastDouble((x) => holds(-x));
  return mirrored === undefined ? undefined : mirrored === 0 ? 0 : -mirrored;
}
