import type { Value, ValueType } from '@signalbox/plugin-api';

/** A value as a policy writes it, to the last bit: 0.9 of a percent is `90%`, 0.5 of a duration `0.5s`. */
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
      return `${decimal(inverse(value, 100, (shown) => shown / 100))}%`;
    case 'bytes':
      return `${decimal(inverse(value, 1 / 1000, (shown) => shown * 1000))}KB`;
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

/** The number from which `read` makes the value; `factor` leads near it. */
function inverse(value: number, factor: number, read: (shown: number) => number): number {
  const near = Number((value * factor).toPrecision(15));
  if (read(near) === value) return near;
  let shown = value * factor;
  for (let tries = 0; tries < 8 && read(shown) !== value; tries++)
    shown += (read(shown) < value ? 1 : -1) * Math.max(Number.MIN_VALUE, Math.abs(shown) * Number.EPSILON);
  return shown;
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
