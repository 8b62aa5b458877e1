import type { Json, Value, ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import type { Expression, RateLimit, SecretRef } from '../ir.ts';
import { isLiteral, withoutParens } from '../syntax/ast.ts';
import type { EntryNode, ExprNode, ObjectNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { ratePeriods } from '../syntax/units.ts';
import { checkCondition, checkExpression } from './expression.ts';
import { checkEnumMember } from './mismatch.ts';
import { isConstant } from './fold.ts';
import type { Place, Session } from './session.ts';
import { describeType, isNumeric, sameDimension } from './value-types.ts';

/**
 * Reads the object of a `define` key by key. Each method gives undefined where the key is absent or wrong; what is wrong is reported
 * on its value, and `fine` turns false. Keys that nothing asks for are reported by `finish`.
 */
export interface ObjectReader {
  fine(): boolean;
  has(key: string): boolean;
  entry(key: string): EntryNode | undefined;
  fail(code: 'E0511' | 'E0513' | 'E0514', key: string, message: string, help?: string): undefined;
  constant(key: string, type: ValueType, limits?: Limits): Value | undefined;
  text(key: string): string | undefined;
  number(key: string, type: ValueType, limits?: Limits): number | undefined;
  word<T extends string>(key: string, words: readonly T[]): T | undefined;
  texts(key: string): readonly string[] | undefined;
  /** The same with the place of each. */
  items(key: string): readonly { readonly text: string; readonly span: Span }[];
  secret(key: string): SecretRef | undefined;
  rate(key: string, of: 'count' | 'money'): RateLimit | undefined;
  object(key: string): ObjectReader | undefined;
  json(key: string): Json | undefined;
  values(key: string): { readonly [name: string]: Value } | undefined;
  condition(key: string): Expression | undefined;
  require(key: string, hint: string): void;
  /** Keys that were written and not asked for. */
  rest(): readonly EntryNode[];
  finish(): void;
}

interface Limits {
  readonly minimum?: number;
  readonly above?: number;
  readonly maximum?: number;
  readonly whole?: boolean;
}

const valueNode = (node: ExprNode): ExprNode => withoutParens(node);

/** A constant as JSON, objects and lists included. */
export const readJson = (session: Session, place: Place, node: ExprNode): Json | undefined => {
  const inner = valueNode(node);
  if (inner.kind === 'object') {
    const result: { [key: string]: Json } = {};
    let fine = true;
    for (const entry of inner.entries) {
      const value = readJson(session, place, entry.value);
      if (value === undefined) fine = false;
      else result[entry.key.text] = value;
    }
    return fine ? result : undefined;
  }
  if (inner.kind === 'list') {
    const items = inner.items.map((item) => readJson(session, place, item));
    const known = items.filter((item) => item !== undefined);
    return known.length < items.length ? undefined : known;
  }
  const expression = checkExpression(session, { ...place, scope: 'constant' }, inner);
  if (expression === undefined) return undefined;
  if (isConstant(expression)) return expression.value;
  session.report('E0328', node.span, 'this is no constant');
  return undefined;
};

/** `owner` is how messages call the object: `tier "70B"`; `head` is where a missing key is reported. */
export const createObjectReader = (
  session: Session,
  place: Place,
  node: ObjectNode,
  owner: string,
  keys: readonly string[],
  head: Span = node.span,
): ObjectReader => {
  const entries = new Map<string, EntryNode>();
  const asked = new Set<string>();
  let fine = true;
  for (const entry of node.entries) {
    const before = entries.get(entry.key.text);
    if (before === undefined) {
      entries.set(entry.key.text, entry);
      continue;
    }
    fine = false;
    session.report('E0228', entry.key.span, `\`${entry.key.text}\` is written twice`, {
      labels: [{ span: before.key.span, message: 'first written here' }],
    });
  }
  const take = (key: string): EntryNode | undefined => {
    asked.add(key);
    return entries.get(key);
  };
  const failAt = (code: 'E0511' | 'E0513' | 'E0514', span: Span, message: string, help?: string): undefined => {
    fine = false;
    session.report(code, span, message, help === undefined ? {} : { help });
    return undefined;
  };
  const constantAt = (
    key: string,
    value: ExprNode,
    type: ValueType,
    limits: Limits,
    alternative?: ValueType,
  ): Value | undefined => {
    if (value.kind === 'object')
      return failAt('E0511', value.span, `\`${key}\` takes ${describeType(type)}, and this is an object`);
    const expression = checkExpression(session, { ...place, scope: 'constant', clause: key }, value);
    if (expression === undefined) {
      fine = false;
      return undefined;
    }
    if (!isConstant(expression)) return failAt('E0511', value.span, `\`${key}\` takes a constant`);
    if (
      !sameDimension(type, expression.type) &&
      !(alternative !== undefined && sameDimension(alternative, expression.type))
    ) {
      const literal = valueNode(value);
      const unit =
        literal.kind === 'number' && isNumeric(type)
          ? {
              duration: `${literal.raw}s\` or \`${literal.raw}ms`,
              bytes: `${literal.raw}MB\` or \`${literal.raw}GB`,
              percent: `${literal.raw}%`,
              rate: `${literal.raw}/s`,
              money: `$${literal.raw}`,
            }[type as string]
          : undefined;
      return failAt(
        'E0511',
        value.span,
        `\`${key}\` takes ${describeType(type)}, and this is ${describeType(expression.type)}`,
        unit === undefined ? undefined : `write \`${unit}\``,
      );
    }
    if (!checkEnumMember(session, place, type, expression, value, key)) {
      fine = false;
      return undefined;
    }
    if (typeof expression.value === 'number') {
      const { minimum, above, maximum, whole } = limits;
      const number = expression.value;
      const problem =
        minimum !== undefined && number < minimum
          ? `at least ${minimum}`
          : above !== undefined && number <= above
            ? `above ${above}`
            : maximum !== undefined && number > maximum
              ? `at most ${maximum}`
              : whole === true && !Number.isInteger(number)
                ? 'a whole number'
                : undefined;
      if (problem !== undefined) return failAt('E0511', value.span, `\`${key}\` is ${problem}`);
    }
    return expression.value;
  };
  const constant = (key: string, type: ValueType, limits: Limits = {}): Value | undefined => {
    const entry = take(key);
    return entry === undefined ? undefined : constantAt(key, entry.value, type, limits);
  };
  const reader: ObjectReader = {
    fine: () => fine,
    has: (key) => entries.has(key),
    entry: take,
    fail: (code, key, message, help) => failAt(code, entries.get(key)?.value.span ?? node.span, message, help),
    constant,
    text(key) {
      const value = constant(key, 'string');
      return typeof value === 'string' ? value : undefined;
    },
    number(key, type, limits) {
      const value = constant(key, type, limits);
      return typeof value === 'number' ? value : undefined;
    },
    word(key, words) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const inner = valueNode(entry.value);
      const text = inner.kind === 'name' ? inner.text : inner.kind === 'string' ? inner.value : undefined;
      if (inner.kind === 'bool') return failAt('E0511', entry.value.span, `\`${key}\` is one of ${words.join(', ')}`);
      const word = words.find((known) => known === text);
      if (word !== undefined) return word;
      const near = text === undefined ? undefined : suggest(text, words);
      fine = false;
      session.report(
        'E0511',
        entry.value.span,
        `\`${key}\` is one of ${words.join(', ')}`,
        near === undefined
          ? {}
          : {
              help: `did you mean \`${near}\`?`,
              fix: {
                message: `write \`${near}\``,
                edits: [{ span: entry.value.span, text: inner.kind === 'string' ? JSON.stringify(near) : near }],
              },
            },
      );
      return undefined;
    },
    texts: (key) => (entries.has(key) ? reader.items(key).map((item) => item.text) : undefined),
    items(key) {
      const entry = take(key);
      if (entry === undefined) return [];
      const inner = valueNode(entry.value);
      const nodes = inner.kind === 'list' ? inner.items : [inner];
      const items: { text: string; span: Span }[] = [];
      for (const item of nodes) {
        // A name may stand for a whole list: `models: all_models`.
        const isListName = inner.kind === 'name';
        const value = constantAt(
          key,
          item,
          isListName ? { list: 'string' } : 'string',
          {},
          isListName ? 'string' : undefined,
        );
        if (typeof value === 'string') items.push({ text: value, span: item.span });
        else if (Array.isArray(value))
          for (const text of value as readonly Value[])
            if (typeof text === 'string') items.push({ text, span: item.span });
      }
      return items;
    },
    secret(key) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const inner = valueNode(entry.value);
      const help = 'write `{ env: "NAME" }` or `{ file: "path" }`';
      if (inner.kind !== 'object')
        return failAt('E0513', entry.value.span, `\`${key}\` is a secret, which never stands in a policy`, help);
      const part = createObjectReader(session, place, inner, key, ['env', 'file']);
      const env = part.text('env');
      const file = part.text('file');
      part.finish();
      if (!part.fine()) {
        fine = false;
        return undefined;
      }
      if (env !== undefined && file === undefined) return { env };
      if (file !== undefined && env === undefined) return { file };
      return failAt('E0511', entry.value.span, `\`${key}\` names one source of the secret`, help);
    },
    rate(key, of) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const inner = valueNode(entry.value);
      const form = of === 'money' ? '$5/h' : '200k/min';
      if (inner.kind !== 'rate')
        return failAt(
          'E0511',
          entry.value.span,
          `\`${key}\` takes a rate`,
          isLiteral(inner) && inner.kind !== 'string'
            ? `write \`${inner.raw}/min\`, or per \`s\`, \`h\` or \`d\``
            : `write it as in \`${form}\``,
        );
      if (inner.of !== of)
        return failAt(
          'E0511',
          entry.value.span,
          of === 'money' ? `\`${key}\` takes money per time` : `\`${key}\` takes a count per time, and this is money`,
          `write it as in \`${form}\``,
        );
      const windowSeconds = ratePeriods.get(inner.raw.slice(inner.raw.indexOf('/') + 1)) ?? 1;
      const amount = Number((inner.value * windowSeconds).toPrecision(15));
      if (!(amount > 0)) return failAt('E0511', entry.value.span, `\`${key}\` is above zero`);
      return { amount, windowSeconds };
    },
    object(key) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const inner = valueNode(entry.value);
      if (inner.kind !== 'object')
        return failAt('E0511', entry.value.span, `\`${key}\` takes an object`, `write \`${key}: { … }\``);
      return createObjectReader(session, place, inner, key, []);
    },
    json(key) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const value = readJson(session, place, entry.value);
      if (value === undefined) fine = false;
      return value;
    },
    values(key) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const inner = valueNode(entry.value);
      if (inner.kind !== 'object')
        return failAt('E0511', entry.value.span, `\`${key}\` takes an object`, `write \`${key}: { name: value }\``);
      const result: { [name: string]: Value } = {};
      for (const part of inner.entries) {
        if (part.value.kind === 'object') failAt('E0511', part.value.span, 'an object is no value here');
        else {
          const value = checkExpression(session, { ...place, scope: 'constant', clause: key }, part.value);
          if (value !== undefined && isConstant(value)) result[part.key.text] = value.value;
          else fine = false;
        }
      }
      return result;
    },
    condition(key) {
      const entry = take(key);
      if (entry === undefined) return undefined;
      const expression = checkCondition(session, { ...place, clause: key }, entry.value, `after \`${key}\``);
      if (expression === undefined) fine = false;
      return expression;
    },
    require(key, hint) {
      if (entries.has(key)) return;
      fine = false;
      // A misspelled key is reported by `finish`, once.
      const known = keys.length > 0 ? keys : [key];
      for (const written of entries.keys()) if (!known.includes(written) && suggest(written, known) === key) return;
      session.report('E0512', head, `${owner} needs \`${key}\``, { help: `write \`${hint}\`` });
    },
    rest: () => [...entries.values()].filter((entry) => !asked.has(entry.key.text)),
    finish() {
      const known = keys.length > 0 ? keys : [...asked];
      for (const entry of entries.values()) {
        const key = entry.key.text;
        if (asked.has(key)) continue;
        fine = false;
        const near = suggest(key, known);
        session.report(
          'E0209',
          entry.key.span,
          `${owner} has no key \`${key}\``,
          near === undefined
            ? { help: `it has ${known.map((name) => `\`${name}\``).join(', ')}` }
            : {
                help: `did you mean \`${near}\`?`,
                fix: { message: `write \`${near}\``, edits: [{ span: entry.key.span, text: near }] },
              },
        );
      }
    },
  };
  return reader;
};

/** The type that a literal of a definition declares, for labels and tenants' own fields. */
export const declaredType = (node: ExprNode): ValueType | undefined => {
  const inner = valueNode(node);
  switch (inner.kind) {
    case 'number':
    case 'count':
    case 'string':
    case 'duration':
    case 'bytes':
    case 'percent':
    case 'rate':
    case 'money':
    case 'bool':
      return inner.kind;
    case 'list': {
      const [first] = inner.items;
      const type = first === undefined ? 'string' : declaredType(first);
      return type === undefined ? undefined : { list: type };
    }
    default:
      return undefined;
  }
};
