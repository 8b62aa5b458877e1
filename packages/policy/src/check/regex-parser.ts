/** Code points as sorted, disjoint ranges, both ends included. */
export type CharSet = readonly (readonly [number, number])[];

export type RegexTree = { readonly start: number; readonly end: number } & (
  | { readonly kind: 'set'; readonly set: CharSet }
  /** Matches without taking a character: an empty part, `^`, `$`, `\b`. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly RegexTree[] }
  | { readonly kind: 'repeat'; readonly body: RegexTree; readonly minimum: number; readonly maximum: number }
);

const LAST = 0x10ffff;
const LINE_ENDS: CharSet = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const DIGITS: CharSet = [[48, 57]];
const WORDS: CharSet = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
];
const SPACES: CharSet = [
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const ALL: CharSet = [[0, LAST]];

const unite = (ranges: readonly (readonly [number, number])[]): CharSet => {
  const sorted = ranges.toSorted((a, b) => a[0] - b[0]);
  const united: [number, number][] = [];
  for (const [low, high] of sorted) {
    const last = united[united.length - 1];
    if (last !== undefined && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else united.push([low, high]);
  }
  return united;
};

const complement = (set: CharSet): CharSet => {
  const result: [number, number][] = [];
  let next = 0;
  for (const [low, high] of set) {
    if (low > next) result.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= LAST) result.push([next, LAST]);
  return result;
};

export const setsOverlap = (a: CharSet, b: CharSet): boolean => {
  let i = 0;
  let j = 0;
  for (;;) {
    const left = a[i];
    const right = b[j];
    if (left === undefined || right === undefined) return false;
    if (left[0] <= right[1] && right[0] <= left[1]) return true;
    if (left[1] < right[1]) i += 1;
    else j += 1;
  }
};

/** With the `i` flag: letters of ASCII both ways; of other scripts anything may fold to anything, so all of them are taken. */
const ignoreCase = (set: CharSet): CharSet => {
  const more: [number, number][] = set.map(([low, high]) => [low, high]);
  for (const [low, high] of set) {
    for (let code = Math.max(low, 65); code <= Math.min(high, 90); code += 1) more.push([code + 32, code + 32]);
    for (let code = Math.max(low, 97); code <= Math.min(high, 122); code += 1) more.push([code - 32, code - 32]);
    if (high > 127) more.push([128, LAST], [75, 75], [83, 83], [107, 107], [115, 115]);
  }
  return unite(more);
};

export type ParsedRegex =
  | { readonly root: RegexTree }
  | { readonly problem: string; readonly start: number; readonly end: number };

class Refused extends Error {
  readonly start: number;
  readonly end: number;

  constructor(message: string, start: number, end: number) {
    super(message);
    this.start = start;
    this.end = end;
  }
}

/** Groups inside each other. */
const MAX_GROUPS = 64;

/** The tree of a pattern that `RegExp` accepts with the `u` flag. Look-around and back-references come back as a problem. */
export const parseRegex = (source: string, flags: string): ParsedRegex => {
  const dotAll = flags.includes('s');
  const fold = flags.includes('i') ? ignoreCase : (set: CharSet): CharSet => set;
  let at = 0;

  const setNode = (start: number, set: CharSet): RegexTree => ({ kind: 'set', set: fold(set), start, end: at });

  const classEscape = (letter: string): CharSet | undefined => {
    switch (letter) {
      case 'd':
        return DIGITS;
      case 'D':
        return complement(DIGITS);
      case 'w':
        return WORDS;
      case 'W':
        return complement(WORDS);
      case 's':
        return SPACES;
      case 'S':
        return complement(SPACES);
      default:
        return undefined;
    }
  };

  /** An escape after its backslash; `at` stands on the letter. Gives a set. */
  const escape = (start: number): CharSet => {
    const letter = source.charAt(at);
    at += 1;
    const known = classEscape(letter);
    if (known !== undefined) return known;
    if (letter === 'p' || letter === 'P') {
      at = source.indexOf('}', at) + 1;
      // Properties of Unicode: over-approximated, which can only refuse more.
      return ALL;
    }
    if (letter === 'k' || (letter >= '1' && letter <= '9')) {
      if (letter === 'k') at = source.indexOf('>', at) + 1;
      throw new Refused('a back-reference is not allowed', start, at);
    }
    const simple: { readonly [letter: string]: number } = { n: 10, r: 13, t: 9, v: 11, f: 12, 0: 0 };
    const code = simple[letter];
    if (code !== undefined) return [[code, code]];
    const hex = (digits: number): CharSet => {
      const value = Number.parseInt(source.slice(at, at + digits), 16);
      at += digits;
      return [[value, value]];
    };
    if (letter === 'x') return hex(2);
    if (letter === 'u') {
      if (source.charAt(at) !== '{') {
        const [first] = hex(4);
        const value = first?.[0] ?? 0;
        if (value >= 0xd800 && value <= 0xdbff && source.slice(at, at + 2) === '\\u') {
          at += 2;
          const low = Number.parseInt(source.slice(at, at + 4), 16);
          at += 4;
          const whole = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
          return [[whole, whole]];
        }
        return [[value, value]];
      }
      const end = source.indexOf('}', at);
      const value = Number.parseInt(source.slice(at + 1, end), 16);
      at = end + 1;
      return [[value, value]];
    }
    if (letter === 'c') {
      const value = source.charCodeAt(at) % 32;
      at += 1;
      return [[value, value]];
    }
    const point = letter.codePointAt(0) ?? 0;
    return [[point, point]];
  };

  const character = (): CharSet => {
    const point = source.codePointAt(at) ?? 0;
    at += point > 0xffff ? 2 : 1;
    return [[point, point]];
  };

  const bracket = (): CharSet => {
    at += 1;
    const negated = source.charAt(at) === '^';
    if (negated) at += 1;
    const ranges: (readonly [number, number])[] = [];
    const member = (): CharSet => {
      if (source.charAt(at) !== '\\') return character();
      const start = at;
      at += 1;
      if (source.charAt(at) === 'b') {
        at += 1;
        return [[8, 8]];
      }
      return escape(start);
    };
    while (at < source.length && source.charAt(at) !== ']') {
      const low = member();
      const single = low.length === 1 && low[0]?.[0] === low[0]?.[1];
      if (single && source.charAt(at) === '-' && source.charAt(at + 1) !== ']' && at + 1 < source.length) {
        at += 1;
        const high = member();
        ranges.push([low[0]?.[0] ?? 0, high[high.length - 1]?.[1] ?? LAST]);
      } else ranges.push(...low);
    }
    at += 1;
    // The case is folded before the complement is taken, as the engine does.
    const set = fold(unite(ranges));
    return negated ? complement(set) : set;
  };

  let depth = 0;
  const atom = (): RegexTree => {
    const start = at;
    const sign = source.charAt(at);
    if (sign === '(') {
      at += 1;
      if (source.charAt(at) === '?') {
        const opening = source.slice(at, at + 3);
        if (opening.startsWith('?=') || opening.startsWith('?!'))
          throw new Refused('look-ahead is not allowed', start, at + 2);
        if (opening === '?<=' || opening === '?<!') throw new Refused('look-behind is not allowed', start, at + 3);
        if (opening.startsWith('?<')) at = source.indexOf('>', at) + 1;
        else at = source.indexOf(':', at) + 1;
      }
      depth += 1;
      if (depth > MAX_GROUPS) throw new Refused(`groups nest more than ${MAX_GROUPS} deep here`, start, start + 1);
      const inner = choice();
      depth -= 1;
      at += 1;
      return { ...inner, start, end: at };
    }
    if (sign === '[') {
      const set = bracket();
      return { kind: 'set', set, start, end: at };
    }
    if (sign === '.') {
      at += 1;
      return setNode(start, dotAll ? ALL : complement(LINE_ENDS));
    }
    if (sign === '^' || sign === '$') {
      at += 1;
      return { kind: 'empty', start, end: at };
    }
    if (sign === '\\') {
      at += 1;
      const letter = source.charAt(at);
      if (letter === 'b' || letter === 'B') {
        at += 1;
        return { kind: 'empty', start, end: at };
      }
      return setNode(start, escape(start));
    }
    return setNode(start, character());
  };

  const repeated = (): RegexTree => {
    const start = at;
    const body = atom();
    const sign = source.charAt(at);
    let counts: readonly [number, number] | undefined;
    if (sign === '*') counts = [0, Infinity];
    else if (sign === '+') counts = [1, Infinity];
    else if (sign === '?') counts = [0, 1];
    else if (sign === '{') {
      const match = /^\{(\d+)(,(\d*))?\}/.exec(source.slice(at));
      if (match !== null) {
        const low = Number(match[1]);
        counts = [low, match[2] === undefined ? low : match[3] === '' ? Infinity : Number(match[3])];
        at += match[0].length - 1;
      }
    }
    if (counts === undefined) return body;
    at += 1;
    if (source.charAt(at) === '?') at += 1;
    return { kind: 'repeat', body, minimum: counts[0], maximum: counts[1], start, end: at };
  };

  const sequence = (): RegexTree => {
    const start = at;
    const parts: RegexTree[] = [];
    while (at < source.length && source.charAt(at) !== '|' && source.charAt(at) !== ')') parts.push(repeated());
    const [first] = parts;
    if (first === undefined) return { kind: 'empty', start, end: at };
    return parts.length === 1 ? first : { kind: 'sequence', parts, start, end: at };
  };

  const choice = (): RegexTree => {
    const start = at;
    const parts = [sequence()];
    while (source.charAt(at) === '|') {
      at += 1;
      parts.push(sequence());
    }
    const [first] = parts;
    return parts.length === 1 && first !== undefined ? first : { kind: 'choice', parts, start, end: at };
  };

  try {
    return { root: choice() };
  } catch (error) {
    if (error instanceof Refused) return { problem: error.message, start: error.start, end: error.end };
    throw error;
  }
};
