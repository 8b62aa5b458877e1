import type { ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { LetNode, TypeNode } from '../syntax/ast.ts';
import { functionNames } from './catalogue/functions.ts';
import { measureExpression } from './copy-expression.ts';
import { builtInNames } from './catalogue/catalogue.ts';
import { checkExpression } from './expression.ts';
import { checkEnumMember } from './mismatch.ts';
import { checkPick, checkTerms, looksLikePicker, looksLikeScorer, sizeOfTerms } from './scorers.ts';
import { findBinding } from './session.ts';
import type { Binding, BindingValue, Block, Place, Session } from './session.ts';
import { checkTargetExpression, looksLikeTarget } from './targets.ts';
import { describeType, isEnum, sameDimension } from './value-types.ts';

const PLAIN_TYPES: readonly ValueType[] = ['bool', 'number', 'string', 'duration', 'bytes', 'percent', 'rate', 'money'];
const WORDS_OF_THE_LANGUAGE: ReadonlySet<string> = new Set([
  'any',
  'tier',
  'endpoint',
  'lowest',
  'highest',
  'tenant',
  'labels',
  'alarm',
  'param',
  'cluster',
  'api_key',
]);

const typeOf = (session: Session, node: TypeNode): ValueType | undefined => {
  const name = node.name.text;
  if (name === 'list') {
    if (node.element === undefined) {
      session.report('E0320', node.span, '`list` needs the type of its members', { help: 'write `list[string]`' });
      return undefined;
    }
    const element = typeOf(session, node.element);
    return element === undefined ? undefined : { list: element };
  }
  if (node.element !== undefined) {
    session.report('E0320', node.element.span, `\`${name}\` has no type inside`, { help: 'only `list[…]` has' });
    return undefined;
  }
  const plain = PLAIN_TYPES.find((type) => type === name);
  if (plain !== undefined) return plain;
  const entry = session.catalogue.values.get(name);
  if (entry !== undefined && isEnum(entry.type)) return entry.type;
  const near = suggest(name, [...PLAIN_TYPES.map(String), 'list']);
  session.report(
    'E0320',
    node.name.span,
    `unknown type \`${name}\``,
    near === undefined
      ? {
          help: 'types are bool, number, string, duration, bytes, percent, rate, money, list[T], and enumerations such as priority',
        }
      : {
          help: `did you mean \`${near}\`?`,
          fix: { message: `write \`${near}\``, edits: [{ span: node.name.span, text: near }] },
        },
  );
  return undefined;
};

/**
 * What already has the name, as messages call it; undefined where it is free. Names that only a plugin provides are free: a policy keeps
 * its meaning when a later build brings a plugin with such a name.
 */
export const takenBy = (
  session: Session,
  block: Block,
  name: string,
): { readonly what: string; readonly binding?: Binding } | undefined => {
  const binding = findBinding(block, name);
  if (binding !== undefined)
    return {
      what: binding.kind === 'import' ? 'an import' : binding.kind === 'plugin' ? 'a plugin' : 'a `let`',
      binding,
    };
  const { catalogue } = session;
  const entry = catalogue.values.get(name);
  if (entry !== undefined && builtInNames.has(name))
    return { what: entry.kind === 'signal' ? 'a signal' : 'a property' };
  if (catalogue.scorers.has(name) && builtInNames.has(name)) return { what: 'a scorer' };
  if (catalogue.pickers.has(name) && builtInNames.has(name)) return { what: 'a picker' };
  if (functionNames.has(name)) return { what: 'a function' };
  return WORDS_OF_THE_LANGUAGE.has(name) ? { what: 'a word of the catalogue' } : undefined;
};

const valueOf = (session: Session, place: Place, node: LetNode): BindingValue => {
  const { block } = place;
  const inner = withoutParens(node.value);
  const poison = { kind: 'poison' } as const;
  if (inner.kind === 'ref' || (inner.kind === 'name' && looksLikeTarget(block, inner))) {
    const target = checkTargetExpression(session, block, inner);
    return target === undefined ? poison : { kind: 'target', target };
  }
  if (looksLikeScorer(session, block, inner)) {
    const terms = checkTerms(session, { ...place, clause: 'by' }, inner);
    return terms === undefined ? poison : { kind: 'scorer', terms, size: sizeOfTerms(terms) };
  }
  if (looksLikePicker(session, block, inner)) {
    const [name, args] =
      inner.kind === 'call' ? [inner.callee, inner.args] : inner.kind === 'name' ? [inner, undefined] : [];
    const pick = name === undefined ? undefined : checkPick(session, place, name, args, inner.span);
    return pick === undefined ? poison : { kind: 'picker', pick };
  }
  const expression = checkExpression(session, place, node.value);
  return expression === undefined ? poison : { kind: 'value', expression, ...measureExpression(expression) };
};

/** Checks a `let` and binds its name in the block. */
export const checkLet = (session: Session, block: Block, node: LetNode): Binding => {
  const name = node.name.text;
  const place: Place = { scope: 'candidate', block, clause: 'let' };
  const taken = takenBy(session, block, name);
  let value = valueOf(session, place, node);
  if (taken !== undefined) {
    session.report(
      'E0211',
      node.name.span,
      `\`${name}\` is already the name of ${taken.what}`,
      taken.binding === undefined ? {} : { labels: [{ span: taken.binding.span, message: 'first declared here' }] },
    );
    if (taken.binding !== undefined) {
      taken.binding.used = true;
      return taken.binding;
    }
    value = { kind: 'poison' };
  }
  if (node.type !== undefined) {
    const type = typeOf(session, node.type);
    const given = value;
    if (type === undefined) value = { kind: 'poison' };
    else if (given.kind === 'value') {
      const isEmpty =
        given.expression.kind === 'constant' &&
        Array.isArray(given.expression.value) &&
        given.expression.value.length === 0 &&
        typeof type === 'object' &&
        'list' in type;
      if (!isEmpty && !sameDimension(type, given.expression.type)) {
        session.report(
          'E0319',
          node.value.span,
          `\`${name}\` is annotated as ${describeType(type)}, and its value is ${describeType(given.expression.type)}`,
          { labels: [{ span: node.type.span, message: 'annotated here' }] },
        );
        value = { kind: 'poison' };
      } else if (!checkEnumMember(session, place, type, given.expression, node.value, name)) value = { kind: 'poison' };
      else if (given.expression.kind === 'constant') value = { ...given, expression: { ...given.expression, type } };
    } else if (given.kind !== 'poison') {
      session.report(
        'E0319',
        node.value.span,
        `\`${name}\` is annotated as ${describeType(type)}, and its value is a ${given.kind}`,
        { labels: [{ span: node.type.span, message: 'annotated here' }] },
      );
      value = { kind: 'poison' };
    }
  }
  const binding: Binding = { ...value, name, span: node.name.span, used: false };
  block.bindings.set(name, binding);
  return binding;
};
