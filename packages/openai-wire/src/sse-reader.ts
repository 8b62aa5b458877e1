// perf: sees every byte of every stream; `!` marks reads that a bound check already covers.
import { decodeValue, findTopLevel } from './json-scanner.ts';
import { mergeUsage, NO_USAGE, usageOf, type Usage } from './usage.ts';

/** Which API's events a stream carries; `other` knows no final event, so its framing alone says that it is whole. */
export type StreamDialect = 'chat' | 'responses' | 'messages' | 'other';

export interface SseReaderOptions {
  readonly dialect: StreamDialect;
  /** Put this name into the top-level `model` of every event; undefined leaves events untouched. */
  readonly alias?: string | undefined;
  /** Leave out frames with `choices: []` and a `usage` object, which the client did not ask for. */
  readonly dropUsageFrames?: boolean;
  /** Bytes of one event, at most. */
  readonly maxEventBytes?: number;
}

/** An error event as an engine sent it. */
export interface StreamError {
  /** HTTP status that the event names, else 0. */
  readonly status: number;
  readonly code: string;
  readonly type: string;
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const EMPTY: Uint8Array = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Reads a `text/event-stream` beside the relay. `push` takes bytes as they come, cut anywhere, and gives back the whole events that are
 * ready to be relayed (in the common case a view of the very chunk); the unfinished rest waits inside, so a stream that breaks off
 * never leaves half an event with the client. Line ends may be LF, CR, CRLF or a mixture (WHATWG HTML, server-sent events); events are
 * the same for any chunking. Payloads are scanned for a few keys and parsed only where one of them is present.
 */
export class SseReader {
  /** Data events that carried output: neither errors, nor empty, nor pings, nor the end mark. */
  events = 0;
  /** The first event of the stream that states an error; nothing behind it is given out. */
  error: StreamError | undefined;
  /** The stream's final event was seen. */
  done = false;
  /** A `finish_reason` that is not null was seen. */
  finished = false;
  /** One event grew past `maxEventBytes`; the reader stopped. */
  overflowed = false;
  /** The bytes ended inside an event: what was left is neither a comment nor a payload that is whole. */
  torn = false;
  usage: Usage = NO_USAGE;

  private readonly dialect: StreamDialect;
  private readonly alias: Uint8Array | undefined;
  private readonly dropUsageFrames: boolean;
  private readonly maxEventBytes: number;

  /** Bytes of the unfinished event, in a buffer with room to grow; `EMPTY` if the last chunk ended with an event. */
  private carry: Uint8Array = EMPTY;
  private carried = 0;
  /** A CR ended the last chunk: a LF that opens the next one belongs to it. */
  private afterCr = false;
  private first = true;

  // The event being read; offsets are relative to its first byte.
  private lineStart = 0;
  private scanned = 0;
  private dataLines = 0;
  private dataStart = 0;
  private dataEnd = 0;
  private moreData: number[] | undefined;
  private typeStart = 0;
  private typeEnd = 0;

  /** What goes out of the buffer being read, where some of it is left out or replaced: the bytes up to `taken`. */
  private edited: Uint8Array[] | undefined;
  private taken = 0;

  constructor(options: SseReaderOptions) {
    this.dialect = options.dialect;
    this.alias = options.alias === undefined ? undefined : encoder.encode(JSON.stringify(options.alias));
    this.dropUsageFrames = options.dropUsageFrames ?? false;
    this.maxEventBytes = options.maxEventBytes ?? 8 * 1024 * 1024;
  }

  /** Bytes held back because their event is not finished. */
  get heldBytes(): number {
    return this.carried;
  }

  /**
   * Takes the next bytes and gives the whole events that they complete, possibly none. The array may be a view of `chunk`. After an
   * error event or an overflow nothing more comes out.
   */
  push(chunk: Uint8Array): Uint8Array {
    if (chunk.length === 0 || this.error !== undefined || this.overflowed) return EMPTY;
    let buffer = chunk;
    let end = chunk.length;
    if (this.carried > 0) {
      this.append(chunk);
      buffer = this.carry;
      end = this.carried;
    }
    const whole = this.scan(buffer, end);
    const left = this.error === undefined ? end - whole : 0;
    if (left > this.maxEventBytes) {
      this.overflowed = true;
      this.carry = EMPTY;
      this.carried = 0;
      return this.take(buffer, whole);
    }
    const out = this.take(buffer, whole);
    if (left === 0) {
      this.carry = EMPTY;
      this.carried = 0;
    } else if (whole > 0 || buffer === chunk) {
      // What went out may be a view of the old buffer, so the rest moves to a new one.
      const room = new Uint8Array(Math.max(256, left * 2));
      room.set(buffer.subarray(whole, end));
      this.carry = room;
      this.carried = left;
    }
    return out;
  }

  /**
   * The stream's bytes ended. Gives the rest that no blank line closed, which belongs to the client only if the stream `isComplete`.
   * An end mark that lacks its last line end is still seen.
   */
  end(): Uint8Array {
    if (this.carried === 0 || this.error !== undefined || this.overflowed) return EMPTY;
    if (this.lineStart < this.carried) this.line(this.carry, 0, this.lineStart, this.carried);
    this.torn = !this.restIsWhole();
    let rest = this.carry.subarray(0, this.carried);
    if (this.dataLines > 0) {
      this.dispatch(this.carry, 0, this.carried);
      rest = this.take(rest, rest.length);
    }
    this.carry = EMPTY;
    this.carried = 0;
    return rest;
  }

  /**
   * Whether the stream said all it had to say: its final event was seen; or its framing ended (`framed`: last chunk or all of
   * content-length) outside of an event and a finish reason was given, or the API has no final event. A connection that merely closed
   * proves nothing.
   */
  isComplete(framed: boolean): boolean {
    if (this.error !== undefined || this.overflowed) return false;
    if (this.done) return true;
    return framed && !this.torn && (this.dialect === 'other' || (this.dialect === 'chat' && this.finished));
  }

  /** Whether the rest that no blank line closed could stand as it is. */
  private restIsWhole(): boolean {
    if (this.dataLines === 0) return this.carry[0] === COLON;
    const payload = this.joinLines(this.carry, 0);
    const isMark = payload.length === 6 && matchesText(payload, 0, '[DONE]');
    return isMark || parse(payload, 0, payload.length) !== undefined;
  }

  private append(chunk: Uint8Array): void {
    const needed = this.carried + chunk.length;
    if (needed > this.carry.length) {
      const room = new Uint8Array(Math.max(needed, this.carry.length * 2));
      room.set(this.carry.subarray(0, this.carried));
      this.carry = room;
    }
    this.carry.set(chunk, this.carried);
    this.carried = needed;
  }

  /** The first `whole` bytes of `buffer` as they are to go out: a view, unless something in them was replaced or left out. */
  private take(buffer: Uint8Array, whole: number): Uint8Array {
    const pieces = this.edited;
    if (pieces === undefined) return whole === buffer.length ? buffer : buffer.subarray(0, whole);
    if (this.taken < whole) pieces.push(buffer.subarray(this.taken, whole));
    this.edited = undefined;
    this.taken = 0;
    let length = 0;
    for (const piece of pieces) length += piece.length;
    const out = new Uint8Array(length);
    let at = 0;
    for (const piece of pieces) {
      out.set(piece, at);
      at += piece.length;
    }
    return out;
  }

  /** Puts `text` in place of the bytes in [start, end), which come behind all that was replaced before. */
  private replace(buffer: Uint8Array, start: number, end: number, text: Uint8Array): void {
    const pieces = (this.edited ??= []);
    if (this.taken < start) pieces.push(buffer.subarray(this.taken, start));
    if (text.length > 0) pieces.push(text);
    this.taken = end;
  }

  /** Reads events in [0, end); gives the number of bytes that whole events take. */
  private scan(buffer: Uint8Array, end: number): number {
    let base = 0;
    let at = this.scanned;
    // A search in the growing buffer would run over its free room, so there the bounded loop is used.
    const slow = buffer.length !== end || buffer.indexOf(CR, at) >= 0;
    for (;;) {
      if (this.afterCr && at < end) {
        // The LF of a CRLF that was cut, or that closed the event before: it opens no line of its own.
        if (buffer[at] === LF) {
          at++;
          if (this.lineStart > 0) this.lineStart = at - base;
          else base = at;
        }
        this.afterCr = false;
      }
      const lineEnd = slow ? nextLineEnd(buffer, at, end) : buffer.indexOf(LF, at);
      if (lineEnd < 0 || lineEnd >= end) {
        this.scanned = end - base;
        break;
      }
      const lineStart = base + this.lineStart;
      at = lineEnd + 1;
      if (buffer[lineEnd] === CR) {
        if (at < end && buffer[at] === LF) at++;
        else if (at === end) this.afterCr = true;
      }
      if (lineEnd > lineStart && !(this.first && isBom(buffer, lineStart, lineEnd))) {
        this.line(buffer, base, lineStart, lineEnd);
        this.lineStart = at - base;
      } else {
        this.dispatch(buffer, base, at);
        base = at;
        this.lineStart = 0;
        if (this.error !== undefined) break;
      }
      this.first = false;
    }
    if (this.error !== undefined) this.scanned = 0;
    return base;
  }

  private line(buffer: Uint8Array, base: number, from: number, end: number): void {
    let start = from;
    if (this.first && buffer[start] === 0xef && buffer[start + 1] === 0xbb && buffer[start + 2] === 0xbf) start += 3;
    const c = buffer[start];
    if (c === 0x64 && matches(buffer, start, end, 'data')) {
      let value = Math.min(start + 5, end);
      if (value < end && buffer[value] === SPACE) value++;
      if (this.dataLines++ === 0) {
        this.dataStart = value - base;
        this.dataEnd = end - base;
      } else {
        (this.moreData ??= []).push(value - base, end - base);
      }
    } else if (c === 0x65 && matches(buffer, start, end, 'event')) {
      let value = Math.min(start + 6, end);
      if (value < end && buffer[value] === SPACE) value++;
      this.typeStart = value - base;
      this.typeEnd = end - base;
    }
  }

  /** Ends the event in [base, end) and looks at its payload. */
  private dispatch(buffer: Uint8Array, base: number, end: number): void {
    if (this.dataLines > 0) {
      const type =
        this.typeEnd > this.typeStart
          ? decoder.decode(buffer.subarray(base + this.typeStart, base + this.typeEnd))
          : '';
      if (this.moreData === undefined) {
        const start = base + this.dataStart;
        const stop = base + this.dataEnd;
        if (this.payload(buffer, start, stop, type)) this.replace(buffer, base, end, EMPTY);
        else if (this.alias !== undefined) this.rename(buffer, start, stop, this.alias);
      } else {
        const joined = this.joinLines(buffer, base);
        if (this.payload(joined, 0, joined.length, type)) this.replace(buffer, base, end, EMPTY);
        else if (this.alias !== undefined) this.renameJoined(buffer, base, joined, this.alias);
      }
    }
    this.dataLines = 0;
    this.moreData = undefined;
    this.typeStart = 0;
    this.typeEnd = 0;
  }

  private joinLines(buffer: Uint8Array, base: number): Uint8Array {
    const spans = [this.dataStart, this.dataEnd, ...(this.moreData ?? [])];
    let length = spans.length / 2 - 1;
    for (let i = 0; i < spans.length; i += 2) length += spans[i + 1]! - spans[i]!;
    const joined = new Uint8Array(length);
    let at = 0;
    for (let i = 0; i < spans.length; i += 2) {
      if (i > 0) joined[at++] = LF;
      joined.set(buffer.subarray(base + spans[i]!, base + spans[i + 1]!), at);
      at += spans[i + 1]! - spans[i]!;
    }
    return joined;
  }

  /** Looks at one payload. True if its frame is to be dropped. */
  private payload(buffer: Uint8Array, start: number, end: number, type: string): boolean {
    // Nothing behind the end mark counts.
    if (start === end || this.done) return false;
    if (buffer[start] === 0x5b && end - start === 6 && matchesText(buffer, start, '[DONE]')) {
      this.done = true;
      return false;
    }
    const marks = scanMarks(buffer, start, end);
    if ((marks & FINISH) !== 0) this.finished = true;
    let frame: unknown;
    if ((marks & (USAGE | ERROR)) !== 0 || type === 'error') frame = parse(buffer, start, end);
    if ((marks & ERROR) !== 0 || type === 'error' || type === 'response.failed') {
      const error = errorOf(frame ?? parse(buffer, start, end), type);
      if (error !== undefined) {
        this.error = error;
        return false;
      }
    }
    if (this.dialect === 'messages' && type === 'ping') return false;
    if (isFinal(this.dialect, type)) this.done = true;
    this.events++;
    if ((marks & USAGE) !== 0 && frame !== undefined) {
      const usage = usageOf(frame);
      if (usage !== undefined) {
        this.usage = mergeUsage(this.usage, usage);
        return this.dropUsageFrames && hasNoChoices(frame);
      }
    }
    return false;
  }

  private rename(buffer: Uint8Array, start: number, stop: number, alias: Uint8Array): void {
    const model = findTopLevel(buffer, start, stop, 'model');
    if (model !== undefined) this.replace(buffer, model.start, model.end, alias);
  }

  /** An event of several data lines: the name is replaced in the line where it stands, and all else stays as it came. */
  private renameJoined(buffer: Uint8Array, base: number, joined: Uint8Array, alias: Uint8Array): void {
    const model = findTopLevel(joined, 0, joined.length, 'model');
    if (model === undefined) return;
    const start = base + this.offsetOf(model.start);
    const stop = base + this.offsetOf(model.end - 1) + 1;
    this.replace(buffer, start, stop, alias);
  }

  /** Where the byte at `at` of the joined data lines stands in the event. */
  private offsetOf(at: number): number {
    let from = this.dataStart;
    let left = at - (this.dataEnd - this.dataStart + 1);
    for (let i = 0; left >= 0 && this.moreData !== undefined && i < this.moreData.length; i += 2) {
      from = this.moreData[i]!;
      at = left;
      left -= this.moreData[i + 1]! - from + 1;
    }
    return from + at;
  }
}

function nextLineEnd(buffer: Uint8Array, from: number, end: number): number {
  for (let i = from; i < end; i++) {
    const c = buffer[i]!;
    if (c === LF || c === CR) return i;
  }
  return -1;
}

function isBom(buffer: Uint8Array, start: number, end: number): boolean {
  return end - start === 3 && buffer[start] === 0xef && buffer[start + 1] === 0xbb && buffer[start + 2] === 0xbf;
}

/** Whether the line in [start, end) is the field `name`, with or without a colon behind it. */
function matches(buffer: Uint8Array, start: number, end: number, name: string): boolean {
  const stop = start + name.length;
  return stop <= end && matchesText(buffer, start, name) && (stop === end || buffer[stop] === COLON);
}

function matchesText(buffer: Uint8Array, start: number, text: string): boolean {
  for (let k = 0; k < text.length; k++) if (buffer[start + k] !== text.charCodeAt(k)) return false;
  return true;
}

const USAGE = 1;
const ERROR = 2;
const FINISH = 4;

/** Which of the keys `usage`, `error` and `finish_reason` a payload holds with a value that is not null. */
function scanMarks(buffer: Uint8Array, start: number, end: number): number {
  let marks = 0;
  for (let i = start; i + 7 < end; i++) {
    if (buffer[i] !== 0x22) continue;
    const c = buffer[i + 1]!;
    if (c === 0x75) {
      if (buffer[i + 6] === 0x22 && matchesText(buffer, i + 1, 'usage') && hasValue(buffer, i + 7, end)) marks |= USAGE;
    } else if (c === 0x65) {
      if (buffer[i + 6] === 0x22 && matchesText(buffer, i + 1, 'error') && hasValue(buffer, i + 7, end)) marks |= ERROR;
    } else if (c === 0x66) {
      if (matchesText(buffer, i + 1, 'finish_reason"') && hasValue(buffer, i + 15, end)) marks |= FINISH;
    }
  }
  return marks;
}

/** Whether a colon and something else than `null` or an empty string stand at `from`. `"error"` as a value (`"type":"error"`) counts too. */
function hasValue(buffer: Uint8Array, from: number, end: number): boolean {
  let i = from;
  while (i < end && isSpace(buffer[i]!)) i++;
  if (buffer[i] !== COLON) return i < end;
  i++;
  while (i < end && isSpace(buffer[i]!)) i++;
  if (i >= end || buffer[i] === 0x6e) return false;
  return !(buffer[i] === 0x22 && buffer[i + 1] === 0x22);
}

function isSpace(c: number): boolean {
  return c === SPACE || c === LF || c === CR || c === 0x09;
}

function parse(buffer: Uint8Array, start: number, end: number): unknown {
  try {
    return decodeValue(buffer, start, end);
  } catch {
    return undefined;
  }
}

function isFinal(dialect: StreamDialect, type: string): boolean {
  if (dialect === 'messages') return type === 'message_stop';
  return dialect === 'responses' && (type === 'response.completed' || type === 'response.incomplete');
}

function hasNoChoices(frame: unknown): boolean {
  const choices = (frame as { readonly choices?: unknown }).choices;
  return Array.isArray(choices) && choices.length === 0;
}

/** The error that an event states: `event: error`, a top-level `error`, `type: error`, or a failed response. */
function errorOf(frame: unknown, type: string): StreamError | undefined {
  const record = typeof frame === 'object' && frame !== null ? (frame as { readonly [key: string]: unknown }) : {};
  let error = record['error'];
  if (error === null || error === undefined || error === false || error === '') {
    if (type === 'response.failed')
      error = (record['response'] as { readonly error?: unknown } | undefined)?.error ?? {};
    else if (type === 'error' || record['type'] === 'error' || record['object'] === 'error') error = record;
    else return undefined;
  }
  const fields = typeof error === 'object' && error !== null ? (error as { readonly [key: string]: unknown }) : {};
  const status = [fields['status_code'], fields['status'], fields['code']].find(
    (value): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599,
  );
  return {
    status: status ?? 0,
    code: typeof fields['code'] === 'string' ? fields['code'] : '',
    type: typeof fields['type'] === 'string' ? fields['type'] : '',
  };
}
