// perf: objects that outlive a collection of the young generation are copied, then moved to the old one and collected there, which for
// hundreds of records at a time costs more than all else that is done with them. So their numbers and texts are kept in two arrays, and a
// record is put together again when somebody asks for it.
import type { Value } from '@signalbox/plugin-api';
import type { AttemptRecord, DecisionRecord, ShortlistRecord } from './decision-record.ts';

/** The last decisions of the process, oldest overwritten first. */
export interface DecisionHistory {
  /** Takes a finished record, which must not change any more. */
  add(record: DecisionRecord): void;
  /** Newest first, at most `limit`. */
  recent(limit: number): DecisionRecord[];
  /** The newest record with this request id (ids come from clients and may repeat). */
  find(requestId: string): DecisionRecord | undefined;
}

/** Cells of one record; one that has more is held as it is. */
const CELLS = 160;
/** The first cells hold the fields that every record has: numbers and texts side by side. */
const FIRST_FREE = 16;
/** Ends a group of names in an outline. */
const END = '\u0000';

/** Values by name. */
type Named = { readonly [name: string]: Value | null };

/** The names of a record's parts in the order of their cells; most records of a policy share one. */
type Outline = readonly string[];

/** A history of `capacity` records. */
export function createDecisionHistory(capacity: number): DecisionHistory {
  const cells = new Cells(capacity);
  let next = 0;
  let filled = 0;
  const placeAt = (age: number): number => (((next - 1 - age) % capacity) + capacity) % capacity;
  return {
    add(record) {
      cells.write(next, record);
      next = (next + 1) % capacity;
      if (filled < capacity) filled++;
    },
    recent(limit) {
      return Array.from({ length: Math.min(limit, filled) }, (_, age) => cells.read(placeAt(age)));
    },
    find(requestId) {
      for (let age = 0; age < filled; age++) {
        const place = placeAt(age);
        if (cells.requestIdAt(place) === requestId) return cells.read(place);
      }
      return undefined;
    },
  };
}

/** Records taken apart. A cell is a number, or, where its text is not undefined, what stands there. */
class Cells {
  readonly #numbers: Float64Array;
  readonly #others: (Value | null | undefined)[];
  readonly #outlines: (Outline | undefined)[];
  /** Records that are not taken apart. */
  readonly #whole: (DecisionRecord | undefined)[];
  #lastOutline: Outline = [];
  /** The record in hand: its next cell and the end of its cells, and its names as far as they are those of the last outline. */
  #cell = 0;
  #end = 0;
  #named = 0;
  #isLastOutline = true;

  constructor(capacity: number) {
    this.#numbers = new Float64Array(capacity * CELLS);
    this.#others = Array.from({ length: capacity * CELLS }, () => undefined);
    this.#outlines = Array.from({ length: capacity }, () => undefined);
    this.#whole = Array.from({ length: capacity }, () => undefined);
  }

  requestIdAt(place: number): string | undefined {
    return this.#whole[place]?.requestId ?? (this.#others[place * CELLS] as string | undefined);
  }

  write(place: number, record: DecisionRecord): void {
    const first = place * CELLS;
    this.#writeFields(first, record);
    this.#cell = first + FIRST_FREE;
    this.#end = first + CELLS;
    this.#named = 0;
    this.#isLastOutline = true;
    this.#writeParts(record);
    const fits = this.#cell <= this.#end && record.shed === undefined;
    this.#whole[place] = fits ? undefined : record;
    if (!this.#isLastOutline || this.#named !== this.#lastOutline.length) this.#lastOutline = outlineOf(record);
    this.#outlines[place] = fits ? this.#lastOutline : undefined;
  }

  #writeFields(first: number, record: DecisionRecord): void {
    const numbers = this.#numbers;
    numbers[first] = record.timeMs;
    numbers[first + 1] = record.seed;
    numbers[first + 2] = record.generation;
    numbers[first + 3] = record.queuedMs;
    numbers[first + 4] = record.decideMs;
    numbers[first + 5] = record.status;
    numbers[first + 6] = record.ttftMs;
    numbers[first + 7] = record.durationMs;
    numbers[first + 8] = record.inputTokens;
    numbers[first + 9] = record.cachedTokens;
    numbers[first + 10] = record.outputTokens;
    const { decided } = record;
    numbers[first + 11] = decided?.step ?? Number.NaN;
    numbers[first + 12] = decided?.fallback ?? Number.NaN;
    numbers[first + 13] = decided?.candidates ?? Number.NaN;
    const others = this.#others;
    others[first] = record.requestId;
    others[first + 1] = record.traceId;
    others[first + 2] = record.tenant;
    others[first + 3] = record.model;
    others[first + 4] = record.path;
    others[first + 5] = record.stream;
    others[first + 6] = record.policy;
    others[first + 7] = record.verdict;
    others[first + 8] = record.route;
    others[first + 9] = record.servedModel;
    others[first + 10] = record.tier;
    others[first + 11] = record.endpoint;
    others[first + 12] = record.code;
    others[first + 13] = record.keys.affinity;
    others[first + 14] = record.keys.split;
    others[first + 15] = decided?.admission;
  }

  #writeParts({ reasons, signals, shortlist, dropped, attempts }: DecisionRecord): void {
    this.#put(reasons.length);
    for (const reason of reasons) this.#put(reason);
    this.#putAll(signals);
    this.#putAll(dropped);
    this.#put(shortlist.length);
    for (const { endpoint, tier, score, parts, properties } of shortlist) {
      this.#put(endpoint);
      this.#put(tier);
      this.#put(score);
      this.#putAll(parts);
      this.#putAll(properties);
    }
    this.#put(attempts.length);
    for (const { tier, endpoint, outcome, status, durationMs } of attempts) {
      this.#put(tier);
      this.#put(endpoint);
      this.#put(outcome);
      this.#put(status);
      this.#put(durationMs);
    }
  }

  #putAll(named: Named): void {
    for (const name in named) {
      this.#name(name);
      this.#put(named[name]!);
    }
    this.#name(END);
  }

  #put(value: Value | null): void {
    const cell = this.#cell++;
    if (cell >= this.#end) return;
    if (typeof value === 'number') {
      this.#numbers[cell] = value;
      this.#others[cell] = undefined;
    } else this.#others[cell] = value;
  }

  #name(name: string): void {
    if (this.#lastOutline[this.#named++] !== name) this.#isLastOutline = false;
  }

  read(place: number): DecisionRecord {
    const whole = this.#whole[place];
    if (whole !== undefined) return whole;
    const first = place * CELLS;
    const numbers = this.#numbers.subarray(first, first + CELLS);
    const others = this.#others.slice(first, first + CELLS);
    return new CellReader(numbers, others, this.#outlines[place] ?? []).record();
  }
}

/** Puts one record together again. */
class CellReader {
  readonly #numbers: Float64Array;
  readonly #others: readonly (Value | null | undefined)[];
  readonly #names: Iterator<string>;
  #cell = FIRST_FREE;

  constructor(numbers: Float64Array, others: readonly (Value | null | undefined)[], outline: Outline) {
    this.#numbers = numbers;
    this.#others = others;
    this.#names = outline[Symbol.iterator]();
  }

  record(): DecisionRecord {
    const number = (field: number): number => this.#numbers[field] ?? Number.NaN;
    const text = (field: number): string => this.#others[field] as string;
    const reasons = this.#list(() => this.#take() as string);
    const signals = this.#named<Value | null>();
    const dropped = this.#named<number>();
    const shortlist = this.#list(() => this.#place());
    const attempts = this.#list(() => this.#attempt());
    const admission = this.#others[15];
    return {
      v: 1,
      requestId: text(0),
      timeMs: number(0),
      seed: number(1),
      traceId: text(1),
      tenant: text(2),
      model: text(3),
      path: text(4),
      stream: this.#others[5] === true,
      policy: text(6),
      generation: number(2),
      verdict: text(7) as DecisionRecord['verdict'],
      route: text(8),
      ...(typeof admission === 'string'
        ? { decided: { admission, step: number(11), fallback: number(12), candidates: number(13) } }
        : {}),
      reasons,
      signals,
      queuedMs: number(3),
      decideMs: number(4),
      shortlist,
      dropped,
      keys: { affinity: this.#others[13] as string | null, split: this.#others[14] as string | null },
      attempts,
      servedModel: text(9),
      tier: text(10),
      endpoint: text(11),
      status: number(5),
      code: text(12),
      ttftMs: number(6),
      durationMs: number(7),
      inputTokens: number(8),
      cachedTokens: number(9),
      outputTokens: number(10),
    };
  }

  #take(): Value | null {
    const cell = this.#cell++;
    const other = this.#others[cell];
    return other === undefined ? (this.#numbers[cell] ?? null) : other;
  }

  #list<Item>(item: () => Item): Item[] {
    return Array.from({ length: this.#take() as number }, item);
  }

  #named<Item extends Value | null>(): { readonly [name: string]: Item } {
    const entries: [string, Item][] = [];
    for (let { value } = this.#names.next(); value !== END && value !== undefined; { value } = this.#names.next())
      entries.push([value, this.#take() as Item]);
    return Object.fromEntries(entries);
  }

  #place(): ShortlistRecord {
    const [endpoint, tier, score] = [this.#take() as string, this.#take() as string, this.#take() as number];
    return { endpoint, tier, score, parts: this.#named<number>(), properties: this.#named<Value | null>() };
  }

  #attempt(): AttemptRecord {
    const [tier, endpoint, outcome] = [this.#take() as string, this.#take() as string, this.#take() as string];
    return { tier, endpoint, outcome, status: this.#take() as number, durationMs: this.#take() as number };
  }
}

function outlineOf({ signals, dropped, shortlist }: DecisionRecord): Outline {
  const groups: readonly Named[] = [
    signals,
    dropped,
    ...shortlist.flatMap(({ parts, properties }) => [parts, properties]),
  ];
  return groups.flatMap((named) => [...Object.keys(named), END]);
}
