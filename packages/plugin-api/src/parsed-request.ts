/** Which API a request speaks; `other` is passed through with only `model` and `stream` read. */
export type RequestKind = 'chat' | 'completion' | 'embedding' | 'other';

/** One message of a chat, with the text of its parts joined by newlines. `content: null` gives empty text. */
export interface ParsedMessage {
  readonly role: string;
  readonly text: string;
  readonly images: number;
}

/**
 * What is read of a request body, made by package openai-wire and shared by proxy, endpoint picker and simulated engine. Fields are
 * cheap and read eagerly by one scan; methods compute on first call and remember. Numbers that the body does not state are NaN,
 * texts `undefined`.
 */
export interface ParsedRequest {
  /** Path of the API without query, for example `/v1/chat/completions`. */
  readonly path: string;
  readonly kind: RequestKind;
  readonly model: string | undefined;
  readonly stream: boolean;
  /** The client's own `stream_options.include_usage`. */
  readonly includeUsage: boolean;
  /** `max_completion_tokens`, else `max_tokens`; NaN when neither is given. */
  readonly maxTokens: number;
  readonly user: string | undefined;
  /** `prompt_cache_key`. */
  readonly promptCacheKey: string | undefined;
  /** Number of entries of `tools`. */
  readonly tools: number;
  /** Number of image parts. */
  readonly images: number;
  readonly jsonSchema: boolean;
  readonly reasoning: boolean;
  /** Code points of all text that the model will read: messages, prompts or inputs. */
  readonly promptChars: number;
  /** Exact prompt tokens where the body holds token arrays; NaN for text. */
  readonly promptTokensExact: number;
  /** Bytes of the body. */
  readonly bodyBytes: number;
  /** `metadata[key]` if it is a string. */
  metadata(key: string): string | undefined;
  /** The keys of `metadata` that have strings; absent where the host does not list them. */
  metadataKeys?(): readonly string[];
  toolNames(): readonly string[];
  messages(): readonly ParsedMessage[];
  /** All prompt text joined by newlines, whole. */
  prompt(): string;
  systemPrompt(): string | undefined;
  firstUserMessage(): string | undefined;
  /** The last user message; for completions and embeddings the prompt. What `complexity`, `questions` and `words` look at. */
  lastUserMessage(): string | undefined;
}
