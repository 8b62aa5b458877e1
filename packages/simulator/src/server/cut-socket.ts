import type { Socket } from 'node:net';

/** How long the last bytes before a reset are given to arrive: a reset may overtake what the peer has not read. */
const resetGraceMs = 20;

/**
 * Lets so many further bytes out of a socket, then resets or ends the connection and swallows the rest. Returns a function that lifts
 * the limit, for an answer that was shorter. `onCut` is called once when the limit is reached.
 */
export function cutSocket(socket: Socket, atByte: number, how: 'reset' | 'end', onCut: () => void): () => void {
  const write = socket.write.bind(socket) as (chunk: Buffer, done?: () => void) => boolean;
  let left = atByte;
  let cut = false;

  const close = (): void => {
    if (how === 'end') socket.end();
    else setTimeout(() => socket.resetAndDestroy(), resetGraceMs);
  };
  const finish = (last: Buffer): void => {
    cut = true;
    if (last.length === 0) close();
    else write(last, close);
    // The answer is written corked: without this the last bytes would wait for an uncork that comes after them.
    while (socket.writableCorked > 0) socket.uncork();
    onCut();
  };

  socket.write = (chunk: Uint8Array | string, encoding?: unknown, done?: unknown): boolean => {
    const candidate = typeof encoding === 'function' ? encoding : done;
    // node:http passes null for no callback.
    const callback = typeof candidate === 'function' ? (candidate as () => void) : undefined;
    if (cut) {
      if (callback !== undefined) process.nextTick(callback);
      return true;
    }
    const bytes =
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Buffer.from(chunk);
    if (bytes.length < left) {
      left -= bytes.length;
      return write(bytes, callback);
    }
    finish(bytes.subarray(0, left));
    if (callback !== undefined) process.nextTick(callback);
    return true;
  };
  if (atByte === 0) finish(Buffer.alloc(0));

  return () => {
    if (!cut) Reflect.deleteProperty(socket, 'write');
  };
}
