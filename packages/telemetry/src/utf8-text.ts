// perf: every log line goes through here. Bytes that are written one by one in a loop need no string that holds them, no tree of pieces
// that the collector follows, and no call out of JavaScript.
import { toHundredths } from './hundredths.ts';

/** Room at first. */
const FIRST_ROOM_BYTES = 64 * 1024;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const POINT = 0x2e;
const MOST_HUNDREDTHS = 2 ** 31;

/** Text put together as UTF-8, in memory that is used again. */
export class Utf8Text {
  /** Bytes so far; it may be set back. */
  size = 0;
  #bytes = Buffer.allocUnsafeSlow(FIRST_ROOM_BYTES);
  /** Memory to begin anew in, so that the system need not be asked for it with every write. */
  #spare: Buffer<ArrayBuffer> | undefined;

  add(text: string): void {
    // No UTF-16 unit takes more than three bytes.
    this.#reserve(3 * text.length);
    this.size += this.#bytes.write(text, this.size);
  }

  addBytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.size);
    this.size += bytes.length;
  }

  /** Text that is known to be ASCII. */
  addAscii(text: string): void {
    const { length } = text;
    this.#reserve(length);
    const bytes = this.#bytes;
    const { size } = this;
    for (let i = 0; i < length; i++) bytes[size + i] = text.charCodeAt(i);
    this.size = size + length;
  }

  /** A text as JSON. */
  addQuoted(text: string): void {
    const { length } = text;
    this.#reserve(length + 2);
    const bytes = this.#bytes;
    let at = this.size;
    bytes[at++] = QUOTE;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit < 0x20 || unit > 0x7e || unit === QUOTE || unit === BACKSLASH) {
        this.add(JSON.stringify(text));
        return;
      }
      bytes[at++] = unit;
    }
    bytes[at++] = QUOTE;
    this.size = at;
  }

  /** A finite number as JSON. */
  addNumber(value: number): void {
    if (value >>> 0 !== value) {
      this.addAscii(String(value));
      return;
    }
    if (value < 2 ** 31) {
      this.#addDigits(value | 0, 1);
      return;
    }
    const high = (value / 100_000) | 0;
    this.#addDigits(high, 1);
    this.#addDigits((value - high * 100_000) | 0, 5);
  }

  /** A whole number from 0 to 2³¹ - 1 in so many digits or more. */
  addPadded(value: number, digits: number): void {
    this.#addDigits(value | 0, digits);
  }

  /** A finite number as `toHundredths` writes it. */
  addHundredths(value: number): void {
    const hundredths = Math.round(value * 100);
    if (!(hundredths >= 0 && hundredths < MOST_HUNDREDTHS)) {
      this.addAscii(toHundredths(value));
      return;
    }
    const whole = (hundredths / 100) | 0;
    const fraction = (hundredths - whole * 100) | 0;
    this.#addDigits(whole, 1);
    if (fraction === 0) return;
    const tenths = (fraction / 10) | 0;
    const bytes = this.#bytes;
    bytes[this.size++] = POINT;
    bytes[this.size++] = ZERO + tenths;
    if (fraction !== tenths * 10) bytes[this.size++] = ZERO + fraction - tenths * 10;
  }

  #addDigits(value: number, least: number): void {
    let digits = 1;
    for (let left = value; left >= 10; left = (left / 10) | 0) digits++;
    if (digits < least) digits = least;
    this.#reserve(digits + 3);
    const bytes = this.#bytes;
    let at = this.size + digits;
    this.size = at;
    let rest = value;
    for (; digits > 0; digits--) {
      const tenth = (rest / 10) | 0;
      bytes[--at] = ZERO + rest - tenth * 10;
      rest = tenth;
    }
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.size);
  }

  /** All of it; what is added from now on begins anew. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.size);
    this.#bytes = this.#spare ?? Buffer.allocUnsafeSlow(FIRST_ROOM_BYTES);
    this.#spare = undefined;
    this.size = 0;
    return taken;
  }

  /** Takes back memory that was taken, or a part of it, once nobody reads it any more. */
  giveBack({ buffer }: Buffer): void {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === FIRST_ROOM_BYTES) this.#spare = Buffer.from(buffer);
  }

  #reserve(more: number): void {
    const needed = this.size + more;
    if (needed <= this.#bytes.length) return;
    const bytes = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(bytes, 0, 0, this.size);
    this.#bytes = bytes;
  }
}
