// perf: one view per plugin instance, pointed at the request in hand before each call.
import type { CandidateView, NumberColumn, RequestView, Value, ValueColumn } from '@signalbox/plugin-api';
import type { Frame } from '../frame.ts';

/** Where the signals and properties that an instance declared are found: indices into the frame's signals and columns. */
export interface BoundReads {
  readonly numbers: ReadonlyMap<string, number>;
  readonly values: ReadonlyMap<string, number>;
  readonly numberColumns: ReadonlyMap<string, number>;
  readonly valueColumns: ReadonlyMap<string, number>;
}

/** What a plugin instance sees of the request. */
export class FrameRequestView implements RequestView {
  frame: Frame | undefined = undefined;
  readonly #reads: BoundReads;

  constructor(reads: BoundReads) {
    this.#reads = reads;
  }

  get seed(): number {
    return this.frame?.seed ?? 0;
  }

  number(key: string): number {
    const index = this.#reads.numbers.get(key);
    return index === undefined || this.frame === undefined ? Number.NaN : this.frame.n[index]!;
  }

  value(key: string): Value | undefined {
    if (this.frame === undefined) return undefined;
    const index = this.#reads.values.get(key);
    if (index !== undefined) return this.frame.v[index];
    const number = this.number(key);
    return number === number ? number : undefined;
  }
}

/** What a plugin instance sees of the candidates. Columns are filled when they are asked for. */
export class FrameCandidateView implements CandidateView {
  frame: Frame | undefined = undefined;
  length = 0;
  slots: Int32Array = new Int32Array(0);
  readonly #reads: BoundReads;
  readonly #unknown: NumberColumn;

  constructor(reads: BoundReads, unknown: NumberColumn) {
    this.#reads = reads;
    this.#unknown = unknown;
  }

  column(key: string): NumberColumn {
    const index = this.#reads.numberColumns.get(key);
    return index === undefined || this.frame === undefined
      ? this.#unknown
      : this.frame.column(index, this.slots, this.length);
  }

  values(key: string): ValueColumn {
    const index = this.#reads.valueColumns.get(key) ?? this.#reads.numberColumns.get(key);
    if (index === undefined || this.frame === undefined) return NO_VALUES;
    return this.frame.column(index, this.slots, this.length);
  }
}

const NO_VALUES: ValueColumn = Object.freeze([]);
