import type { CandidateView, NumberColumn, Value, ValueColumn } from '@signalbox/plugin-api';

/** Properties of one endpoint by key, with or without `candidate.`. `undefined`, NaN and a missing key are unknown. */
export interface EndpointValues {
  readonly [property: string]: Value | undefined;
}

export interface CandidatesOptions {
  /** The slot of each endpoint, distinct; default 0, 1, 2 … Columns are indexed by it. */
  readonly slots?: readonly number[];
  /** Keys that were declared; as in the host, all others read as unknown. Absent: every key may be read. */
  readonly reads?: readonly string[];
  /** Told each key that is asked for. */
  readonly onRead?: (key: string) => void;
}

/** The reference CandidateView over plain objects: `candidates([{ queued_tokens: 5000 }, { queued_tokens: 2000 }])`. */
export function candidates(endpoints: readonly EndpointValues[], options: CandidatesOptions = {}): CandidateView {
  const slots = Int32Array.from(options.slots ?? endpoints.keys());
  if (slots.length !== endpoints.length) {
    throw new RangeError(
      `candidates: ${endpoints.length} endpoints but ${slots.length} slots; expected one slot for each endpoint`,
    );
  }
  const limit = slots.reduce((most, slot) => Math.max(most, slot + 1), 0);
  const numbers = new Map<string, Float64Array>();
  const values = new Map<string, (Value | undefined)[]>();
  endpoints.forEach((endpoint, i) => {
    const slot = slots[i] ?? 0;
    for (const [name, value] of Object.entries(endpoint)) {
      if (value === undefined) continue;
      const key = name.startsWith('candidate.') ? name : `candidate.${name}`;
      if (typeof value === 'number') {
        let column = numbers.get(key);
        if (column === undefined) numbers.set(key, (column = new Float64Array(limit).fill(Number.NaN)));
        column[slot] = value;
        if (Number.isNaN(value)) continue;
      }
      let column = values.get(key);
      if (column === undefined) values.set(key, (column = Array.from<Value | undefined>({ length: limit })));
      column[slot] = value;
    }
  });
  const unknownNumbers = new Float64Array(limit).fill(Number.NaN);
  const unknownValues = Array.from<Value | undefined>({ length: limit });
  const declared = options.reads === undefined ? undefined : new Set(options.reads);
  const allowed = (key: string): boolean => {
    options.onRead?.(key);
    return declared === undefined || declared.has(key);
  };
  return {
    length: endpoints.length,
    slots,
    column: (key): NumberColumn => (allowed(key) ? (numbers.get(key) ?? unknownNumbers) : unknownNumbers),
    values: (key): ValueColumn => (allowed(key) ? (values.get(key) ?? unknownValues) : unknownValues),
  };
}
