import { frame as frameParts, hashString } from '@signalbox/chwbl';
import type { Hash64 } from '@signalbox/chwbl';
import type { Value } from '@signalbox/plugin-api';
import { textOf } from './property-columns.ts';
import { spread } from './seeded-random.ts';

/** The key of a split for a sticky value (or a session), scoped by its tenant. */
export function stickyKey(sticky: Value, tenant: string | undefined): Hash64 {
  return hashString(frameParts([tenant ?? '', textOf(sticky)]));
}

/** The high and the low half of the key of a split for a request that has no sticky value: of its seed. */
export const seedKeyHi = (seed: number): number => spread(seed ^ 0x2545f491);
export const seedKeyLo = (seed: number): number => spread(seed ^ 0x6c078965);

/** Where a key falls among the shares of a split: in [0, 1). */
export function splitPoint(hi: number, lo: number): number {
  return (hi + lo / 4294967296) / 4294967296;
}
