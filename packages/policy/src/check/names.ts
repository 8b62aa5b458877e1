import type { ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Expression, TargetRef } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgsNode, IndexNode, NameNode, RefNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { checkArguments } from './arguments.ts';
import { builtin } from './catalogue/entries.ts';
import type { PropertyEntry, SignalEntry } from './catalogue/entries.ts';
import { functionNames } from './catalogue/functions.ts';
import { copyExpression } from './copy-expression.ts';
import { operandsOf } from '../operands-of.ts';
import { constantOf } from './fold.ts';
import { inlineValue } from './inline.ts';
import type { Binding, Block, Place, Session } from './session.ts';
import { checkTargetName } from './targets.ts';
import { isNumeric } from './value-types.ts';
import { resolveName, reportUnknownName } from './resolve-name.ts';

const MAX_INLINED = 20_000;

const MAX_INLINED_DEPTH = 400;

const visibleBindings = function* (block: Block): Iterable<string> {
  for (let at: Block | undefined = block; at !== undefined; at = at.parent) yield* at.bindings.keys();
};

/** Names that may stand in an expression of this scope, nearest scope first. */
const valueNames = (session: Session, place: Place): readonly (readonly string[])[] => {
  const signals: string[] = [];
  const properties: string[] = [];
  for (const entry of session.catalogue.values.values())
    (entry.kind === 'signal' ? signals : properties).push(entry.name);
  const own = [...visibleBindings(place.block)];
  const functions = [...functionNames];
  return place.scope === 'candidate' || place.insideAggregate === true
    ? [[...own, ...properties, ...signals, ...functions]]
    : [[...own, ...signals, ...functions], properties];
};

const exampleTier = (session: Session): string => [...session.defined.tiers.keys()][0] ?? '70B';

const propertyAdvice = (session: Session, text: string, type: ValueType): string => {
  const aggregate = type === 'bool' ? 'any' : isNumeric(type) ? 'min' : undefined;
  return aggregate === undefined
    ? 'use it in `where`'
    : `use it in \`where\`, or aggregate it: \`${aggregate}(${text}, tier ${JSON.stringify(exampleTier(session))})\``;
};

/** Whether a property may stand at the place; reports and gives false where not. */
const allowsProperty = (session: Session, place: Place, span: Span, text: string, type: ValueType): boolean => {
  if (place.scope === 'candidate') return true;
  session.report(
    'E0306',
    span,
    `\`${text}\` is a property of one endpoint, and \`${place.clause}\` is about the request`,
    {
      help: propertyAdvice(session, text, type),
    },
  );
  return false;
};

const allowsSignal = (
  session: Session,
  place: Place,
  entry: { readonly global: boolean },
  span: Span,
  text: string,
): boolean => {
  if (place.scope === 'constant') {
    session.report('E0328', span, `\`${text}\` is known only when a request arrives, and this place takes a constant`);
    return false;
  }
  if (place.scope === 'cluster' && !entry.global) {
    session.report('E0338', span, `\`${text}\` belongs to a request, and \`${place.clause}\` is computed without one`, {
      help: 'cluster values, aggregates over endpoints and the time may stand here',
    });
    return false;
  }
  return true;
};

/** Finds the first part of an expression that the place does not allow, for a `let` that is used there. */
const findMisplaced = (session: Session, place: Place, expression: Expression): Expression | undefined => {
  if (place.scope === 'candidate') return undefined;
  if (expression.kind === 'property') return expression;
  if (expression.kind === 'signal') {
    if (place.scope === 'request') return undefined;
    const key = session.signals[expression.index]?.key;
    const entry = key === undefined ? undefined : session.catalogue.values.get(key);
    const global =
      key !== undefined && (/^(alarm|param|cluster)\./.test(key) || (entry?.kind === 'signal' && entry.global));
    return place.scope === 'cluster' && global ? undefined : expression;
  }
  if (expression.kind === 'aggregate') return place.scope === 'constant' ? expression : undefined;
  for (const operand of operandsOf(expression)) {
    const found = findMisplaced(session, place, operand);
    if (found !== undefined) return found;
  }
  return undefined;
};

const useBinding = (
  session: Session,
  place: Place,
  binding: Binding,
  node: NameNode,
  span: Span,
): Expression | undefined => {
  switch (binding.kind) {
    case 'value': {
      const misplaced = findMisplaced(session, place, binding.expression);
      if (misplaced !== undefined) {
        if (misplaced.kind === 'property') {
          session.report(
            'E0306',
            span,
            `\`${node.text}\` reads \`${session.textOf(misplaced.span)}\`, a property of one endpoint, and \`${place.clause}\` is about the request`,
            {
              labels: [{ span: misplaced.span, message: 'the property is read here' }],
              help: propertyAdvice(session, node.text, binding.expression.type),
            },
          );
        } else if (place.scope === 'cluster') {
          session.report(
            'E0338',
            span,
            `\`${node.text}\` belongs to a request, and \`${place.clause}\` is computed without one`,
            {
              labels: [{ span: misplaced.span, message: 'the request is read here' }],
            },
          );
        } else {
          session.report(
            'E0328',
            span,
            `\`${node.text}\` is known only when a request arrives, and this place takes a constant`,
          );
        }
        return undefined;
      }
      if (place.insideAggregate === true && holdsAggregate(binding.expression)) {
        session.report('E0332', span, `\`${node.text}\` is an aggregate itself, and aggregates do not nest`, {
          labels: [{ span: binding.span, message: 'defined here' }],
        });
        return undefined;
      }
      if (binding.size > MAX_INLINED || binding.depth > MAX_INLINED_DEPTH) {
        session.report(
          'E0142',
          span,
          binding.size > MAX_INLINED
            ? `\`${node.text}\` stands for an expression of more than ${MAX_INLINED} parts`
            : `\`${node.text}\` stands for an expression nested more than ${MAX_INLINED_DEPTH} deep`,
          {
            help: 'each use of a `let` counts with all that it stands for',
          },
        );
        return undefined;
      }
      return session.spend(binding.size, span) ? copyExpression(binding.expression) : undefined;
    }
    case 'scorer':
      session.report('E0334', span, `\`${node.text}\` is a scorer, which stands after \`by\` and is no value`);
      return undefined;
    case 'picker':
      session.report('E0334', span, `\`${node.text}\` is a picker, which stands after \`pick\` and is no value`);
      return undefined;
    case 'target':
      session.report('E0334', span, `\`${node.text}\` is a target, which stands after \`to\` and is no value`, {
        help: 'compare the tier of an endpoint by `tier == "…"` in `where`',
      });
      return undefined;
    case 'import':
    case 'plugin':
      session.report(
        'E0334',
        span,
        `\`${node.text}\` is ${binding.kind === 'import' ? 'an imported file' : 'a plugin'}; name something in it: \`${node.text}.…\``,
      );
      return undefined;
    case 'poison':
      return undefined;
  }
};

export const holdsAggregate = (expression: Expression): boolean =>
  expression.kind === 'aggregate' || operandsOf(expression).some(holdsAggregate);

const FAMILIES = ['tenant', 'labels', 'alarm', 'param'] as const;

/** `tenant.region`, `labels.rack`, `alarm.hot`, `param.zone`. Undefined where the name is of no such family. */
const checkFamily = (
  session: Session,
  place: Place,
  node: NameNode,
  span: Span,
): { readonly expression: Expression | undefined } | undefined => {
  const family = FAMILIES.find((name) => name === node.parts[0]?.text);
  if (family === undefined) return undefined;
  const member = node.parts
    .slice(1)
    .map((part) => part.text)
    .join('.');
  const { defined } = session;
  if (member === '') {
    session.report('E0225', span, `\`${family}\` is read by a member: \`${family}.…\``);
    return { expression: undefined };
  }
  if (family === 'labels') {
    if (!allowsProperty(session, place, span, node.text, 'string')) return { expression: undefined };
    const type = defined.labels.get(member) ?? 'string';
    session.observer?.family(node, family, member, type);
    const index = session.propertyIndex({ key: node.text, type, provider: builtin, arguments: [] });
    return { expression: { kind: 'property', index, type, scope: 'candidate', span } };
  }
  const names = family === 'alarm' ? defined.alarms : defined.params;
  const global = family !== 'tenant';
  let type: ValueType = 'string';
  let known: 'always' | 'maybe' = 'maybe';
  if (family === 'tenant') {
    type =
      member === 'weight'
        ? 'number'
        : member === 'class'
          ? { enum: ['critical', 'high', 'normal', 'low'] }
          : (defined.tenantFields.get(member) ?? 'string');
  } else {
    const definition = names.get(member);
    if (definition === undefined) {
      if (!session.incomplete && !defined.lost.has(family)) {
        const near = suggest(member, names.keys());
        session.report(
          'E0225',
          span,
          `no \`define ${family} ${JSON.stringify(member)}\` is known`,
          near === undefined
            ? {}
            : {
                help: `did you mean \`${family}.${near}\`?`,
                fix: { message: `write \`${family}.${near}\``, edits: [{ span, text: `${family}.${near}` }] },
              },
        );
      }
      return { expression: undefined };
    }
    definition.used = true;
    type = family === 'alarm' ? 'bool' : (defined.params.get(member)?.type ?? 'string');
    known = 'maybe';
  }
  session.observer?.family(node, family, member, type);
  if (!allowsSignal(session, place, { global }, span, node.text)) return { expression: undefined };
  const index = session.signalIndex({ key: node.text, type, known, provider: builtin, arguments: [] });
  return { expression: { kind: 'signal', index, type, scope: 'request', span } };
};

/** The value of a catalogue name with its arguments. */
export const checkEntry = (
  session: Session,
  place: Place,
  entry: SignalEntry | PropertyEntry,
  name: string,
  span: Span,
  args: ArgsNode | undefined,
): Expression | undefined => {
  const scope = entry.kind === 'signal' ? 'request' : 'candidate';
  const key = entry.name;
  if (entry.kind === 'signal' && entry.indexed) {
    session.report('E0318', span, `\`${name}\` is read by a key`, { help: `write \`${name}["…"]\`` });
    return undefined;
  }
  const takes = entry.parameters.length > 0 || entry.options !== undefined;
  if (args !== undefined && !takes) {
    session.report('E0309', place.inlineAt ?? args.span, `\`${name}\` takes no arguments`, {
      fix: { message: 'remove the brackets', edits: [{ span: args.span, text: '' }] },
    });
    return undefined;
  }
  if (args === undefined && entry.parameters.some((parameter) => parameter.optional !== true)) {
    session.report('E0339', span, `\`${name}\` needs its arguments in brackets`, {
      help: `write \`${name}(${entry.parameters
        .filter((parameter) => parameter.optional !== true)
        .map((parameter) => parameter.name)
        .join(', ')})\``,
    });
    return undefined;
  }
  const allowed =
    entry.kind === 'signal'
      ? allowsSignal(session, place, entry, span, name)
      : allowsProperty(session, place, span, name, entry.type);
  const checked = checkArguments(session, place, entry, name, span, args);
  if (!allowed || checked === undefined) return undefined;
  const unfed = entry.provider.kind === 'builtin' && session.unprovided.has(`${scope}.${key}`);
  if (unfed && place.inlineAt === undefined && place.clause !== 'given')
    session.report('W0516', span, `nothing feeds \`${name}\` in this build or fleet, so it is always unknown`);
  if (entry.kind === 'property' && entry.expression !== undefined)
    return inlineValue(session, place, entry, entry.expression, span, checked);
  const ref = {
    key,
    type: entry.type,
    provider: entry.provider,
    arguments: checked.arguments,
    ...(checked.options === undefined ? {} : { options: checked.options }),
  };
  return entry.kind === 'signal'
    ? {
        kind: 'signal',
        index: session.signalIndex({ ...ref, known: entry.known }),
        type: entry.type,
        scope: 'request',
        span,
      }
    : { kind: 'property', index: session.propertyIndex(ref), type: entry.type, scope: 'candidate', span };
};

/** A name as a value. */
export const checkName = (session: Session, place: Place, node: NameNode): Expression | undefined => {
  const span = place.inlineAt ?? node.span;
  if (place.constants?.has(node.text) === true) {
    const constant = place.constants.get(node.text);
    return constant === undefined ? undefined : constantOf(constant.value, constant.type, span);
  }
  const resolved = resolveName(session, place.block, node);
  if (resolved.kind === 'poison') return undefined;
  if (resolved.kind === 'binding') return useBinding(session, place, resolved.binding, node, span);
  if (resolved.kind === 'table') {
    const entry = resolved.table.values.get(resolved.name);
    if (entry !== undefined) return checkEntry(session, place, entry, node.text, span, undefined);
    if (resolved.table === session.catalogue) {
      const family = checkFamily(session, place, node, span);
      if (family !== undefined) return family.expression;
      if (functionNames.has(node.text)) {
        session.report('E0339', span, `\`${node.text}\` needs its arguments in brackets`, {
          help: `write \`${node.text}(…)\``,
        });
        return undefined;
      }
      const root = node.parts[0]?.text ?? '';
      const rootEntry = node.parts.length > 1 ? session.catalogue.values.get(root) : undefined;
      if (rootEntry?.kind === 'signal' && rootEntry.indexed) {
        const key = node.parts
          .slice(1)
          .map((part) => part.text)
          .join('.');
        const written = `${root}[${JSON.stringify(key)}]`;
        session.report('E0225', span, `\`${root}\` is read by a key in brackets`, {
          help: `write \`${written}\``,
          fix: { message: `write \`${written}\``, edits: [{ span: node.span, text: written }] },
        });
        return undefined;
      }
    }
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
        `\`${node.text}\` is a ${what[0] ?? ''}, which stands after ${what[1] ?? ''} and is no value`,
      );
      return undefined;
    }
    if (resolved.table === session.catalogue && node.text === 'any') {
      session.report('E0334', span, '`any` is a target, or an aggregate with its argument in brackets: `any(healthy)`');
      return undefined;
    }
  }
  reportUnknownName(session, place.block, node, span, {
    code: 'E0201',
    what: 'name',
    candidates: valueNames(session, place),
  });
  return undefined;
};

/** `header["x-team"]`. */
export const checkIndex = (session: Session, place: Place, node: IndexNode): Expression | undefined => {
  const span = place.inlineAt ?? node.span;
  const resolved = resolveName(session, place.block, node.object);
  if (resolved.kind === 'poison') return undefined;
  const entry = resolved.kind === 'table' ? resolved.table.values.get(resolved.name) : undefined;
  if (entry === undefined && resolved.kind === 'table' && !/^(labels|tenant|alarm|param)\./.test(resolved.name)) {
    reportUnknownName(session, place.block, node.object, place.inlineAt ?? node.object.span, {
      code: 'E0201',
      what: 'name',
      candidates: [['header', 'metadata']],
    });
    return undefined;
  }
  if (entry?.kind !== 'signal' || !entry.indexed) {
    session.report('E0318', span, `\`${node.object.text}\` cannot be indexed`, {
      help: 'only `header["…"]` and `metadata["…"]` can',
    });
    return undefined;
  }
  const index = withoutParens(node.index);
  if (index.kind !== 'string') {
    session.report('E0318', place.inlineAt ?? index.span, `the key of \`${entry.name}\` is a text in quotes`, {
      help: `write \`${entry.name}["…"]\``,
    });
    return undefined;
  }
  if (place.inlineAt === undefined) session.observer?.entry(node.object.span, entry);
  if (!allowsSignal(session, place, entry, span, session.textOf(node.span))) return undefined;
  const value = entry.name === 'header' ? index.value.toLowerCase() : index.value;
  const signal = session.signalIndex({
    key: entry.name,
    type: entry.type,
    known: entry.known,
    provider: entry.provider,
    arguments: [{ kind: 'value', name: 'name', value }],
  });
  return { kind: 'signal', index: signal, type: entry.type, scope: 'request', span };
};

/** `tier "70B"` where a value is needed. */
export const checkRef = (session: Session, place: Place, node: RefNode): Expression | undefined => {
  const target: TargetRef | undefined = checkTargetName(session, place.block, node.name, node.label);
  if (target === undefined) return undefined;
  session.report(
    'E0334',
    place.inlineAt ?? node.span,
    `\`${session.textOf(node.span)}\` is a target, which stands after \`to\` and in aggregates, and is no value`,
    {
      help:
        target.kind === 'tier'
          ? `compare the tier of an endpoint: \`tier == ${JSON.stringify(target.name)}\``
          : 'compare the name of an endpoint: `name == "…"`',
    },
  );
  return undefined;
};
