/** Where a text stops being JSON, and what could stand there. */
export interface JsonFault {
  /** UTF-16 offset. */
  readonly offset: number;
  readonly expected: string;
}

class Fault extends Error {
  readonly fault: JsonFault;

  constructor(offset: number, expected: string) {
    super(expected);
    this.fault = { offset, expected };
  }
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const STRING = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/uy;
/** Deeper than requests may be; recursion stays shallow. */
const MOST_DEPTH = 200;

/**
 * The first place at which a text is not JSON (RFC 8259), undefined if it is. Browsers' own messages differ, and not all say a place.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  try {
    const end = skip(text, value(text, skip(text, 0), 0));
    return end === text.length ? undefined : { offset: end, expected: 'the end' };
  } catch (error) {
    if (error instanceof Fault) return error.fault;
    throw error;
  }
}

function match(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

const skip = (text: string, at: number): number => match(SPACE, text, at) ?? at;

function value(text: string, at: number, depth: number): number {
  if (depth > MOST_DEPTH) throw new Fault(at, `at most ${MOST_DEPTH} levels`);
  const sign = text[at];
  if (sign === '{') return members(text, at, '}', (from) => member(text, from, depth));
  if (sign === '[') return members(text, at, ']', (from) => value(text, from, depth + 1));
  if (sign === '"') return string(text, at);
  const end = match(WORD, text, at) ?? match(NUMBER, text, at);
  if (end === undefined) throw new Fault(at, 'a value');
  return end;
}

function members(text: string, at: number, close: '}' | ']', one: (at: number) => number): number {
  let next = skip(text, at + 1);
  if (text[next] === close) return next + 1;
  for (;;) {
    next = skip(text, one(next));
    if (text[next] === close) return next + 1;
    if (text[next] !== ',') throw new Fault(next, `\`,\` or \`${close}\``);
    next = skip(text, next + 1);
  }
}

function member(text: string, at: number, depth: number): number {
  if (text[at] !== '"') throw new Fault(at, 'a name in quotes');
  const colon = skip(text, string(text, at));
  if (text[colon] !== ':') throw new Fault(colon, '`:`');
  return value(text, skip(text, colon + 1), depth + 1);
}

function string(text: string, at: number): number {
  const end = match(STRING, text, at) ?? at;
  if (text[end] === '"') return end + 1;
  throw new Fault(end, text[end] === '\\' ? 'an escape that JSON has' : 'a closing `"`');
}
