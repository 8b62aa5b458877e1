import { decodeValue, findTopLevel, JsonFault, JsonScanner } from './json-scanner.ts';
import { NO_USAGE, readUsage, type Usage } from './usage.ts';

const MAX_DEPTH = 512;
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

/** Usage of a plain JSON answer. Scans to the top-level `usage` and reads that object alone. */
export function answerUsage(answer: Uint8Array): Usage {
  const scanner = new JsonScanner(answer, 0, answer.length, MAX_DEPTH);
  try {
    return scanner.findMember('usage') ? readUsage(scanner) : NO_USAGE;
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault;
    return NO_USAGE;
  }
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
