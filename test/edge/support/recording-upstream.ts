import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** One request as it came over the wire. Text is latin1, so that each character is one byte. */
export interface Recorded {
  readonly head: string;
  readonly method: string;
  readonly target: string;
  /** Names in lower case, as they came and in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly framing: 'none' | 'length' | 'chunked' | 'both';
  readonly body: string;
}

export type Responder = (request: Recorded, socket: Socket) => void;

const ANSWER =
  '{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}';

/** Answers 200 with a short completion. */
export const answerOk: Responder = (_request, socket) => {
  socket.write(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`,
  );
};

/**
 * A server at the level of bytes that keeps each request as it came. Its reading is the plain one: heads end at an empty line, chunked
 * goes before a length. Requests that gateways make of their own accord (`GET /metrics` and other probes) are answered 404 and not kept.
 */
export class RecordingUpstream {
  readonly requests: Recorded[] = [];
  readonly sockets: Set<Socket> = new Set<Socket>();
  connections = 0;
  /** Bytes that were no request by this reading. */
  garbage = '';
  respond: Responder = answerOk;
  port = 0;
  private readonly server: Server;

  constructor() {
    this.server = createServer((socket) => this.accept(socket));
  }

  async listen(): Promise<number> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
    return this.port;
  }

  /** What came since the last call. */
  take(): Recorded[] {
    return this.requests.splice(0);
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private accept(socket: Socket): void {
    this.connections++;
    this.sockets.add(socket);
    let pending = '';
    /** Characters without which another look is of no use. */
    let wanted = 0;
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      pending += chunk.toString('latin1');
      if (pending.length < wanted) return;
      for (;;) {
        const read = readRequest(pending);
        if (typeof read === 'number') {
          wanted = read;
          return;
        }
        if (read === 'garbage') {
          this.garbage += pending;
          socket.destroy();
          return;
        }
        pending = pending.slice(read.bytes);
        if (read.request.method === 'GET' && read.request.target !== '/smuggled') {
          socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
          continue;
        }
        this.requests.push(read.request);
        this.respond(read.request, socket);
      }
    });
  }
}

/** The first request of a text; how long the text must at least become to hold one; or that it opens with none. */
function readRequest(text: string): { readonly request: Recorded; readonly bytes: number } | number | 'garbage' {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return text.length + 1;
  const head = text.slice(0, headEnd);
  const [first = '', ...lines] = head.split('\r\n');
  const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(first) ?? [];
  if (method === undefined || target === undefined) return 'garbage';
  const headers = lines.map((line): readonly [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const valueOf = (name: string): string | undefined => headers.find(([given]) => given === name)?.[1];
  const length = valueOf('content-length');
  const chunked = valueOf('transfer-encoding') !== undefined;
  const framing = chunked ? (length === undefined ? 'chunked' : 'both') : length === undefined ? 'none' : 'length';
  const bodyStart = headEnd + 4;
  const made = (body: string, bytes: number): { readonly request: Recorded; readonly bytes: number } => ({
    request: { head, method, target, headers, framing, body },
    bytes,
  });
  if (!chunked) {
    const end = bodyStart + Number(length ?? 0);
    return text.length < end ? end : made(text.slice(bodyStart, end), end);
  }
  let body = '';
  let at = bodyStart;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return text.length + 1;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (Number.isNaN(size)) return 'garbage';
    if (size === 0) {
      const end = text.indexOf('\r\n\r\n', lineEnd);
      return end < 0 ? text.length + 1 : made(body, end + 4);
    }
    if (text.length < lineEnd + 2 + size + 2) return lineEnd + 2 + size + 2;
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}
