import { tokenizeChat, tokenizeText } from './tokenizer.ts';
import type { ChatTurn } from './tokenizer.ts';

/** A refusal in the OpenAI envelope. */
export interface RequestProblem {
  readonly status: number;
  readonly message: string;
  readonly param: string | null;
  readonly code: string;
}

/** A generation request, checked and tokenised. */
export interface GenerationBody {
  readonly model: string;
  readonly promptTokens: readonly number[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** The caller's limit; absent = until the model stops. */
  readonly maxTokens?: number;
  readonly minTokens: number;
  /** vLLM's `ignore_eos`: go on to the limit. */
  readonly ignoreEnd: boolean;
  readonly echo: string;
  readonly cacheSalt?: string;
}

/** An embeddings request. */
export interface EmbeddingBody {
  readonly model: string;
  readonly inputs: readonly (readonly number[])[];
  readonly encoding: 'float' | 'base64';
  readonly dimensions?: number;
}

type Json = Readonly<Record<string, unknown>>;

/** A refusal for a field of the body. */
export const badRequest = (message: string, param: string | null = null, code = 'invalid_request'): RequestProblem => ({
  status: 400,
  message,
  param,
  code,
});

/** The body as a JSON object, or what is wrong with it. */
export function parseJsonObject(bytes: Uint8Array): Json | RequestProblem {
  try {
    const json: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (isObject(json)) return json;
  } catch {
    return badRequest('The body is not valid JSON.', null, 'invalid_json');
  }
  return badRequest('The body is not a JSON object.', null, 'invalid_json');
}

/** Tells a refusal from a checked body. */
export function isProblem(value: object): value is RequestProblem {
  return 'status' in value && 'code' in value && 'message' in value;
}

/** A chat completion request. */
export function readChatBody(json: Json): GenerationBody | RequestProblem {
  const { messages } = json;
  if (!Array.isArray(messages) || messages.length === 0)
    return badRequest('messages: a list of at least one message is required.', 'messages');
  const turns: ChatTurn[] = [];
  for (const [index, message] of messages.entries()) {
    if (!isObject(message) || typeof message['role'] !== 'string')
      return badRequest(`messages[${index}]: an object with a role is required.`, 'messages');
    const turn = readTurn(message, message['role']);
    if (turn === undefined)
      return badRequest(`messages[${index}].content: a string, null or a list of parts is required.`, 'messages');
    turns.push(turn);
  }
  const tools = Array.isArray(json['tools']) ? JSON.stringify(json['tools']) : '';
  return withLimits(json, tokenizeChat(turns, tools), '');
}

function readTurn(message: Json, role: string): ChatTurn | undefined {
  const content = message['content'];
  const calls = Array.isArray(message['tool_calls']) ? JSON.stringify(message['tool_calls']) : '';
  if (content === null || content === undefined) return { role, text: calls };
  if (typeof content === 'string') return { role, text: content + calls };
  if (!Array.isArray(content)) return undefined;
  const images: string[] = [];
  let text = '';
  for (const part of content as unknown[]) {
    if (!isObject(part)) return undefined;
    if (typeof part['text'] === 'string') text += part['text'];
    if (isObject(part['image_url'])) images.push(String(part['image_url']['url']));
  }
  return { role, text: text + calls, images };
}

/** A text completion request. Only one prompt at a time. */
export function readCompletionBody(json: Json): GenerationBody | RequestProblem {
  const prompts = readPrompts(json['prompt']);
  if (prompts === undefined) return badRequest('prompt: a string or a list of token ids is required.', 'prompt');
  const [tokens] = prompts;
  if (prompts.length !== 1 || tokens === undefined)
    return badRequest('prompt: the simulated engine takes one prompt at a time.', 'prompt');
  if (tokens.length === 0) return badRequest('prompt: at least one token is required.', 'prompt');
  const echo = json['echo'] === true && typeof json['prompt'] === 'string' ? json['prompt'] : '';
  // The protocol's own default for this route.
  return withLimits(json['max_tokens'] === undefined ? { ...json, max_tokens: 16 } : json, tokens, echo);
}

/** An embeddings request: a text, a list of texts, token ids, or a list of those. */
export function readEmbeddingBody(json: Json): EmbeddingBody | RequestProblem {
  const inputs = readPrompts(json['input']);
  if (inputs === undefined || inputs.length === 0 || inputs.some((input) => input.length === 0)) {
    return badRequest('input: a text, token ids, or a list of either is required, none of them empty.', 'input');
  }
  const encoding = json['encoding_format'] ?? 'float';
  if (encoding !== 'float' && encoding !== 'base64')
    return badRequest('encoding_format: "float" or "base64" is required.', 'encoding_format');
  const dimensions = json['dimensions'];
  if (dimensions !== undefined && !isWhole(dimensions, 1, 4096))
    return badRequest('dimensions: a whole number from 1 to 4096 is required.', 'dimensions');
  const model = json['model'];
  if (typeof model !== 'string') return badRequest('model: a string is required.', 'model');
  return { model, inputs, encoding, ...(dimensions === undefined ? {} : { dimensions }) };
}

function readPrompts(value: unknown): number[][] | undefined {
  if (typeof value === 'string') return [tokenizeText(value)];
  if (!Array.isArray(value)) return undefined;
  const items = value as readonly unknown[];
  if (items.every((item) => isWhole(item, 0, 2 ** 31))) return [items.slice()];
  const prompts = items.map((item) =>
    typeof item === 'string' || Array.isArray(item) ? readPrompts(item)?.[0] : undefined,
  );
  return prompts.every((prompt) => prompt !== undefined) ? prompts : undefined;
}

function withLimits(json: Json, promptTokens: readonly number[], echo: string): GenerationBody | RequestProblem {
  const model = json['model'];
  if (typeof model !== 'string' || model === '') return badRequest('model: a string is required.', 'model');
  const name =
    json['max_completion_tokens'] === undefined || json['max_completion_tokens'] === null
      ? 'max_tokens'
      : 'max_completion_tokens';
  const maxTokens = json[name] ?? undefined;
  if (maxTokens !== undefined && !isWhole(maxTokens, 1, 2 ** 31))
    return badRequest(`${name}: a whole number from 1 up is required.`, name);
  const n = json['n'] ?? 1;
  if (n !== 1) return badRequest('n: the simulated engine gives one choice.', 'n');
  const minTokens = json['min_tokens'] ?? 0;
  if (!isWhole(minTokens, 0, 2 ** 31)) return badRequest('min_tokens: a whole number is required.', 'min_tokens');
  const stream = json['stream'] ?? false;
  if (typeof stream !== 'boolean') return badRequest('stream: true or false is required.', 'stream');
  const streamOptions = json['stream_options'] ?? undefined;
  if (streamOptions !== undefined && (!stream || !isObject(streamOptions))) {
    return badRequest('stream_options: an object, and only together with stream, is required.', 'stream_options');
  }
  const salt = json['cache_salt'];
  return {
    model,
    promptTokens,
    stream,
    includeUsage: isObject(streamOptions) && streamOptions['include_usage'] === true,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    minTokens,
    ignoreEnd: json['ignore_eos'] === true,
    echo,
    ...(typeof salt === 'string' ? { cacheSalt: salt } : {}),
  };
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isWhole = (value: unknown, from: number, to: number): value is number =>
  Number.isInteger(value) && Number(value) >= from && Number(value) <= to;
