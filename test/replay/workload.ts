import { seededRandom } from './statistics.ts';
import type { TraceRequest } from './trace.ts';

/** Tokens that the chat template adds to the text of one message: the role, the end of the turn, the opening of the answer. */
const templateTokens = 3;

/**
 * The body of a streamed chat completion with just so many prompt tokens by the simulated tokeniser (at least four: the template and one of text),
 * whose text no other request shares a prefix with, and whose answer is as long as in the trace.
 */
export function chatBody(request: TraceRequest, model: string): string {
  const random = seededRandom(request.index + 1);
  const letter = (): string => String.fromCharCode(97 + Math.floor(random() * 26));
  let text = '';
  for (let i = 0; i < Math.max(1, request.promptTokens - templateTokens); i++)
    text += `${letter()}${letter()}${letter()} `;
  return JSON.stringify({
    model,
    messages: [{ role: 'user', content: text }],
    max_tokens: request.outputTokens,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  });
}

/**
 * Forty requests of middling length, all at once: what runs uncounted before a replay. More than two engines take, so that a router that learns from
 * answers has seen each engine.
 */
export const warmUp = (trace: readonly TraceRequest[]): readonly TraceRequest[] =>
  trace
    .filter(({ outputTokens }) => outputTokens >= 100 && outputTokens <= 250)
    .slice(0, 40)
    .map((request) => ({ ...request, atMs: 0 }));
