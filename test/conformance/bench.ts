import type { Socket } from 'node:net';
import { answerOk, type Recorded, type Responder } from '../edge/support/recording-upstream.ts';
import { Conversation } from './conversation.ts';
import type { Product } from './products.ts';

/** The product did something else than the case asks. */
export class Shortfall extends Error {}

/** The case asks for what the product does not set out to do. */
export class NotApplicable extends Error {}

export function must(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Shortfall(otherwise);
}

export interface PostOptions {
  readonly rename?: boolean;
  /** Header lines, each with its line end. */
  readonly lines?: string;
  readonly path?: string;
}

/** One case's view of a product: requests in, the upstream's behaviour, and what the upstream saw. */
export class Bench {
  readonly product: Product;
  private readonly conversations: Conversation[] = [];

  constructor(product: Product) {
    this.product = product;
    for (const upstream of [product.upstream, ...product.pair]) {
      upstream.respond = answerOk;
      upstream.take();
    }
  }

  set upstream(respond: Responder) {
    this.product.upstream.respond = respond;
  }

  /** What the upstream got since the last call. */
  received(): Recorded[] {
    return this.product.upstream.take();
  }

  open(): Conversation {
    const made = new Conversation(this.product.port);
    this.conversations.push(made);
    return made;
  }

  head(
    length: number | undefined,
    { rename = false, lines = '', path = '/v1/chat/completions' }: PostOptions = {},
  ): string {
    const framing = length === undefined ? '' : `content-length: ${length}\r\n`;
    return `POST ${path} HTTP/1.1\r\nhost: gateway.test\r\ncontent-type: application/json\r\n${framing}${this.product.headers(rename)}${lines}\r\n`;
  }

  post(body: unknown, options: PostOptions = {}): Conversation {
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return this.open().send(Buffer.concat([Buffer.from(this.head(bytes.length, options), 'latin1'), bytes]));
  }

  get(path: string, lines = ''): Conversation {
    return this.open().send(`GET ${path} HTTP/1.1\r\nhost: gateway.test\r\n${this.product.headers(false)}${lines}\r\n`);
  }

  finish(): void {
    for (const conversation of this.conversations.splice(0)) conversation.close();
    for (const upstream of [this.product.upstream, ...this.product.pair]) {
      upstream.respond = answerOk;
      for (const socket of upstream.sockets) socket.destroy();
    }
  }
}

export const chat = (rest: object = {}): object => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  ...rest,
});
export const streaming = (rest: object = {}): object => chat({ stream: true, ...rest });

export const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';
export const LAST_CHUNK = '0\r\n\r\n';
export const DONE = 'data: [DONE]\n\n';

export function chunk(bytes: string | Uint8Array): Buffer {
  const data = Buffer.from(bytes as Uint8Array);
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);
}

const frame = (choices: unknown, rest: object = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm', choices, ...rest })}\n\n`;

/** One event of a stream that carries this text. */
export const delta = (content: string): string => frame([{ index: 0, delta: { content }, finish_reason: null }]);
export const deltaOf = (fields: object): string => frame([{ index: 0, delta: fields, finish_reason: null }]);
export const finishing: string = frame([{ index: 0, delta: {}, finish_reason: 'stop' }]);
export const usageFrame: string = frame([], { usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } });

export function plainAnswer(body: unknown, status = 200, lines = ''): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${lines}\r\n${text}`;
}

export const completion = (rest: object = {}, message: object = { role: 'assistant', content: 'yo' }): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'm',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  ...rest,
});

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves with whether a socket closed in time. */
export async function closes(socket: Socket, limitMs: number): Promise<boolean> {
  return until(() => socket.destroyed || socket.readableEnded, limitMs);
}

export async function until(condition: () => boolean, limitMs: number): Promise<boolean> {
  const giveUpMs = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > giveUpMs) return false;
    await pause(10);
  }
  return true;
}
