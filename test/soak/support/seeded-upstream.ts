import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { plainText, streamEnd, tokenEvent, type Asked } from './seeded-answer.ts';

/** An endpoint on loopback that answers each request with what its seed says. */
export interface SeededUpstream {
  readonly url: string;
  /** Requests that have arrived. */
  received(): number;
  /** Requests between their arrival and the end of their answer, or of their connection. */
  open(): number;
  close(): Promise<void>;
}

interface Body {
  readonly seed: number;
  readonly max_tokens: number;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly metadata: { readonly pace_ms: string };
}

export async function startSeededUpstream(tier: string): Promise<SeededUpstream> {
  let received = 0;
  let open = 0;
  const server = createServer((request, response) => {
    if (request.method !== 'POST') {
      response.end('{}');
      return;
    }
    received++;
    open++;
    response.once('close', () => open--);
    collect(request, (text) => answer(response, tier, JSON.parse(text) as Body));
  });
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: () => received,
    open: () => open,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function collect(request: IncomingMessage, done: (text: string) => void): void {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => done(Buffer.concat(parts).toString()));
}

/** A token at once and one in each pace after it; or one JSON object after one pace. */
function answer(response: ServerResponse, tier: string, body: Body): void {
  const asked: Asked = {
    seed: body.seed,
    tokens: body.max_tokens,
    tier,
    withUsage: body.stream_options?.include_usage === true,
  };
  const paceMs = Number(body.metadata.pace_ms);
  if (body.stream !== true) {
    const text = plainText(asked);
    const timer = setTimeout(() => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length }).end(text);
    }, paceMs);
    response.once('close', () => clearTimeout(timer));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  let index = 0;
  const next = (): void => {
    if (index < asked.tokens) response.write(tokenEvent(asked, index++));
    else response.end(streamEnd(asked));
  };
  next();
  const timer = setInterval(next, paceMs);
  response.once('close', () => clearInterval(timer));
}
