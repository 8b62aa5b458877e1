import type { ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Affinity, Expression, FailureCause, Modifiers, TargetRef } from '../ir.ts';
import { withoutParens } from '../syntax/ast.ts';
import type {
  ArgNode,
  ArgsNode,
  ExprNode,
  LiteralNode,
  ListNode,
  ModifierNode,
  ModifierPartNode,
  NameNode,
  WithNode,
} from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { PRIORITIES } from './catalogue/built-in-signals.ts';
import { modifierTable, modifierNames } from './catalogue/modifiers.ts';
import type { ModifierPlace, ModifierSpec } from './catalogue/modifiers.ts';
import { checkEnumMember, checkExpression } from './expression.ts';
import { constantOf, isConstant } from './fold.ts';
import { firstPartyNames } from './catalogue/first-party-names.ts';
import { findBinding } from './session.ts';
import type { Place, Session } from './session.ts';
import { checkTargetName } from './targets.ts';
import { describeType, formatNumber, isPlainNumber, sameDimension } from './value-types.ts';

const CAUSES: readonly FailureCause[] = [
  'saturated',
  'connect',
  'error',
  'timeout',
  'first_token',
  'rate_limited',
  'context_exceeded',
];
const FALLBACK_CAUSES: readonly FailureCause[] = ['saturated', 'connect', 'error', 'timeout', 'first_token'];
const RETRY_CAUSES: readonly FailureCause[] = ['connect', 'error', 'first_token'];
const DAY = 86_400;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Draft = Mutable<Modifiers>;

/** What a `with` clause makes, and whether all of it was right. */
export interface CheckedModifiers {
  readonly modifiers: Modifiers;
  readonly fine: boolean;
}

interface Work {
  readonly session: Session;
  readonly place: Place;
  readonly spec: ModifierSpec;
  readonly node: ModifierNode;
  readonly draft: Draft;
}

const named = (args: ArgsNode | undefined, name: string): ArgNode | undefined =>
  args?.items.find((item) => item.name?.text === name);
const positional = (args: ArgsNode | undefined): readonly ArgNode[] =>
  (args?.items ?? []).filter((item) => item.name === undefined);

const wrongForm = (work: Work, span: Span, found: string): false => {
  work.session.report('E0409', span, `\`${work.node.name.text}\` does not take ${found}`, {
    help: `write \`${work.spec.form}\``,
  });
  return false;
};

const missingValue = (work: Work): false => {
  work.session.report('E0408', work.node.name.span, `\`${work.node.name.text}\` needs a value`, {
    help: `write \`${work.spec.form}\``,
  });
  return false;
};

/** Reports a part that the modifier has no use for, which often is the next modifier without its comma. */
const surplus = (work: Work, part: ModifierPartNode): false => {
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

const surplusArgs = (work: Work, args: ArgsNode | undefined, allowed: readonly string[] = []): boolean => {
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
const singleValue = (
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

const expressionOf = (work: Work, node: ExprNode, type: ValueType | undefined): Expression | undefined => {
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

const durationOf = (work: Work): Expression | undefined => {
  const value = singleValue(work);
  if (value === undefined) return undefined;
  const expression = expressionOf(work, value.node, 'duration');
  if (expression === undefined) return undefined;
  return checkDuration(work, expression, value.node) ? expression : undefined;
};

const checkDuration = (work: Work, expression: Expression, node: ExprNode): boolean => {
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

const numberOf = (work: Work, node: ExprNode, what: string, minimum: number, maximum: number): number | undefined => {
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

/** `on: [connect, error]`. */
const causesOf = (
  work: Work,
  args: ArgsNode | undefined,
  standard: readonly FailureCause[],
): readonly FailureCause[] | undefined => {
  const item = named(args, 'on');
  if (item === undefined) return standard;
  const inner = withoutParens(item.value);
  const nodes = inner.kind === 'list' ? inner.items : [inner];
  const causes: FailureCause[] = [];
  let fine = true;
  for (const node of nodes) {
    const word = withoutParens(node);
    const text = word.kind === 'name' ? word.text : word.kind === 'string' ? word.value : undefined;
    const cause = CAUSES.find((known) => known === text);
    if (cause !== undefined) {
      if (!causes.includes(cause)) causes.push(cause);
      continue;
    }
    fine = false;
    const near = text === undefined ? undefined : suggest(text, CAUSES);
    work.session.report(
      'E0405',
      node.span,
      `\`${work.session.textOf(node.span)}\` is no cause`,
      near === undefined
        ? { help: `causes are ${CAUSES.join(', ')}` }
        : {
            help: `did you mean \`${near}\`?`,
            fix: { message: `write \`${near}\``, edits: [{ span: node.span, text: near }] },
          },
    );
  }
  if (nodes.length === 0) {
    work.session.report('E0405', item.value.span, 'the list of causes is empty', {
      help: `causes are ${CAUSES.join(', ')}`,
    });
    return undefined;
  }
  return fine ? causes : undefined;
};

/** A target among the parts, after an optional share: `mirror 1% tier "405B"`. */
const targetOf = (
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

const FORBIDDEN_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'connection',
  'content-length',
  'content-encoding',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The name and the value of `header "x" "v"`, `set "field" (expr)`, `header("x", expr)`. */
const pairOf = (work: Work): { readonly key: string; readonly keySpan: Span; readonly value: ExprNode } | undefined => {
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

const AFFINITY_OPTIONS = ['bound', 'unit', 'method'];
const METHODS: readonly Affinity['method'][] = ['bounded_rendezvous', 'modulo_md5'];
const UNITS: readonly Affinity['unit'][] = ['requests', 'tokens'];

const wordOf = <T extends string>(
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

const affinityKeys = (
  work: Work,
): { readonly keys: readonly ExprNode[]; readonly args: ArgsNode | undefined } | undefined => {
  const { node } = work;
  const [part] = node.parts;
  if (part === undefined && node.args !== undefined) {
    const own = positional(node.args);
    const [first, extra] = own;
    if (first === undefined) {
      missingValue(work);
      return undefined;
    }
    if (extra !== undefined) {
      work.session.report('E0409', extra.span, '`affinity` takes one key', {
        help: `a key of several parts is a list: \`affinity [${own.map((item) => work.session.textOf(item.value.span)).join(', ')}]\``,
      });
      return undefined;
    }
    const rest = { ...node.args, items: node.args.items.filter((item) => item !== first) };
    if (!surplusArgs(work, rest, AFFINITY_OPTIONS)) return undefined;
    const inner = withoutParens(first.value);
    return { keys: inner.kind === 'list' ? inner.items : [first.value], args: rest };
  }
  if (part?.value.kind === 'name' && part.args !== undefined) {
    // `prefix(2k)`: what is no option of the affinity belongs to the name.
    const entry = work.session.catalogue.values.get(part.value.text);
    const own = [
      ...(entry?.parameters.map((parameter) => parameter.name) ?? []),
      ...Object.keys(entry?.options?.properties ?? {}),
    ];
    const isOption = (item: ArgNode): boolean => item.name !== undefined && !own.includes(item.name.text);
    const options = { ...part.args, items: part.args.items.filter(isOption) };
    const rest = { ...part.args, items: part.args.items.filter((item) => !isOption(item)) };
    const [, extra] = node.parts;
    if (extra !== undefined) {
      surplus(work, extra);
      return undefined;
    }
    if (!surplusArgs(work, options, AFFINITY_OPTIONS)) return undefined;
    return {
      keys: [rest.items.length === 0 ? part.value : { kind: 'call', callee: part.value, args: rest, span: part.span }],
      args: options,
    };
  }
  const value = singleValue(work, AFFINITY_OPTIONS);
  if (value === undefined) return undefined;
  return { keys: value.node.kind === 'list' ? value.node.items : [value.node], args: value.args };
};

const checkAffinity = (work: Work): boolean => {
  const { session } = work;
  const found = affinityKeys(work);
  if (found === undefined) return false;
  if (found.keys.length === 0) return missingValue(work);
  const key: Expression[] = [];
  for (const node of found.keys) {
    const expression = expressionOf(work, node, undefined);
    if (expression === undefined) continue;
    if (isConstant(expression)) {
      session.report(
        'E0409',
        node.span,
        `\`${session.textOf(node.span)}\` is the same for every request, so all would stick to one endpoint`,
        { help: `write \`${work.spec.form}\`` },
      );
      continue;
    }
    key.push(expression);
  }
  const method = wordOf(work, named(found.args, 'method'), METHODS, 'bounded_rendezvous');
  const unit = wordOf(work, named(found.args, 'unit'), UNITS, 'requests');
  let bound: number | undefined = 1.25;
  const written = named(found.args, 'bound');
  if (written !== undefined) {
    const expression = checkExpression(session, { ...work.place, scope: 'constant' }, written.value);
    const number =
      expression !== undefined &&
      isConstant(expression) &&
      typeof expression.value === 'number' &&
      (isPlainNumber(expression.type) || expression.type === 'percent')
        ? expression.value
        : undefined;
    if (expression !== undefined && number === undefined)
      session.report(
        'E0409',
        written.value.span,
        `\`bound\` is a number, and this is ${describeType(expression.type)}`,
      );
    if (number !== undefined && !(number >= 1)) {
      session.report(
        'E0410',
        written.value.span,
        `a bound of ${formatNumber(number, 'number')} leaves some requests no endpoint`,
        { help: 'a bound is 1 or more; 1.25 is usual' },
      );
    }
    bound = number !== undefined && number >= 1 ? number : undefined;
  }
  if (key.length < found.keys.length || method === undefined || unit === undefined || bound === undefined) return false;
  work.draft.affinity = { key, method, bound, unit, span: work.node.span };
  return true;
};

/** An object key of `Modifiers` that holds a duration. */
const DURATION_FIELDS: {
  readonly [name: string]: 'timeout' | 'attemptTimeout' | 'firstToken' | 'idle' | 'retryAfter' | 'maxWait';
} = {
  timeout: 'timeout',
  attempt_timeout: 'attemptTimeout',
  first_token: 'firstToken',
  idle: 'idle',
  retry_after: 'retryAfter',
  max_wait: 'maxWait',
};

const checkHedge = (work: Work): boolean => {
  const { node, session } = work;
  const args = node.parts[0]?.args ?? node.args;
  const [part, extra] = node.parts;
  if (extra !== undefined) return surplus(work, extra);
  const own = positional(args);
  if (
    !surplusArgs(
      work,
      args === undefined ? undefined : { ...args, items: args.items.filter((item) => item.name !== undefined) },
      ['after', 'share'],
    )
  )
    return false;
  const afterNode = part?.value ?? named(args, 'after')?.value ?? own[0]?.value;
  if (part !== undefined && own.length > 0) return wrongForm(work, args?.span ?? node.span, 'these arguments');
  let after: Expression | undefined;
  if (afterNode !== undefined) {
    after = expressionOf(work, afterNode, 'duration');
    if (after === undefined || !checkDuration(work, after, afterNode)) return false;
  }
  const shareNode = named(args, 'share')?.value;
  let share: number | undefined;
  if (shareNode !== undefined) {
    const expression = checkExpression(session, { ...work.place, scope: 'constant' }, shareNode);
    if (expression === undefined) return false;
    if (!isConstant(expression) || expression.type !== 'percent' || typeof expression.value !== 'number')
      return wrongForm(work, shareNode.span, `${describeType(expression.type)} as a share`);
    if (expression.value <= 0 || expression.value > 1) {
      session.report('E0414', shareNode.span, 'the share of a hedge lies above 0 % and up to 100 %');
      return false;
    }
    share = expression.value;
  }
  if (after === undefined && share === undefined) return missingValue(work);
  work.draft.hedge = { ...(after === undefined ? {} : { after }), ...(share === undefined ? {} : { share }) };
  return true;
};

const checkOne = (work: Work): boolean => {
  const { session, node, draft, spec } = work;
  const duration = DURATION_FIELDS[spec.name];
  if (duration !== undefined) {
    const expression = durationOf(work);
    if (expression === undefined) return false;
    draft[duration] = expression;
    return true;
  }
  switch (spec.name) {
    case 'affinity':
      return checkAffinity(work);
    case 'hedge':
      return checkHedge(work);
    case 'retry': {
      const value = singleValue(work, ['on']);
      const attempts = value === undefined ? undefined : numberOf(work, value.node, 'retry', 0, 10);
      const on = value === undefined ? undefined : causesOf(work, value.args, RETRY_CAUSES);
      if (attempts === undefined || on === undefined) return false;
      draft.retry = { attempts, on };
      return true;
    }
    case 'fallback': {
      const found = targetOf(work, node.parts, ['on']);
      const on = found === undefined ? undefined : causesOf(work, found.args, FALLBACK_CAUSES);
      if (found === undefined || on === undefined) return false;
      draft.fallbacks = [...(draft.fallbacks ?? []), { target: found.target, on, span: node.span }];
      return true;
    }
    case 'mirror': {
      const [first, ...rest] = node.parts;
      const percent = first?.value.kind === 'percent' ? first.value : undefined;
      if (percent !== undefined && (percent.value < 0 || percent.value > 1)) {
        session.report('E0414', percent.span, `the share \`${percent.raw}\` is above 100 %`);
        return false;
      }
      const found = targetOf(work, percent === undefined ? node.parts : rest, []);
      if (found === undefined) return false;
      draft.mirror = [...(draft.mirror ?? []), { target: found.target, share: percent?.value ?? 1 }];
      return true;
    }
    case 'prefill': {
      const found = targetOf(work, node.parts, []);
      if (found === undefined) return false;
      draft.prefill = found.target;
      return true;
    }
    case 'sticky': {
      const value = singleValue(work);
      const expression = value === undefined ? undefined : expressionOf(work, value.node, undefined);
      if (value === undefined || expression === undefined) return false;
      if (isConstant(expression))
        return wrongForm(work, value.node.span, 'a constant: every request would take the same arm');
      draft.sticky = expression;
      return true;
    }
    case 'priority': {
      const value = singleValue(work);
      if (value === undefined) return false;
      const type: ValueType = { enum: PRIORITIES };
      const inner = withoutParens(value.node);
      const isFree =
        inner.kind === 'name' &&
        inner.parts.length === 1 &&
        !session.catalogue.values.has(inner.text) &&
        findBinding(work.place.block, inner.text) === undefined;
      const word = inner.kind === 'name' && (PRIORITIES.includes(inner.text) || isFree) ? inner : undefined;
      const expression =
        word === undefined ? expressionOf(work, value.node, type) : constantOf(word.text, 'string', word.span);
      if (expression === undefined || !checkEnumMember(session, work.place, type, expression, value.node, 'priority'))
        return false;
      draft.priority = expression;
      return true;
    }
    case 'overflow': {
      const value = singleValue(work);
      const words: readonly ('oldest' | 'newest' | 'lowest' | 'refuse')[] = ['oldest', 'newest', 'lowest', 'refuse'];
      const word =
        value === undefined
          ? undefined
          : wordOf(work, { kind: 'arg', value: value.node, span: value.node.span }, words, 'refuse');
      if (word === undefined) return false;
      draft.overflow = word;
      return true;
    }
    case 'max_depth': {
      const value = singleValue(work);
      const depth = value === undefined ? undefined : numberOf(work, value.node, 'max_depth', 0, 1_000_000);
      if (depth === undefined) return false;
      draft.maxDepth = depth;
      return true;
    }
    case 'status': {
      const value = singleValue(work);
      const expression =
        value === undefined ? undefined : checkExpression(session, { ...work.place, scope: 'constant' }, value.node);
      if (value === undefined || expression === undefined) return false;
      if (!isConstant(expression) || typeof expression.value !== 'number' || !isPlainNumber(expression.type))
        return wrongForm(work, value.node.span, describeType(expression.type));
      if (!Number.isInteger(expression.value) || expression.value < 400 || expression.value > 599) {
        session.report('E0415', value.node.span, `\`${session.textOf(value.node.span)}\` is no status of a refusal`, {
          help: 'a refusal has a status from 400 to 599, such as 429 or 503',
        });
        return false;
      }
      draft.status = expression.value;
      return true;
    }
    case 'message':
    case 'model': {
      const value = singleValue(work);
      const expression = value === undefined ? undefined : expressionOf(work, value.node, 'string');
      if (expression === undefined) return false;
      draft[spec.name] = expression;
      return true;
    }
    case 'header': {
      const pair = pairOf(work);
      if (pair === undefined) return false;
      const name = pair.key.toLowerCase();
      if (!HEADER_NAME.test(name))
        return wrongForm(work, pair.keySpan, `${JSON.stringify(pair.key)}, which is no name of a header`);
      if (FORBIDDEN_HEADERS.has(name) || name.startsWith('x-signalbox-')) {
        session.report('E0416', pair.keySpan, `the header \`${name}\` belongs to the gateway`, {
          help: 'credentials of an endpoint are given by `key` in its definition',
        });
        return false;
      }
      const value = expressionOf(work, pair.value, 'string');
      if (value === undefined) return false;
      if (isConstant(value) && typeof value.value === 'string' && /[\r\n\0]/.test(value.value))
        return wrongForm(work, pair.value.span, 'a line break in a header');
      draft.headers = [...(draft.headers ?? []), { name, value }];
      return true;
    }
    case 'set': {
      const pair = pairOf(work);
      if (pair === undefined) return false;
      if (!checkField(work, pair.key, pair.keySpan)) return false;
      const value = expressionOf(work, pair.value, undefined);
      if (value === undefined) return false;
      draft.set = [...(draft.set ?? []), { field: pair.key, value }];
      return true;
    }
    case 'drop':
      return checkDrop(work);
    default:
      return false;
  }
};

const checkField = (work: Work, field: string, span: Span): boolean => {
  if (field === '') return wrongForm(work, span, 'an empty field');
  if (field === 'model') {
    work.session.report('E0416', span, 'the field `model` is changed by the modifier `model`', {
      help: 'write `model "…"`',
    });
    return false;
  }
  if (field === 'messages' || field === 'prompt' || field === 'input' || field === 'stream') {
    work.session.report('E0416', span, `the field \`${field}\` may not be changed`, {
      help: 'it decides how the request was routed and is answered',
    });
    return false;
  }
  return true;
};

const checkDrop = (work: Work): boolean => {
  const nodes: (LiteralNode | NameNode | ListNode | ExprNode)[] =
    work.node.parts.length > 0
      ? work.node.parts.map((part) => part.value)
      : positional(work.node.args).map((item) => item.value);
  if (nodes.length === 0) return missingValue(work);
  let fine = true;
  const fields: string[] = [];
  for (const node of nodes.flatMap((one) => (one.kind === 'list' ? one.items : [one]))) {
    const inner = withoutParens(node);
    if (inner.kind !== 'string') {
      fine =
        inner.kind === 'name' && modifierTable.has(inner.text) && work.node.parts.some((part) => part.value === inner)
          ? surplus(work, { kind: 'modifier-part', value: inner, span: inner.span })
          : wrongForm(work, node.span, `\`${work.session.textOf(node.span)}\``);
    } else if (checkField(work, inner.value, inner.span)) fields.push(inner.value);
    else fine = false;
  }
  if (fine) work.draft.drop = [...(work.draft.drop ?? []), ...fields];
  return fine;
};

const PLACE_NAMES: { readonly [place in ModifierPlace]: string } = {
  destination: 'a destination',
  admit: '`admit`',
  reject: '`reject`',
  queue: '`queue`',
};

/** Checks a `with` clause. Each modifier is checked apart, so that one wrong one leaves the others. */
export const checkModifiers = (
  session: Session,
  place: Place,
  clause: WithNode | undefined,
  where: ModifierPlace,
): CheckedModifiers => {
  const draft: Draft = {};
  let fine = true;
  const seen = new Map<string, Span>();
  for (const node of clause?.modifiers ?? []) {
    const spec = modifierTable.get(node.name.text);
    if (spec === undefined) {
      fine = false;
      const near = suggest(
        node.name.text,
        modifierNames.filter((name) => modifierTable.get(name)?.places.includes(where) === true),
        modifierNames,
      );
      if (
        Object.hasOwn(firstPartyNames, node.name.text) ||
        session.catalogue.scorers.has(node.name.text) ||
        session.catalogue.pickers.has(node.name.text)
      ) {
        session.report('E0206', node.name.span, `\`${node.name.text}\` is no modifier`, {
          help: 'scorers stand after `by`, pickers after `pick`, both before `with`',
        });
      } else {
        session.report(
          'E0206',
          node.name.span,
          `unknown modifier \`${node.name.text}\``,
          near === undefined
            ? {}
            : {
                help: `did you mean \`${near}\`?`,
                fix: { message: `write \`${near}\``, edits: [{ span: node.name.span, text: near }] },
              },
        );
      }
      continue;
    }
    if (!spec.places.includes(where)) {
      fine = false;
      session.report('E0407', node.name.span, `\`${spec.name}\` does not belong to ${PLACE_NAMES[where]}`, {
        help: `it belongs to ${spec.places.map((one) => PLACE_NAMES[one]).join(', ')}`,
      });
      continue;
    }
    const before = seen.get(spec.name);
    if (before !== undefined && !spec.repeats) {
      fine = false;
      session.report('E0411', node.name.span, `\`${spec.name}\` is written twice`, {
        labels: [{ span: before, message: 'first written here' }],
      });
      continue;
    }
    seen.set(spec.name, node.name.span);
    fine = checkOne({ session, place, spec, node, draft }) && fine;
  }
  return { modifiers: draft, fine };
};
