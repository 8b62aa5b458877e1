import type { Expression, PropertyRef, RefArgument, SignalRef } from '../ir.ts';

/** A text that two expressions share exactly if they mean the same; spans do not count. */
const keyOfExpression = (expression: Expression): string =>
  JSON.stringify(expression, (name, value: unknown) => (name === 'span' || name === 'type' ? undefined : value));

const keyOfArgument = (argument: RefArgument): string => {
  if (argument.kind === 'expression') return `${argument.name ?? ''}=(${keyOfExpression(argument.expression)})`;
  return JSON.stringify(argument);
};

const keyOf = (ref: SignalRef | PropertyRef): string => {
  const { key, provider } = ref;
  // Most references are a bare built-in name, and a policy holds tens of thousands of them.
  if (ref.arguments.length === 0 && ref.options === undefined)
    return provider.kind === 'builtin' ? key : `${key}|${provider.plugin}|${provider.use ?? ''}`;
  return `${ref.key}|${JSON.stringify(ref.provider)}|${ref.arguments.map(keyOfArgument).join(',')}|${JSON.stringify(ref.options ?? {})}`;
};

export const keyOfSignal = (ref: SignalRef): string => keyOf(ref);
export const keyOfProperty = (ref: PropertyRef): string => keyOf(ref);
