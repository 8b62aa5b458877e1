import type { DiagnosticCode } from '../diagnostics/codes.ts';
import type { LiteralNode } from './ast.ts';
import { misspelledPeriods, ratePeriods, unitMeant, units } from './units.ts';

/** What is wrong with a number, and the text that is right for `from..to`, if that is clear. */
export interface NumberProblem {
  readonly code: DiagnosticCode;
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly help?: string;
  readonly fix?: string;
}

export interface NumberReading {
  /** UTF-16 code units taken. At least 1. */
  readonly length: number;
  /** The value meant, where the text is wrong; a plain number where nothing is clear. */
  readonly literal: LiteralNode;
  readonly problem?: NumberProblem;
}

const digitsPattern = /(?:[0-9][0-9_]*)?(?:\.[0-9][0-9_]*)*/y;
const exponentPattern = /[eE][+-]?[0-9]+/y;
const suffixPattern = /%|[A-Za-z_][A-Za-z0-9_]*/y;
const periodPattern = /\/([A-Za-z]+)(?![A-Za-z0-9_([]|\.(?!\.))/y;
/** A unit that stands apart, unless it is the key of the next entry of an object, or a call. */
const apartPattern =
  /[ \t]+(%|us|ms|s|m|h|d|k|Ki|M|Mi|B|KB|MB|GB|KiB|MiB|GiB|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|millis|milliseconds?|percent|million|billion)(?![A-Za-z0-9_])(?![ \t]*[:.(])/y;

const scaled = (value: number, unit: string): number => {
  const known = units.get(unit);
  if (known === undefined) return value;
  return known.divides === true ? value / known.factor : value * known.factor;
};

/**
 * Reads the number at `start`, which is a digit, a `$`, or a dot before a digit, with its unit. Wrong spellings are read as
 * what they mean, so that the statement can go on.
 */
export const readNumber = (text: string, start: number, file: string): NumberReading => {
  let at = start;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at += found[0].length;
    return found;
  };

  const money = text[at] === '$';
  if (money) at += 1;
  const gapStart = at;
  if (money) while (/[ \t]/.test(text[at] ?? '') && /[ \t0-9.]/.test(text[at + 1] ?? '')) at += 1;
  const gap = at - gapStart;
  const digitsStart = at;
  const digits = take(digitsPattern)?.[0] ?? '';
  const digitsEnd = at;

  let problem: NumberProblem | undefined;
  const complain = (found: NumberProblem): void => {
    problem ??= found;
  };
  const finish = (
    kind: Exclude<LiteralNode['kind'], 'string' | 'regex' | 'bool'>,
    value: number,
    of?: 'money',
  ): NumberReading => {
    const span = { file, start, end: at };
    const raw = text.slice(start, at);
    if (!Number.isFinite(value)) complain({ code: 'E0106', from: start, to: at, message: 'this number is too large' });
    const finite = Number.isFinite(value) ? value : Number.MAX_VALUE;
    const literal: LiteralNode =
      kind === 'rate' ? { kind, span, value: finite, raw, of: of ?? 'count' } : { kind, span, value: finite, raw };
    return { length: at - start, literal, ...(problem === undefined ? {} : { problem }) };
  };

  if (digits === '') {
    at = Math.max(at, start + 1);
    complain({
      code: 'E0106',
      from: start,
      to: at,
      message: 'expected an amount after `$`',
      help: 'money is written `$5`',
    });
    return finish('money', 0);
  }
  if (gap > 0) {
    complain({
      code: 'E0105',
      from: start,
      to: at,
      message: 'no space between `$` and the amount',
      fix: `$${digits}`,
    });
  }

  const plain = digits.replaceAll('_', '');
  const value = Number.parseFloat(plain.startsWith('.') ? `0${plain}` : plain);
  if (digits.startsWith('.')) {
    complain({
      code: 'E0106',
      from: digitsStart,
      to: at,
      message: 'a number has a digit before its dot',
      fix: `0${digits}`,
    });
  } else if (digits.indexOf('.') !== digits.lastIndexOf('.')) {
    complain({
      code: 'E0106',
      from: digitsStart,
      to: at,
      message: 'a number has one dot at most',
      help: 'versions and addresses are strings',
    });
  } else if (/__|_$|_\./.test(digits)) {
    complain({
      code: 'E0106',
      from: digitsStart,
      to: at,
      message: 'a `_` in a number stands singly between digits',
      fix: digits.replaceAll(/_+/g, '_').replaceAll(/_(?=\.|$)/g, ''),
    });
  } else if (text[at] === '.' && text[at + 1] !== '.' && !/[A-Za-z_]/.test(text[at + 1] ?? '')) {
    at += 1;
    complain({ code: 'E0106', from: digitsStart, to: at, message: 'a number has a digit after its dot', fix: digits });
  }

  const exponent = take(exponentPattern);
  if (exponent !== null && !/[A-Za-z_]/.test(text[at] ?? '')) {
    const whole = Number(`${plain}${exponent[0]}`);
    const written = String(whole);
    complain({
      code: 'E0106',
      from: digitsStart,
      to: at,
      message: 'numbers have no exponent',
      ...(/^[0-9.]+$/.test(written) ? { fix: written } : { help: 'write all digits, or a unit such as `k`, `M`, `B`' }),
    });
    return finish(money ? 'money' : 'number', Number.isNaN(whole) ? value : whole);
  }
  if (exponent !== null) at -= exponent[0].length;

  let unit = take(suffixPattern)?.[0];
  if (unit !== undefined && unit !== '%' && !units.has(unit)) {
    const meant = unitMeant(unit);
    complain({
      code: 'E0104',
      from: start,
      to: at,
      message: `unknown unit \`${unit}\``,
      ...(meant === undefined
        ? { help: 'durations end in us, ms, s, m, h, d; counts in k, Ki, M, Mi, B; sizes in KB, MB, GB, KiB, MiB, GiB' }
        : { fix: `${text.slice(start, digitsEnd)}${meant}` }),
    });
    unit = meant;
  } else if (unit === undefined && !money) {
    const apart = take(apartPattern);
    if (apart !== null) {
      const written = apart[1] ?? '';
      unit = written === '%' || units.has(written) ? written : unitMeant(written);
      complain({
        code: 'E0105',
        from: start,
        to: at,
        message: 'no space between a number and its unit',
        fix: `${digits}${unit ?? ''}`,
      });
    }
  }

  const known = unit === undefined ? undefined : units.get(unit);
  const beforePeriod = at;
  const period = take(periodPattern)?.[1];
  if (period !== undefined) {
    const meant = ratePeriods.has(period) ? period : misspelledPeriods.get(period.toLowerCase());
    if (meant === undefined) at = beforePeriod;
    else {
      const amount = scaled(value, unit ?? '');
      if (meant !== period) {
        complain({
          code: 'E0107',
          from: start,
          to: at,
          message: `a rate counts per s, min, h or d, not per \`${period}\``,
          fix: `${text.slice(start, beforePeriod)}/${meant}`,
        });
      } else if (unit === '%' || (known !== undefined && known.kind !== 'count')) {
        complain({
          code: 'E0107',
          from: start,
          to: at,
          message: 'a rate is a plain count, or money, per unit of time',
          help: 'such as `60/min`, `200k/min` or `$5/h`',
        });
      }
      return finish('rate', amount / (ratePeriods.get(meant) ?? 1), money ? 'money' : undefined);
    }
  }

  if (money) {
    if (known !== undefined && known.kind !== 'count') {
      complain({ code: 'E0104', from: start, to: at, message: `money has no unit \`${unit ?? ''}\`` });
      return finish('money', value);
    }
    return finish('money', scaled(value, unit ?? ''));
  }
  if (unit === '%') return finish('percent', value / 100);
  if (known !== undefined) return finish(known.kind, scaled(value, unit ?? ''));
  return finish('number', value);
};
