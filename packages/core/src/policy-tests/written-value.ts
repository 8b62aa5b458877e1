import type { Value, ValueType } from '@signalbox/plugin-api';

/**
 * A value as a policy writes it: 0.9 of a percent is `90%`, 0.5 of a duration `0.5s`. The compiler reads the same value back; of a percent that no
 * number ÷ 100 makes, its neighbour.
 */
export function writtenValue(value: Value, type: ValueType): string {
  if (typeof value === 'number') return writtenNumber(value, type);
  if (Array.isArray(value)) {
    const member = typeof type === 'object' && 'list' in type ? type.list : 'string';
    return `[${value.map((one: Value) => writtenValue(one, member)).join(', ')}]`;
  }
  return JSON.stringify(value);
}

function writtenNumber(value: number, type: ValueType): string {
  switch (type) {
    case 'percent':
      return `${decimal(percentOf(value))}%`;
    case 'bytes':
      return bytesText(value);
    case 'duration':
      return `${decimal(value)}s`;
    case 'rate':
      return `${decimal(value)}/s`;
    case 'money':
      return `$${decimal(value)}`;
    default:
      return decimal(value);
  }
}

/** The number that makes the value when it is divided by 100. */
function percentOf(value: number): number {
  const near = Number((value * 100).toPrecision(15));
  if (near / 100 === value) return near;
  let shown = value * 100;
  for (let tries = 0; tries < 8 && shown / 100 !== value; tries++)
    shown += (shown / 100 < value ? 1 : -1) * Math.max(Number.MIN_VALUE, Math.abs(shown) * Number.EPSILON);
  return shown;
}

function bytesText(value: number): string {
  const unit = (
    [
      ['GB', 1e9],
      ['MB', 1e6],
      ['KB', 1e3],
    ] as const
  ).find(([, size]) => value !== 0 && value % size === 0);
  // A power of two divides without a remainder.
  return unit === undefined ? `${decimal(value / 1024)}KiB` : `${decimal(value / unit[1])}${unit[0]}`;
}

/** A finite number without an exponent, which the language has none of. */
function decimal(value: number): string {
  const [, sign = '', whole = '', fraction = '', exponent] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  if (exponent === undefined) return String(value);
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  return (
    sign + (point >= digits.length ? digits.padEnd(point, '0') : `${digits.slice(0, point)}.${digits.slice(point)}`)
  );
}
