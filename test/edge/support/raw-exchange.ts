import { connect, type Socket } from 'node:net';

/** What came back over one connection. */
export interface Exchanged {
  /** Status of each final answer, in order. */
  readonly statuses: readonly number[];
  /** Bodies of these answers; latin1. */
  readonly bodies: readonly string[];
  readonly headers: readonly { readonly [name: string]: string }[];
  readonly text: string;
  /** The peer ended the connection; `reset` if with RST. */
  readonly end: 'open' | 'closed' | 'reset';
}

export interface ExchangeOptions {
  /** Answers to wait for before the quiet time counts. */
  readonly answers?: number;
  /** How long nothing must come, once the answers are there, before the exchange is over. */
  readonly quietMs?: number;
  /** How long it may take in all. */
  readonly limitMs?: number;
}

/** Sends bytes as they are and takes what comes until the peer closes, all is quiet behind the last answer, or time is up. */
export function exchange(port: number, bytes: string | Uint8Array, options: ExchangeOptions = {}): Promise<Exchanged> {
  const { answers = 1, quietMs = 60, limitMs = 1_500 } = options;
  return new Promise((resolve) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const chunks: Buffer[] = [];
    let end: Exchanged['end'] = 'open';
    let quiet: NodeJS.Timeout | undefined;
    const finish = (): void => {
      clearTimeout(limit);
      clearTimeout(quiet);
      socket.destroy();
      resolve({ ...readAnswers(textOf(chunks)), end });
    };
    const limit = setTimeout(finish, limitMs);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      clearTimeout(quiet);
      if (readAnswers(textOf(chunks)).statuses.length >= answers) quiet = setTimeout(finish, quietMs);
    });
    socket.on('end', () => {
      end = 'closed';
      finish();
    });
    socket.on('error', () => {
      end = 'reset';
    });
    socket.on('close', finish);
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  });
}

function textOf(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString('latin1');
}

/** The whole final answers in a text; 1xx are skipped, a body without framing ends with the text. */
export function readAnswers(text: string): Omit<Exchanged, 'end'> {
  const statuses: number[] = [];
  const bodies: string[] = [];
  const allHeaders: { readonly [name: string]: string }[] = [];
  let at = 0;
  for (;;) {
    const headEnd = text.indexOf('\r\n\r\n', at);
    if (headEnd < 0) break;
    const [first = '', ...lines] = text.slice(at, headEnd).split('\r\n');
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1]);
    if (Number.isNaN(status)) break;
    at = headEnd + 4;
    if (status < 200 && status !== 101) continue;
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    let body: string;
    if (headers['transfer-encoding'] === 'chunked') {
      const read = readChunked(text, at);
      if (read === undefined) break;
      ({ body, end: at } = read);
    } else if (headers['content-length'] !== undefined) {
      const end = at + Number(headers['content-length']);
      // The answer to HEAD names a length and has no body.
      if (text.length < end && text.length > at) break;
      body = text.slice(at, end);
      at = Math.min(end, text.length);
    } else {
      body = text.slice(at);
      at = text.length;
    }
    statuses.push(status);
    bodies.push(body);
    allHeaders.push(headers);
  }
  return { statuses, bodies, headers: allHeaders, text };
}

function readChunked(text: string, from: number): { readonly body: string; readonly end: number } | undefined {
  let body = '';
  let at = from;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (Number.isNaN(size) || text.length < lineEnd + 4 + size) return undefined;
    if (size === 0) return { body, end: lineEnd + 4 };
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 4 + size;
  }
}
