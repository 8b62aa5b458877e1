// perf: byte loops over typed arrays; `!` marks reads that a bound check already covers.

/** Where and why a text is not JSON. Thrown inside this package only; callers get a WireError. */
export class JsonFault extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.name = 'JsonFault';
    this.offset = offset;
  }
}

const QUOTE = 0x22;
const MINUS = 0x2d;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** 1 for bytes that stand for themselves inside a string: printable ASCII without quote and backslash. */
const PLAIN: Uint8Array = (() => {
  const table = new Uint8Array(256);
  for (let c = 0x20; c < 0x80; c++) table[c] = c === QUOTE || c === BACKSLASH ? 0 : 1;
  return table;
})();

/** The highest bit of each byte of a word. */
const HIGH_BITS = 0x80808080;
/** Decimal digits that a double holds exactly, whatever they are. */
const EXACT_DIGITS = 15;

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/**
 * A cursor over the bytes of one JSON text that validates (RFC 8259 grammar, UTF-8 of RFC 3629, a depth limit) while it steps over
 * values, and decodes nothing. `pos` is the offset of the next byte; every method leaves it just behind what it read, and throws
 * `JsonFault` where the bytes are not JSON.
 */
export class JsonScanner {
  readonly bytes: Uint8Array;
  private readonly view: DataView;
  readonly end: number;
  readonly maxDepth: number;
  pos: number;
  /** Code points of the string read last, as JSON.parse would give them. */
  chars = 0;
  /** Whether the string read last holds an escape, so that its bytes are not its text. */
  escaped = false;

  constructor(bytes: Uint8Array, start: number, end: number, maxDepth: number) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.pos = start;
    this.end = end;
    this.maxDepth = maxDepth;
  }

  fail(message: string, at: number = this.pos): never {
    throw new JsonFault(at >= this.end ? 'unexpected end of the text' : message, Math.min(at, this.end));
  }

  /** The next byte that is not white space, not consumed; -1 at the end. */
  peek(): number {
    const bytes = this.bytes;
    const end = this.end;
    let i = this.pos;
    while (i < end) {
      const c = bytes[i]!;
      if (c > 0x20 || (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09)) {
        this.pos = i;
        return c;
      }
      i++;
    }
    this.pos = i;
    return -1;
  }

  expect(byte: number, what: string): void {
    if (this.peek() !== byte) this.fail(`expected ${what}`);
    this.pos++;
  }

  /** Steps over a string; `pos` must be at its opening quote. Sets `chars` and `escaped`. */
  string(): void {
    const bytes = this.bytes;
    const end = this.end;
    const start = this.pos + 1;
    let i = start;
    let surplus = 0;
    let escaped = false;
    const view = this.view;
    const wordsEnd = end - 7;
    for (;;) {
      // perf: eight bytes at a time, with one branch for two words, and then right to the byte that stops.
      let stopped = false;
      while (i < wordsEnd) {
        const first = stops(view.getInt32(i, true));
        const second = stops(view.getInt32(i + 4, true));
        if (((first | second) & HIGH_BITS) !== 0) {
          i += lowestByte(first & HIGH_BITS, second & HIGH_BITS);
          stopped = true;
          break;
        }
        i += 8;
      }
      if (!stopped) {
        while (i < end && PLAIN[bytes[i]!] === 1) i++;
        if (i >= end) this.fail('', end);
      }
      // perf: such bytes come in runs (letters of other scripts, escaped line ends and indents), for which words are no help.
      let c = bytes[i]!;
      do {
        if (c === QUOTE) {
          this.chars = i - start - surplus;
          this.escaped = escaped;
          this.pos = i + 1;
          return;
        }
        let length: number;
        if (c === BACKSLASH) {
          escaped = true;
          length = this.escape(i);
        } else if (c < 0x20) {
          this.fail('a control character inside a string must be escaped', i);
        } else {
          length = this.sequence(i, c);
        }
        i += length;
        surplus += length - 1;
        if (i >= end) this.fail('', end);
        c = bytes[i]!;
      } while (PLAIN[c] === 0);
    }
  }

  /** Length of the escape at `i`; a surrogate pair of two `\u` counts as one escape, since it is one code point. */
  private escape(i: number): number {
    if (i + 1 >= this.end) this.fail('', this.end);
    switch (this.bytes[i + 1]!) {
      case 0x22:
      case 0x5c:
      case 0x2f:
      case 0x62:
      case 0x66:
      case 0x6e:
      case 0x72:
      case 0x74:
        return 2;
      case 0x75: {
        const unit = this.hex(i + 2);
        if (unit < 0xd800 || unit > 0xdbff) return 6;
        if (i + 7 >= this.end || this.bytes[i + 6] !== BACKSLASH || this.bytes[i + 7] !== 0x75) return 6;
        const low = this.hex(i + 8);
        return low >= 0xdc00 && low <= 0xdfff ? 12 : 6;
      }
      default:
        return this.fail('unknown escape in a string', i);
    }
  }

  private hex(at: number): number {
    if (at + 4 > this.end) this.fail('', this.end);
    let value = 0;
    for (let i = at; i < at + 4; i++) {
      const c = this.bytes[i]!;
      const digit =
        c >= 0x30 && c <= 0x39 ? c - 0x30 : (c | 0x20) >= 0x61 && (c | 0x20) <= 0x66 ? (c | 0x20) - 0x57 : -1;
      if (digit < 0) this.fail('\\u must be followed by four hexadecimal digits', i);
      value = value * 16 + digit;
    }
    return value;
  }

  /** Length of the UTF-8 sequence that opens with `c` at `i`: shortest form only, no surrogates, at most U+10FFFF. */
  private sequence(i: number, c: number): number {
    const bytes = this.bytes;
    // perf: what nearly all sequences are; the others, and where one is wrong, are for the full check below.
    if (i + 2 < this.end && (bytes[i + 1]! & 0xc0) === 0x80) {
      if (c >= 0xc2 && c < 0xe0) return 2;
      if (c > 0xe0 && c < 0xf0 && c !== 0xed && (bytes[i + 2]! & 0xc0) === 0x80) return 3;
    }
    let length: number;
    let low = 0x80;
    let high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf) length = 2;
    else if (c >= 0xe0 && c <= 0xef) {
      length = 3;
      if (c === 0xe0) low = 0xa0;
      else if (c === 0xed) high = 0x9f;
    } else if (c >= 0xf0 && c <= 0xf4) {
      length = 4;
      if (c === 0xf0) low = 0x90;
      else if (c === 0xf4) high = 0x8f;
    } else return this.fail('the text is not valid UTF-8', i);
    if (i + length > this.end) this.fail('', this.end);
    const second = bytes[i + 1]!;
    if (second < low || second > high) this.fail('the text is not valid UTF-8', i);
    for (let k = 2; k < length; k++) {
      if ((bytes[i + k]! & 0xc0) !== 0x80) this.fail('the text is not valid UTF-8', i);
    }
    return length;
  }

  number(): void {
    const bytes = this.bytes;
    const end = this.end;
    let i = this.pos;
    if (bytes[i] === MINUS) i++;
    if (i < end && bytes[i] === 0x30) i++;
    else i = this.digits(i);
    if (i < end && bytes[i] === 0x2e) i = this.digits(i + 1);
    if (i < end && (bytes[i]! | 0x20) === 0x65) {
      i++;
      if (i < end && (bytes[i] === 0x2b || bytes[i] === MINUS)) i++;
      i = this.digits(i);
    }
    this.pos = i;
  }

  private digits(from: number): number {
    const bytes = this.bytes;
    let i = from;
    while (i < this.end && bytes[i]! >= 0x30 && bytes[i]! <= 0x39) i++;
    if (i === from) this.fail('expected a digit', i);
    return i;
  }

  private literal(text: string): void {
    for (let k = 0; k < text.length; k++) {
      if (this.pos + k >= this.end || this.bytes[this.pos + k] !== text.charCodeAt(k))
        this.fail('expected a value', this.pos + k);
    }
    this.pos += text.length;
  }

  /** Steps over one value of any kind, white space before it included. `depth` is the number of containers around it. */
  value(depth: number): void {
    const c = this.peek();
    switch (c) {
      case QUOTE:
        this.string();
        return;
      case OPEN_BRACE:
        if (this.openObject(depth)) {
          do {
            this.key();
            this.value(depth + 1);
          } while (this.more(CLOSE_BRACE));
        }
        return;
      case OPEN_BRACKET:
        if (this.openArray(depth)) {
          do {
            this.value(depth + 1);
          } while (this.more(CLOSE_BRACKET));
        }
        return;
      case 0x74:
        this.literal('true');
        return;
      case 0x66:
        this.literal('false');
        return;
      case 0x6e:
        this.literal('null');
        return;
      default:
        if (c === MINUS || (c >= 0x30 && c <= 0x39)) this.number();
        else this.fail('expected a value');
    }
  }

  /** Enters the object at `pos`. True if it has members: then alternate `key`, a value and `more(0x7d)`. */
  openObject(depth: number): boolean {
    return this.open(depth, CLOSE_BRACE);
  }

  /** Enters the array at `pos`. True if it has items: then alternate a value and `more(0x5d)`. */
  openArray(depth: number): boolean {
    return this.open(depth, CLOSE_BRACKET);
  }

  private open(depth: number, close: number): boolean {
    if (depth >= this.maxDepth) this.fail(`values are nested more than ${this.maxDepth} deep`);
    this.pos++;
    if (this.peek() === close) {
      this.pos++;
      return false;
    }
    return true;
  }

  /** After a member or item: true if another follows, false when `close` was read. */
  more(close: number): boolean {
    const c = this.peek();
    if (c === COMMA) {
      this.pos++;
      return true;
    }
    if (c !== close)
      this.fail(`expected a comma or ${close === CLOSE_BRACE ? 'a closing brace' : 'a closing bracket'}`);
    this.pos++;
    return false;
  }

  /** Reads a member's key and colon. Gives the offset of the key's opening quote. */
  key(): number {
    if (this.peek() !== QUOTE) this.fail('expected a name in double quotes');
    const start = this.pos;
    this.string();
    this.keyEnd = this.pos;
    this.keyEscaped = this.escaped;
    this.expect(COLON, 'a colon');
    return start;
  }

  /**
   * Reads the key `name`, which must be plain ASCII, and its colon, if they come next and are written as JSON.stringify writes them; else
   * reads nothing but the white space before. perf: an expected key is compared for half of what `key` and `keyIs` cost.
   */
  takeKey(name: string): boolean {
    const bytes = this.bytes;
    if (this.peek() !== QUOTE) return false;
    const start = this.pos + 1;
    const stop = start + name.length;
    if (stop + 1 >= this.end || bytes[stop] !== QUOTE || bytes[stop + 1] !== COLON) return false;
    for (let k = 0; k < name.length; k++) if (bytes[start + k] !== name.charCodeAt(k)) return false;
    this.pos = stop + 2;
    return true;
  }

  /** Offset behind the closing quote of the key read last. */
  keyEnd = 0;
  /** Whether the key read last is written with an escape. */
  keyEscaped = false;

  /** The key that opens at `start` as text; a short plain one is compared without this by `keyIs`. */
  keyText(start: number): string {
    return decodeString(this.bytes, start, this.keyEnd);
  }

  /** Whether the key read last, which opens at `start`, is `name`, which must be plain ASCII. */
  keyIs(start: number, name: string): boolean {
    return isText(this.bytes, start, this.keyEnd, this.keyEscaped, name);
  }

  /** Whether the string read last, which opens at `start`, is `text`, which must be plain ASCII. */
  stringIs(start: number, text: string): boolean {
    return isText(this.bytes, start, this.pos, this.escaped, text);
  }

  /** The number at the cursor, as JSON.parse reads it; NaN for a value of another type. `depth` as for `value`. */
  readNumber(depth: number): number {
    const c = this.peek();
    const start = this.pos;
    this.value(depth);
    return c === MINUS || (c >= 0x30 && c <= 0x39) ? decodeNumber(this.bytes, start, this.pos) : Number.NaN;
  }

  /**
   * Goes to the value of member `name` at the top level of the object at the cursor, of which nothing was read; false if it has none.
   * The text behind the member is not looked at.
   */
  findMember(name: string): boolean {
    return this.peek() === OPEN_BRACE && this.openObject(0) && this.memberFromHere(name);
  }

  /** The same from behind the value of a member of the top level on. */
  nextMember(name: string): boolean {
    return this.more(CLOSE_BRACE) && this.memberFromHere(name);
  }

  private memberFromHere(name: string): boolean {
    do {
      const key = this.key();
      if (this.keyIs(key, name)) return true;
      this.value(1);
    } while (this.more(CLOSE_BRACE));
    return false;
  }
}

/**
 * Sets the high bit of each byte of `word` that is a control character, a quote, a backslash or no ASCII. The borrow of such a byte may
 * set it in bytes above, so that only the lowest one set tells something, which is the first in the text.
 */
function stops(word: number): number {
  // `^ 0x02` takes the control characters and the quote below 0x21, and no other ASCII.
  return word | ((word ^ 0x02020202) - 0x21212121) | ((word ^ 0x5c5c5c5c) - 0x01010101);
}

/** Index of the lowest byte that is not 0 in two words, of which one at least is not 0 and both hold high bits of bytes alone. */
function lowestByte(first: number, second: number): number {
  // perf: no branch on which of the words it is, since the processor would guess it wrong half of the time.
  const inFirst = (first | -first) >> 31;
  const word = first | (second & ~inFirst);
  return ((31 - Math.clz32(word & -word)) >> 3) + (4 & ~inFirst);
}

/** Whether the validated JSON string in [start, end), quotes included, is `text`, which must be plain ASCII. */
function isText(bytes: Uint8Array, start: number, end: number, escaped: boolean, text: string): boolean {
  const length = text.length;
  // An escape takes up to six bytes a character.
  if (escaped) return end - start - 2 <= length * 6 && decodeString(bytes, start, end) === text;
  if (end - start - 2 !== length) return false;
  for (let k = 0; k < length; k++) {
    if (bytes[start + 1 + k] !== text.charCodeAt(k)) return false;
  }
  return true;
}

/** The number in a validated span. perf: one of a few digits, as nearly all are, is read without the parser. */
function decodeNumber(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > EXACT_DIGITS) return decodeValue(bytes, start, end) as number;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i]! - 0x30;
    if (digit < 0 || digit > 9) return decodeValue(bytes, start, end) as number;
    value = value * 10 + digit;
  }
  return value;
}

/** Text of the JSON string whose quotes stand at `start` and `end - 1`, which a scanner has validated. */
export function decodeString(bytes: Uint8Array, start: number, end: number): string {
  const raw = bytes.subarray(start + 1, end - 1);
  return raw.indexOf(BACKSLASH) < 0
    ? decoder.decode(raw)
    : (JSON.parse(decoder.decode(bytes.subarray(start, end))) as string);
}

/** The JSON value in a validated span. */
export function decodeValue(bytes: Uint8Array, start: number, end: number): unknown {
  return JSON.parse(decoder.decode(bytes.subarray(start, end)));
}

/** Whether the bytes are one whole JSON value, with white space around it at most. */
export function isJson(bytes: Uint8Array): boolean {
  const scanner = new JsonScanner(bytes, 0, bytes.length, 512);
  try {
    scanner.value(0);
    return scanner.peek() === -1;
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
    return false;
  }
}

/**
 * Span [start, end) of the value of member `name` at the top level of the object in [from, to); undefined if it has none or the text
 * stops being JSON before it. The text behind the member is not looked at.
 */
export function findTopLevel(
  bytes: Uint8Array,
  from: number,
  to: number,
  name: string,
): { readonly start: number; readonly end: number } | undefined {
  const scanner = new JsonScanner(bytes, from, to, 512);
  try {
    if (!scanner.findMember(name)) return undefined;
    scanner.peek();
    const start = scanner.pos;
    scanner.value(1);
    return { start, end: scanner.pos };
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
    return undefined;
  }
}
