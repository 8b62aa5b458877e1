import type { PlaceLayout, RowName, RowSignal } from '@signalbox/telemetry';
import type { BoundPolicy } from './bound-policy.ts';

/** Where the signals of a policy stand in the row of a record. */
export interface SignalRow {
  readonly signals: readonly RowSignal[];
  /** Where the numbers among them are found, and the others, in the order of `signals`. */
  readonly numericSignals: readonly number[];
  readonly otherSignals: readonly { readonly index: number; readonly numeric: boolean; readonly isHashed: boolean }[];
}

/** Where what is recorded of a place on the shortlist stands in the row of a record. */
export interface PlaceRow {
  readonly place: PlaceLayout;
  /** Indices of properties, in the order of `place`. */
  readonly numericProperties: readonly number[];
  readonly otherProperties: readonly number[];
  /** Cells that a place takes among the numbers, and among the others. */
  readonly numbers: number;
  readonly others: number;
}

/** The row of a policy's recorded signals: those that every request has, then the late ones. */
export function signalRow(recorded: BoundPolicy['recordedSignals']): SignalRow {
  const kept = recorded.filter(({ as }) => as !== 'omitted');
  const inOrder = [...kept.filter(({ late }) => late === 0), ...kept.filter(({ late }) => late !== 0)];
  const isNumber = ({ numeric, as }: (typeof kept)[number]): boolean => numeric && as === 'value';
  return {
    signals: inOrder.map((signal) => ({ name: signal.name, numeric: isNumber(signal), late: signal.late })),
    numericSignals: inOrder.filter(isNumber).map(({ index }) => index),
    otherSignals: inOrder
      .filter((signal) => !isNumber(signal))
      .map(({ index, numeric, as }) => ({ index, numeric, isHashed: as === 'hash' })),
  };
}

/** The row of a place, of these parts of a score and these properties. */
export function placeRow(
  parts: readonly string[],
  properties: readonly (RowName & { readonly index: number })[],
): PlaceRow {
  const numericProperties = properties.filter(({ numeric }) => numeric).map(({ index }) => index);
  const otherProperties = properties.filter(({ numeric }) => !numeric).map(({ index }) => index);
  return {
    place: { parts, properties: properties.map(({ name, numeric }) => ({ name, numeric })) },
    numericProperties,
    otherProperties,
    numbers: 1 + parts.length + numericProperties.length,
    others: 2 + otherProperties.length,
  };
}
