// perf: the scan of each request body; steps over bytes and decodes nothing but the model's name.
import { decodeString, JsonFault, JsonScanner } from './json-scanner.ts';
import { parseMultipart } from './multipart.ts';
import { kindOf } from './request-kind.ts';
import { emptyScan, NO_SPAN, ROLE, ScannedRequest, type ScanResult, type Span } from './scanned-request.ts';
import { wireError, type WireError } from './wire-error.ts';

export interface ParseOptions {
  /** Containers inside each other, at most. */
  readonly maxDepth?: number;
  /** Boundary of a multipart body; absent for JSON. */
  readonly boundary?: string;
}

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MAX_MODEL_BYTES = 1024;
const MINUS = 0x2d;
const LETTER_T = 0x74;

/**
 * Reads one request body in a single pass that checks all of it to be JSON (twin keys: the last wins) and records what routing and
 * splicing need. Time and memory are linear in the bytes; the messages are counted, not decoded. Mistakes of the caller come back as a
 * `WireError` of status 400.
 */
export function parseRequest(path: string, bytes: Uint8Array, options: ParseOptions = {}): ScannedRequest | WireError {
  if (options.boundary !== undefined) return parseMultipart(path, bytes, options.boundary);
  const scan = emptyScan(kindOf(path));
  const scanner = new JsonScanner(bytes, 0, bytes.length, options.maxDepth ?? 64);
  try {
    const problem = scanBody(scanner, scan);
    if (problem !== undefined) return problem;
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
    const where =
      bytes.length === 0
        ? 'The request body is empty'
        : `The request body is not valid JSON: ${fault.message} at byte ${fault.offset}`;
    return wireError(400, 'invalid_request', `${where}. Send one JSON object.`);
  }
  if (Number.isNaN(scan.maxTokens)) scan.maxTokens = scan.legacyMaxTokens;
  return checkScan(scan) ?? new ScannedRequest(path, bytes, scan);
}

function checkScan(scan: ScanResult): WireError | undefined {
  if (scan.modelSpans.length === 0)
    return wireError(400, 'invalid_request', 'The field "model" is missing. Name the model to use.', 'model');
  if (scan.model === '')
    return wireError(400, 'invalid_request', 'The field "model" is empty. Name the model to use.', 'model');
  if (scan.kind === 'chat' && scan.messageCount === 0) {
    return wireError(
      400,
      'invalid_request',
      'The field "messages" is missing or empty. Send at least one message.',
      'messages',
    );
  }
  if ((scan.kind === 'completion' || scan.kind === 'embedding') && !hasPrompt(scan)) {
    const field = scan.kind === 'completion' ? 'prompt' : 'input';
    return wireError(
      400,
      'invalid_request',
      `The field "${field}" is missing or empty. Send text or token ids.`,
      field,
    );
  }
  return undefined;
}

function hasPrompt(scan: ScanResult): boolean {
  return (
    scan.promptChars > 0 || scan.promptTokens > 0 || scan.messageCount > 0 || (scan.text.start >= 0 && scan.images > 0)
  );
}

function scanBody(scanner: JsonScanner, scan: ScanResult): WireError | undefined {
  let problem: WireError | undefined;
  if (scanner.peek() !== OPEN_BRACE) scanner.fail('expected an object');
  if (scanner.openObject(0)) {
    do {
      const key = scanner.key();
      const found = scanField(scanner, scan, key);
      problem ??= found;
    } while (scanner.more(CLOSE_BRACE));
  }
  scan.objectEnd = scanner.pos - 1;
  if (scanner.peek() !== -1) scanner.fail('expected the end of the text after the object');
  return problem;
}

/** Reads the value of one top-level member. A wrong type is reported after the whole body is known to be JSON. */
function scanField(scanner: JsonScanner, scan: ScanResult, key: number): WireError | undefined {
  // A key written with escapes is rare: only then is its text made to find its length.
  const plainLength = scanner.keyEnd - key - 2;
  const length = scanner.keyEscaped ? scanner.keyText(key).length : plainLength;
  switch (length) {
    case 4:
      if (scanner.keyIs(key, 'user')) {
        scan.user = stringSpan(scanner);
        return undefined;
      }
      break;
    case 5:
      if (scanner.keyIs(key, 'model')) return scanModel(scanner, scan);
      if (scanner.keyIs(key, 'store')) {
        scan.stores = scanner.peek() === LETTER_T;
        scanner.value(1);
        return undefined;
      }
      if (scanner.keyIs(key, 'input') && scan.kind === 'embedding') {
        scanPrompt(scanner, scan);
        return undefined;
      }
      if (scanner.keyIs(key, 'tools')) {
        scanTools(scanner, scan);
        return undefined;
      }
      break;
    case 6:
      if (scanner.keyIs(key, 'stream')) return scanStream(scanner, scan);
      if (scanner.keyIs(key, 'prompt') && scan.kind === 'completion') {
        scanPrompt(scanner, scan);
        return undefined;
      }
      break;
    case 8:
      if (scanner.keyIs(key, 'messages') && scan.kind !== 'other' && scan.kind !== 'completion')
        return scanMessages(scanner, scan);
      if (scanner.keyIs(key, 'metadata')) {
        scan.metadata = valueSpan(scanner);
        return undefined;
      }
      if (scanner.keyIs(key, 'thinking')) return scanReasoning(scanner, scan);
      break;
    case 9:
      if (scanner.keyIs(key, 'reasoning')) return scanReasoning(scanner, scan);
      break;
    case 10:
      if (scanner.keyIs(key, 'max_tokens')) {
        scan.legacyMaxTokens = limitOf(scanner);
        return undefined;
      }
      break;
    case 11:
      if (scanner.keyIs(key, 'guided_json')) return scanGuided(scanner, scan);
      break;
    case 13:
      if (scanner.keyIs(key, 'prompt_embeds')) {
        scan.text = valueSpan(scanner);
        scan.promptTokens = Number.isNaN(scan.promptTokens) ? 1 : scan.promptTokens;
        return undefined;
      }
      break;
    case 14:
      if (scanner.keyIs(key, 'stream_options')) {
        scanStreamOptions(scanner, scan);
        return undefined;
      }
      break;
    case 15:
      if (scanner.keyIs(key, 'response_format')) {
        scan.responseFormat = valueSpan(scanner);
        return undefined;
      }
      break;
    case 16:
      if (scanner.keyIs(key, 'prompt_cache_key')) {
        scan.promptCacheKey = stringSpan(scanner);
        return undefined;
      }
      if (scanner.keyIs(key, 'reasoning_effort')) return scanReasoning(scanner, scan);
      break;
    case 18:
      if (scanner.keyIs(key, 'structured_outputs')) return scanGuided(scanner, scan);
      break;
    case 21:
      if (scanner.keyIs(key, 'max_completion_tokens')) {
        scan.maxTokens = limitOf(scanner);
        return undefined;
      }
      break;
    default:
  }
  scanner.value(1);
  return undefined;
}

function valueSpan(scanner: JsonScanner): Span {
  scanner.peek();
  const start = scanner.pos;
  scanner.value(1);
  return { start, end: scanner.pos };
}

/** Span of a string value; no span for a value of another type. */
function stringSpan(scanner: JsonScanner): Span {
  const isString = scanner.peek() === QUOTE;
  const start = scanner.pos;
  scanner.value(1);
  return isString ? { start, end: scanner.pos } : NO_SPAN;
}

function scanTools(scanner: JsonScanner, scan: ScanResult): void {
  scan.toolCount = 0;
  const first = scanner.peek();
  const start = scanner.pos;
  if (first !== OPEN_BRACKET) scanner.value(1);
  else if (scanner.openArray(1)) {
    do {
      scan.toolCount++;
      scanner.value(2);
    } while (scanner.more(CLOSE_BRACKET));
  }
  scan.tools = { start, end: scanner.pos };
}

function scanModel(scanner: JsonScanner, scan: ScanResult): WireError | undefined {
  const isString = scanner.peek() === QUOTE;
  const start = scanner.pos;
  scanner.value(1);
  const modelSpan = { start, end: scanner.pos };
  // perf: a list that is pushed to grows by a call and makes room for seventeen.
  if (scan.modelSpans.length === 0) scan.modelSpans = [modelSpan];
  else scan.modelSpans.push(modelSpan);
  if (!isString) return wireError(400, 'invalid_request', 'The field "model" must be a string.', 'model');
  if (scanner.pos - start > MAX_MODEL_BYTES) {
    return wireError(
      400,
      'invalid_request',
      `The field "model" must be at most ${MAX_MODEL_BYTES} bytes long.`,
      'model',
    );
  }
  scan.model = modelText(scanner, start);
  return undefined;
}

/** Names whose bytes are their text: with any other, an escape or a sequence of bytes might be taken for what it is not. */
const PLAIN_NAME = /^[\w./:@-]+$/;
let lastModel = '';

/** The text of a model's name. perf: requests come in runs of one model, whose bytes are compared for less than it costs to decode them. */
function modelText(scanner: JsonScanner, start: number): string {
  if (lastModel !== '' && scanner.stringIs(start, lastModel)) return lastModel;
  const text = decodeString(scanner.bytes, start, scanner.pos);
  if (PLAIN_NAME.test(text)) lastModel = text;
  return text;
}

function scanStream(scanner: JsonScanner, scan: ScanResult): WireError | undefined {
  const first = scanner.peek();
  scanner.value(1);
  scan.stream = first === 0x74;
  if (first === 0x74 || first === 0x66 || first === 0x6e) return undefined;
  return wireError(400, 'invalid_request', 'The field "stream" must be true or false.', 'stream');
}

function scanStreamOptions(scanner: JsonScanner, scan: ScanResult): void {
  const first = scanner.peek();
  const start = scanner.pos;
  scan.includeUsage = false;
  scan.includeUsageSpan = NO_SPAN;
  scan.mayAskUsage = first === OPEN_BRACE || first === 0x6e;
  if (first !== OPEN_BRACE) scanner.value(1);
  else if (scanner.openObject(1)) {
    do {
      const key = scanner.key();
      const wanted = scanner.keyIs(key, 'include_usage');
      const value = scanner.peek();
      const at = scanner.pos;
      scanner.value(2);
      if (wanted) {
        scan.includeUsage = value === 0x74;
        scan.mayAskUsage = value === 0x66 || value === 0x6e;
        scan.includeUsageSpan = { start: at, end: scanner.pos };
      }
    } while (scanner.more(CLOSE_BRACE));
  }
  scan.streamOptions = { start, end: scanner.pos };
}

function scanReasoning(scanner: JsonScanner, scan: ScanResult): undefined {
  const first = scanner.peek();
  const start = scanner.pos;
  scanner.value(1);
  if (first === QUOTE) scan.reasoning = decodeString(scanner.bytes, start, scanner.pos) !== 'none';
  else scan.reasoning = first === OPEN_BRACE || first === 0x74;
  return undefined;
}

function scanGuided(scanner: JsonScanner, scan: ScanResult): undefined {
  const first = scanner.peek();
  scanner.value(1);
  scan.guided = first !== 0x6e;
  return undefined;
}

/** The number at the cursor; NaN for any other value, for a value below 0 and for one beyond the range of a double. */
function limitOf(scanner: JsonScanner): number {
  const isNegative = scanner.peek() === MINUS;
  const value = scanner.readNumber(1);
  return !isNegative && Number.isFinite(value) ? value : Number.NaN;
}

function scanPrompt(scanner: JsonScanner, scan: ScanResult): void {
  scan.promptChars = 0;
  scan.promptTokens = Number.NaN;
  const first = scanner.peek();
  const start = scanner.pos;
  if (first === QUOTE) {
    scanner.string();
    scan.promptChars = scanner.chars;
  } else if (first === OPEN_BRACKET) {
    scanPromptList(scanner, scan, 1);
  } else {
    scanner.value(1);
  }
  scan.text = { start, end: scanner.pos };
}

/** A list of texts, of token ids, or of lists of token ids. */
function scanPromptList(scanner: JsonScanner, scan: ScanResult, depth: number): void {
  if (!scanner.openArray(depth)) return;
  do {
    const c = scanner.peek();
    if (c === QUOTE) {
      scanner.string();
      scan.promptChars += scanner.chars;
    } else if (c >= 0x30 && c <= 0x39) {
      scanner.number();
      scan.promptTokens = Number.isNaN(scan.promptTokens) ? 1 : scan.promptTokens + 1;
    } else if (c === OPEN_BRACKET && depth === 1) {
      scanPromptList(scanner, scan, depth + 1);
    } else {
      scanner.value(depth + 1);
    }
  } while (scanner.more(CLOSE_BRACKET));
}

function scanMessages(scanner: JsonScanner, scan: ScanResult): WireError | undefined {
  scan.messageCount = 0;
  scan.systemStart = -1;
  scan.firstUserStart = -1;
  scan.lastUserStart = -1;
  scan.images = 0;
  scan.promptChars = 0;
  let problem: WireError | undefined;
  const first = scanner.peek();
  const start = scanner.pos;
  if (first !== OPEN_BRACKET) {
    scanner.value(1);
    problem = wireError(400, 'invalid_request', 'The field "messages" must be an array of messages.', 'messages');
  } else if (scanner.openArray(1)) {
    do {
      const isObject = scanner.peek() === OPEN_BRACE;
      const at = scanner.pos;
      let role: number = ROLE.other;
      if (isObject) role = scanMessage(scanner, scan);
      else {
        scanner.value(2);
        problem ??= wireError(400, 'invalid_request', 'Each entry of "messages" must be an object.', 'messages');
      }
      scan.messageCount++;
      if (role === ROLE.system && scan.systemStart < 0) {
        scan.systemStart = at;
        scan.systemEnd = scanner.pos;
      } else if (role === ROLE.user) {
        if (scan.firstUserStart < 0) {
          scan.firstUserStart = at;
          scan.firstUserEnd = scanner.pos;
        }
        scan.lastUserStart = at;
        scan.lastUserEnd = scanner.pos;
      }
    } while (scanner.more(CLOSE_BRACKET));
  }
  scan.text = { start, end: scanner.pos };
  return problem;
}

function scanMessage(scanner: JsonScanner, scan: ScanResult): number {
  let role: number = ROLE.other;
  let chars = 0;
  let images = 0;
  if (!scanner.openObject(2)) return role;
  do {
    const field = messageField(scanner);
    if (field === ROLE_FIELD) {
      role = scanRole(scanner);
    } else if (field === CONTENT_FIELD) {
      chars = 0;
      images = 0;
      const c = scanner.peek();
      if (c === QUOTE) {
        scanner.string();
        chars = scanner.chars;
      } else if (c === OPEN_BRACKET) {
        if (scanner.openArray(3)) {
          do {
            const part = scanPart(scanner);
            if (part < 0) images++;
            chars += part < 0 ? -1 - part : part;
          } while (scanner.more(CLOSE_BRACKET));
        }
      } else {
        scanner.value(3);
      }
    } else {
      scanner.value(3);
    }
  } while (scanner.more(CLOSE_BRACE));
  scan.promptChars += chars;
  scan.images += images;
  return role;
}

const OTHER_FIELD = 0;
const ROLE_FIELD = 1;
const CONTENT_FIELD = 2;

/** Reads the key of a message's member and says which it is. */
function messageField(scanner: JsonScanner): number {
  if (scanner.takeKey('role')) return ROLE_FIELD;
  if (scanner.takeKey('content')) return CONTENT_FIELD;
  const key = scanner.key();
  if (scanner.keyIs(key, 'role')) return ROLE_FIELD;
  return scanner.keyIs(key, 'content') ? CONTENT_FIELD : OTHER_FIELD;
}

function scanRole(scanner: JsonScanner): number {
  if (scanner.peek() !== QUOTE) {
    scanner.value(3);
    return ROLE.other;
  }
  const start = scanner.pos;
  scanner.string();
  if (scanner.stringIs(start, 'user')) return ROLE.user;
  if (scanner.stringIs(start, 'system') || scanner.stringIs(start, 'developer')) return ROLE.system;
  return ROLE.other;
}

/** Reads one part of a message. Gives the code points of its text, or −1 − that number for an image. */
function scanPart(scanner: JsonScanner): number {
  const c = scanner.peek();
  if (c === QUOTE) {
    scanner.string();
    return scanner.chars;
  }
  if (c !== OPEN_BRACE) {
    scanner.value(4);
    return 0;
  }
  let chars = 0;
  let typed = false;
  let imageType = false;
  let imageField = false;
  if (scanner.openObject(4)) {
    do {
      const key = scanner.key();
      const isText = scanner.keyIs(key, 'text');
      const isType = !isText && scanner.keyIs(key, 'type');
      if (!isText && !isType && scanner.keyIs(key, 'image_url')) imageField = true;
      const isString = scanner.peek() === QUOTE;
      const start = scanner.pos;
      scanner.value(5);
      if (isText) chars = isString ? scanner.chars : 0;
      else if (isType) {
        typed = true;
        imageType = isString && isImageType(scanner, start);
      }
    } while (scanner.more(CLOSE_BRACE));
  }
  return imageType || (imageField && !typed) ? -1 - chars : chars;
}

function isImageType(scanner: JsonScanner, start: number): boolean {
  return (
    scanner.stringIs(start, 'image_url') || scanner.stringIs(start, 'input_image') || scanner.stringIs(start, 'image')
  );
}
