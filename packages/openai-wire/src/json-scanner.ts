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
    const wordsEnd = end - 3;
    for (;;) {
      // Four bytes at a time: a high bit stays if one of them is a control character, a quote, a backslash or no ASCII.
      while (i < wordsEnd) {
        const word = view.getInt32(i, true);
        const quote = (word ^ 0x22222222) - 0x01010101;
        const backslash = (word ^ 0x5c5c5c5c) - 0x01010101;
        if (((word | (word - 0x20202020) | quote | backslash) & 0x80808080) !== 0) break;
        i += 4;
      }
      while (i < end && PLAIN[bytes[i]!] === 1) i++;
      if (i >= end) this.fail('', end);
      const c = bytes[i]!;
      if (c === QUOTE) break;
      if (c === BACKSLASH) {
        escaped = true;
        const length = this.escape(i);
        i += length;
        surplus += length - 1;
      } else if (c < 0x20) {
        this.fail('a control character inside a string must be escaped', i);
      } else {
        const length = this.sequence(i, c);
        i += length;
        surplus += length - 1;
      }
    }
    this.chars = i - start - surplus;
    this.escaped = escaped;
    this.pos = i + 1;
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
    if (bytes[i] === 0x2d) i++;
    if (i < end && bytes[i] === 0x30) i++;
    else i = this.digits(i);
    if (i < end && bytes[i] === 0x2e) i = this.digits(i + 1);
    if (i < end && (bytes[i]! | 0x20) === 0x65) {
      i++;
      if (i < end && (bytes[i] === 0x2b || bytes[i] === 0x2d)) i++;
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
        if (c === 0x2d || (c >= 0x30 && c <= 0x39)) this.number();
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

  /** Offset behind the closing quote of the key read last. */
  keyEnd = 0;
  /** Whether the key read last is written with an escape. */
  keyEscaped = false;

  /** The key that opens at `start` as text; a short plain one is compared without this by `keyIs`. */
  keyText(start: number): string {
    return decodeString(this.bytes, start, this.keyEnd);
  }

  /** Whether the key that opens at `start` is `name`, which must be plain ASCII. */
  keyIs(start: number, name: string): boolean {
    return stringIs(this.bytes, start, this.keyEnd, name);
  }
}

/** Whether the validated JSON string in [start, end), quotes included, is `text`, which must be plain ASCII. */
export function stringIs(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  const length = end - start - 2;
  if (length !== text.length) {
    // It may still be the same text, written with escapes of up to six bytes a character.
    return (
      length > text.length &&
      length <= text.length * 6 &&
      hasEscape(bytes, start, end) &&
      decodeString(bytes, start, end) === text
    );
  }
  for (let k = 0; k < length; k++) {
    if (bytes[start + 1 + k] !== text.charCodeAt(k)) return false;
  }
  return true;
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === BACKSLASH) return true;
  return false;
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
    if (scanner.peek() !== OPEN_BRACE || !scanner.openObject(0)) return undefined;
    do {
      const key = scanner.key();
      const found = scanner.keyIs(key, name);
      scanner.peek();
      const start = scanner.pos;
      scanner.value(1);
      if (found) return { start, end: scanner.pos };
    } while (scanner.more(CLOSE_BRACE));
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
  }
  return undefined;
}
