import type { ValueType } from '@signalbox/plugin-api';
import type { DiagnosticFix } from '../diagnostics/diagnostic.ts';
import { suggest } from '../diagnostics/suggest.ts';
import type { Expression } from '../ir.ts';
import { isLiteral, withoutParens } from '../syntax/ast.ts';
import type { ExprNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { isConstant } from './fold.ts';
import type { Place, Session } from './session.ts';
import { describeType, isEnum, isNumeric, isPlainNumber } from './value-types.ts';

export const spanAt = (place: Place, span: Span): Span => place.inlineAt ?? span;

const literalPercent = (value: number): string => {
  const percent = value > 1 ? value : value * 100;
  return `${String(Number(percent.toPrecision(12)))}%`;
};

/** The literal that a node is, without parentheses and sign. */
const literalOf = (node: ExprNode): ExprNode => withoutParens(node);

export const replaceBy = (span: Span, text: string): DiagnosticFix => ({
  message: `write \`${text}\``,
  edits: [{ span, text }],
});

/** Reports why two values cannot be compared, added or stand for each other. */
export const reportMismatch = (
  session: Session,
  place: Place,
  left: { readonly node: ExprNode; readonly type: ValueType },
  right: { readonly node: ExprNode; readonly type: ValueType },
  whole: Span,
  code: 'E0302' | 'E0317' | 'E0301' = 'E0302',
): void => {
  const at = (span: Span): Span => spanAt(place, span);
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const literal = literalOf(other.node);
    const text = session.textOf(one.node.span);
    if (one.type === 'percent' && isPlainNumber(other.type)) {
      if (literal.kind === 'number' || literal.kind === 'count') {
        const written = literalPercent(literal.value);
        session.report(
          'E0305',
          at(literal.span),
          `\`${text}\` is a percent, and \`${literal.raw}\` is a plain number`,
          {
            help: `write \`${written}\``,
            fix: replaceBy(literal.span, written),
          },
        );
      } else {
        session.report(
          'E0305',
          at(other.node.span),
          `\`${text}\` is a percent, and \`${session.textOf(other.node.span)}\` is a plain number`,
          {
            help: 'make both a percent: multiply the number by `1%`, or divide two values of one kind',
          },
        );
      }
      return;
    }
    if (isPlainNumber(one.type) && literal.kind === 'percent') {
      const written = String(Number((literal.value * 100).toPrecision(12)));
      session.report('E0305', at(literal.span), `\`${text}\` is a plain number, and \`${literal.raw}\` is a percent`, {
        help: `write \`${written}\``,
        fix: replaceBy(literal.span, written),
      });
      return;
    }
    if (isPlainNumber(one.type) && literal.kind === 'duration' && /^[0-9_.]+m$/.test(literal.raw)) {
      const written = `${literal.raw.slice(0, -1)}M`;
      session.report(
        'E0303',
        at(literal.span),
        `\`${text}\` is ${describeType(one.type)}, and \`${literal.raw}\` is ${literal.raw.slice(0, -1)} minutes`,
        {
          help: `did you mean \`${written}\`, ${literal.raw === '5m' ? 'five' : literal.raw.slice(0, -1)} million?`,
          fix: replaceBy(literal.span, written),
        },
      );
      return;
    }
    if (one.type === 'duration' && literal.kind === 'count' && /^[0-9_.]+M$/.test(literal.raw)) {
      const written = `${literal.raw.slice(0, -1)}m`;
      session.report(
        code,
        at(literal.span),
        `\`${text}\` is a duration, and \`${literal.raw}\` is ${literal.raw.slice(0, -1)} million`,
        {
          help: `did you mean \`${written}\`, ${literal.raw.slice(0, -1)} minutes?`,
          fix: replaceBy(literal.span, written),
        },
      );
      return;
    }
    if (literal.kind === 'number' && isNumeric(one.type) && !isPlainNumber(one.type)) {
      const unit =
        {
          duration: `${literal.raw}ms\` or \`${literal.raw}s`,
          bytes: `${literal.raw}MB\` or \`${literal.raw}GB`,
          rate: `${literal.raw}/s\` or \`${literal.raw}/min`,
          money: `$${literal.raw}`,
        }[one.type as string] ?? literal.raw;
      session.report(
        code,
        at(literal.span),
        `\`${text}\` is ${describeType(one.type)}, and \`${literal.raw}\` has no unit`,
        {
          help: `write \`${unit}\``,
        },
      );
      return;
    }
    if (one.type === 'string' && isNumeric(other.type) && code === 'E0302' && literalOf(one.node).kind !== 'string') {
      const conversion = isPlainNumber(other.type)
        ? `number(${text})`
        : other.type === 'duration'
          ? `duration(${text}, ms)`
          : undefined;
      session.report(
        'E0301',
        at(isLiteral(literal) ? literal.span : whole),
        `\`${text}\` is a string, and \`${session.textOf(other.node.span)}\` is ${describeType(other.type)}`,
        conversion === undefined ? {} : { help: `convert the string: \`${conversion}\`` },
      );
      return;
    }
  }
  const units = isNumeric(left.type) && isNumeric(right.type);
  const [one, other] =
    isLiteral(literalOf(left.node)) && !isLiteral(literalOf(right.node)) ? [right, left] : [left, right];
  const literal = literalOf(other.node);
  const isQuoted = literal.kind === 'string' && isNumeric(one.type) && /^[0-9]/.test(literal.value);
  session.report(
    units || code === 'E0317' ? code : 'E0301',
    at(isLiteral(literal) && !isLiteral(literalOf(one.node)) ? literal.span : whole),
    `\`${session.textOf(one.node.span)}\` is ${describeType(one.type)}, and \`${session.textOf(other.node.span)}\` is ${describeType(other.type)}`,
    {
      help: isQuoted
        ? 'numbers are written without quotes'
        : units
          ? 'both sides need the same unit'
          : 'both sides need the same type',
    },
  );
};

/** Checks that a constant text is a member of the enumeration; reports and gives false where it is not. */
export const checkEnumMember = (
  session: Session,
  place: Place,
  type: ValueType,
  value: Expression,
  node: ExprNode,
  subject: string,
): boolean => {
  if (!isEnum(type) || !isConstant(value) || typeof value.value !== 'string' || type.enum.includes(value.value))
    return true;
  const near = suggest(value.value, type.enum);
  const literal = withoutParens(node);
  session.report('E0304', spanAt(place, node.span), `\`${subject}\` is never \`${value.value}\``, {
    help:
      near === undefined
        ? `it is one of ${type.enum.join(', ')}`
        : `did you mean \`${near}\`? It is one of ${type.enum.join(', ')}`,
    ...(near !== undefined && literal.kind === 'string' ? { fix: replaceBy(literal.span, JSON.stringify(near)) } : {}),
  });
  return false;
};
