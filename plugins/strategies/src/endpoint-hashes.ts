// perf: one pointer comparison per candidate and request; a name is hashed only when it first stands in a slot.
import { hashString } from '@signalbox/chwbl';
import type { Hash64 } from '@signalbox/chwbl';
import type { Value } from '@signalbox/plugin-api';

/**
 * Hashes of endpoint names, remembered by slot, so that a draw depends on who an endpoint is and not on where the fleet table keeps it:
 * a replay over a rebuilt table gives the same decision.
 */
export interface EndpointHashes {
  /** The hash of `name`; for an unknown name that of the slot's number. The object is reused until the slot's name changes. */
  of(slot: number, name: Value | undefined): Hash64;
}

/** An empty memory. */
export function createEndpointHashes(): EndpointHashes {
  const names: (Value | undefined)[] = [];
  const hashes: (Hash64 | undefined)[] = [];
  return {
    of(slot, name) {
      const known = hashes[slot];
      if (known !== undefined && names[slot] === name) return known;
      const hash = hashString(typeof name === 'string' ? name : `slot ${slot}`);
      names[slot] = name;
      hashes[slot] = hash;
      return hash;
    },
  };
}
