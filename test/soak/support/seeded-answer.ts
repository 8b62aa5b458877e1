/** Bytes that both ends of a soak can work out: what an endpoint of a tier answers to a request with a seed. ASCII. */

export interface Asked {
  readonly seed: number;
  readonly tokens: number;
  /** The tier that the endpoint belongs to. */
  readonly tier: string;
  readonly withUsage: boolean;
}

export const MODEL = 'soak-model';

/** Eight hexadecimal digits that depend on the seed and the place (the finaliser of MurmurHash3). */
function word(seed: number, index: number): string {
  let hash = Math.imul(seed, 0x9e37_79b1) ^ Math.imul(index + 1, 0x85eb_ca77);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, '0');
}

function event({ seed, tier }: Asked, rest: string): string {
  return (
    `data: {"id":"chatcmpl-${seed}","object":"chat.completion.chunk","created":1767225600,"model":"${MODEL}",` +
    `"system_fingerprint":"${tier}",${rest}}\n\n`
  );
}

/** The event of one token. Its content starts with its place, so that a lost or moved one can be named. */
export function tokenEvent(asked: Asked, index: number): string {
  const content = `${index}:${word(asked.seed, index)} `;
  return event(asked, `"choices":[{"index":0,"delta":{"content":"${content}"},"logprobs":null,"finish_reason":null}]`);
}

/** What follows the tokens. */
export function streamEnd(asked: Asked): string {
  const finish = event(asked, '"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]');
  const usage = asked.withUsage ? event(asked, `"choices":[],"usage":${usageOf(asked)}`) : '';
  return `${finish}${usage}data: [DONE]\n\n`;
}

export function streamText(asked: Asked): string {
  return Array.from({ length: asked.tokens }, (_, index) => tokenEvent(asked, index)).join('') + streamEnd(asked);
}

export function plainText(asked: Asked): string {
  const content = Array.from({ length: asked.tokens }, (_, index) => `${index}:${word(asked.seed, index)} `).join('');
  return (
    `{"id":"chatcmpl-${asked.seed}","object":"chat.completion","created":1767225600,"model":"${MODEL}",` +
    `"system_fingerprint":"${asked.tier}","choices":[{"index":0,"message":{"role":"assistant","content":"${content}"},` +
    `"logprobs":null,"finish_reason":"stop"}],"usage":${usageOf(asked)}}`
  );
}

function usageOf({ tokens }: Asked): string {
  return `{"prompt_tokens":900,"completion_tokens":${tokens},"total_tokens":${tokens + 900}}`;
}
