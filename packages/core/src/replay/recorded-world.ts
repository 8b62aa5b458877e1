import { isKnown, isNumericType } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import { interpret, operandsOf, referenceName } from '@signalbox/policy';
import type { Column, Expression, InterpretedEvaluators, PolicyProgram } from '@signalbox/policy';
import type { DecisionRecord } from '@signalbox/telemetry';
import { hashed } from '../decision.ts';
import { readName, textAt, unrecorded, weighCondition } from '../explain/condition.ts';
import type { LeafFacts, WeighedCondition } from '../explain/condition.ts';
import { FALSE, possibleOf, TRUE } from '../explain/possible.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { Frame } from '../frame.ts';
import type { ColumnSource } from '../frame.ts';
import type { PolicyVersion } from '../policy-version.ts';
import { isPersonal, PROMPT_KEYS, signalName } from '../recorded-facts.ts';

/** Properties that stand in the definition of an endpoint, so that nothing need be recorded of them. Labels are such as well. */
const DEFINED_KEYS: ReadonlySet<string> = new Set([
  'name',
  'tier',
  'gpu',
  'gpu_count',
  'precision',
  'model_size',
  'zone',
  'region',
  'declared_order',
]);

/** What a record knows of a signal: its value, that it is known (by a hash of it), or nothing. */
type SignalFact = 'value' | 'hash' | 'nothing';

/**
 * A record as the evaluators of a program see it: signals as they were recorded, properties of the endpoints of its shortlist as they
 * were, of all others what their definitions say. Pointed at one record after another.
 */
export class RecordedWorld {
  readonly frame: Frame;
  readonly #program: PolicyProgram;
  readonly #fleet: Fleet;
  readonly #tracer: InterpretedEvaluators;
  readonly #signalNames: readonly string[];
  readonly #facts: SignalFact[];
  readonly #propertyNames: readonly string[];
  /** Values of each property by slot, as far as they are recorded; undefined is not. */
  readonly #recorded: (Map<number, Value | null> | undefined)[];
  /** Slots of the shortlist, in its order; an endpoint that the program does not know is left out. */
  slots: readonly number[] = [];
  /** Names of the shortlist that the program does not know. */
  strangers: readonly string[] = [];

  constructor(version: PolicyVersion, fleet: Fleet) {
    const { program, policy } = version;
    this.#program = program;
    this.#fleet = fleet;
    this.#tracer = interpret(program);
    this.#signalNames = namesOnce(program.signals.map(signalName));
    this.#facts = program.signals.map(() => 'nothing');
    this.#propertyNames = namesOnce(program.properties.map(referenceName));
    this.#recorded = program.properties.map(() => undefined);
    const columns = program.properties.map((_, index) => this.#column(index, policy.shape.columns[index]));
    this.frame = new Frame({ ...policy.shape, columns, shortlist: Math.max(policy.shape.shortlist, 64) });
  }

  /** Takes the facts of a record. */
  point(record: DecisionRecord): void {
    const { frame } = this;
    frame.forget();
    frame.startDecision();
    frame.stamp++;
    frame.seed = record.seed;
    this.#program.signals.forEach((signal, index) => {
      const name = this.#signalNames[index] ?? '';
      const value = Object.hasOwn(record.signals, name) ? record.signals[name] : undefined;
      const fact = value === undefined || PROMPT_KEYS.has(signal.key) ? 'nothing' : factOf(signal, value);
      this.#facts[index] = fact;
      if (fact === 'nothing' || value === null || value === undefined) return;
      if (!isNumericType(signal.type)) frame.v[index] = value;
      else if (typeof value === 'number') frame.n[index] = value;
    });
    const slots: number[] = [];
    const strangers: string[] = [];
    this.#recorded.fill(undefined);
    for (const { endpoint, properties } of record.shortlist) {
      const slot = this.#fleet.slotOf(endpoint);
      if (slot === undefined) {
        strangers.push(endpoint);
        continue;
      }
      slots.push(slot);
      this.#propertyNames.forEach((name, index) => {
        if (!Object.hasOwn(properties, name)) return;
        (this.#recorded[index] ??= new Map()).set(slot, properties[name] ?? null);
      });
    }
    this.slots = slots;
    this.strangers = strangers;
  }

  /** What a condition comes to for the request, or for one endpoint. */
  condition(expression: Expression, slot?: number): WeighedCondition {
    return weighCondition(this.#program, expression, (leaf) => this.#leaf(leaf, slot));
  }

  /** What a value is, `undefined` for unknown; or the names of what it reads and was not recorded. */
  value(expression: Expression): { readonly value: Value | undefined } | { readonly missing: readonly string[] } {
    if (expression.kind === 'coalesce') {
      const left = this.value(expression.left);
      return 'missing' in left || isKnown(left.value) ? left : this.value(expression.right);
    }
    const missing = this.missing(expression);
    return missing.length > 0 ? { missing } : { value: this.#tracer.traceExpression(expression, this.frame).result };
  }

  /** Names of what an expression reads and no record or definition tells. */
  missing(expression: Expression, slot?: number): readonly string[] {
    const reads = readsIn(expression);
    const names = reads.signals.flatMap((index) => {
      if (this.#facts[index] === 'value') return [];
      const name = this.#signalNames[index] || referenceName(this.#program.signals[index] ?? NAMELESS);
      return [this.#facts[index] === 'hash' ? `${name} (its hash is)` : name];
    });
    const aggregates = reads.aggregates.map((one) => this.#aggregateName(one));
    const unknown = reads.properties.filter((index) => slot === undefined || !this.#tells(index, slot));
    const of = slot === undefined ? '' : ` of ${this.#fleet.texts.name[slot] ?? ''}`;
    const properties = unknown.map((index) => referenceName(this.#program.properties[index] ?? NAMELESS) + of);
    return [...new Set([...names, ...aggregates, ...properties])];
  }

  #leaf(leaf: Expression, slot: number | undefined): LeafFacts {
    const missing = this.missing(leaf, slot);
    if (missing.length > 0) return this.#byHash(leaf) ?? unrecorded(missing, this.#recordedReads(leaf));
    const { result, reads } = this.#tracer.traceExpression(leaf, this.frame, slot);
    return {
      possible: possibleOf(result),
      reads: Object.fromEntries(reads.map((read) => [readName(this.#program, read), read.value ?? null])),
      missing,
    };
  }

  /** A hash tells whether a value was there, and whether it was one that the policy writes. */
  #byHash(leaf: Expression): LeafFacts | undefined {
    const asked = askedOfHash(leaf);
    if (asked === undefined || this.#facts[asked.signal] !== 'hash') return undefined;
    const value = this.frame.v[asked.signal];
    const holds = asked.among === undefined || asked.among.some((one) => hashed(String(one)) === value);
    return {
      possible: holds === asked.wanted ? TRUE : FALSE,
      reads: { [this.#signalNames[asked.signal] ?? '']: value ?? null },
      missing: [],
    };
  }

  #recordedReads(leaf: Expression): LeafFacts['reads'] {
    const entries = readsIn(leaf).signals.flatMap((index): [string, Value | null][] => {
      if (this.#facts[index] !== 'value') return [];
      const value = isNumericType(this.#program.signals[index]?.type ?? 'string')
        ? this.frame.n[index]
        : this.frame.v[index];
      return [[this.#signalNames[index] ?? '', isKnown(value) ? value : null]];
    });
    return Object.fromEntries(entries);
  }

  #tells(property: number, slot: number): boolean {
    return this.#recorded[property]?.has(slot) === true || isDefined(this.#program.properties[property]);
  }

  #column(property: number, own: ColumnSource | undefined): ColumnSource {
    const numeric = isNumericType(this.#program.properties[property]?.type ?? 'string');
    const defined = isDefined(this.#program.properties[property]);
    const column: (Value | undefined)[] = [];
    return (frame, slots, length) => {
      const recorded = this.#recorded[property];
      const ofDefinition =
        !defined || own === undefined ? [] : typeof own === 'function' ? own(frame, slots, length) : own;
      for (let i = 0; i < length; i++) {
        const slot = slots[i] ?? 0;
        const value: Value | null | undefined = recorded?.has(slot) === true ? recorded.get(slot) : ofDefinition[slot];
        column[slot] = value ?? (numeric ? Number.NaN : undefined);
      }
      // A column of any type is typed as one of numbers for the hot path.
      return column as unknown as Column;
    };
  }

  #aggregateName(expression: Expression): string {
    return textAt(this.#program, expression.span) || 'an aggregate over endpoints';
  }
}

const NAMELESS = { key: '', arguments: [] } as const;

/** Names that stand for one thing only; empty for those that stand for several, so that no value is taken for another's. */
function namesOnce(names: readonly string[]): readonly string[] {
  return names.map((name) => (names.indexOf(name) === names.lastIndexOf(name) ? name : ''));
}

/** That a personal value is not there is recorded as such; what it is, as a hash. */
function factOf(signal: PolicyProgram['signals'][number], value: Value | null): SignalFact {
  return isPersonal(signal) && value !== null ? 'hash' : 'value';
}

function isDefined(property: PolicyProgram['properties'][number] | undefined): boolean {
  if (property?.provider.kind !== 'builtin') return false;
  return DEFINED_KEYS.has(property.key) || property.key.startsWith('labels.');
}

/** A question that the hash of a signal answers. */
interface HashQuestion {
  readonly signal: number;
  /** Whether it is one of these; absent: whether there is any. */
  readonly among?: readonly Value[];
  readonly wanted: boolean;
}

function askedOfHash(leaf: Expression): HashQuestion | undefined {
  if (leaf.kind === 'exists' && leaf.operand.kind === 'signal') return { signal: leaf.operand.index, wanted: true };
  if (leaf.kind === 'compare' && (leaf.op === '==' || leaf.op === '!=')) {
    const [signal, other] = leaf.left.kind === 'signal' ? [leaf.left, leaf.right] : [leaf.right, leaf.left];
    if (signal.kind !== 'signal' || other.kind !== 'constant') return undefined;
    return { signal: signal.index, among: [other.value], wanted: leaf.op === '==' };
  }
  if (leaf.kind !== 'in' || leaf.value.kind !== 'signal' || leaf.list.kind !== 'constant') return undefined;
  return Array.isArray(leaf.list.value)
    ? { signal: leaf.value.index, among: leaf.list.value, wanted: true }
    : undefined;
}

interface DirectReads {
  readonly signals: readonly number[];
  readonly properties: readonly number[];
  readonly aggregates: readonly Expression[];
}

/** What an expression itself reads: what its signals and properties were worked out from is of no matter where they are recorded. */
function readsIn(expression: Expression): DirectReads {
  switch (expression.kind) {
    case 'signal':
      return { ...NO_READS, signals: [expression.index] };
    case 'property':
      return { ...NO_READS, properties: [expression.index] };
    case 'aggregate':
      return { ...NO_READS, aggregates: [expression] };
    default: {
      const parts = operandsOf(expression).map(readsIn);
      return {
        signals: parts.flatMap(({ signals }) => signals),
        properties: parts.flatMap(({ properties }) => properties),
        aggregates: parts.flatMap(({ aggregates }) => aggregates),
      };
    }
  }
}

const NO_READS: DirectReads = Object.freeze({ signals: [], properties: [], aggregates: [] });
