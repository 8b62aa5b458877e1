import { suggest } from '../diagnostics/suggest.ts';
import type { BuiltinFunction, Expression, TargetRef } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgNode, CallNode, ExprNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { ratePeriods, units } from '../syntax/units.ts';
import { isAggregate, isConversion, functionNames } from './catalogue/functions.ts';
import type { Aggregate, Conversion } from './catalogue/functions.ts';
import { reportMismatch } from './mismatch.ts';
import { fold, isConstant, joinScopes } from './fold.ts';
import { checkEntry, holdsAggregate } from './names.ts';
import { reportUnknownName, resolveName } from './resolve-name.ts';
import { elaborate } from './session.ts';
import type { Place, Session } from './session.ts';
import { checkTargetExpression, looksLikeTarget } from './targets.ts';
import { describeType, isNumeric, isText, sameDimension, unifyTypes } from './value-types.ts';

const rejectNames = (session: Session, place: Place, name: string, items: readonly ArgNode[]): boolean => {
  const named = items.find((item) => item.name !== undefined);
  if (named?.name === undefined) return false;
  session.report('E0310', place.inlineAt ?? named.name.span, `\`${name}\` has no argument \`${named.name.text}\``, {
    help: 'its arguments have no names',
  });
  return true;
};

/** `name(arguments)` as a value. */
export const checkCall = (session: Session, place: Place, node: CallNode): Expression | undefined => {
  const name = node.callee.text;
  const span = place.inlineAt ?? node.span;
  const resolved = resolveName(session, place.block, node.callee);
  if (resolved.kind === 'poison') return undefined;
  if (resolved.kind === 'table') {
    const isRoot = resolved.table === session.catalogue;
    if (isRoot && functionNames.has(name)) session.observer?.word(node.callee.span, name);
    const entry = resolved.table.values.get(resolved.name);
    if (isRoot && name === 'clamp') return checkValueFunction(session, place, node, 'clamp', span);
    if (isRoot && isAggregate(name)) {
      const plain = node.args.items.filter((item) => !looksLikeTarget(place.block, item.value));
      const isComparison = (name === 'min' || name === 'max') && plain.length >= 2;
      return isComparison
        ? checkValueFunction(session, place, node, name, span)
        : checkAggregate(session, place, node, name, span);
    }
    if (isRoot && isConversion(name)) return checkConversion(session, place, node, name, span);
    if (entry !== undefined) return checkEntry(session, place, entry, name, span, node.args);
    const what = resolved.table.scorers.has(resolved.name)
      ? ['scorer', '`by`']
      : resolved.table.pickers.has(resolved.name)
        ? ['picker', '`pick`']
        : resolved.table.admissions.has(resolved.name)
          ? ['queue order', '`queue … by`']
          : undefined;
    if (what !== undefined) {
      session.report(
        'E0334',
        span,
        `\`${name}\` is a ${what[0] ?? ''}, which stands after ${what[1] ?? ''} and is no value`,
      );
      return undefined;
    }
    if (isRoot && (name === 'lowest' || name === 'highest')) {
      session.report('E0334', span, `\`${name}(…)\` makes a scorer, which stands after \`by\` and is no value`, {
        help: `for a value over a pool write \`${name === 'lowest' ? 'min' : 'max'}(…)\``,
      });
      return undefined;
    }
  }
  if (resolved.kind === 'binding') {
    session.report('E0309', place.inlineAt ?? node.args.span, `\`${name}\` takes no arguments`, {
      labels: [{ span: resolved.binding.span, message: 'defined here' }],
    });
    return undefined;
  }
  const callable = [...session.catalogue.values.values()]
    .filter((entry) => entry.parameters.length > 0 || entry.options !== undefined)
    .map((entry) => entry.name);
  reportUnknownName(session, place.block, node.callee, place.inlineAt ?? node.callee.span, {
    code: 'E0208',
    what: 'function',
    candidates: [[...functionNames, ...callable]],
  });
  return undefined;
};

const checkValueFunction = (
  session: Session,
  place: Place,
  node: CallNode,
  name: 'min' | 'max' | 'clamp',
  span: Span,
): Expression | undefined => {
  const { items } = node.args;
  if (rejectNames(session, place, name, items)) return undefined;
  if (name === 'clamp' && items.length !== 3) {
    session.report(
      'E0309',
      place.inlineAt ?? node.args.span,
      `\`clamp\` takes three arguments, and ${items.length === 0 ? 'none is' : items.length === 1 ? 'one is' : `${items.length} are`} given`,
      { help: 'write `clamp(x, low, high)`' },
    );
    return undefined;
  }
  const values: Expression[] = [];
  for (const item of items) {
    if (looksLikeTarget(place.block, item.value)) {
      session.report('E0309', place.inlineAt ?? item.value.span, `\`${name}\` of several values takes no target`, {
        help: `a pool is aggregated by one value: \`${name}(queue_depth, tier "…")\``,
      });
      return undefined;
    }
    const value = elaborate(session, place, item.value);
    if (value === undefined) continue;
    if (!isNumeric(value.type)) {
      session.report(
        'E0311',
        place.inlineAt ?? item.value.span,
        `\`${name}\` takes numbers, and this is ${describeType(value.type)}`,
      );
      continue;
    }
    values.push(value);
  }
  const [first] = values;
  if (first === undefined || values.length < items.length) return undefined;
  let { type } = first;
  for (const [index, value] of values.entries()) {
    if (!sameDimension(type, value.type)) {
      const firstNode = items[0]?.value ?? node;
      const otherNode = items[index]?.value ?? node;
      reportMismatch(session, place, { node: firstNode, type }, { node: otherNode, type: value.type }, otherNode.span);
      return undefined;
    }
    type = unifyTypes(type, value.type);
  }
  const [, low, high] = values;
  if (
    name === 'clamp' &&
    low !== undefined &&
    high !== undefined &&
    isConstant(low) &&
    isConstant(high) &&
    low.value > high.value
  ) {
    session.report('E0312', span, 'the lower limit of `clamp` is above the upper one');
    return undefined;
  }
  return fold({
    kind: 'call',
    function: name satisfies BuiltinFunction,
    arguments: values,
    type,
    scope: joinScopes(...values),
    span,
  });
};

const checkAggregate = (
  session: Session,
  place: Place,
  node: CallNode,
  name: Aggregate,
  span: Span,
): Expression | undefined => {
  const { items } = node.args;
  if (rejectNames(session, place, name, items)) return undefined;
  const [first, second] = items;
  if (first === undefined || items.length > 2) {
    session.report(
      'E0309',
      place.inlineAt ?? node.args.span,
      `\`${name}\` over a pool takes an expression and, if wanted, a target`,
      {
        help: `write \`${name}(${name === 'any' || name === 'all' || name === 'count' ? 'healthy' : 'queue_depth'}, tier "…")\``,
      },
    );
    return undefined;
  }
  if (place.scope === 'constant') {
    session.report('E0328', span, 'an aggregate over endpoints is no constant');
    return undefined;
  }
  if (place.insideAggregate === true) {
    session.report('E0332', span, 'aggregates do not nest');
    return undefined;
  }
  const body = elaborate(session, { ...place, scope: 'candidate', insideAggregate: true, clause: name }, first.value);
  let target: TargetRef | undefined;
  if (second !== undefined) {
    target = checkTargetExpression(session, place.block, second.value);
    if (target === undefined) return undefined;
  }
  if (body === undefined) return undefined;
  const at = place.inlineAt ?? first.value.span;
  if (body.scope !== 'candidate') {
    session.report(
      'E0307',
      at,
      `\`${name}\` ranges over endpoints, and \`${session.textOf(first.value.span)}\` reads no property of one`,
      { help: 'name a property such as `queue_depth`, or compare two values by `min(a, b)`' },
    );
    return undefined;
  }
  if (holdsAggregate(body)) {
    session.report('E0332', at, 'aggregates do not nest');
    return undefined;
  }
  const needsBool = name === 'count' || name === 'any' || name === 'all';
  if (needsBool ? body.type !== 'bool' : !isNumeric(body.type)) {
    session.report(
      'E0311',
      at,
      `\`${name}\` takes ${needsBool ? 'a condition on an endpoint' : 'a number of an endpoint'}, and this is ${describeType(body.type)}`,
    );
    return undefined;
  }
  const type = name === 'count' ? 'count' : needsBool ? 'bool' : body.type;
  return {
    kind: 'aggregate',
    function: name,
    body,
    ...(target === undefined || target.kind === 'any' ? {} : { target }),
    type,
    scope: 'request',
    span,
  };
};

const DURATIONS: ReadonlyMap<string, number> = new Map(
  [...units]
    .filter(([, unit]) => unit.kind === 'duration')
    .map(([name, unit]) => [name, unit.divides === true ? 1 / unit.factor : unit.factor]),
);

const durationUnit = (session: Session, place: Place, node: ExprNode): number | undefined => {
  const inner = withoutParens(node);
  const written = inner.kind === 'name' ? inner.text : inner.kind === 'string' ? inner.value : undefined;
  const seconds = written === undefined ? undefined : (DURATIONS.get(written) ?? ratePeriods.get(written));
  if (seconds !== undefined) return seconds;
  const near = written === undefined ? undefined : suggest(written, DURATIONS.keys());
  session.report(
    'E0311',
    place.inlineAt ?? node.span,
    'the second argument of `duration` is a unit: `us`, `ms`, `s`, `m`, `h` or `d`',
    near === undefined ? {} : { help: `did you mean \`${near}\`?` },
  );
  return undefined;
};

const checkConversion = (
  session: Session,
  place: Place,
  node: CallNode,
  name: Conversion,
  span: Span,
): Expression | undefined => {
  const { items } = node.args;
  if (rejectNames(session, place, name, items)) return undefined;
  const wanted = name === 'duration' || name === 'list' ? 2 : 1;
  const [first, second] = items;
  if (first === undefined || items.length !== wanted) {
    session.report(
      'E0309',
      place.inlineAt ?? node.args.span,
      `\`${name}\` takes ${wanted === 1 ? 'one argument' : 'two arguments'}, and ${items.length === 0 ? 'none is' : items.length === 1 ? 'one is' : `${items.length} are`} given`,
      {
        help: {
          number: 'write `number(header["x"])`',
          duration: 'write `duration(header["x"], ms)`',
          bool: 'write `bool(header["x"])`',
          list: 'write `list(header["x"], ",")`',
          lower: 'write `lower(header["x"])`',
        }[name],
      },
    );
    return undefined;
  }
  const text = elaborate(session, place, first.value);
  const at = place.inlineAt ?? first.value.span;
  if (text !== undefined && !isText(text.type)) {
    session.report('E0311', at, `\`${name}\` converts a text, and this is ${describeType(text.type)}`);
    return undefined;
  }
  let extra: Expression | undefined;
  if (second !== undefined && name === 'duration') {
    const seconds = durationUnit(session, place, second.value);
    if (seconds === undefined) return undefined;
    extra = {
      kind: 'constant',
      value: seconds,
      type: 'number',
      scope: 'constant',
      span: place.inlineAt ?? second.value.span,
    };
  } else if (second !== undefined) {
    extra = elaborate(session, { ...place, scope: 'constant' }, second.value);
    if (extra === undefined) return undefined;
    if (!isConstant(extra) || typeof extra.value !== 'string' || extra.value === '') {
      session.report(
        'E0311',
        place.inlineAt ?? second.value.span,
        'the second argument of `list` is the text between two members, such as `","`',
      );
      return undefined;
    }
  }
  if (text === undefined) return undefined;
  const type = name === 'lower' ? 'string' : name === 'list' ? ({ list: 'string' } as const) : name;
  return fold({
    kind: 'call',
    function: name,
    arguments: extra === undefined ? [text] : [text, extra],
    type,
    scope: text.scope,
    span,
  });
};
