import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A client at the level of bytes: what came back, exactly, and how the connection ended. */
export class RawClient {
  readonly socket: Socket;
  private chunks: Buffer[] = [];
  private wake: () => void = () => undefined;
  ended = false;
  reset = false;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (data: Buffer) => {
      this.chunks.push(data);
      this.wake();
    });
    this.socket.on('close', () => this.wake());
    this.socket.on('end', () => (this.ended = true));
    this.socket.on('error', () => (this.reset = true));
  }

  post(path: string, body: unknown, headers: readonly string[] = []): this {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const lines = [
      `POST ${path} HTTP/1.1`,
      'host: x',
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(text)}`,
      ...headers,
    ];
    this.socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`);
    return this;
  }

  send(text: string): this {
    this.socket.write(text);
    return this;
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }

  /** Resolves as soon as `done` says so of the bytes that came; rejects when the connection closes before. */
  async until(done: (text: string) => boolean): Promise<string> {
    while (!done(this.text)) {
      if (this.socket.closed) throw new Error(`closed with: ${this.text}`);
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
    return this.text;
  }

  /** One whole answer with content-length or chunks. */
  async answer(): Promise<Answer> {
    await this.until((text) => toAnswer(text)?.complete === true);
    const answer = toAnswer(this.text);
    if (answer === undefined) throw new Error('no answer');
    this.chunks = [];
    return answer;
  }

  async closed(): Promise<Answer | undefined> {
    if (!this.socket.closed) await once(this.socket, 'close');
    return toAnswer(this.text);
  }

  destroy(): void {
    this.socket.destroy();
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  /** Chunks joined; latin1. */
  readonly body: string;
  /** The framing said that this is all. */
  readonly complete: boolean;
}

export function toAnswer(text: string): Answer | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const status = Number(first.split(' ')[1]);
  if (status === 100) return toAnswer(text.slice(headEnd + 4));
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const rest = text.slice(headEnd + 4);
  if (headers['transfer-encoding'] !== 'chunked') {
    const length = Number(headers['content-length'] ?? Number.NaN);
    return { status, headers, body: rest.slice(0, length || undefined), complete: rest.length >= length };
  }
  let body = '';
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at);
    if (lineEnd < 0) return { status, headers, body, complete: false };
    const size = Number.parseInt(rest.slice(at, lineEnd), 16);
    if (size === 0) return { status, headers, body, complete: rest.length >= lineEnd + 4 };
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    if (rest.length < lineEnd + 4 + size) return { status, headers, body, complete: false };
    at = lineEnd + 4 + size;
  }
}
