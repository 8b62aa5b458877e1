import { isNumericType } from '@signalbox/plugin-api';
import type { Value, ValueType } from '@signalbox/plugin-api';
import type {
  Destination,
  Expression,
  Modifiers,
  PolicyProgram,
  PropertyRef,
  ScoreSum,
  SignalRef,
  TargetRef,
} from '../ir.ts';
import type { Span } from '../syntax/span.ts';
import type { Column, EvaluationHost } from './evaluators.ts';

/** A short way to write expressions in tests; every one of them gets this span. */
export const SPAN: Span = Object.freeze({ file: 'test.route', start: 0, end: 1 });

export const constant = (value: Value, type: ValueType = constantType(value)): Expression => ({
  kind: 'constant',
  value,
  type,
  scope: 'constant',
  span: SPAN,
});

function constantType(value: Value): ValueType {
  if (typeof value === 'number') return 'number';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'string';
  return { list: constantType(value[0] ?? '') };
}

export interface RefTable {
  readonly signals: readonly ValueType[];
  readonly properties: readonly ValueType[];
}

/** Where the expressions of a test program stand. */
export interface ProgramParts {
  readonly predicates?: readonly Expression[];
  readonly values?: readonly Expression[];
  readonly filters?: readonly Expression[];
  readonly scores?: readonly Expression[];
}

/** A program whose routes hold the given expressions and which reads signals and properties of the given types. */
export function programOf(table: RefTable, parts: ProgramParts): PolicyProgram {
  const builtin = { kind: 'builtin' } as const;
  const signals = table.signals.map((type, index): SignalRef => ({
    key: `signal_${index}`,
    type,
    known: 'maybe',
    provider: builtin,
    arguments: [],
  }));
  const properties = table.properties.map((type, index): PropertyRef => ({
    key: `property_${index}`,
    type,
    provider: builtin,
    arguments: [],
  }));
  const destination = (more: {
    readonly where?: Expression;
    readonly by?: readonly ScoreSum[];
    readonly with?: Modifiers;
  }): Destination => ({
    kind: 'destination',
    span: SPAN,
    targets: [{ target: { kind: 'any' } }],
    split: false,
    by: [],
    pick: { name: 'best', provider: builtin, options: {}, span: SPAN },
    with: {},
    ...more,
  });
  const route = (label: string, step: Destination, when?: Expression): PolicyProgram['routes'][number] => ({
    kind: 'route',
    label,
    span: SPAN,
    headSpan: SPAN,
    steps: [step],
    ...(when === undefined ? {} : { when }),
  });
  const scored = (expression: Expression): ScoreSum => ({
    span: SPAN,
    terms: [{ weight: 1, scorer: { kind: 'expression', name: 'lowest', expression, direction: 'lowest', span: SPAN } }],
  });
  return {
    irVersion: 1,
    language: 1,
    hash: '00',
    files: [{ path: SPAN.file, text: ' ' }],
    definitions: {
      gateway: {
        listen: '127.0.0.1:0',
        admin: '127.0.0.1:0',
        workers: 1,
        models: [],
        unknownModel: 'reject',
        reportModel: 'alias',
        timezone: 'UTC',
        bodyLimit: 1,
        drain: { accept: 10, grace: 300 },
        trustedProxies: [],
      },
      tiers: [],
      slos: [],
      tenants: [],
      limits: [],
      alarms: [],
      params: [],
    },
    uses: [],
    signals,
    properties,
    admission: [],
    routes: [
      ...(parts.predicates ?? []).map((when, index) => route(`when ${index}`, destination({}), when)),
      ...(parts.values ?? []).map((value, index) =>
        route(`value ${index}`, destination({ with: { set: [{ field: 'x', value }] } })),
      ),
      ...(parts.filters ?? []).map((where, index) => route(`where ${index}`, destination({ where }))),
      ...(parts.scores ?? []).map((score, index) => route(`by ${index}`, destination({ by: [scored(score)] }))),
    ],
  };
}

/** What a test host holds: signals by index, properties by index and then slot, pools by target name (`any` for every endpoint). */
export interface HostData {
  readonly signals: readonly (Value | undefined)[];
  readonly properties: readonly (readonly (Value | undefined)[])[];
  readonly pools: { readonly [name: string]: readonly number[] };
}

/**
 * A host over plain arrays that keeps no more of its promises than it must: a column holds a wrong value for every slot that was not
 * asked for, and all pools are one object, overwritten by the next call.
 */
export function hostOf(program: PolicyProgram, targets: readonly TargetRef[], data: HostData): EvaluationHost {
  const numeric = (type: ValueType | undefined): boolean => type !== undefined && isNumericType(type);
  const n = new Float64Array(program.signals.length).fill(Number.NaN);
  const v: (Value | undefined)[] = [];
  program.signals.forEach((signal, index) => {
    const value = data.signals[index];
    v.push(numeric(signal.type) ? undefined : value);
    if (numeric(signal.type)) n[index] = typeof value === 'number' ? value : Number.NaN;
  });
  const size = Math.max(0, ...data.properties.map((column) => column.length));
  const shared = { slots: new Int32Array(size), length: 0 };
  return {
    n,
    v,
    column: (property, slots, length) => {
      const isNumber = numeric(program.properties[property]?.type);
      const column: unknown[] = Array.from({ length: size }, () => (isNumber ? 424_242 : 'not asked for'));
      for (const slot of slots.subarray(0, length)) {
        const value = data.properties[property]?.[slot];
        column[slot] = isNumber && value === undefined ? Number.NaN : value;
      }
      return (isNumber ? Float64Array.from(column as number[]) : column) as unknown as Column;
    },
    pool: (target) => {
      const reference = targets[target];
      const name = reference === undefined || reference.kind === 'any' ? 'any' : reference.name;
      const slots = data.pools[name] ?? [];
      shared.slots.fill(-1);
      shared.slots.set(slots);
      shared.length = slots.length;
      return shared;
    },
  };
}
