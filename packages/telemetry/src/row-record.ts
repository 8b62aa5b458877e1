// perf: one for each request. What only somebody who reads a record wants to know (signals, shortlist, keys) stays numbers and texts in two
// arrays until then: made into objects at once, it costs more than the decision, and the next record is asked for before this one is read.
import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { AttemptRecord, DecisionPlace, DecisionRecord, ShortlistRecord } from './decision-record.ts';

/** A name of a record, and whether what it names is a number. */
export interface RowName {
  readonly name: string;
  readonly numeric: boolean;
}

/** A signal of a record. One with a bit, as it may go unread, is in the record only where `ROW.late` has that bit. */
export interface RowSignal extends RowName {
  readonly late: number;
}

/** What is recorded of each place of a shortlist: scorers and properties. */
export interface PlaceLayout {
  readonly parts: readonly string[];
  readonly properties: readonly RowName[];
}

/**
 * What a decision was made of. `numbers`: the fields of `ROW`; then the numeric signals; then for each place of the shortlist its score, its
 * parts and its numeric properties. `others`: the label of the admission rule; then the other signals; then for each place endpoint, tier and
 * other properties. NaN and undefined are unknown. What they stand for is the same for all decisions of a policy, and of a destination.
 */
export interface DecisionRow {
  readonly signals: readonly RowSignal[];
  readonly place: PlaceLayout;
  readonly numbers: ArrayLike<number>;
  readonly others: ArrayLike<Value | undefined>;
}

/** Where numbers stand in a row that every row has. `dropped` are as many as DROP_REASONS; keys are two halves of 32 bits. */
export const ROW = {
  listed: 0,
  step: 1,
  fallback: 2,
  candidates: 3,
  late: 4,
  dropped: 5,
  hasAffinity: 11,
  affinity: 12,
  hasSplit: 14,
  split: 15,
  first: 17,
} as const;

/** What keeps an endpoint off a shortlist. */
const DROP_REASONS: readonly string[] = ['unavailable', 'draining', 'unhealthy', 'capacity', 'where', 'slow_start'];

/** What a row is read as. */
export interface RowParts {
  readonly decided: DecisionPlace;
  readonly signals: DecisionRecord['signals'];
  readonly shortlist: ShortlistRecord[];
  readonly dropped: DecisionRecord['dropped'];
  readonly keys: DecisionRecord['keys'];
}

/** What is known of a request when its record is begun. */
export type RecordBeginning = Pick<
  DecisionRecord,
  | 'requestId'
  | 'timeMs'
  | 'seed'
  | 'traceId'
  | 'tenant'
  | 'model'
  | 'path'
  | 'stream'
  | 'policy'
  | 'generation'
  | 'route'
  | 'reasons'
  | 'queuedMs'
  | 'decideMs'
  | 'attempts'
>;

/** A decision record over a row. Refused until it is said otherwise; what only its end tells is unknown. */
export class RowRecord implements DecisionRecord {
  readonly v = 1;
  readonly requestId: string;
  readonly timeMs: number;
  readonly seed: number;
  readonly traceId: string;
  tenant: string;
  readonly model: string;
  readonly path: string;
  readonly stream: boolean;
  readonly policy: string;
  readonly generation: number;
  verdict: DecisionRecord['verdict'] = 'refused';
  route: string;
  reasons: readonly string[];
  queuedMs: number;
  decideMs: number;
  readonly attempts: AttemptRecord[];
  servedModel = '';
  tier = '';
  endpoint = '';
  status = 0;
  code = '';
  declare shed?: { readonly queue: string; readonly class: string };
  ttftMs: number = Number.NaN;
  durationMs: number = Number.NaN;
  inputTokens: number = Number.NaN;
  cachedTokens: number = Number.NaN;
  outputTokens: number = Number.NaN;
  readonly #row: DecisionRow;
  #parts: RowParts | undefined = undefined;

  constructor(row: DecisionRow, beginning: RecordBeginning) {
    this.#row = row;
    this.requestId = beginning.requestId;
    this.timeMs = beginning.timeMs;
    this.seed = beginning.seed;
    this.traceId = beginning.traceId;
    this.tenant = beginning.tenant;
    this.model = beginning.model;
    this.path = beginning.path;
    this.stream = beginning.stream;
    this.policy = beginning.policy;
    this.generation = beginning.generation;
    this.route = beginning.route;
    this.reasons = beginning.reasons;
    this.queuedMs = beginning.queuedMs;
    this.decideMs = beginning.decideMs;
    this.attempts = beginning.attempts;
  }

  get decided(): DecisionPlace {
    return this.#read().decided;
  }

  get signals(): DecisionRecord['signals'] {
    return this.#read().signals;
  }

  get shortlist(): ShortlistRecord[] {
    return this.#read().shortlist;
  }

  get dropped(): DecisionRecord['dropped'] {
    return this.#read().dropped;
  }

  get keys(): DecisionRecord['keys'] {
    return this.#read().keys;
  }

  toJSON(): DecisionRecord {
    return recordOf(this, this.#read());
  }

  /** The row of a record that has one. */
  static rowOf(record: DecisionRecord): DecisionRow | undefined {
    return #row in record ? record.#row : undefined;
  }

  #read(): RowParts {
    return (this.#parts ??= readRow(this.#row));
  }
}

/** A plain record of these fields and parts. */
export function recordOf(
  fields: Omit<DecisionRecord, keyof RowParts>,
  { decided, signals, shortlist, dropped, keys }: RowParts,
): DecisionRecord {
  return {
    v: 1,
    requestId: fields.requestId,
    timeMs: fields.timeMs,
    seed: fields.seed,
    traceId: fields.traceId,
    tenant: fields.tenant,
    model: fields.model,
    path: fields.path,
    stream: fields.stream,
    policy: fields.policy,
    generation: fields.generation,
    verdict: fields.verdict,
    route: fields.route,
    decided,
    reasons: fields.reasons,
    signals,
    queuedMs: fields.queuedMs,
    decideMs: fields.decideMs,
    shortlist,
    dropped,
    keys,
    attempts: fields.attempts,
    servedModel: fields.servedModel,
    tier: fields.tier,
    endpoint: fields.endpoint,
    status: fields.status,
    code: fields.code,
    ...(fields.shed === undefined ? {} : { shed: fields.shed }),
    ttftMs: fields.ttftMs,
    durationMs: fields.durationMs,
    inputTokens: fields.inputTokens,
    cachedTokens: fields.cachedTokens,
    outputTokens: fields.outputTokens,
  };
}

/** The parts of a record, made of its row. */
export function readRow(row: DecisionRow): RowParts {
  return new RowReader(row).read();
}

class RowReader {
  readonly #row: DecisionRow;
  #number: number = ROW.first;
  #other = 1;

  constructor(row: DecisionRow) {
    this.#row = row;
  }

  read(): RowParts {
    const { others } = this.#row;
    const late = this.#at(ROW.late);
    const signals = this.#values(this.#row.signals, (signal) => signal.late === 0 || (signal.late & late) !== 0);
    return {
      decided: {
        admission: others[0] as string,
        step: this.#at(ROW.step),
        fallback: this.#at(ROW.fallback),
        candidates: this.#at(ROW.candidates),
      },
      signals,
      shortlist: Array.from({ length: this.#at(ROW.listed) }, () => this.#place()),
      dropped: Object.fromEntries(
        DROP_REASONS.map((reason, i) => [reason, this.#at(ROW.dropped + i)] as const).filter(([, count]) => count > 0),
      ),
      keys: { affinity: this.#key(ROW.hasAffinity, ROW.affinity), split: this.#key(ROW.hasSplit, ROW.split) },
    };
  }

  #at(index: number): number {
    return this.#row.numbers[index] ?? Number.NaN;
  }

  #key(has: number, first: number): string | null {
    return this.#at(has) === 0 ? null : hex64(this.#at(first), this.#at(first + 1));
  }

  #place(): ShortlistRecord {
    const { place } = this.#row;
    const [endpoint, tier, score] = [
      this.#take(false) as string,
      this.#take(false) as string,
      this.#take(true) as number,
    ];
    const parts = place.parts.map((name) => [name, this.#take(true) as number] as const);
    return {
      endpoint,
      tier,
      score,
      // Of those that are known.
      parts: Object.fromEntries(parts.filter(([, part]) => part === part)),
      properties: this.#values(place.properties, () => true),
    };
  }

  #values<Name extends RowName>(
    names: readonly Name[],
    isThere: (name: Name) => boolean,
  ): { [name: string]: Value | null } {
    const values: { [name: string]: Value | null } = {};
    for (const one of names) {
      const value = this.#take(one.numeric);
      if (isThere(one)) values[one.name] = isKnown(value) ? value : null;
    }
    return values;
  }

  #take(numeric: boolean): Value | undefined {
    return numeric ? this.#at(this.#number++) : this.#row.others[this.#other++];
  }
}

/** 64 bits, given in two halves, in hexadecimal. */
export function hex64(hi: number, lo: number): string {
  return (hi >>> 0).toString(16).padStart(8, '0') + (lo >>> 0).toString(16).padStart(8, '0');
}
