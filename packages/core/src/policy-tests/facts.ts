import type { ParsedMessage, ParsedRequest, RequestKind, Value } from '@signalbox/plugin-api';
import type { PolicyTest, RefArgument } from '@signalbox/policy';
import type { RouteRequest } from '../router.ts';

/** What is given of a request: values of signals by `factId`. Whatever is not there is unknown. */
export type Facts = ReadonlyMap<string, Value>;

/** A signal with its arguments as one text, equal for equal ones. */
export function factId(key: string, given: readonly RefArgument[] = []): string {
  return JSON.stringify([key, ...given.map((one) => (one.kind === 'value' ? one.value : one))]);
}

/** The facts of a test. Of one that is given twice the last counts. */
export function factsOf(facts: PolicyTest['facts']): Facts {
  return new Map(facts.map(({ key, arguments: given, value }) => [factId(key, given), value]));
}

/**
 * The request that facts describe, for what core reads of a request beside its signals: the session that a split hashes, the tokens that
 * an endpoint must have room for, the model that must be known.
 */
export function requestOfFacts(facts: Facts, tenant: string | undefined, nowMs: number): RouteRequest {
  const session = text(facts, 'session');
  return {
    id: 'test',
    parsed: bodyOfFacts(facts),
    headers: { ...(session === undefined ? {} : { 'x-session-id': session }), ...named(facts, 'header') },
    receivedAtMs: nowMs,
    deadlineMs: Number.POSITIVE_INFINITY,
    ...(tenant === undefined ? {} : { tenant }),
  };
}

function bodyOfFacts(facts: Facts): ParsedRequest {
  const metadata = named(facts, 'metadata');
  const prompt = text(facts, 'prompt') ?? '';
  const system = text(facts, 'system_prompt');
  const user = text(facts, 'first_user_message') ?? (prompt === '' ? undefined : prompt);
  const path = text(facts, 'path') ?? '/v1/chat/completions';
  const messages: readonly ParsedMessage[] = [
    ...(system === undefined ? [] : [{ role: 'system', text: system, images: 0 }]),
    ...(user === undefined ? [] : [{ role: 'user', text: user, images: 0 }]),
  ];
  const toolNames = facts.get(factId('tool_names'));
  return {
    path,
    kind: kindOfPath(path),
    model: text(facts, 'model'),
    stream: facts.get(factId('stream')) === true,
    includeUsage: false,
    maxTokens: number(facts, 'max_tokens') ?? Number.NaN,
    user: text(facts, 'user'),
    promptCacheKey: undefined,
    tools: number(facts, 'tools') ?? 0,
    images: number(facts, 'images') ?? 0,
    jsonSchema: facts.get(factId('json_schema')) === true,
    reasoning: facts.get(factId('reasoning')) === true,
    promptChars: number(facts, 'prompt_chars') ?? [...prompt].length,
    promptTokensExact: number(facts, 'prompt_tokens') ?? Number.NaN,
    bodyBytes: 0,
    metadata: (key) => (Object.hasOwn(metadata, key) ? metadata[key] : undefined),
    toolNames: () => (Array.isArray(toolNames) ? toolNames.map(String) : []),
    messages: () => messages,
    prompt: () => prompt,
    systemPrompt: () => system,
    firstUserMessage: () => user,
    lastUserMessage: () => user,
  };
}

function kindOfPath(path: string): RequestKind {
  if (path.endsWith('/chat/completions')) return 'chat';
  if (path.endsWith('/completions')) return 'completion';
  return path.endsWith('/embeddings') ? 'embedding' : 'other';
}

function text(facts: Facts, key: string): string | undefined {
  const value = facts.get(factId(key));
  return typeof value === 'string' ? value : undefined;
}

function number(facts: Facts, key: string): number | undefined {
  const value = facts.get(factId(key));
  return typeof value === 'number' ? value : undefined;
}

/** What is given of `header["…"]` or `metadata["…"]`, by name; names of headers in lower case. */
function named(facts: Facts, key: 'header' | 'metadata'): { readonly [name: string]: string } {
  const found: [string, string][] = [];
  for (const [id, value] of facts) {
    const [of, name] = JSON.parse(id) as readonly unknown[];
    if (of !== key || typeof name !== 'string' || typeof value !== 'string') continue;
    found.push([key === 'header' ? name.toLowerCase() : name, value]);
  }
  return Object.fromEntries(found);
}
