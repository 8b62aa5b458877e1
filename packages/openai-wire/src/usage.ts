import type { JsonScanner } from './json-scanner.ts';

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;

/** Token counts as the engine states them; NaN where it does not. */
export interface Usage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** No counts known. */
export const NO_USAGE: Usage = Object.freeze({
  promptTokens: Number.NaN,
  cachedTokens: Number.NaN,
  outputTokens: Number.NaN,
});

/** The object at `value[name]` if it is one. */
function objectAt(value: unknown, name: string): { readonly [key: string]: unknown } | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  const inner = (value as { readonly [key: string]: unknown })[name];
  return typeof inner === 'object' && inner !== null ? (inner as { readonly [key: string]: unknown }) : undefined;
}

function count(...values: readonly unknown[]): number {
  for (const value of values) if (typeof value === 'number' && isCount(value)) return value;
  return Number.NaN;
}

function isCount(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}

/**
 * Usage in an answer or frame: `usage` at the top level (chat, completions, embeddings; `input_tokens` as Responses and Messages write
 * it), else in `response` or `message`, else Groq's `x_groq`. Undefined where there is none.
 */
export function usageOf(frame: unknown): Usage | undefined {
  const usage =
    objectAt(frame, 'usage') ??
    objectAt(objectAt(frame, 'response'), 'usage') ??
    objectAt(objectAt(frame, 'message'), 'usage') ??
    objectAt(objectAt(frame, 'x_groq'), 'usage');
  if (usage === undefined) return undefined;
  const details = objectAt(usage, 'prompt_tokens_details') ?? objectAt(usage, 'input_tokens_details');
  return {
    promptTokens: count(usage['prompt_tokens'], usage['input_tokens']),
    cachedTokens: count(details?.['cached_tokens'], usage['cache_read_input_tokens'], usage['prompt_cache_hit_tokens']),
    outputTokens: count(usage['completion_tokens'], usage['output_tokens']),
  };
}

/**
 * The same from the bytes: counts in the `usage` at the cursor, which must be a member of the top level; none known if it is no object.
 * perf: to decode, parse and pick apart this object costs more than the scan of a whole answer.
 */
export function readUsage(scanner: JsonScanner): Usage {
  if (scanner.peek() !== OPEN_BRACE) {
    scanner.value(1);
    return NO_USAGE;
  }
  let prompt = Number.NaN;
  let input = Number.NaN;
  let completion = Number.NaN;
  let output = Number.NaN;
  let cacheRead = Number.NaN;
  let cacheHit = Number.NaN;
  let promptCached: number | undefined;
  let inputCached: number | undefined;
  if (scanner.openObject(1)) {
    do {
      const key = scanner.key();
      if (scanner.keyIs(key, 'prompt_tokens')) prompt = scanner.readNumber(2);
      else if (scanner.keyIs(key, 'completion_tokens')) completion = scanner.readNumber(2);
      else if (scanner.keyIs(key, 'input_tokens')) input = scanner.readNumber(2);
      else if (scanner.keyIs(key, 'output_tokens')) output = scanner.readNumber(2);
      else if (scanner.keyIs(key, 'prompt_tokens_details')) promptCached = readCached(scanner);
      else if (scanner.keyIs(key, 'input_tokens_details')) inputCached = readCached(scanner);
      else if (scanner.keyIs(key, 'cache_read_input_tokens')) cacheRead = scanner.readNumber(2);
      else if (scanner.keyIs(key, 'prompt_cache_hit_tokens')) cacheHit = scanner.readNumber(2);
      else scanner.value(2);
    } while (scanner.more(CLOSE_BRACE));
  }
  return {
    promptTokens: firstCount(prompt, input),
    cachedTokens: firstCount(promptCached ?? inputCached ?? Number.NaN, firstCount(cacheRead, cacheHit)),
    outputTokens: firstCount(completion, output),
  };
}

/** `cached_tokens` of the details at the cursor; NaN if they do not state it, undefined if they are neither object nor array. */
function readCached(scanner: JsonScanner): number | undefined {
  const first = scanner.peek();
  if (first !== OPEN_BRACE) {
    scanner.value(2);
    return first === OPEN_BRACKET ? Number.NaN : undefined;
  }
  let cached = Number.NaN;
  if (scanner.openObject(2)) {
    do {
      const key = scanner.key();
      if (scanner.keyIs(key, 'cached_tokens')) cached = scanner.readNumber(3);
      else scanner.value(3);
    } while (scanner.more(CLOSE_BRACE));
  }
  return cached;
}

function firstCount(first: number, second: number): number {
  if (isCount(first)) return first;
  return isCount(second) ? second : Number.NaN;
}

/** `next` where it knows a count, else `previous`: Messages streams state input and output tokens in different events. */
export function mergeUsage(previous: Usage, next: Usage): Usage {
  return {
    promptTokens: Number.isNaN(next.promptTokens) ? previous.promptTokens : next.promptTokens,
    cachedTokens: Number.isNaN(next.cachedTokens) ? previous.cachedTokens : next.cachedTokens,
    outputTokens: Number.isNaN(next.outputTokens) ? previous.outputTokens : next.outputTokens,
  };
}
