import { isKnown } from '@signalbox/plugin-api';
import type { Value } from '@signalbox/plugin-api';
import type { Pattern } from './linear-pattern.ts';

/** How much of a prompt `matches` sees, in UTF-16 code units. A longer prompt is searched as though it ended there. */
export const PROMPT_SEARCH_LIMIT = 16_384;

type Text = string | undefined;

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** `number(s)`: a decimal number with optional sign, fraction and exponent, blanks around it allowed; anything else is NaN. */
export function toNumber(text: Text): number {
  if (text === undefined) return Number.NaN;
  const trimmed = text.trim();
  if (!DECIMAL.test(trimmed)) return Number.NaN;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : Number.NaN;
}

/** `duration(s, unit)`: `number(s)` times the unit, in seconds. A negative or infinite one is NaN. */
export function toDuration(text: Text, unitSeconds: number): number {
  const value = toNumber(text) * unitSeconds;
  return value >= 0 && value < Infinity ? value : Number.NaN;
}

/** `bool(s)`: `true` or `1`, `false` or `0`, in any case, blanks around them allowed; anything else is unknown. */
export function toBool(text: Text): boolean | undefined {
  switch (text?.trim().toLowerCase()) {
    case 'true':
    case '1':
      return true;
    case 'false':
    case '0':
      return false;
    default:
      return undefined;
  }
}

/** `list(s, separator)`: the parts between separators, trimmed, empty ones left out. */
export function toList(text: Text, separator: Text): readonly string[] | undefined {
  if (text === undefined || separator === undefined) return undefined;
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** `lower(s)`. */
export function toLower(text: Text): Text {
  return text?.toLowerCase();
}

/** `clamp(x, low, high)`; `high` where the bounds are reversed; NaN if an argument is. */
export function clampValue(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Whether the text has a match. */
export function matchesText(pattern: Pattern, text: Text): boolean | undefined {
  return text === undefined ? undefined : pattern.test(text);
}

/** Whether the first `PROMPT_SEARCH_LIMIT` units have a match. No match is unknown if there is more text. */
export function matchesPrompt(pattern: Pattern, text: Text): boolean | undefined {
  if (text === undefined) return undefined;
  if (text.length <= PROMPT_SEARCH_LIMIT) return pattern.test(text);
  return pattern.test(text.slice(0, PROMPT_SEARCH_LIMIT)) ? true : undefined;
}

/** Whether two known values are equal; lists are by their members in order. */
export function sameValue(left: Value, right: Value): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left.length !== right.length) return false;
  return left.every((member, index) => {
    const other = right[index];
    return other !== undefined && sameValue(member, other);
  });
}

/** Kleene membership: true on a match; without one, unknown if the value, the list or a member is unknown. */
export function memberOf(
  value: Value | undefined,
  list: readonly (Value | undefined)[] | undefined,
): boolean | undefined {
  if (!isKnown(value) || list === undefined) return undefined;
  let unknown = false;
  for (const member of list) {
    if (!isKnown(member)) unknown = true;
    else if (sameValue(member, value)) return true;
  }
  return unknown ? undefined : false;
}

/** Whether the text has the part. */
export function containsText(text: Text, part: Text): boolean | undefined {
  return text === undefined || part === undefined ? undefined : text.includes(part);
}

/** The list of these members; unknown if one of them is. */
export function listOf(members: readonly (Value | undefined)[]): readonly Value[] | undefined {
  const known = members.filter(isKnown);
  return known.length === members.length ? Object.freeze(known) : undefined;
}

/** A name in `RUNTIME`. */
export type RuntimeName =
  | 'min'
  | 'max'
  | 'clamp'
  | 'number'
  | 'duration'
  | 'bool'
  | 'list'
  | 'lower'
  | 'matchesText'
  | 'matchesPrompt'
  | 'sameValue'
  | 'memberOf'
  | 'containsText'
  | 'listOf';

/** What generated code may call, by the name under which its constants ask for it. */
export const RUNTIME: { readonly [Name in RuntimeName]: unknown } = Object.freeze({
  min: Math.min,
  max: Math.max,
  clamp: clampValue,
  number: toNumber,
  duration: toDuration,
  bool: toBool,
  list: toList,
  lower: toLower,
  matchesText,
  matchesPrompt,
  sameValue,
  memberOf,
  containsText,
  listOf,
});
