import { applyOptionDefaults } from '@signalbox/plugin-api';
import type { Json, OptionProblem, OptionSchema, OptionUnit, ValueType } from '@signalbox/plugin-api';
import { suggest } from '../diagnostics/suggest.ts';
import { withoutParens } from '../syntax/ast.ts';
import type { ArgNode, ArgsNode, ExprNode, ObjectNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { isConstant } from './fold.ts';
import { elaborate, findBinding } from './session.ts';
import type { Place, Session } from './session.ts';
import { describeType, formatNumber, sameDimension } from './value-types.ts';

export type Options = { readonly [name: string]: Json };

const UNIT_TYPES: { readonly [unit in OptionUnit]: ValueType } = {
  duration: 'duration',
  bytes: 'bytes',
  percent: 'percent',
  rate: 'rate',
  money: 'money',
  count: 'count',
};

/** The type that a schema asks for, as an expression of the language has it. */
export const typeOfSchema = (schema: OptionSchema): ValueType | undefined => {
  if (schema['x-unit'] !== undefined) return UNIT_TYPES[schema['x-unit']];
  switch (schema.type) {
    case 'number':
    case 'integer':
      return 'number';
    case 'boolean':
      return 'bool';
    case 'string':
      return 'string';
    default:
      return undefined;
  }
};

/** Where each part of an options value stands in the source, by JSON pointer. */
interface Origin {
  readonly key: Span;
  readonly value: Span;
}

interface Reader {
  readonly session: Session;
  readonly place: Place;
  readonly owner: string;
  readonly origins: Map<string, Origin>;
  /** Pointers whose own error is reported, so that the schema's is not. */
  readonly broken: Set<string>;
}

const escapePointer = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');

const readValue = (
  reader: Reader,
  schema: OptionSchema | undefined,
  node: ExprNode,
  pointer: string,
): Json | undefined => {
  const { session, place } = reader;
  const inner = withoutParens(node);
  const fail = (): undefined => {
    reader.broken.add(pointer);
    return undefined;
  };
  if (inner.kind === 'object') return readObject(reader, schema, inner, pointer);
  if (inner.kind === 'list' && (schema?.type === undefined || schema.type === 'array')) {
    const items: Json[] = [];
    for (const [index, item] of inner.items.entries()) {
      const at = `${pointer}/${index}`;
      reader.origins.set(at, { key: item.span, value: item.span });
      const value = readValue(reader, schema?.items, item, at);
      if (value !== undefined) items.push(value);
      else return fail();
    }
    return items;
  }
  const span = place.inlineAt ?? node.span;
  if (inner.kind === 'name' && schema?.enum !== undefined && findBinding(place.block, inner.text) === undefined) {
    if (schema.enum.includes(inner.text)) return inner.text;
    reportChoice(session, span, pointer.split('/').pop() ?? reader.owner, inner.text, schema.enum, inner.span);
    return fail();
  }
  const expression = elaborate(session, { ...place, scope: 'constant' }, node);
  if (expression === undefined) return fail();
  if (!isConstant(expression)) {
    session.report('E0328', span, 'an option is a constant');
    return fail();
  }
  const wanted = schema === undefined ? undefined : typeOfSchema(schema);
  if (inner.kind === 'string' && schema?.enum !== undefined && !schema.enum.includes(inner.value)) {
    reportChoice(session, span, pointer.split('/').pop() ?? reader.owner, inner.value, schema.enum, inner.span);
    return fail();
  }
  if (wanted !== undefined && !sameDimension(wanted, expression.type)) {
    const literal =
      inner.kind === 'number' && wanted === 'percent'
        ? formatNumber(inner.value > 1 ? inner.value / 100 : inner.value, 'percent')
        : undefined;
    const unit =
      inner.kind === 'number' && wanted === 'duration' ? { help: `write \`${inner.raw}s\` or \`${inner.raw}ms\`` } : {};
    session.report(
      'E0506',
      span,
      `\`${pointer.split('/').pop() ?? reader.owner}\` takes ${describeType(wanted)}, and this is ${describeType(expression.type)}`,
      literal === undefined
        ? unit
        : {
            help: `write \`${literal}\``,
            fix: { message: `write \`${literal}\``, edits: [{ span: inner.span, text: literal }] },
          },
    );
    return fail();
  }
  return expression.value;
};

const reportChoice = (
  session: Session,
  span: Span,
  name: string,
  written: string,
  choices: readonly Json[],
  at: Span,
): void => {
  const near = suggest(written, choices.map(String));
  session.report(
    'E0508',
    span,
    `\`${name}\` is one of ${choices.map(String).join(', ')}`,
    near === undefined
      ? {}
      : {
          help: `did you mean \`${near}\`?`,
          fix: { message: `write \`${near}\``, edits: [{ span: at, text: JSON.stringify(near) }] },
        },
  );
};

const readObject = (reader: Reader, schema: OptionSchema | undefined, node: ObjectNode, pointer: string): Json => {
  const value: { [key: string]: Json } = {};
  const seen = new Map<string, Span>();
  for (const entry of node.entries) {
    const key = entry.key.text;
    const at = `${pointer}/${escapePointer(key)}`;
    const before = seen.get(key);
    if (before !== undefined) {
      reader.session.report('E0228', entry.key.span, `\`${key}\` is written twice`, {
        labels: [{ span: before, message: 'first written here' }],
      });
      continue;
    }
    seen.set(key, entry.key.span);
    reader.origins.set(at, { key: entry.key.span, value: entry.value.span });
    const extra = typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    const read = readValue(reader, schema?.properties?.[key] ?? extra, entry.value, at);
    if (read !== undefined) value[key] = read;
  }
  return value;
};

const schemaAt = (schema: OptionSchema, pointer: string): OptionSchema | undefined => {
  let at: OptionSchema | undefined = schema;
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    at = at?.properties?.[key] ?? (typeof at?.additionalProperties === 'object' ? at.additionalProperties : at?.items);
  }
  return at;
};

const shown = (value: unknown, schema: OptionSchema | undefined): string =>
  typeof value === 'number'
    ? formatNumber(value, (schema === undefined ? undefined : typeOfSchema(schema)) ?? 'number')
    : String(value);

/** One problem that the schema validator found, as a finding on the exact key or value. */
const reportProblem = (
  reader: Reader,
  schema: OptionSchema,
  problem: OptionProblem,
  whole: Span,
  named: boolean,
): void => {
  const { session, place, owner } = reader;
  const at = (span: Span): Span => place.inlineAt ?? span;
  const origin = reader.origins.get(problem.pointer);
  const value = at(origin?.value ?? whole);
  const name = problem.pointer === '' ? owner : (problem.pointer.split('/').pop() ?? owner);
  const here = schemaAt(schema, problem.pointer);
  const { params } = problem;
  switch (problem.keyword) {
    case 'additionalProperties': {
      const key = String(params['additionalProperty']);
      const keySpan = reader.origins.get(`${problem.pointer}/${escapePointer(key)}`)?.key ?? whole;
      const known = Object.keys(here?.properties ?? {});
      const near = suggest(key, known);
      session.report(
        named ? 'E0310' : 'E0505',
        at(keySpan),
        `\`${name}\` has no ${named ? 'argument' : 'option'} \`${key}\``,
        near === undefined
          ? { help: known.length === 0 ? 'it takes none' : `it has ${known.map((one) => `\`${one}\``).join(', ')}` }
          : {
              help: `did you mean \`${near}\`?`,
              fix: { message: `write \`${near}\``, edits: [{ span: keySpan, text: near }] },
            },
      );
      return;
    }
    case 'required':
      session.report('E0507', value, `\`${name}\` needs \`${String(params['missingProperty'])}\``);
      return;
    case 'type':
      session.report('E0506', value, `\`${name}\` takes ${describeSchemaType(here, params['type'])}`);
      return;
    case 'enum': {
      const allowed = (here?.enum ?? (params['allowedValues'] as readonly Json[] | undefined) ?? []).map(String);
      const near = suggest(session.textOf(origin?.value ?? whole).replaceAll('"', ''), allowed);
      session.report(
        'E0508',
        value,
        `\`${name}\` is one of ${allowed.join(', ')}`,
        near === undefined ? {} : { help: `did you mean \`${near}\`?` },
      );
      return;
    }
    case 'minimum':
    case 'exclusiveMinimum':
    case 'maximum':
    case 'exclusiveMaximum': {
      const limit = shown(params['limit'], here);
      const words = { minimum: 'at least', exclusiveMinimum: 'above', maximum: 'at most', exclusiveMaximum: 'below' }[
        problem.keyword
      ];
      session.report('E0508', value, `\`${name}\` is ${words} ${limit}`);
      return;
    }
    case 'minItems':
    case 'maxItems':
      session.report(
        'E0508',
        value,
        `\`${name}\` has ${problem.keyword === 'minItems' ? 'at least' : 'at most'} ${shown(params['limit'], undefined)} items`,
      );
      return;
    case 'minLength':
    case 'maxLength':
      session.report(
        'E0508',
        value,
        `\`${name}\` has ${problem.keyword === 'minLength' ? 'at least' : 'at most'} ${shown(params['limit'], undefined)} characters`,
      );
      return;
    case 'pattern':
      session.report(
        'E0508',
        value,
        `\`${name}\` does not have the form that it needs`,
        here?.description === undefined ? {} : { help: here.description },
      );
      return;
    default:
      session.report('E0508', value, `\`${name}\` is not allowed to be this (${problem.keyword})`);
  }
};

const describeSchemaType = (schema: OptionSchema | undefined, type: unknown): string => {
  const known = schema === undefined ? undefined : typeOfSchema(schema);
  if (known !== undefined) return schema?.type === 'integer' ? 'a whole number' : describeType(known);
  return type === 'array' ? 'a list' : type === 'object' ? 'an object' : `a value of type ${String(type)}`;
};

const finish = (
  reader: Reader,
  schema: OptionSchema,
  value: Json,
  whole: Span,
  named: boolean,
): Options | undefined => {
  const before = reader.session.diagnostics.length;
  for (const problem of reader.session.checkOptions(schema, value)) {
    const missing =
      problem.keyword === 'required'
        ? `${problem.pointer}/${escapePointer(String(problem.params['missingProperty']))}`
        : problem.pointer;
    if ([...reader.broken].some((pointer) => missing === pointer || missing.startsWith(`${pointer}/`))) continue;
    reportProblem(reader, schema, problem, whole, named);
  }
  if (reader.broken.size > 0 || reader.session.diagnostics.length > before) return undefined;
  return (applyOptionDefaults(schema, value) ?? {}) as Options;
};

/** Options written as an object after `use`. Undefined where an error has been reported. */
export const checkOptionObject = (
  session: Session,
  place: Place,
  schema: OptionSchema,
  owner: string,
  span: Span,
  node: ObjectNode | undefined,
): Options | undefined => {
  const reader: Reader = { session, place, owner, origins: new Map(), broken: new Set() };
  const value = node === undefined ? {} : readObject(reader, schema, node, '');
  return finish(reader, schema, value, node?.span ?? span, false);
};

/** Options written as arguments: `softmax(temperature: 0.2)`, `under_load(95%)`. Undefined where an error has been reported. */
export const checkOptionArgs = (
  session: Session,
  place: Place,
  schema: OptionSchema,
  positional: readonly string[],
  owner: string,
  span: Span,
  args: ArgsNode | undefined,
): Options | undefined => {
  const reader: Reader = { session, place, owner, origins: new Map(), broken: new Set() };
  const value: { [key: string]: Json } = {};
  const seen = new Map<string, ArgNode>();
  let position = 0;
  let named = false;
  for (const item of args?.items ?? []) {
    const at = place.inlineAt ?? item.span;
    let key: string | undefined;
    if (item.name === undefined) {
      if (named) {
        session.report('E0336', at, 'an argument without a name follows one with a name', {
          help: 'put it first, or give it its name',
        });
        return undefined;
      }
      key = positional[position];
      position += 1;
      if (key === undefined) {
        const names = Object.keys(schema.properties ?? {});
        session.report(
          'E0309',
          at,
          positional.length === 0
            ? `arguments of \`${owner}\` are given by name`
            : `\`${owner}\` takes ${positional.length === 1 ? 'one argument' : `${positional.length} arguments`} without a name`,
          names.length === 0 ? {} : { help: `it has ${names.map((name) => `\`${name}\``).join(', ')}` },
        );
        return undefined;
      }
    } else {
      named = true;
      key = item.name.text;
    }
    const before = seen.get(key);
    if (before !== undefined) {
      session.report('E0336', at, `the argument \`${key}\` is given twice`, {
        labels: [{ span: before.span, message: 'first given here' }],
      });
      return undefined;
    }
    seen.set(key, item);
    const pointer = `/${escapePointer(key)}`;
    reader.origins.set(pointer, { key: item.name?.span ?? item.value.span, value: item.value.span });
    const read = readValue(reader, schema.properties?.[key], item.value, pointer);
    if (read !== undefined) value[key] = read;
  }
  return finish(reader, schema, value, args?.span ?? span, true);
};
