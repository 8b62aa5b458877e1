import type { Value } from '@signalbox/plugin-api';
import type { Column, SignalRef } from '@signalbox/policy';
import type { Fleet } from './fleet/fleet.ts';
import type { ColumnSource } from './frame.ts';

/**
 * What a test of a policy states in place of what core would work out. Asked while a policy is bound; the pipeline itself does not know of
 * it, and decides as ever.
 */
export interface GivenValues {
  /** What gives a signal's value (undefined is unknown) in place of its producer, which is then not bound at all; undefined leaves that as it is. */
  signal(
    signal: Pick<SignalRef, 'key' | 'arguments'> & Partial<Pick<SignalRef, 'known' | 'type'>>,
  ): (() => Value | undefined) | undefined;
  /** Values of a property by name of the endpoint. Endpoints without one keep what core knows. */
  property(key: string): ReadonlyMap<string, Value> | undefined;
}

/** A column in which the values that are given take the place of those of the source. */
export function givenColumn(
  source: ColumnSource,
  key: string,
  { fleet, given }: { readonly fleet: Fleet; readonly given?: GivenValues },
): ColumnSource {
  const values = given?.property(key);
  if (values === undefined) return source;
  const column: unknown[] = [];
  return (frame, slots, length) => {
    const own = typeof source === 'function' ? source(frame, slots, length) : source;
    for (let i = 0; i < length; i++) {
      const slot = slots[i] ?? 0;
      column[slot] = values.get(fleet.texts.name[slot] ?? '') ?? own[slot];
    }
    // A column of any type is typed as one of numbers for the hot path.
    return column as unknown as Column;
  };
}
