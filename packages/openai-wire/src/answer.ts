import { decodeValue, findTopLevel, JsonFault, JsonScanner } from './json-scanner.ts';
import { NO_USAGE, readUsage, type Usage } from './usage.ts';

const MAX_DEPTH = 512;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const CLOSE_BRACE = 0x7d;
const USAGE_KEY: Uint8Array = new TextEncoder().encode('"usage"');
/** How far from its end an answer's usage is looked for before the answer is read from its beginning. */
const TAIL_BYTES = 2048;
const encoder = new TextEncoder();

/** A plain JSON answer with the client's name for the model put back at the top level; the same array if it has no `model`. */
export function restoreModel(answer: Uint8Array, alias: string): Uint8Array {
  const span = findTopLevel(answer, 0, answer.length, 'model');
  if (span === undefined) return answer;
  const name = encoder.encode(JSON.stringify(alias));
  const out = new Uint8Array(answer.length + name.length - (span.end - span.start));
  out.set(answer.subarray(0, span.start));
  out.set(name, span.start);
  out.set(answer.subarray(span.end), span.start + name.length);
  return out;
}

/** Usage of a plain JSON answer: the last member `usage` of the top level. Of a text that breaks off, the last that is whole. */
export function answerUsage(answer: Uint8Array): Usage {
  const scanner = new JsonScanner(answer, 0, answer.length, MAX_DEPTH);
  return usageAtEnd(scanner) ?? usageFromStart(scanner);
}

/**
 * Usage that stands among the last members of the top level, as it does in the answers of every engine: what comes before, which may be
 * megabytes of embeddings, is not read. Undefined where it cannot be told that the last key `usage` in the text is such a member.
 */
function usageAtEnd(scanner: JsonScanner): Usage | undefined {
  const { bytes } = scanner;
  const first = Math.max(1, bytes.length - TAIL_BYTES);
  for (let at = bytes.length - USAGE_KEY.length; at >= first; at--) {
    if (bytes[at] !== QUOTE || !isUsageKey(bytes, at)) continue;
    scanner.pos = at + USAGE_KEY.length;
    if (scanner.peek() !== COLON) continue;
    // Behind a backslash the quote belongs to a text.
    return bytes[at - 1] === BACKSLASH ? undefined : lastUsage(scanner);
  }
  return undefined;
}

function isUsageKey(bytes: Uint8Array, at: number): boolean {
  for (let k = 1; k < USAGE_KEY.length; k++) if (bytes[at + k] !== USAGE_KEY[k]) return false;
  return true;
}

/** The usage behind the colon at the cursor; undefined unless the object that it is in is the outermost, which ends with the text. */
function lastUsage(scanner: JsonScanner): Usage | undefined {
  try {
    scanner.pos++;
    const usage = readUsage(scanner);
    while (scanner.more(CLOSE_BRACE)) {
      scanner.key();
      scanner.value(1);
    }
    return scanner.peek() === -1 ? usage : undefined;
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
    return undefined;
  }
}

function usageFromStart(scanner: JsonScanner): Usage {
  let usage = NO_USAGE;
  scanner.pos = 0;
  try {
    for (let found = scanner.findMember('usage'); found; found = scanner.nextMember('usage'))
      usage = readUsage(scanner);
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
  }
  return usage;
}

/** The error that an upstream's 4xx body states; empty texts where it is not in an envelope we know. */
export function answerError(answer: Uint8Array): { readonly code: string; readonly message: string } {
  try {
    const value = decodeValue(answer, 0, answer.length) as {
      readonly error?: unknown;
      readonly code?: unknown;
      readonly message?: unknown;
    };
    const error = (typeof value.error === 'object' && value.error !== null ? value.error : value) as {
      readonly code?: unknown;
      readonly type?: unknown;
      readonly message?: unknown;
    };
    const code = typeof error.code === 'string' ? error.code : typeof error.type === 'string' ? error.type : '';
    return { code, message: typeof error.message === 'string' ? error.message : '' };
  } catch {
    return { code: '', message: '' };
  }
}

/** Whether a 400 says that the prompt does not fit the model's context, in the words of OpenAI, vLLM, SGLang, TGI or llama.cpp. */
export function isContextExceeded(answer: Uint8Array): boolean {
  const { code, message } = answerError(answer);
  if (code === 'context_length_exceeded' || code === 'exceed_context_size_error') return true;
  return /maximum context length|context (?:length|size|window)|longer than the model|`inputs` tokens \+ `max_new_tokens` must be/i.test(
    message,
  );
}
