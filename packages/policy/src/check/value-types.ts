import { isNumericType } from '@signalbox/plugin-api';
import type { ValueType } from '@signalbox/plugin-api';

/** How a type is called in messages. */
export const describeType = (type: ValueType): string => {
  if (typeof type === 'string') {
    switch (type) {
      case 'bool':
        return 'a condition (true or false)';
      case 'number':
        return 'a number';
      case 'count':
        return 'a count';
      case 'string':
        return 'a string';
      case 'duration':
        return 'a duration';
      case 'bytes':
        return 'a size in bytes';
      case 'percent':
        return 'a percent';
      case 'rate':
        return 'a rate';
      case 'money':
        return 'an amount of money';
    }
  }
  if ('enum' in type) return `one of ${type.enum.join(', ')}`;
  return `a list of ${plural(type.list)}`;
};

const plural = (type: ValueType): string => {
  if (typeof type !== 'string') return 'enum' in type ? 'names' : 'lists';
  return {
    bool: 'conditions',
    number: 'numbers',
    count: 'counts',
    string: 'strings',
    duration: 'durations',
    bytes: 'sizes',
    percent: 'percents',
    rate: 'rates',
    money: 'amounts of money',
  }[type];
};

export const isEnum = (type: ValueType): type is { readonly enum: readonly string[] } =>
  typeof type === 'object' && 'enum' in type;
export const isList = (type: ValueType): type is { readonly list: ValueType } =>
  typeof type === 'object' && 'list' in type;
/** A string or an enumeration, which is compared with strings. */
export const isText = (type: ValueType): boolean => type === 'string' || isEnum(type);
export const isNumeric = (type: ValueType): boolean => isNumericType(type);
export const isPlainNumber = (type: ValueType): boolean => type === 'number' || type === 'count';

/** Whether two values can be compared and added: equal dimensions, a count being a number, an enumeration a text. */
export const sameDimension = (a: ValueType, b: ValueType): boolean => {
  if (isPlainNumber(a)) return isPlainNumber(b);
  if (isText(a)) return isText(b);
  if (isList(a)) return isList(b) && sameDimension(a.list, b.list);
  return a === b;
};

/** The type of a value that is one of `a` or `b`, which are of the same dimension. */
export const unifyTypes = (a: ValueType, b: ValueType): ValueType => {
  if (a === b) return a;
  if (isPlainNumber(a) && isPlainNumber(b)) return 'count';
  if (isEnum(a) && isEnum(b)) {
    const both = [...new Set([...a.enum, ...b.enum])];
    return both.length === a.enum.length ? a : { enum: both };
  }
  if (isEnum(a) || isEnum(b)) return 'string';
  if (isList(a) && isList(b)) return { list: unifyTypes(a.list, b.list) };
  return a;
};

/**
 * The type of `left op right` by the algebra of units, or undefined where it has no meaning. `constant` says which sides are written
 * numbers: a percent times a written number is a percent, times any other value it is a share of that value.
 */
export const arithmeticType = (
  op: '+' | '-' | '*' | '/',
  left: ValueType,
  right: ValueType,
  constant: { readonly left: boolean; readonly right: boolean },
): ValueType | undefined => {
  if (!isNumeric(left) || !isNumeric(right)) return undefined;
  if (op === '+' || op === '-') return sameDimension(left, right) ? unifyTypes(left, right) : undefined;
  if (op === '*') {
    if (left === 'percent') return right === 'number' && constant.right ? 'percent' : right;
    if (right === 'percent') return left === 'number' && constant.left ? 'percent' : left;
    if (left === 'rate' && right === 'duration') return 'count';
    if (left === 'duration' && right === 'rate') return 'count';
    if (isPlainNumber(left)) return isPlainNumber(right) ? unifyTypes(left, right) : right;
    if (isPlainNumber(right)) return left;
    return undefined;
  }
  if (sameDimension(left, right)) return 'number';
  if (right === 'percent') return left;
  if (isPlainNumber(right)) return left;
  if (right === 'duration' && (isPlainNumber(left) || left === 'bytes')) return 'rate';
  if (right === 'rate' && (isPlainNumber(left) || left === 'bytes')) return 'duration';
  return undefined;
};

/** A canonical number as it would be written: 0.9 of a percent is `90%`, 0.5 of a duration `500ms`. */
export const formatNumber = (value: number, type: ValueType): string => {
  const plain = (n: number): string => String(Number(n.toPrecision(12)));
  switch (type) {
    case 'percent':
      return `${plain(value * 100)}%`;
    case 'duration':
      if (value !== 0 && Math.abs(value) < 1) return `${plain(value * 1000)}ms`;
      return `${plain(value)}s`;
    case 'rate':
      return `${plain(value)}/s`;
    case 'money':
      return `$${plain(value)}`;
    case 'bytes':
      return `${plain(value)} bytes`;
    default:
      return plain(value);
  }
};
