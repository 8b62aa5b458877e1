import type { Json, Value } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Expression, RefArgument } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgNode, ArgsNode, ExprNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import type { CatalogueEntry, Parameter } from './catalogue/entries.ts';
import { checkEnumMember } from './mismatch.ts';
import { isConstant } from './fold.ts';
import { checkOptionArgs } from './options.ts';
import { elaborate } from './session.ts';
import type { Place, Session } from './session.ts';
import { checkTargetExpression } from './targets.ts';
import { normaliseWindow, isTimeZone } from './time-window.ts';
import { describeType, formatNumber, isEnum, sameDimension } from './value-types.ts';

export interface CheckedArguments {
  readonly arguments: readonly RefArgument[];
  readonly options?: { readonly [name: string]: Json };
}

/** Arguments sorted to parameters: by position first, then by name. Undefined where an error has been reported. */
const bindArguments = (
  session: Session,
  place: Place,
  parameters: readonly { readonly name: string; readonly optional?: boolean }[],
  name: string,
  span: Span,
  args: ArgsNode | undefined,
): ReadonlyMap<string, ArgNode> | undefined => {
  const bound = new Map<string, ArgNode>();
  let fine = true;
  let named = false;
  let position = 0;
  for (const item of args?.items ?? []) {
    const at = place.inlineAt ?? item.span;
    if (item.name === undefined) {
      if (named) {
        fine = false;
        session.report('E0336', at, 'an argument without a name follows one with a name', {
          help: 'put it first, or give it its name',
        });
        continue;
      }
      const parameter = parameters[position];
      position += 1;
      if (parameter === undefined) {
        fine = false;
        const most = parameters.length;
        session.report(
          'E0309',
          at,
          `\`${name}\` takes ${most === 0 ? 'no arguments' : most === 1 ? 'one argument' : `up to ${most} arguments`}`,
        );
        break;
      }
      bound.set(parameter.name, item);
      continue;
    }
    named = true;
    const written = item.name.text;
    const parameter = parameters.find((known) => known.name === written);
    if (parameter === undefined) {
      fine = false;
      const near = suggest(
        written,
        parameters.map((known) => known.name),
      );
      session.report(
        'E0310',
        place.inlineAt ?? item.name.span,
        `\`${name}\` has no argument \`${written}\``,
        near === undefined
          ? {
              help:
                parameters.length === 0
                  ? 'it takes none'
                  : `it has ${parameters.map((known) => `\`${known.name}\``).join(', ')}`,
            }
          : {
              help: `did you mean \`${near}\`?`,
              fix: { message: `write \`${near}\``, edits: [{ span: item.name.span, text: near }] },
            },
      );
      continue;
    }
    const before = bound.get(written);
    if (before !== undefined) {
      fine = false;
      session.report('E0336', at, `the argument \`${written}\` is given twice`, {
        labels: [{ span: before.span, message: 'first given here' }],
      });
      continue;
    }
    bound.set(written, item);
  }
  if (!fine) return undefined;
  for (const parameter of parameters) {
    if (parameter.optional === true || bound.has(parameter.name)) continue;
    session.report(
      'E0337',
      place.inlineAt ?? args?.span ?? span,
      `\`${name}\` needs its argument \`${parameter.name}\``,
    );
    fine = false;
  }
  return fine ? bound : undefined;
};

const checkRange = (session: Session, span: Span, parameter: Parameter, value: number): boolean => {
  const type = parameter.type ?? 'number';
  if (parameter.minimum !== undefined && value < parameter.minimum) {
    session.report('E0329', span, `\`${parameter.name}\` is at least ${formatNumber(parameter.minimum, type)}`);
    return false;
  }
  if (parameter.maximum !== undefined && value > parameter.maximum) {
    session.report('E0329', span, `\`${parameter.name}\` is at most ${formatNumber(parameter.maximum, type)}`);
    return false;
  }
  if (parameter.whole === true && !Number.isInteger(value)) {
    session.report('E0329', span, `\`${parameter.name}\` is a whole number`);
    return false;
  }
  return true;
};

/** Checks the type of an argument; reports where it is wrong. */
const hasType = (
  session: Session,
  place: Place,
  name: string,
  parameter: Parameter,
  expression: Expression,
  node: ExprNode,
): boolean => {
  const { type } = parameter;
  if (type === undefined) return true;
  const span = place.inlineAt ?? node.span;
  if (!sameDimension(type, expression.type)) {
    const literal = withoutParens(node);
    const asPercent =
      type === 'percent' && literal.kind === 'number'
        ? formatNumber(literal.value > 1 ? literal.value / 100 : literal.value, 'percent')
        : undefined;
    session.report(
      asPercent === undefined ? 'E0311' : 'E0305',
      span,
      `\`${parameter.name}\` of \`${name}\` is ${describeType(type)}, and this is ${describeType(expression.type)}`,
      asPercent === undefined
        ? {}
        : {
            help: `write \`${asPercent}\``,
            fix: { message: `write \`${asPercent}\``, edits: [{ span: literal.span, text: asPercent }] },
          },
    );
    return false;
  }
  return !isEnum(type) || checkEnumMember(session, place, type, expression, node, parameter.name);
};

const asArgument = (name: string, expression: Expression): RefArgument =>
  isConstant(expression) ? { kind: 'value', name, value: expression.value } : { kind: 'expression', name, expression };

const textOfConstant = (session: Session, place: Place, name: string, node: ExprNode): string | undefined => {
  const expression = elaborate(session, { ...place, scope: 'constant' }, node);
  if (expression === undefined) return undefined;
  if (isConstant(expression) && typeof expression.value === 'string') return expression.value;
  session.report(
    isConstant(expression) ? 'E0311' : 'E0328',
    place.inlineAt ?? node.span,
    `\`${name}\` is a constant text`,
  );
  return undefined;
};

const checkArgument = (
  session: Session,
  place: Place,
  name: string,
  parameter: Parameter,
  node: ExprNode,
): readonly RefArgument[] | undefined => {
  const span = place.inlineAt ?? node.span;
  const request: Place = { ...place, scope: place.scope === 'candidate' ? 'request' : place.scope, clause: name };
  switch (parameter.kind) {
    case 'value': {
      const expression = elaborate(session, { ...place, scope: 'constant' }, node);
      if (expression === undefined || !hasType(session, place, name, parameter, expression, node)) return undefined;
      if (!isConstant(expression)) {
        session.report('E0328', span, `\`${parameter.name}\` of \`${name}\` is a constant`);
        return undefined;
      }
      if (typeof expression.value === 'number' && !checkRange(session, span, parameter, expression.value))
        return undefined;
      return [{ kind: 'value', name: parameter.name, value: expression.value }];
    }
    case 'expression': {
      const expression = elaborate(session, request, node);
      if (expression === undefined || !hasType(session, place, name, parameter, expression, node)) return undefined;
      return [asArgument(parameter.name, expression)];
    }
    case 'key': {
      const inner = withoutParens(node);
      const parts = inner.kind === 'list' ? inner.items : [node];
      if (parts.length === 0) {
        session.report('E0337', span, `the key of \`${name}\` has no parts`);
        return undefined;
      }
      const found: RefArgument[] = [];
      for (const part of parts) {
        const expression = elaborate(session, request, part);
        if (expression !== undefined) found.push({ kind: 'expression', name: parameter.name, expression });
      }
      return found.length < parts.length ? undefined : found;
    }
    case 'slo':
    case 'limit': {
      const text = textOfConstant(session, place, parameter.name, node);
      if (text === undefined) return undefined;
      const names = parameter.kind === 'slo' ? session.defined.slos : session.defined.limits;
      const definition = names.get(text);
      if (definition === undefined) {
        if (!session.incomplete && !session.defined.lost.has(parameter.kind)) {
          const near = suggest(text, names.keys());
          session.report(
            parameter.kind === 'slo' ? 'E0221' : 'E0222',
            span,
            `no \`define ${parameter.kind} ${JSON.stringify(text)}\` is known`,
            near === undefined
              ? {}
              : {
                  help: `did you mean \`${near}\`?`,
                  fix: {
                    message: `write \`${JSON.stringify(near)}\``,
                    edits: [{ span: node.span, text: JSON.stringify(near) }],
                  },
                },
          );
        }
        return undefined;
      }
      definition.used = true;
      session.observer?.defined(parameter.kind, text, node.span);
      return [{ kind: 'definition', name: parameter.name, definition: parameter.kind, of: text }];
    }
    case 'target': {
      const target = checkTargetExpression(session, place.block, node);
      return target === undefined ? undefined : [{ kind: 'target', name: parameter.name, target }];
    }
    case 'window': {
      const text = textOfConstant(session, place, parameter.name, node);
      if (text === undefined) return undefined;
      const window = normaliseWindow(text);
      if (typeof window === 'string') return [{ kind: 'value', name: parameter.name, value: window }];
      session.report('E0327', span, `\`${text}\` is no window of time: ${window.problem}`, {
        help: 'write it as in `mon-fri 22:00-06:00`',
      });
      return undefined;
    }
    case 'zone': {
      const text = textOfConstant(session, place, parameter.name, node);
      if (text === undefined) return undefined;
      if (isTimeZone(text)) return [{ kind: 'value', name: parameter.name, value: text }];
      session.report('E0327', span, `\`${text}\` is no known time zone`, { help: 'write it as in `Europe/Berlin`' });
      return undefined;
    }
  }
};

/** `prefix(2k)` and `prefix(tokens: 512)` come to one argument, the number of characters. */
const prefixLength = (
  session: Session,
  span: Span,
  found: readonly RefArgument[],
): readonly RefArgument[] | undefined => {
  const valueOf = (name: string): Value | undefined => {
    const argument = found.find((candidate) => candidate.name === name);
    return argument?.kind === 'value' ? argument.value : undefined;
  };
  const chars = valueOf('chars');
  const tokens = valueOf('tokens');
  if (chars !== undefined && tokens !== undefined) {
    session.report('E0309', span, '`prefix` takes characters or tokens, not both');
    return undefined;
  }
  const length = typeof tokens === 'number' ? tokens * 4 : typeof chars === 'number' ? chars : 2000;
  return [{ kind: 'value', name: 'chars', value: Math.round(length) }];
};

/** The arguments of a catalogue name, with defaults, in the order of its parameters. Undefined where an error has been reported. */
export const checkArguments = (
  session: Session,
  place: Place,
  entry: CatalogueEntry,
  name: string,
  span: Span,
  args: ArgsNode | undefined,
): CheckedArguments | undefined => {
  if (place.inlineAt === undefined) session.observer?.entry(span, entry, args);
  if (entry.provider.kind === 'plugin' && entry.provider.use !== undefined) session.usedPlugins.add(entry.provider.use);
  if (entry.options !== undefined) {
    const { options: schema, parameters } = entry;
    const isOption = (item: ArgNode): boolean =>
      parameters.length === 0 ||
      (item.name !== undefined && !parameters.some((parameter) => parameter.name === item.name?.text));
    const part = (wanted: boolean): ArgsNode | undefined =>
      args === undefined ? undefined : { ...args, items: args.items.filter((item) => isOption(item) === wanted) };
    const options = checkOptionArgs(session, place, schema, entry.positional ?? [], name, span, part(true));
    const rest = checkParameters(session, place, entry, name, span, part(false));
    return options === undefined || rest === undefined ? undefined : { arguments: rest, options };
  }
  const found = checkParameters(session, place, entry, name, span, args);
  return found === undefined ? undefined : { arguments: found };
};

const checkParameters = (
  session: Session,
  place: Place,
  entry: CatalogueEntry,
  name: string,
  span: Span,
  args: ArgsNode | undefined,
): readonly RefArgument[] | undefined => {
  const bound = bindArguments(session, place, entry.parameters, name, span, args);
  if (bound === undefined) return undefined;
  const found: RefArgument[] = [];
  let fine = true;
  for (const parameter of entry.parameters) {
    const item = bound.get(parameter.name);
    if (item === undefined) {
      if (parameter.kind === 'zone')
        found.push({ kind: 'value', name: parameter.name, value: session.defined.timezone });
      else if (parameter.default !== undefined)
        found.push({ kind: 'value', name: parameter.name, value: parameter.default as Value });
      continue;
    }
    const checked = checkArgument(session, place, name, parameter, item.value);
    if (checked === undefined) fine = false;
    else found.push(...checked);
  }
  if (!fine) return undefined;
  if (entry.provider.kind === 'builtin' && entry.name === 'prefix') {
    return prefixLength(session, place.inlineAt ?? args?.span ?? span, found);
  }
  return found;
};
