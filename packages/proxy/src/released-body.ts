const LARGE_BYTES = 8 * 1024;

/** A body of one chunk that lets go of it once it is handed to the socket. */
class ReleasedBody implements Iterable<Uint8Array> {
  private chunk: Uint8Array | undefined;

  constructor(chunk: Uint8Array) {
    this.chunk = chunk;
  }

  *[Symbol.iterator](): Iterator<Uint8Array> {
    const chunk = this.chunk;
    this.chunk = undefined;
    if (chunk !== undefined) yield chunk;
  }
}

/**
 * The body as undici is to have it. It keeps a Buffer until the answer has ended, which for a stream is memory for nothing, so that the
 * body of a stream and a large one go as an iterable that is empty after use; its length is stated in `headers`.
 */
export function toSend(body: Uint8Array, headers: string[], streaming: boolean): Uint8Array {
  if (!streaming && body.length <= LARGE_BYTES) return body;
  headers.push('content-length', String(body.length));
  // undici takes any iterable, though its types do not say so.
  return new ReleasedBody(body) as unknown as Uint8Array;
}
