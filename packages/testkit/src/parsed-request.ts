import type { ParsedMessage, ParsedRequest, RequestKind } from '@signalbox/plugin-api';

/** What a request is to say; everything has a plain default. */
export interface ParsedRequestParts {
  readonly path?: string;
  readonly kind?: RequestKind;
  readonly model?: string;
  readonly stream?: boolean;
  readonly includeUsage?: boolean;
  readonly maxTokens?: number;
  readonly user?: string;
  readonly promptCacheKey?: string;
  readonly toolNames?: readonly string[];
  readonly jsonSchema?: boolean;
  readonly reasoning?: boolean;
  readonly promptTokensExact?: number;
  readonly metadata?: { readonly [key: string]: string };
  /** Messages in order; a text alone is one user message. */
  readonly messages?: string | readonly { readonly role: string; readonly text: string; readonly images?: number }[];
}

/** A frozen ParsedRequest without any HTTP body: `parsedRequest({ messages: 'Is Paris in France?' })`. */
export function parsedRequest(parts: ParsedRequestParts = {}): ParsedRequest {
  const given = typeof parts.messages === 'string' ? [{ role: 'user', text: parts.messages }] : (parts.messages ?? []);
  const messages: readonly ParsedMessage[] = Object.freeze(
    given.map((message) => Object.freeze({ images: 0, ...message })),
  );
  const textOf = (role: string, last: boolean): string | undefined =>
    (last ? messages.findLast((message) => message.role === role) : messages.find((message) => message.role === role))
      ?.text;
  const prompt = messages.map((message) => message.text).join('\n');
  const toolNames = Object.freeze([...(parts.toolNames ?? [])]);
  const system = messages.filter((message) => message.role === 'system' || message.role === 'developer');
  return Object.freeze({
    path: parts.path ?? '/v1/chat/completions',
    kind: parts.kind ?? 'chat',
    model: parts.model,
    stream: parts.stream ?? false,
    includeUsage: parts.includeUsage ?? false,
    maxTokens: parts.maxTokens ?? Number.NaN,
    user: parts.user,
    promptCacheKey: parts.promptCacheKey,
    tools: toolNames.length,
    images: messages.reduce((sum, message) => sum + message.images, 0),
    jsonSchema: parts.jsonSchema ?? false,
    reasoning: parts.reasoning ?? false,
    promptChars: [...prompt].length,
    promptTokensExact: parts.promptTokensExact ?? Number.NaN,
    bodyBytes: new TextEncoder().encode(prompt).length,
    metadata: (key: string) =>
      parts.metadata !== undefined && Object.hasOwn(parts.metadata, key) ? parts.metadata[key] : undefined,
    toolNames: () => toolNames,
    messages: () => messages,
    prompt: () => prompt,
    systemPrompt: () => (system.length === 0 ? undefined : system.map((message) => message.text).join('\n')),
    firstUserMessage: () => textOf('user', false),
    lastUserMessage: () => textOf('user', true),
  });
}
