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
  for (const value of values) if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  return Number.NaN;
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

/** `next` where it knows a count, else `previous`: Messages streams state input and output tokens in different events. */
export function mergeUsage(previous: Usage, next: Usage): Usage {
  return {
    promptTokens: Number.isNaN(next.promptTokens) ? previous.promptTokens : next.promptTokens,
    cachedTokens: Number.isNaN(next.cachedTokens) ? previous.cachedTokens : next.cachedTokens,
    outputTokens: Number.isNaN(next.outputTokens) ? previous.outputTokens : next.outputTokens,
  };
}
