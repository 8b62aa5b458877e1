import type { ValueType } from '@signalbox/plugin-api';
import type { Expression } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type {
  ArithmeticNode,
  CoalesceNode,
  CompareNode,
  ContainsNode,
  ExprNode,
  InNode,
  ListNode,
  LogicNode,
  MatchesNode,
} from '../syntax/ast.ts';
import { checkCall } from './calls.ts';
import { constantOf, fold, isConstant, joinScopes } from './fold.ts';
import { checkIndex, checkName, checkRef } from './names.ts';
import { checkRegex } from './regex-safety.ts';
import type { Place, Session } from './session.ts';
import {
  arithmeticType,
  describeType,
  formatNumber,
  isEnum,
  isList,
  isNumeric,
  isText,
  sameDimension,
  unifyTypes,
} from './value-types.ts';
import { spanAt, replaceBy, reportMismatch, checkEnumMember } from './mismatch.ts';

/**
 * The typed expression of a node, names resolved and constants folded, or undefined where an error in it has been reported. One error
 * gives one finding: what contains a wrong part says nothing of its own.
 */
export const checkExpression = (session: Session, place: Place, node: ExprNode): Expression | undefined => {
  const span = spanAt(place, node.span);
  switch (node.kind) {
    case 'number':
      // A number with a unit that is none, or with two dots, has its finding from the lexer.
      return /[A-Za-z]|\..*\./.test(node.raw.replace(/[eE]\d+$/, ''))
        ? undefined
        : constantOf(node.value, 'number', span);
    case 'count':
      return constantOf(node.value, 'count', span);
    case 'duration':
    case 'bytes':
    case 'percent':
    case 'money':
    case 'string':
    case 'bool':
      return constantOf(node.value, node.kind, span);
    case 'rate':
      if (node.of === 'money') {
        session.report(
          'E0301',
          span,
          `\`${node.raw}\` is money per time, which stands only in the \`cost\` of a limit`,
        );
        return undefined;
      }
      return constantOf(node.value, 'rate', span);
    case 'regex':
      session.report('E0301', span, 'a regular expression stands only after `matches`', {
        help: 'write `prompt matches r"…"`',
      });
      return undefined;
    case 'name':
      return checkName(session, place, node);
    case 'call':
      return checkCall(session, place, node);
    case 'index':
      return checkIndex(session, place, node);
    case 'ref':
      return checkRef(session, place, node);
    case 'list':
      return checkList(session, place, node);
    case 'object':
      session.report('E0301', span, 'an object is no value in an expression');
      return undefined;
    case 'paren':
      return checkExpression(session, place, node.inner);
    case 'negate': {
      const operand = checkExpression(session, place, node.operand);
      if (operand === undefined) return undefined;
      if (!isNumeric(operand.type)) {
        session.report(
          'E0301',
          spanAt(place, node.operand.span),
          `\`-\` takes a number, and this is ${describeType(operand.type)}`,
        );
        return undefined;
      }
      return fold({ kind: 'negate', operand, type: operand.type, scope: operand.scope, span });
    }
    case 'arithmetic':
      return checkArithmetic(session, place, node);
    case 'coalesce':
      return checkCoalesce(session, place, node);
    case 'compare':
      return checkCompare(session, place, node);
    case 'in':
      return checkIn(session, place, node);
    case 'matches':
      return checkMatches(session, place, node);
    case 'contains':
      return checkContains(session, place, node);
    case 'exists': {
      const operand = checkExpression(session, place, node.subject);
      if (operand === undefined) return undefined;
      return fold({ kind: 'exists', operand, type: 'bool', scope: operand.scope, span });
    }
    case 'not': {
      const operand = checkCondition(session, place, node.operand, 'after `not`');
      if (operand === undefined) return undefined;
      return fold({ kind: 'not', operand, type: 'bool', scope: operand.scope, span });
    }
    case 'and':
    case 'or':
      return checkLogic(session, place, node);
  }
};

/** Like `checkExpression`, for a place that needs a condition. */
export const checkCondition = (
  session: Session,
  place: Place,
  node: ExprNode,
  where: string,
): Expression | undefined => {
  const expression = checkExpression(session, place, node);
  if (expression === undefined) return undefined;
  if (expression.type === 'bool') return expression;
  const text = session.textOf(node.span);
  session.report(
    'E0308',
    spanAt(place, node.span),
    `${where} stands a condition, and \`${text}\` is ${describeType(expression.type)}`,
    {
      help: isNumeric(expression.type)
        ? `compare it with something: \`${text} > …\``
        : isText(expression.type)
          ? `compare it with something: \`${text} == "…"\`, or ask whether it is known: \`${text} exists\``
          : `ask for a member: \`${text} contains …\``,
    },
  );
  return undefined;
};

const checkLogic = (session: Session, place: Place, node: LogicNode): Expression | undefined => {
  const operands: Expression[] = [];
  for (const operand of node.operands) {
    const checked = checkCondition(session, place, operand, `on both sides of \`${node.kind}\``);
    if (checked !== undefined) operands.push(checked);
  }
  if (operands.length < node.operands.length) return undefined;
  return fold({
    kind: node.kind,
    operands,
    type: 'bool',
    scope: joinScopes(...operands),
    span: spanAt(place, node.span),
  });
};

const checkList = (session: Session, place: Place, node: ListNode): Expression | undefined => {
  const span = spanAt(place, node.span);
  const members: Expression[] = [];
  let wrong = false;
  for (const item of node.items) {
    const member = checkExpression(session, place, item);
    if (member === undefined) {
      wrong = true;
      continue;
    }
    const [first] = members;
    if (first !== undefined && !sameDimension(first.type, member.type)) {
      wrong = true;
      session.report(
        'E0333',
        spanAt(place, item.span),
        `this is ${describeType(member.type)} in a list that begins with ${describeType(first.type)}`,
        {
          labels: [{ span: first.span, message: describeType(first.type) }],
          help: 'all items of a list have one type',
        },
      );
      continue;
    }
    members.push(member);
  }
  if (wrong) return undefined;
  const type = members.reduce<ValueType | undefined>(
    (all, member) => (all === undefined ? member.type : unifyTypes(all, member.type)),
    undefined,
  );
  return fold({ kind: 'list', members, type: { list: type ?? 'string' }, scope: joinScopes(...members), span });
};

const checkEnumPair = (
  session: Session,
  place: Place,
  left: Expression,
  leftNode: ExprNode,
  right: Expression,
  rightNode: ExprNode,
): boolean => {
  if (!checkEnumMember(session, place, left.type, right, rightNode, session.textOf(leftNode.span))) return false;
  if (!checkEnumMember(session, place, right.type, left, leftNode, session.textOf(rightNode.span))) return false;
  return true;
};

/** Shares that are parts of a whole; load and saturation may well be above 100 %. */
const PARTS_OF_A_WHOLE: ReadonlySet<string> = new Set(['kv_cache_used', 'prefix_hit', 'error_rate', 'cluster.healthy']);

const warnOfLargeShare = (
  session: Session,
  place: Place,
  value: Expression,
  limit: Expression,
  limitNode: ExprNode,
): void => {
  if (!isConstant(limit) || typeof limit.value !== 'number' || limit.value <= 1 || place.inlineAt !== undefined) return;
  const key =
    value.kind === 'property'
      ? session.properties[value.index]?.key
      : value.kind === 'signal'
        ? session.signals[value.index]?.key
        : undefined;
  if (key === undefined || !PARTS_OF_A_WHOLE.has(key)) return;
  session.report(
    'W0512',
    limitNode.span,
    `\`${key}\` is never above 100%, and this is ${formatNumber(limit.value, 'percent')}`,
  );
};

const checkCompare = (session: Session, place: Place, node: CompareNode): Expression | undefined => {
  const left = checkExpression(session, place, node.left);
  const right = checkExpression(session, place, node.right);
  if (left === undefined || right === undefined) return undefined;
  const span = spanAt(place, node.span);
  if (!sameDimension(left.type, right.type)) {
    reportMismatch(
      session,
      place,
      { node: node.left, type: left.type },
      { node: node.right, type: right.type },
      node.span,
    );
    return undefined;
  }
  const ordered = node.operator !== '==' && node.operator !== '!=';
  if (ordered && isText(left.type)) {
    const numberish = [node.left, node.right].some((side) => {
      const literal = withoutParens(side);
      return literal.kind === 'string' && literal.value.trim() !== '' && Number.isFinite(Number(literal.value));
    });
    session.report(
      'E0313',
      spanAt(place, node.operatorSpan),
      `\`${node.operator}\` orders numbers, and strings have no order`,
      {
        help: numberish
          ? `convert the string, and write the number without quotes: \`number(${session.textOf(node.left.span)}) ${node.operator} …\``
          : 'compare strings by `==`, `!=` or `in`',
      },
    );
    return undefined;
  }
  if (isList(left.type) || (ordered && left.type === 'bool')) {
    session.report('E0301', span, `\`${node.operator}\` does not compare ${describeType(left.type)} with another`, {
      help: isList(left.type)
        ? 'ask for a member by `contains` or `in`'
        : 'compare conditions by `==`, or join them by `and` and `or`',
    });
    return undefined;
  }
  if (!checkEnumPair(session, place, left, node.left, right, node.right)) return undefined;
  warnOfLargeShare(session, place, left, right, node.right);
  warnOfLargeShare(session, place, right, left, node.left);
  return fold({ kind: 'compare', op: node.operator, left, right, type: 'bool', scope: joinScopes(left, right), span });
};

const checkArithmetic = (session: Session, place: Place, node: ArithmeticNode): Expression | undefined => {
  const left = checkExpression(session, place, node.left);
  const right = checkExpression(session, place, node.right);
  if (left === undefined || right === undefined) return undefined;
  const span = spanAt(place, node.span);
  const op = node.operator;
  const constant = { left: isConstant(left), right: isConstant(right) };
  const type = arithmeticType(op, left.type, right.type, constant);
  if (type === undefined) {
    const notNumeric = !isNumeric(left.type)
      ? { node: node.left, type: left.type }
      : !isNumeric(right.type)
        ? { node: node.right, type: right.type }
        : undefined;
    if (notNumeric !== undefined) {
      session.report(
        'E0301',
        spanAt(place, notNumeric.node.span),
        `\`${op}\` takes numbers, and \`${session.textOf(notNumeric.node.span)}\` is ${describeType(notNumeric.type)}`,
        notNumeric.type === 'string'
          ? { help: `convert the string: \`number(${session.textOf(notNumeric.node.span)})\`` }
          : {},
      );
    } else if (op === '+' || op === '-') {
      reportMismatch(
        session,
        place,
        { node: node.left, type: left.type },
        { node: node.right, type: right.type },
        node.span,
      );
    } else {
      session.report(
        'E0321',
        span,
        `${describeType(left.type)} ${op === '*' ? 'times' : 'divided by'} ${describeType(right.type)} has no meaning`,
        {
          help: 'one side is a plain number or a percent, or the units cancel out',
        },
      );
    }
    return undefined;
  }
  if (op === '/' && isConstant(right) && right.value === 0) {
    session.report('E0329', spanAt(place, node.right.span), 'division by zero');
    return undefined;
  }
  return fold({ kind: 'arithmetic', op, left, right, type, scope: joinScopes(left, right), span });
};

const checkCoalesce = (session: Session, place: Place, node: CoalesceNode): Expression | undefined => {
  const operands = node.operands.map((operand) => checkExpression(session, place, operand));
  let result: Expression | undefined;
  for (const [index, operand] of operands.entries()) {
    if (operand === undefined) return undefined;
    if (result === undefined) {
      result = operand;
      continue;
    }
    const operandNode = node.operands[index] ?? node;
    const firstNode = node.operands[0] ?? node;
    if (!sameDimension(result.type, operand.type)) {
      reportMismatch(
        session,
        place,
        { node: firstNode, type: result.type },
        { node: operandNode, type: operand.type },
        operandNode.span,
        'E0317',
      );
      return undefined;
    }
    if (!checkEnumMember(session, place, result.type, operand, operandNode, session.textOf(firstNode.span)))
      return undefined;
    const type = isEnum(result.type) && isConstant(operand) ? result.type : unifyTypes(result.type, operand.type);
    const span = spanAt(place, { ...node.span, end: operandNode.span.end });
    result = fold({ kind: 'coalesce', left: result, right: operand, type, scope: joinScopes(result, operand), span });
  }
  return result;
};

const checkIn = (session: Session, place: Place, node: InNode): Expression | undefined => {
  const span = spanAt(place, node.span);
  const value = checkExpression(session, place, node.subject);
  const negate = (inner: Expression): Expression =>
    node.negated ? fold({ kind: 'not', operand: inner, type: 'bool', scope: inner.scope, span }) : inner;
  if (node.set.kind === 'range') {
    const low = checkExpression(session, place, node.set.low);
    const high = checkExpression(session, place, node.set.high);
    if (value === undefined || low === undefined || high === undefined) return undefined;
    for (const [end, endNode] of [
      [low, node.set.low],
      [high, node.set.high],
    ] as const) {
      if (isText(value.type) && isText(end.type)) {
        session.report('E0313', spanAt(place, node.set.span), 'a range orders numbers, and strings have no order', {
          help: 'list the strings: `in ["a", "b"]`',
        });
        return undefined;
      }
      if (!sameDimension(value.type, end.type)) {
        reportMismatch(
          session,
          place,
          { node: node.subject, type: value.type },
          { node: endNode, type: end.type },
          node.span,
        );
        return undefined;
      }
    }
    if (!isNumeric(value.type)) {
      session.report(
        'E0301',
        spanAt(place, node.subject.span),
        `a range holds numbers, and this is ${describeType(value.type)}`,
      );
      return undefined;
    }
    if (isConstant(low) && isConstant(high) && low.value > high.value) {
      const lowText = session.textOf(node.set.low.span);
      const highText = session.textOf(node.set.high.span);
      session.report(
        'E0312',
        spanAt(place, node.set.span),
        `the range runs from \`${lowText}\` down to \`${highText}\``,
        {
          help: `write \`${highText}..${lowText}\`; hours over midnight are written by \`within\``,
          fix: replaceBy(node.set.span, `${session.rawOf(node.set.high.span)}..${session.rawOf(node.set.low.span)}`),
        },
      );
      return undefined;
    }
    return negate(fold({ kind: 'between', value, low, high, type: 'bool', scope: joinScopes(value, low, high), span }));
  }
  const list = checkExpression(session, place, node.set);
  if (value === undefined || list === undefined) return undefined;
  if (!isList(list.type)) {
    const text = session.textOf(node.set.span);
    session.report(
      'E0314',
      spanAt(place, node.set.span),
      `\`in\` needs a list or a range, and \`${text}\` is ${describeType(list.type)}`,
      {
        help:
          isText(list.type) && isText(value.type)
            ? `write \`[${text}]\`, or ask for a part of a string by \`contains\``
            : `write \`[${text}]\` or \`a..b\``,
        ...(withoutParens(node.set).kind === 'string' ? { fix: replaceBy(node.set.span, `[${text}]`) } : {}),
      },
    );
    return undefined;
  }
  const isEmpty = isConstant(list) && Array.isArray(list.value) && list.value.length === 0;
  if (!isEmpty && !sameDimension(value.type, list.type.list)) {
    const listNode = withoutParens(node.set);
    const member = listNode.kind === 'list' ? listNode.items[0] : undefined;
    reportMismatch(
      session,
      place,
      { node: node.subject, type: value.type },
      { node: member ?? node.set, type: member === undefined ? list.type : list.type.list },
      node.span,
    );
    return undefined;
  }
  if (isEnum(value.type)) {
    const listNode = withoutParens(node.set);
    if (listNode.kind === 'list') {
      let fine = true;
      for (const item of listNode.items) {
        const literal = withoutParens(item);
        if (literal.kind !== 'string') continue;
        fine =
          checkEnumMember(
            session,
            place,
            value.type,
            constantOf(literal.value, 'string', item.span),
            item,
            session.textOf(node.subject.span),
          ) && fine;
      }
      if (!fine) return undefined;
    }
  }
  if (
    isEnum(list.type.list) &&
    !checkEnumMember(session, place, list.type.list, value, node.subject, session.textOf(node.set.span))
  )
    return undefined;
  return negate(fold({ kind: 'in', value, list, type: 'bool', scope: joinScopes(value, list), span }));
};

const checkMatches = (session: Session, place: Place, node: MatchesNode): Expression | undefined => {
  const value = checkExpression(session, place, node.subject);
  const safe = checkRegex(session, node.regex, spanAt(place, node.regex.span));
  if (value === undefined || !safe) return undefined;
  if (!isText(value.type)) {
    const text = session.textOf(node.subject.span);
    session.report(
      'E0315',
      spanAt(place, node.subject.span),
      `\`matches\` searches a string, and \`${text}\` is ${describeType(value.type)}`,
    );
    return undefined;
  }
  const signal = value.kind === 'signal' ? session.signals[value.index] : undefined;
  const entry = signal === undefined ? undefined : session.catalogue.values.get(signal.key);
  const prompt = entry?.kind === 'signal' && entry.longText;
  return {
    kind: 'matches',
    value,
    pattern: node.regex.source,
    flags: node.regex.flags,
    prompt,
    type: 'bool',
    scope: value.scope,
    span: spanAt(place, node.span),
  };
};

const checkContains = (session: Session, place: Place, node: ContainsNode): Expression | undefined => {
  const value = checkExpression(session, place, node.subject);
  const part = checkExpression(session, place, node.item);
  if (value === undefined || part === undefined) return undefined;
  const text = session.textOf(node.subject.span);
  const inner = isList(value.type) ? value.type.list : isText(value.type) ? 'string' : undefined;
  if (inner === undefined) {
    session.report(
      'E0316',
      spanAt(place, node.subject.span),
      `\`contains\` looks into a string or a list, and \`${text}\` is ${describeType(value.type)}`,
    );
    return undefined;
  }
  const isEmpty = isConstant(value) && Array.isArray(value.value) && value.value.length === 0;
  if (!isEmpty && !sameDimension(inner, part.type)) {
    session.report(
      'E0316',
      spanAt(place, node.item.span),
      `\`${text}\` holds ${isList(value.type) ? `${describeType(inner)} each` : 'text'}, and \`${session.textOf(node.item.span)}\` is ${describeType(part.type)}`,
    );
    return undefined;
  }
  if (isList(value.type) && !checkEnumMember(session, place, inner, part, node.item, text)) return undefined;
  return fold({
    kind: 'contains',
    value,
    part,
    type: 'bool',
    scope: joinScopes(value, part),
    span: spanAt(place, node.span),
  });
};
