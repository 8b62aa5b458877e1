import { connect, type Socket } from 'node:net';

/** A client at the level of bytes, over one connection. Text is latin1, so that each character is one byte. */
export class Conversation {
  readonly socket: Socket;
  text = '';
  ended = false;
  private wake: () => void = () => undefined;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1' });
    this.socket.setNoDelay(true);
    this.socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1');
      this.wake();
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.ended = true;
      this.wake();
    });
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  /** What was read so far, as one answer; 1xx are skipped. */
  get answer(): Answer {
    return readAnswer(this.text, this.ended);
  }

  /** Resolves with whether `done` came true in time; at once when the connection ends. */
  async until(done: (answer: Answer) => boolean, limitMs: number): Promise<boolean> {
    const giveUpMs = performance.now() + limitMs;
    for (;;) {
      if (done(this.answer)) return true;
      const leftMs = giveUpMs - performance.now();
      if (this.ended || leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The answer when it is over: whole by its framing, or the connection has ended. */
  async whole(limitMs = 15_000): Promise<Answer> {
    await this.until(({ complete }) => complete || this.ended, limitMs);
    return this.answer;
  }

  /** Goes away as a client does that is killed. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  close(): void {
    this.socket.destroy();
  }
}

export interface Answer {
  /** 0 before the head is there. */
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  /** Chunks joined; latin1. */
  readonly body: string;
  /** The framing says that this is all; for a body without framing, the end of the connection. */
  readonly complete: boolean;
}

const NONE: Answer = { status: 0, headers: {}, body: '', complete: false };

function readAnswer(text: string, ended: boolean): Answer {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return NONE;
  const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const status = Number(first.split(' ')[1]);
  if (status === 100) return readAnswer(text.slice(headEnd + 4), ended);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const rest = text.slice(headEnd + 4);
  if (headers['transfer-encoding']?.toLowerCase() !== 'chunked') {
    const length = headers['content-length'];
    if (length === undefined) return { status, headers, body: rest, complete: ended || status === 204 };
    return { status, headers, body: rest.slice(0, Number(length)), complete: rest.length >= Number(length) };
  }
  let body = '';
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at);
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(rest.slice(at, lineEnd), 16);
    if (Number.isNaN(size)) return { status, headers, body, complete: false };
    if (size === 0) return { status, headers, body, complete: rest.length >= lineEnd + 4 };
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    if (rest.length < lineEnd + 4 + size) return { status, headers, body, complete: false };
    at = lineEnd + 4 + size;
  }
}

/** Payloads of the events of a stream, in order; LF, CR and CRLF end lines alike. UTF-8 is decoded. */
export function eventsOf(body: string): string[] {
  return Buffer.from(body, 'latin1')
    .toString('utf8')
    .replaceAll(/\r\n?/g, '\n')
    .split('\n\n')
    .map((event) =>
      event
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).replace(/^ /, ''))
        .join('\n'),
    )
    .filter((data) => data !== '');
}

/** The text that a stream's deltas add up to. */
export function contentOf(body: string): string {
  let text = '';
  for (const data of eventsOf(body)) {
    if (data === '[DONE]') continue;
    const event = parsed(data) as {
      readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
    };
    text += event.choices?.[0]?.delta?.content ?? '';
  }
  return text;
}

/** The JSON value in a text, or an empty object. */
export function parsed(text: string): { readonly [name: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as { readonly [name: string]: unknown }) : {};
  } catch {
    return {};
  }
}
