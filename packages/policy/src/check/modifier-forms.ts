import type { ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Expression, Modifiers, TargetRef } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgNode, ArgsNode, ExprNode, ModifierNode, ModifierPartNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { modifierTable } from './catalogue/modifiers.ts';
import type { ModifierSpec } from './catalogue/modifiers.ts';
import { checkExpression } from './expression.ts';
import { isConstant } from './fold.ts';
import type { Place, Session } from './session.ts';
import { checkTargetName } from './targets.ts';
import { describeType, formatNumber, isPlainNumber, sameDimension } from './value-types.ts';

const DAY = 86_400;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export type Draft = Mutable<Modifiers>;

export interface Work {
  readonly session: Session;
  readonly place: Place;
  readonly spec: ModifierSpec;
  readonly node: ModifierNode;
  readonly draft: Draft;
}

export const named = (args: ArgsNode | undefined, name: string): ArgNode | undefined =>
  args?.items.find((item) => item.name?.text === name);

export const positional = (args: ArgsNode | undefined): readonly ArgNode[] =>
  (args?.items ?? []).filter((item) => item.name === undefined);

export const wrongForm = (work: Work, span: Span, found: string): false => {
  work.session.report('E0409', span, `\`${work.node.name.text}\` does not take ${found}`, {
    help: `write \`${work.spec.form}\``,
  });
  return false;
};

export const missingValue = (work: Work): false => {
  work.session.report('E0408', work.node.name.span, `\`${work.node.name.text}\` needs a value`, {
    help: `write \`${work.spec.form}\``,
  });
  return false;
};

/** Reports a part that the modifier has no use for, which often is the next modifier without its comma. */
export const surplus = (work: Work, part: ModifierPartNode): false => {
  const { value } = part;
  if (value.kind === 'name' && modifierTable.has(value.text)) {
    work.session.report('E0413', value.span, `\`${value.text}\` is a modifier of its own`, {
      help: 'separate modifiers by commas',
      fix: { message: 'add a comma', edits: [{ span: { ...value.span, end: value.span.start }, text: ', ' }] },
    });
    return false;
  }
  return wrongForm(work, part.span, `\`${work.session.textOf(part.span)}\` here`);
};

export const surplusArgs = (work: Work, args: ArgsNode | undefined, allowed: readonly string[] = []): boolean => {
  let fine = true;
  for (const item of args?.items ?? []) {
    if (item.name === undefined) {
      fine = wrongForm(work, item.span, 'an argument without a name here');
    } else if (!allowed.includes(item.name.text)) {
      const near = suggest(item.name.text, allowed);
      work.session.report(
        'E0310',
        item.name.span,
        `\`${work.node.name.text}\` has no argument \`${item.name.text}\``,
        near === undefined
          ? allowed.length === 0
            ? {}
            : { help: `it has ${allowed.map((name) => `\`${name}\``).join(', ')}` }
          : {
              help: `did you mean \`${near}\`?`,
              fix: { message: `write \`${near}\``, edits: [{ span: item.name.span, text: near }] },
            },
      );
      fine = false;
    }
  }
  const seen = new Set<string>();
  for (const item of args?.items ?? []) {
    if (item.name === undefined) continue;
    if (seen.has(item.name.text)) {
      work.session.report('E0336', item.span, `the argument \`${item.name.text}\` is given twice`);
      fine = false;
    }
    seen.add(item.name.text);
  }
  return fine;
};

/** The one value of a modifier: `timeout 90s`, `timeout(expr)`, with named arguments beside it in either place. */
export const singleValue = (
  work: Work,
  allowed: readonly string[] = [],
): { readonly node: ExprNode; readonly args: ArgsNode | undefined } | undefined => {
  const { node } = work;
  const [part, ...more] = node.parts;
  const own = positional(node.args);
  const given = own[0];
  if (part === undefined) {
    if (given === undefined) {
      missingValue(work);
      return undefined;
    }
    if (own.length > 1) {
      wrongForm(work, own[1]?.span ?? node.span, 'a second value');
      return undefined;
    }
    const rest =
      node.args === undefined ? undefined : { ...node.args, items: node.args.items.filter((item) => item !== given) };
    return surplusArgs(work, rest, allowed) ? { node: given.value, args: rest } : undefined;
  }
  const [extra] = more;
  if (extra !== undefined) {
    surplus(work, extra);
    return undefined;
  }
  if (node.args !== undefined) {
    if (given !== undefined) {
      wrongForm(work, node.args.span, 'a value in brackets and one after it');
      return undefined;
    }
    if (!surplusArgs(work, node.args, allowed)) return undefined;
  }
  const both = part.args ?? node.args;
  // A name takes its own arguments: `sticky prefix(2k)`.
  if (part.args !== undefined && part.value.kind === 'name' && positional(part.args).length > 0) {
    const values = {
      ...part.args,
      items: part.args.items.filter((item) => item.name === undefined || !allowed.includes(item.name.text)),
    };
    const options = {
      ...part.args,
      items: part.args.items.filter((item) => item.name !== undefined && allowed.includes(item.name.text)),
    };
    return { node: { kind: 'call', callee: part.value, args: values, span: part.span }, args: options };
  }
  return surplusArgs(work, part.args, allowed) ? { node: part.value, args: both } : undefined;
};

export const expressionOf = (work: Work, node: ExprNode, type: ValueType | undefined): Expression | undefined => {
  const { session, place } = work;
  const expression = checkExpression(session, { ...place, scope: 'request', clause: work.node.name.text }, node);
  if (expression === undefined) return undefined;
  if (type !== undefined && !sameDimension(type, expression.type)) {
    const literal = withoutParens(node);
    session.report(
      'E0409',
      node.span,
      `\`${work.node.name.text}\` takes ${describeType(type)}, and this is ${describeType(expression.type)}`,
      {
        help:
          type === 'duration' && literal.kind === 'number'
            ? `write \`${literal.raw}s\` or \`${literal.raw}ms\``
            : `write \`${work.spec.form}\``,
      },
    );
    return undefined;
  }
  return expression;
};

export const checkDuration = (work: Work, expression: Expression, node: ExprNode): boolean => {
  if (!isConstant(expression) || typeof expression.value !== 'number') return true;
  const mayBeZero = work.spec.name === 'max_wait' || work.spec.name === 'retry_after';
  if (expression.value < 0 || (expression.value === 0 && !mayBeZero)) {
    work.session.report(
      'E0329',
      node.span,
      `\`${work.node.name.text}\` is ${mayBeZero ? 'zero or more' : 'above zero'}`,
    );
    return false;
  }
  if (expression.value >= DAY) {
    work.session.report(
      'W0512',
      node.span,
      `\`${work.node.name.text}\` is ${formatNumber(expression.value / DAY, 'number')} days`,
      { help: 'did you mean seconds (`s`) or milliseconds (`ms`)?' },
    );
  }
  return true;
};

export const numberOf = (
  work: Work,
  node: ExprNode,
  what: string,
  minimum: number,
  maximum: number,
): number | undefined => {
  const { session } = work;
  const expression = checkExpression(session, { ...work.place, scope: 'constant' }, node);
  if (expression === undefined) return undefined;
  if (!isConstant(expression) || typeof expression.value !== 'number' || !isPlainNumber(expression.type)) {
    session.report(
      'E0409',
      node.span,
      `\`${what}\` takes a whole number, and this is ${describeType(expression.type)}`,
      { help: `write \`${work.spec.form}\`` },
    );
    return undefined;
  }
  if (!Number.isInteger(expression.value) || expression.value < minimum || expression.value > maximum) {
    session.report('E0329', node.span, `\`${what}\` is a whole number from ${minimum} to ${maximum}`);
    return undefined;
  }
  return expression.value;
};

/** A target among the parts, after an optional share: `mirror 1% tier "405B"`. */
export const targetOf = (
  work: Work,
  parts: readonly ModifierPartNode[],
  allowed: readonly string[],
): { readonly target: TargetRef; readonly args: ArgsNode | undefined } | undefined => {
  const [first, second, ...more] = parts;
  if (first === undefined) {
    const item = positional(work.node.args)[0];
    const inner = item === undefined ? undefined : withoutParens(item.value);
    if (item === undefined || inner === undefined) {
      missingValue(work);
      return undefined;
    }
    const name = inner.kind === 'ref' ? inner.name : inner.kind === 'name' ? inner : undefined;
    if (name === undefined) {
      wrongForm(work, item.span, `\`${work.session.textOf(item.span)}\``);
      return undefined;
    }
    const target = checkTargetName(
      work.session,
      work.place.block,
      name,
      inner.kind === 'ref' ? inner.label : undefined,
    );
    const args =
      work.node.args === undefined
        ? undefined
        : { ...work.node.args, items: work.node.args.items.filter((one) => one !== item) };
    return target === undefined || !surplusArgs(work, args, allowed) ? undefined : { target, args };
  }
  if (first.value.kind !== 'name') {
    wrongForm(work, first.span, `\`${work.session.textOf(first.span)}\``);
    return undefined;
  }
  const label = second?.value.kind === 'string' && first.args === undefined ? second.value : undefined;
  const [extra] = label === undefined && second !== undefined ? [second] : more;
  if (extra !== undefined) {
    surplus(work, extra);
    return undefined;
  }
  const args = (label === undefined ? first.args : second?.args) ?? work.node.args;
  const fine = surplusArgs(work, args, allowed);
  const target = checkTargetName(work.session, work.place.block, first.value, label);
  return target === undefined || !fine ? undefined : { target, args };
};

/** The name and the value of `header "x" "v"`, `set "field" (expr)`, `header("x", expr)`. */
export const pairOf = (
  work: Work,
): { readonly key: string; readonly keySpan: Span; readonly value: ExprNode } | undefined => {
  const { node } = work;
  const [first, second, third] = node.parts;
  if (first === undefined) {
    const [key, value, extra] = positional(node.args);
    if (key === undefined || value === undefined) {
      missingValue(work);
      return undefined;
    }
    if (extra !== undefined) {
      wrongForm(work, extra.span, 'a third value');
      return undefined;
    }
    const inner = withoutParens(key.value);
    if (inner.kind !== 'string') {
      wrongForm(work, key.span, `\`${work.session.textOf(key.span)}\` as a name`);
      return undefined;
    }
    return surplusArgs(
      work,
      node.args === undefined
        ? undefined
        : { ...node.args, items: node.args.items.filter((item) => item.name !== undefined) },
    )
      ? { key: inner.value, keySpan: inner.span, value: value.value }
      : undefined;
  }
  if (first.value.kind !== 'string') {
    wrongForm(work, first.span, `\`${work.session.textOf(first.span)}\` as a name`);
    return undefined;
  }
  const key = { key: first.value.value, keySpan: first.value.span };
  if (first.args !== undefined) {
    const [value, extra] = first.args.items;
    if (value === undefined || extra !== undefined || value.name !== undefined) {
      wrongForm(work, first.args.span, 'these arguments');
      return undefined;
    }
    if (second !== undefined) {
      surplus(work, second);
      return undefined;
    }
    return { ...key, value: value.value };
  }
  if (second === undefined) {
    missingValue(work);
    return undefined;
  }
  if (third !== undefined) {
    surplus(work, third);
    return undefined;
  }
  if (second.args !== undefined && second.value.kind === 'name')
    return { ...key, value: { kind: 'call', callee: second.value, args: second.args, span: second.span } };
  return surplusArgs(work, second.args) ? { ...key, value: second.value } : undefined;
};

export const wordOf = <T extends string>(
  work: Work,
  item: ArgNode | undefined,
  words: readonly T[],
  standard: T,
): T | undefined => {
  if (item === undefined) return standard;
  const inner = withoutParens(item.value);
  const text = inner.kind === 'name' ? inner.text : inner.kind === 'string' ? inner.value : undefined;
  const word = words.find((known) => known === text);
  if (word !== undefined) return word;
  const near = text === undefined ? undefined : suggest(text, words);
  work.session.report(
    'E0409',
    item.value.span,
    `\`${item.name?.text ?? work.node.name.text}\` is one of ${words.join(', ')}`,
    near === undefined
      ? {}
      : {
          help: `did you mean \`${near}\`?`,
          fix: { message: `write \`${near}\``, edits: [{ span: item.value.span, text: near }] },
        },
  );
  return undefined;
};
