// perf: objects that outlive a collection of the young generation are copied, then moved to the old one and collected there, which for
// hundreds of records at a time costs more than all else that is done with them. So their numbers and texts are kept in two arrays, and a
// record is put together again when somebody asks for it.
import type { Value } from '@signalbox/plugin-api';
import type { AttemptRecord, DecisionRecord } from './decision-record.ts';
import { readRow, recordOf, RowRecord } from './row-record.ts';
import type { DecisionRow, PlaceLayout, RowSignal } from './row-record.ts';

/** The last decisions of the process, oldest overwritten first. */
export interface DecisionHistory {
  /** Takes a finished record, which must not change any more. */
  add(record: DecisionRecord): void;
  /** Newest first, at most `limit`. */
  recent(limit: number): DecisionRecord[];
  /** The newest record with this request id (ids come from clients and may repeat). */
  find(requestId: string): DecisionRecord | undefined;
}

/** Cells of one record; one that has more, or no row, is held as it is. */
const CELLS = 160;
/** Cells of the fields that every record has, before those of its row and of its attempts. */
const NUMBER_FIELDS = 12;
const OTHER_FIELDS = 13;

const NO_PLACE: PlaceLayout = { parts: [], properties: [] };

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

/** Records taken apart, into numbers and other values. */
class Cells {
  readonly #numbers: Float64Array;
  readonly #others: (Value | undefined)[];
  readonly #signals: (readonly RowSignal[])[];
  readonly #places: PlaceLayout[];
  /** How many cells the row of a record takes, in either array. */
  readonly #rowNumbers: Uint8Array;
  readonly #rowOthers: Uint8Array;
  readonly #reasons: (readonly string[])[];
  /** Records that are not taken apart. */
  readonly #whole: (DecisionRecord | undefined)[];
  /** Of the last record. Each request brings texts of its own, of which most are equal: one is kept, the others need not outlive it. */
  #model = '';
  #path = '';

  constructor(capacity: number) {
    this.#numbers = new Float64Array(capacity * CELLS);
    this.#others = Array.from({ length: capacity * CELLS }, () => undefined);
    this.#signals = Array.from({ length: capacity }, () => []);
    this.#places = Array.from({ length: capacity }, () => NO_PLACE);
    this.#rowNumbers = new Uint8Array(capacity);
    this.#rowOthers = new Uint8Array(capacity);
    this.#reasons = Array.from({ length: capacity }, () => []);
    this.#whole = Array.from({ length: capacity }, () => undefined);
  }

  requestIdAt(place: number): string | undefined {
    return this.#whole[place]?.requestId ?? (this.#others[place * CELLS] as string | undefined);
  }

  write(place: number, record: DecisionRecord): void {
    const row = RowRecord.rowOf(record);
    if (row === undefined || !fits(row, record)) {
      this.#whole[place] = record;
      return;
    }
    this.#whole[place] = undefined;
    this.#signals[place] = row.signals;
    this.#places[place] = row.place;
    this.#rowNumbers[place] = row.numbers.length;
    this.#rowOthers[place] = row.others.length;
    this.#reasons[place] = record.reasons;
    const first = place * CELLS;
    this.#writeFields(first, record);
    this.#writeRow(first, row);
    this.#writeAttempts(first, row, record.attempts);
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
    numbers[first + 11] = record.attempts.length;
    if (record.model !== this.#model) this.#model = record.model;
    if (record.path !== this.#path) this.#path = record.path;
    const others = this.#others;
    others[first] = record.requestId;
    others[first + 1] = record.traceId;
    others[first + 2] = record.tenant;
    others[first + 3] = this.#model;
    others[first + 4] = this.#path;
    others[first + 5] = record.stream;
    others[first + 6] = record.policy;
    others[first + 7] = record.verdict;
    others[first + 8] = record.route;
    others[first + 9] = record.servedModel;
    others[first + 10] = record.tier;
    others[first + 11] = record.endpoint;
    others[first + 12] = record.code;
  }

  #writeRow(first: number, row: DecisionRow): void {
    const numbers = this.#numbers;
    const others = this.#others;
    const firstNumber = first + NUMBER_FIELDS;
    for (let i = 0; i < row.numbers.length; i++) numbers[firstNumber + i] = row.numbers[i]!;
    const firstOther = first + OTHER_FIELDS;
    for (let i = 0; i < row.others.length; i++) others[firstOther + i] = row.others[i];
  }

  #writeAttempts(first: number, row: DecisionRow, attempts: readonly AttemptRecord[]): void {
    const numbers = this.#numbers;
    const others = this.#others;
    let number = first + NUMBER_FIELDS + row.numbers.length;
    let other = first + OTHER_FIELDS + row.others.length;
    for (const { tier, endpoint, outcome, status, durationMs } of attempts) {
      others[other++] = tier;
      others[other++] = endpoint;
      others[other++] = outcome;
      numbers[number++] = status;
      numbers[number++] = durationMs;
    }
  }

  read(place: number): DecisionRecord {
    const whole = this.#whole[place];
    if (whole !== undefined) return whole instanceof RowRecord ? whole.toJSON() : whole;
    const first = place * CELLS;
    const numbers = this.#numbers.slice(first, first + CELLS);
    const others = this.#others.slice(first, first + CELLS);
    const afterNumbers = NUMBER_FIELDS + this.#rowNumbers[place]!;
    const afterOthers = OTHER_FIELDS + this.#rowOthers[place]!;
    const number = (field: number): number => numbers[field]!;
    const text = (field: number): string => others[field] as string;
    const parts = readRow({
      signals: this.#signals[place]!,
      place: this.#places[place]!,
      numbers: numbers.subarray(NUMBER_FIELDS, afterNumbers),
      others: others.slice(OTHER_FIELDS, afterOthers),
    });
    return recordOf(
      {
        v: 1,
        requestId: text(0),
        timeMs: number(0),
        seed: number(1),
        traceId: text(1),
        tenant: text(2),
        model: text(3),
        path: text(4),
        stream: others[5] === true,
        policy: text(6),
        generation: number(2),
        verdict: text(7) as DecisionRecord['verdict'],
        route: text(8),
        reasons: this.#reasons[place]!,
        queuedMs: number(3),
        decideMs: number(4),
        attempts: Array.from({ length: number(11) }, (_, i) => ({
          tier: text(afterOthers + 3 * i),
          endpoint: text(afterOthers + 3 * i + 1),
          outcome: text(afterOthers + 3 * i + 2),
          status: number(afterNumbers + 2 * i),
          durationMs: number(afterNumbers + 2 * i + 1),
        })),
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
      },
      parts,
    );
  }
}

function fits({ numbers, others }: DecisionRow, { attempts, shed }: DecisionRecord): boolean {
  return (
    NUMBER_FIELDS + numbers.length + 2 * attempts.length <= CELLS &&
    OTHER_FIELDS + others.length + 3 * attempts.length <= CELLS &&
    shed === undefined
  );
}
