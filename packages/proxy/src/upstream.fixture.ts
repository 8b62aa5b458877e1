import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** One request as a raw server received it. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  /** Header lines as they came. */
  readonly lines: readonly string[];
  readonly body: string;
  readonly socket: Socket;
}

/** A server at the level of bytes, so that a test decides every one of them. */
export class RawUpstream {
  readonly requests: Received[] = [];
  readonly sockets: Set<Socket> = new Set<Socket>();
  connections = 0;
  port = 0;
  onRequest: (request: Received, index: number) => void = () => undefined;
  private readonly server: Server;
  private waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  constructor() {
    this.server = createServer((socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      let buffer: Buffer = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        buffer = Buffer.concat([buffer, chunk]);
        for (;;) {
          const headEnd = buffer.indexOf('\r\n\r\n');
          if (headEnd < 0) return;
          const [first = '', ...lines] = buffer.subarray(0, headEnd).toString('latin1').split('\r\n');
          const headers = Object.fromEntries(
            lines.map((line) => [
              line.slice(0, line.indexOf(':')).toLowerCase(),
              line.slice(line.indexOf(':') + 1).trim(),
            ]),
          );
          const length = Number(headers['content-length'] ?? 0);
          if (buffer.length < headEnd + 4 + length) return;
          const body = buffer.subarray(headEnd + 4, headEnd + 4 + length).toString('utf8');
          buffer = buffer.subarray(headEnd + 4 + length);
          const [method = '', path = ''] = first.split(' ');
          const request: Received = { method, path, headers, lines, body, socket };
          this.requests.push(request);
          this.waiting = this.waiting.filter(({ count, resolve }) => {
            if (this.requests.length < count) return true;
            resolve();
            return false;
          });
          this.onRequest(request, this.requests.length - 1);
        }
      });
    });
  }

  async listen(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
    return `http://127.0.0.1:${this.port}`;
  }

  /** Resolves when `count` requests have come. */
  received(count: number): Promise<void> {
    if (this.requests.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ count, resolve }));
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

export function json(status: number, body: unknown, headers: readonly string[] = []): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return [
    `HTTP/1.1 ${status} X`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...headers,
    '',
    text,
  ].join('\r\n');
}

export const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';

export function chunk(bytes: string | Uint8Array): Buffer {
  const data = Buffer.from(bytes as Uint8Array);
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);
}

export const LAST_CHUNK = '0\r\n\r\n';

export const event = (text: string, model = 'm'): string =>
  `data: {"model":"${model}","choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}},"finish_reason":null}]}\n\n`;
export const DONE = 'data: [DONE]\n\n';
