import { isNumericType, SignalboxError } from '@signalbox/plugin-api';
import type { Value, ValueType } from '@signalbox/plugin-api';
import { parsePolicy, withoutParens } from '@signalbox/policy';
import type { PolicyProgram } from '@signalbox/policy';

type Param = PolicyProgram['definitions']['params'][number];

const KIND_OF_COUNT: ReadonlySet<string> = new Set(['number', 'count']);

/**
 * The value of a `define param`: what the environment says, read as the type of the default (`7k`, `1500ms`, `95%`, a plain number in base
 * units, `true` or `1`, a list by commas), else the default. Throws SignalboxError `param_invalid` for a text of another form.
 */
export function readParam(
  param: Param,
  environment: ((name: string) => string | undefined) | undefined,
): Value | undefined {
  const written = param.env === undefined ? undefined : environment?.(param.env);
  if (written === undefined) return param.default;
  const value = valueOf(written, param.type);
  if (value !== undefined) return value;
  throw new SignalboxError(
    `param ${JSON.stringify(param.name)}: the environment variable ${param.env} is ${JSON.stringify(written)}, which is no ${nameOf(param.type)}. Write it as in a policy, or unset it.`,
    { code: 'param_invalid', source: 'gateway' },
  );
}

function valueOf(text: string, type: ValueType): Value | undefined {
  if (typeof type === 'object' && 'list' in type) {
    const members = text.trim() === '' ? [] : text.split(',').map((member) => valueOf(member.trim(), type.list));
    return members.every((member) => member !== undefined) ? Object.freeze(members) : undefined;
  }
  if (type === 'bool')
    return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : undefined;
  return isNumericType(type) ? numberOf(text.trim(), type) : text;
}

function numberOf(text: string, type: ValueType): number | undefined {
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  const { file, diagnostics } = parsePolicy(`let x = ${text}`, { file: 'environment' });
  const [statement, ...more] = file.statements;
  if (diagnostics.length > 0 || more.length > 0 || statement?.kind !== 'let') return undefined;
  const literal = withoutParens(statement.value);
  if (!('value' in literal) || typeof literal.value !== 'number') return undefined;
  const same =
    literal.kind === type || (KIND_OF_COUNT.has(literal.kind) && typeof type === 'string' && KIND_OF_COUNT.has(type));
  return same ? literal.value : undefined;
}

function nameOf(type: ValueType): string {
  if (typeof type === 'string') return type;
  return 'list' in type ? `list of ${nameOf(type.list)}` : 'text';
}
