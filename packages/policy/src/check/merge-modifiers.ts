import type { Expression, Modifiers } from '../ir.ts';
import { copyExpression } from './copy-expression.ts';

const EXPRESSIONS = [
  'timeout',
  'attemptTimeout',
  'firstToken',
  'idle',
  'sticky',
  'priority',
  'model',
  'retryAfter',
  'message',
  'maxWait',
] as const;

/** A copy whose expressions have identities of their own, for a group's modifiers that stand in each of its destinations. */
export const copyModifiers = (modifiers: Modifiers): Modifiers => {
  const expressions: { [key in (typeof EXPRESSIONS)[number]]?: Expression } = {};
  for (const key of EXPRESSIONS) {
    const expression = modifiers[key];
    if (expression !== undefined) expressions[key] = copyExpression(expression);
  }
  return {
    ...modifiers,
    ...expressions,
    ...(modifiers.affinity === undefined
      ? {}
      : { affinity: { ...modifiers.affinity, key: modifiers.affinity.key.map((part) => copyExpression(part)) } }),
    ...(modifiers.hedge === undefined
      ? {}
      : {
          hedge: {
            ...modifiers.hedge,
            ...(modifiers.hedge.after === undefined ? {} : { after: copyExpression(modifiers.hedge.after) }),
          },
        }),
    ...(modifiers.headers === undefined
      ? {}
      : { headers: modifiers.headers.map((header) => ({ ...header, value: copyExpression(header.value) })) }),
    ...(modifiers.set === undefined
      ? {}
      : { set: modifiers.set.map((field) => ({ ...field, value: copyExpression(field.value) })) }),
  };
};

const mergeBy = <T>(
  outer: readonly T[] | undefined,
  inner: readonly T[] | undefined,
  keyOf: (item: T) => string,
): readonly T[] | undefined => {
  if (outer === undefined || inner === undefined) return inner ?? outer;
  const own = new Set(inner.map(keyOf));
  return [...outer.filter((item) => !own.has(keyOf(item))), ...inner];
};

/** Modifier by modifier, the inner one wins; headers and fields count one by one, by their name. */
export const mergeModifiers = (outer: Modifiers, inner: Modifiers): Modifiers => {
  const headers = mergeBy(outer.headers, inner.headers, (header) => header.name);
  const set = mergeBy(outer.set, inner.set, (field) => field.field);
  const drop = mergeBy(outer.drop, inner.drop, (field) => field);
  return {
    ...outer,
    ...inner,
    ...(headers === undefined ? {} : { headers }),
    ...(set === undefined ? {} : { set }),
    ...(drop === undefined ? {} : { drop }),
  };
};
