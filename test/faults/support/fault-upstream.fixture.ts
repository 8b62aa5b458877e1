import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Received } from '../../../packages/proxy/src/upstream.fixture.ts';

/** One step of what a model server does to a socket. */
export type Act =
  /** Writes bytes and waits until they have left; with `piece`, so many at a time, one write per turn of the loop. */
  | { readonly send: string | Uint8Array; readonly piece?: number }
  /** RST. */
  | 'reset'
  /** FIN, then nothing is read any more. */
  | 'close'
  /** FIN; bytes of the other side are still read. */
  | 'half-close'
  /** Nothing ever again. */
  | 'hang';

/** A model server at the level of bytes that can fail in any way at any byte. */
export class FaultUpstream {
  readonly requests: Received[] = [];
  readonly sockets: Set<Socket> = new Set<Socket>();
  /** Requests that were not framed by exactly one content-length. */
  readonly misframed: string[] = [];
  connections = 0;
  origin = '';
  /** Called for each connection; `false` leaves it unread, as a server that hangs at accept does. */
  onConnection: (socket: Socket, index: number) => boolean = () => true;
  /** Steps to take for a request; none: the server hangs. */
  onRequest: (request: Received, index: number) => readonly Act[] = () => [];
  #server: Server;
  #waiting: (() => void)[] = [];

  constructor() {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this.origin;
  }

  /** Refuses connections from now on. */
  async refuse(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  /** Listens again where it listened before. */
  async restart(): Promise<void> {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    this.#server.listen(Number(new URL(this.origin).port), '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async received(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** The last request's body, parsed. */
  get lastBody(): { readonly [field: string]: unknown } {
    return JSON.parse(this.requests.at(-1)?.body ?? '{}') as { readonly [field: string]: unknown };
  }

  close(): void {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    socket.on('close', () => this.sockets.delete(socket));
    if (!this.onConnection(socket, this.connections++)) {
      socket.pause();
      return;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    let wanted = 0;
    socket.on('data', (data: Buffer) => {
      chunks.push(data);
      bytes += data.length;
      while (bytes >= wanted) {
        const buffer = Buffer.concat(chunks.splice(0), bytes);
        const request = requestIn(buffer, socket);
        if (typeof request === 'number') {
          chunks.push(buffer);
          wanted = request;
          return;
        }
        const rest = buffer.subarray(request.bytes);
        chunks.push(rest);
        bytes = rest.length;
        wanted = 1;
        this.#take(request.received);
      }
    });
  }

  #take(request: Received): void {
    const framing = request.lines.filter((line) => /^(?:content-length|transfer-encoding):/i.test(line));
    if (framing.length !== 1 || !/^content-length: *\d+$/i.test(framing[0] ?? ''))
      this.misframed.push(framing.join(' | '));
    this.requests.push(request);
    for (const wake of this.#waiting.splice(0)) wake();
    void play(request.socket, this.onRequest(request, this.requests.length - 1));
  }
}

/** The first request in `buffer`, or how many bytes are needed at least before there is one. */
function requestIn(buffer: Buffer, socket: Socket): number | { readonly received: Received; readonly bytes: number } {
  const headEnd = buffer.indexOf('\r\n\r\n');
  if (headEnd < 0) return buffer.length + 1;
  const [first = '', ...lines] = buffer.subarray(0, headEnd).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const bytes = headEnd + 4 + Number(headers['content-length'] ?? 0);
  if (buffer.length < bytes) return bytes;
  const [method = '', path = ''] = first.split(' ');
  const body = buffer.subarray(headEnd + 4, bytes).toString('utf8');
  return { received: { method, path, headers, lines, body, socket }, bytes };
}

/** Takes the steps one after another, for as long as the socket lives. */
export async function play(socket: Socket, acts: readonly Act[]): Promise<void> {
  for (const act of acts) {
    if (socket.destroyed) return;
    if (act === 'hang') return;
    if (act === 'reset') socket.resetAndDestroy();
    else if (act === 'close') socket.end(() => socket.destroy());
    else if (act === 'half-close') socket.end();
    else if (act.piece === undefined) await flushed(socket, act.send);
    else {
      const bytes = Buffer.from(act.send);
      for (let at = 0; at < bytes.length; at += act.piece) {
        if (socket.destroyed) return;
        await flushed(socket, bytes.subarray(at, at + act.piece));
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    }
  }
}

function flushed(socket: Socket, bytes: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => socket.write(bytes, () => resolve()));
}
