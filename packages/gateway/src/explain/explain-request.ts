import type { RouteRequest } from '@signalbox/core';
import { parseRequest } from '@signalbox/openai-wire';
import { SignalboxError } from '@signalbox/plugin-api';

/**
 * The request that an explanation is asked for: an OpenAI request body as it is, or `{ path, headers, tenant, body }` around one. Throws
 * a SignalboxError of status 400 that says what is wrong with it.
 */
export function readExplainRequest(given: unknown, nowMs: number): RouteRequest {
  if (!isObject(given))
    throw invalid('expected a JSON object: an OpenAI request body, or { "path", "headers", "body" } around one');
  const wrapped = isObject(given['body']);
  const body = wrapped ? given['body'] : given;
  const path =
    wrapped && typeof given['path'] === 'string' ? given['path'] : pathFor(body as { readonly [key: string]: unknown });
  const parsed = parseRequest(path, new TextEncoder().encode(JSON.stringify(body)));
  if (parsed.kind === 'error') throw invalid(parsed.message);
  const headers: { [name: string]: string } = {};
  if (wrapped && isObject(given['headers'])) {
    for (const [name, value] of Object.entries(given['headers'])) headers[name.toLowerCase()] = String(value);
  }
  const tenant = wrapped && typeof given['tenant'] === 'string' ? given['tenant'] : undefined;
  return {
    id: 'explain',
    parsed,
    headers,
    receivedAtMs: nowMs,
    deadlineMs: Number.POSITIVE_INFINITY,
    ...(tenant === undefined ? {} : { tenant }),
  };
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function pathFor(body: { readonly [key: string]: unknown }): string {
  if ('messages' in body) return '/v1/chat/completions';
  return 'prompt' in body ? '/v1/completions' : '/v1/embeddings';
}

function invalid(message: string): SignalboxError {
  return new SignalboxError(`the request cannot be explained: ${message}`, {
    code: 'invalid_request',
    source: 'client',
    status: 400,
  });
}
