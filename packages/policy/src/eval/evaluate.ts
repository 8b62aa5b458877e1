import { isKnown, isNumericType } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { BuiltinFunction, Expression } from '../ir.ts';
import type { Column, EvaluationHost } from './evaluators.ts';
import { compilePattern } from './linear-pattern.ts';
import type { Pattern } from './linear-pattern.ts';
import { candidateProperties, EVERY_ENDPOINT, targetKey } from './reads.ts';
import { compareValues } from './compare-values.ts';
import { matchesPrompt, matchesText, sameValue, toBool, toDuration, toList, toLower, toNumber } from './runtime.ts';

/** A boolean leaf (a bool that is not `and`, `or` or `not`) as it was evaluated. */
export interface TraceLeaf {
  readonly expression: Expression;
  /** `undefined` is unknown. */
  readonly value: boolean | undefined;
  /** The direct operands with their values; for a signal or property the leaf itself. */
  readonly operands: readonly { readonly expression: Expression; readonly value: Value | undefined }[];
  /** The endpoint in hand; absent at request scope. */
  readonly slot?: number;
}

/** Takes each boolean leaf as it is evaluated. */
export type TraceSink = (leaf: TraceLeaf) => void;

/** What an expression is evaluated against. */
export interface Frame {
  readonly host: EvaluationHost;
  /** Pool indices by `targetKey`. */
  readonly pools: ReadonlyMap<string, number>;
  readonly trace: TraceSink | undefined;
  /** Compiled patterns by `matches` expression, filled as they are met. */
  readonly patterns: WeakMap<Expression, Pattern>;
  /** The endpoint in hand, -1 for none. */
  readonly slot: number;
  readonly columns: ReadonlyMap<number, Column>;
}

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>;
type Aggregate = Of<'aggregate'>;
/** Kleene's three values. */
export type Truth = boolean | undefined;

/** The value of an expression; NaN for numbers and `undefined` for all else is unknown. */
export function evaluate(expression: Expression, frame: Frame): Value | undefined {
  if (expression.type === 'bool') return truthOf(expression, frame);
  const result = valueOf(expression, frame);
  return isNumericType(expression.type) && result === undefined ? Number.NaN : result;
}

/** Whether a bool is known true. */
export function isTrue(expression: Expression, frame: Frame): boolean {
  return truthOf(expression, frame) === true;
}

function truthOf(expression: Expression, frame: Frame): Truth {
  switch (expression.kind) {
    case 'and':
      return connect(expression.operands, frame, false);
    case 'or':
      return connect(expression.operands, frame, true);
    case 'not': {
      const operand = truthOf(expression.operand, frame);
      return operand === undefined ? undefined : !operand;
    }
    default: {
      const value = leafTruth(expression, frame);
      frame.trace?.(traceLeaf(expression, value, frame));
      return value;
    }
  }
}

/** `and` (decided by a false) or `or` (decided by a true). */
function connect(operands: readonly Expression[], frame: Frame, decisive: boolean): Truth {
  let result: Truth = !decisive;
  for (const operand of operands) {
    const value = truthOf(operand, frame);
    if (value === decisive) {
      result = decisive;
      if (frame.trace === undefined) return result;
    } else if (value === undefined && result !== decisive) {
      result = undefined;
    }
  }
  return result;
}

function traceLeaf(expression: Expression, value: Truth, frame: Frame): TraceLeaf {
  const quiet: Frame = { ...frame, trace: undefined };
  const operands = tracedOperands(expression).map((operand) => ({
    expression: operand,
    value: evaluate(operand, quiet),
  }));
  return { expression, value, operands, ...(frame.slot < 0 ? {} : { slot: frame.slot }) };
}

function tracedOperands(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'compare':
    case 'coalesce':
      return [expression.left, expression.right];
    case 'between':
      return [expression.value, expression.low, expression.high];
    case 'in':
      return [expression.value, expression.list];
    case 'matches':
      return [expression.value];
    case 'contains':
      return [expression.value, expression.part];
    case 'exists':
      return [expression.operand];
    case 'call':
      return expression.arguments;
    case 'signal':
    case 'property':
      return [expression];
    default:
      return [];
  }
}

function leafTruth(expression: Expression, frame: Frame): Truth {
  const quiet: Frame = frame.trace === undefined ? frame : { ...frame, trace: undefined };
  switch (expression.kind) {
    case 'compare':
      return compare(expression, quiet);
    case 'between': {
      const value = known(expression.value, quiet);
      const low = known(expression.low, quiet);
      const high = known(expression.high, quiet);
      const above = value === undefined || low === undefined ? undefined : low <= value;
      const below = value === undefined || high === undefined ? undefined : value <= high;
      if (above === false || below === false) return false;
      return above === undefined || below === undefined ? undefined : true;
    }
    case 'in':
      return isMember(expression.value, expression.list, quiet);
    case 'contains': {
      if (typeof expression.value.type === 'object' && 'list' in expression.value.type) {
        return isMember(expression.part, expression.value, quiet);
      }
      const text = known(expression.value, quiet);
      const part = known(expression.part, quiet);
      return typeof text === 'string' && typeof part === 'string' ? text.includes(part) : undefined;
    }
    case 'matches': {
      const text = known(expression.value, quiet);
      if (typeof text !== 'string') return undefined;
      const pattern = patternOf(expression, quiet);
      return expression.prompt ? matchesPrompt(pattern, text) : matchesText(pattern, text);
    }
    case 'exists':
      return known(expression.operand, quiet) !== undefined;
    default: {
      const value = valueOf(expression, quiet);
      return typeof value === 'boolean' ? value : undefined;
    }
  }
}

function patternOf(expression: Of<'matches'>, frame: Frame): Pattern {
  let pattern = frame.patterns.get(expression);
  if (pattern === undefined) {
    pattern = compilePattern(expression.pattern, expression.flags);
    frame.patterns.set(expression, pattern);
  }
  return pattern;
}

/** The value, with `undefined` for unknown whatever the type. */
function known(expression: Expression, frame: Frame): Value | undefined {
  const value = evaluate(expression, frame);
  return isKnown(value) ? value : undefined;
}

function compare(expression: Of<'compare'>, frame: Frame): Truth {
  const left = known(expression.left, frame);
  const right = known(expression.right, frame);
  if (left === undefined || right === undefined) return undefined;
  return compareValues(expression.op, left, right);
}

function isMember(needle: Expression, list: Expression, frame: Frame): Truth {
  const value = known(needle, frame);
  const members = list.kind === 'list' ? list.members.map((member) => known(member, frame)) : known(list, frame);
  if (value === undefined || typeof members !== 'object') return undefined;
  const found = members.some((member) => isKnown(member) && sameValue(member, value));
  if (found) return true;
  return members.every(isKnown) ? false : undefined;
}

/** The value of anything that is not logic; `undefined` or NaN is unknown. */
function valueOf(expression: Expression, frame: Frame): Value | undefined {
  switch (expression.kind) {
    case 'constant':
      return expression.value;
    case 'signal':
      return isNumericType(expression.type) ? frame.host.n[expression.index] : frame.host.v[expression.index];
    case 'property':
      return columnOf(expression.index, frame)[frame.slot];
    case 'negate': {
      const operand = numberOf(expression.operand, frame);
      return operand === undefined ? undefined : -operand;
    }
    case 'arithmetic':
      return arithmetic(expression, frame);
    case 'coalesce':
      return known(expression.left, frame) ?? known(expression.right, frame);
    case 'list': {
      const members = expression.members.map((member) => known(member, frame));
      return members.every(isKnown) ? Object.freeze(members) : undefined;
    }
    case 'call':
      return call(expression.function, expression.arguments, frame);
    case 'aggregate':
      return aggregate(expression, frame);
    default:
      return truthOf(expression, frame);
  }
}

function columnOf(property: number, frame: Frame): Column {
  const column = frame.columns.get(property);
  if (column === undefined) throw new TypeError('A property of one endpoint is read where no endpoint is in hand.');
  return column;
}

/** A number, or a bool as 1 or 0; `undefined` is unknown. */
function numberOf(expression: Expression, frame: Frame): number | undefined {
  const value = known(expression, frame);
  return value === undefined ? undefined : Number(value);
}

function arithmetic(expression: Of<'arithmetic'>, frame: Frame): number | undefined {
  const left = numberOf(expression.left, frame);
  const right = numberOf(expression.right, frame);
  if (left === undefined || right === undefined) return undefined;
  return finite(apply(expression.op, left, right));
}

function apply(op: '+' | '-' | '*' | '/', left: number, right: number): number {
  switch (op) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
  }
}

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

function call(name: BuiltinFunction, operands: readonly Expression[], frame: Frame): Value | undefined {
  const values = operands.map((operand) => known(operand, frame));
  if (!values.every(isKnown)) return undefined;
  const numbers = values.map(Number);
  const [first, second] = values;
  const text = typeof first === 'string' ? first : undefined;
  switch (name) {
    case 'min':
      return numbers.reduce((least, value) => (value < least ? value : least));
    case 'max':
      return numbers.reduce((most, value) => (value > most ? value : most));
    case 'clamp': {
      const [value = Number.NaN, low = Number.NaN, high = Number.NaN] = numbers;
      if (value > high || low > high) return high;
      return value < low ? low : value;
    }
    case 'number':
      return toNumber(text);
    case 'duration':
      return toDuration(text, typeof second === 'number' ? second : Number.NaN);
    case 'bool':
      return toBool(text);
    case 'list':
      return toList(text, typeof second === 'string' ? second : undefined);
    case 'lower':
      return toLower(text);
  }
}

/** One member of a pool for which an aggregate's body was evaluated; `undefined` or NaN is unknown. */
export interface PoolMember {
  readonly slot: number;
  readonly value: Value | undefined;
}

/** The body of an aggregate evaluated for each endpoint of its pool. */
export function poolMembers(expression: Aggregate, frame: Frame): readonly PoolMember[] {
  const index = frame.pools.get(targetKey(expression.target ?? EVERY_ENDPOINT));
  if (index === undefined) throw new TypeError('An aggregate ranges over a pool that its program does not list.');
  const pool = frame.host.pool(index);
  const slots = pool.slots.slice(0, pool.length);
  const columns = new Map(
    candidateProperties(expression.body).map((property) => [
      property,
      frame.host.column(property, slots, slots.length),
    ]),
  );
  return Array.from(slots, (slot) => ({
    slot,
    value: known(expression.body, { ...frame, trace: undefined, slot, columns }),
  }));
}

function aggregate(expression: Aggregate, frame: Frame): Value | undefined {
  const all = poolMembers(expression, frame).map((member) => member.value);
  const values = all.filter(isKnown);
  const numbers = values.map(Number);
  const hasUnknown = values.length < all.length;
  switch (expression.function) {
    case 'count':
      return values.filter((value) => value === true).length;
    case 'any':
      if (values.includes(true)) return true;
      return hasUnknown || all.length === 0 ? undefined : false;
    case 'all':
      if (values.includes(false)) return false;
      return hasUnknown || all.length === 0 ? undefined : true;
    case 'sum':
      if (all.length === 0) return 0;
      return numbers.length === 0 ? undefined : finite(total(numbers));
    case 'avg':
      return numbers.length === 0 ? undefined : finite(total(numbers) / numbers.length);
    case 'min':
      return numbers.length === 0 ? undefined : numbers.reduce((least, value) => (value < least ? value : least));
    case 'max':
      return numbers.length === 0 ? undefined : numbers.reduce((most, value) => (value > most ? value : most));
  }
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, value) => sum + value, 0);
