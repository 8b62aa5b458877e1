import type { SupposedRequest } from '@signalbox/core';
import { parseRequest } from '@signalbox/openai-wire';
import { findJsonFault } from './json-fault.ts';
import type { PlaygroundState } from './state.ts';

/** What is wrong with the request, and where: an offset in the body, or a line of the headers from 1. */
export interface RequestProblem {
  readonly field: 'body' | 'headers' | 'time';
  readonly message: string;
  readonly offset?: number;
  readonly line?: number;
}

export type ReadRequest =
  | {
      readonly kind: 'request';
      readonly request: SupposedRequest['request'];
      readonly deadlineInMs: number;
      readonly epochMs: number;
    }
  | { readonly kind: 'problem'; readonly problem: RequestProblem };

/** The header by which a caller gives milliseconds until its deadline. */
const DEADLINE_HEADER = 'x-request-deadline-ms';

/** The request that the state describes, read by the same code as the gateway's. */
export function readRequest({
  body,
  headers: headerText,
  tenant,
  time,
}: Pick<PlaygroundState, 'body' | 'headers' | 'tenant' | 'time'>): ReadRequest {
  const json = parseJson(body);
  if ('problem' in json) return { kind: 'problem', problem: json.problem };
  const headers = readHeaders(headerText);
  if ('problem' in headers) return { kind: 'problem', problem: headers.problem };
  const epochMs = Date.parse(`${time}Z`);
  if (!Number.isFinite(epochMs))
    return problem({ field: 'time', message: 'the time is no date and time; write it as 2026-01-05T12:00' });
  const parsed = parseRequest(pathFor(json.value), new TextEncoder().encode(JSON.stringify(json.value)));
  if (parsed.kind === 'error') return problem({ field: 'body', message: parsed.message });
  const deadline = Number(headers.values[DEADLINE_HEADER] ?? Number.NaN);
  return {
    kind: 'request',
    request: { id: 'playground', parsed, headers: headers.values, ...(tenant === '' ? {} : { tenant }) },
    deadlineInMs: deadline > 0 ? deadline : Number.POSITIVE_INFINITY,
    epochMs,
  };
}

function problem(found: RequestProblem): ReadRequest {
  return { kind: 'problem', problem: found };
}

type JsonObject = { readonly [key: string]: unknown };

function parseJson(body: string): { readonly value: JsonObject } | { readonly problem: RequestProblem } {
  const fault = findJsonFault(body);
  if (fault !== undefined) {
    const { offset, expected } = fault;
    const before = body.slice(0, offset).split('\n');
    const place = `line ${before.length}, column ${[...(before.at(-1) ?? '')].length + 1}`;
    const message = `the body is not JSON: ${place}: expected ${expected}`;
    return { problem: { field: 'body', message, offset } };
  }
  const value: unknown = JSON.parse(body);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value: value as JsonObject };
  return {
    problem: { field: 'body', message: 'the body is no JSON object; write an OpenAI request: { "messages": […] }' },
  };
}

function readHeaders(
  text: string,
): { readonly values: { readonly [name: string]: string } } | { readonly problem: RequestProblem } {
  const values = new Map<string, string>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined || value === undefined) {
      const message = `line ${index + 1} is no header; write a header a line, as \`x-slo: interactive\``;
      return { problem: { field: 'headers', message, line: index + 1 } };
    }
    const known = values.get(name.toLowerCase());
    values.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
  }
  return { values: Object.fromEntries(values) };
}

function pathFor(body: JsonObject): string {
  if ('messages' in body) return '/v1/chat/completions';
  return 'prompt' in body ? '/v1/completions' : '/v1/embeddings';
}
