import type { Value, ValueType } from '@signalbox/plugin-api';
import { isNumericType } from '@signalbox/plugin-api';
import type { PropertyRef, SignalRef } from '../ir.ts';
import { interval, MAX_CHOICES, UNKNOWN_BIT, knownPart } from './region.ts';
import type { Grid, Region } from './region.ts';

/** One thing that a condition depends on and that the analysis lets take any value of its domain. */
export interface Variable {
  /** Its place among the variables of its vocabulary. */
  readonly index: number;
  /** Equal for what means the same, in whichever program it stands. */
  readonly key: string;
  /** As it is written in a policy. */
  readonly text: string;
  readonly type: ValueType;
  readonly domain: Region;
  readonly grid: Grid;
  /** The values behind the bits of a `choice`. */
  readonly choices: readonly Value[];
  /**
   * Outside what can be decided: it stands for a part of a condition whose values are tied to others in a way that is not modelled. That
   * no choice of its value satisfies something is a proof; that some choice does is none.
   */
  readonly opaque: boolean;
  readonly signal?: SignalRef;
}

export type VariableShape = Omit<Variable, 'index'>;

/** Variables by key, shared by all conditions that are looked at together. */
export interface Vocabulary {
  readonly variables: readonly Variable[];
  variable(key: string, make: () => VariableShape): Variable;
}

export function createVocabulary(): Vocabulary {
  const variables: Variable[] = [];
  const byKey = new Map<string, Variable>();
  return {
    variables,
    variable(key, make) {
      let variable = byKey.get(key);
      if (variable === undefined) {
        variable = { ...make(), index: variables.length };
        variables.push(variable);
        byKey.set(key, variable);
      }
      return variable;
    },
  };
}

type Range = readonly [low: number, high: number, grid: Grid];

const ANY: Range = [-Infinity, Infinity, 'real'];
const FROM_ZERO: Range = [0, Infinity, 'real'];
const WHOLE: Range = [0, 2 ** 53, 'whole'];

/**
 * What built-in numbers can be, from the catalogue's definitions. `max_tokens` and `deadline` are as callers send them and have no
 * limit; token counts may be estimates with a fraction.
 */
const RANGES: { readonly [key: string]: Range } = Object.freeze({
  complexity: [0, 100, 'real'],
  'complexity.textbook': FROM_ZERO,
  questions: WHOLE,
  words: WHOLE,
  turns: WHOLE,
  tools: WHOLE,
  images: WHOLE,
  prompt_tokens: FROM_ZERO,
  prompt_chars: FROM_ZERO,
  output_tokens: FROM_ZERO,
  session_tokens: FROM_ZERO,
  hour: [0, 23, 'whole'],
  usage: FROM_ZERO,
  'tenant.weight': FROM_ZERO,
  'cluster.saturation': FROM_ZERO,
  'cluster.queue_depth': FROM_ZERO,
  'cluster.inflight_requests': WHOLE,
  'cluster.healthy': [0, 1, 'real'],
  'cluster.requests_per_second': FROM_ZERO,
});

/** Sizes, shares, durations and amounts of an endpoint are not below zero; a plain number may be anything. */
const isNeverNegative = (type: ValueType): boolean => isNumericType(type) && type !== 'number';

interface Shape {
  readonly domain: Region;
  readonly grid: Grid;
  readonly choices: readonly Value[];
}

/** The values of a type: numbers within `range`. */
export function shapeOf(type: ValueType, known: boolean, range: Range = ANY): Shape {
  const withUnknown = (domain: Region): Region => {
    if (known) return knownPart(domain);
    return domain.kind === 'choice'
      ? { kind: 'choice', mask: domain.mask | UNKNOWN_BIT }
      : { ...domain, unknown: true };
  };
  if (isNumericType(type)) {
    const [low, high, grid] = range;
    return { domain: withUnknown(interval(low, high, grid)), grid, choices: [] };
  }
  const choices: readonly Value[] | undefined =
    type === 'bool'
      ? [false, true]
      : typeof type === 'object' && 'list' in type
        ? ['']
        : typeof type === 'object' && type.enum.length <= MAX_CHOICES
          ? type.enum
          : undefined;
  if (choices !== undefined)
    return { domain: withUnknown({ kind: 'choice', mask: 2 ** choices.length - 1 }), grid: 'real', choices };
  const members: ReadonlySet<string> = new Set(typeof type === 'object' && 'enum' in type ? type.enum : []);
  return {
    domain: withUnknown({ kind: 'text', members, others: members.size === 0, unknown: false }),
    grid: 'real',
    choices: [],
  };
}

/** A signal as a variable. A condition that a plugin computes is opaque; its numbers and texts are taken as free. */
export function signalShape(signal: SignalRef, key: string): VariableShape {
  const range = RANGES[signal.key];
  return {
    key,
    text: signalText(signal),
    type: signal.type,
    ...shapeOf(signal.type, signal.known === 'always', range),
    opaque: signal.type === 'bool' && signal.provider.kind === 'plugin',
    signal,
  };
}

/** A property of the endpoint in hand as a variable. */
export function propertyShape(property: PropertyRef, key: string): VariableShape {
  const builtin = property.provider.kind === 'builtin';
  return {
    key,
    text: signalText(property),
    type: property.type,
    ...shapeOf(property.type, false, builtin && isNeverNegative(property.type) ? FROM_ZERO : ANY),
    opaque: property.type === 'bool' && !builtin,
  };
}

/** The member of a choice as its bit; 0 for a value that is none. */
export const choiceBit = (variable: Variable, value: Value): number => {
  const at = variable.choices.indexOf(value);
  return at < 0 ? 0 : 1 << at;
};

const INDEXED: ReadonlySet<string> = new Set(['header', 'metadata']);

/** A signal or property as it is written in a policy. */
export function signalText(ref: SignalRef | PropertyRef): string {
  const shown = ref.arguments.map((argument) => {
    switch (argument.kind) {
      case 'value':
        return { name: argument.name, text: JSON.stringify(argument.value) };
      case 'definition':
        return { name: undefined, text: JSON.stringify(argument.of) };
      case 'target':
        return {
          name: undefined,
          text:
            argument.target.kind === 'any' ? 'any' : `${argument.target.kind} ${JSON.stringify(argument.target.name)}`,
        };
      case 'expression':
        return { name: argument.name, text: '…' };
    }
  });
  const [first] = shown;
  if (first === undefined) return ref.key;
  if (INDEXED.has(ref.key)) return `${ref.key}[${first.text}]`;
  const parts = shown.map(({ name, text }) => (name === undefined || name === 'window' ? text : `${name}: ${text}`));
  return `${ref.key}(${parts.join(', ')})`;
}
