import type { IncomingMessage } from 'node:http';

const EMPTY: Buffer = Buffer.alloc(0);

export interface BodyOwner {
  /** Called once with the whole body, or `too_large` as soon as it passes the limit; never if the client leaves before. */
  bodyRead(body: Buffer | 'too_large'): void;
}

/** Reads a request's body whole, at most `limitBytes` of it. On `too_large` the rest is read and thrown away. */
export function collectBody(
  request: IncomingMessage,
  declaredBytes: number,
  limitBytes: number,
  owner: BodyOwner,
): void {
  if (declaredBytes > limitBytes) {
    owner.bodyRead('too_large');
    return;
  }
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    if (bytes > limitBytes) return;
    bytes += chunk.length;
    if (bytes > limitBytes) {
      first = undefined;
      more = undefined;
      owner.bodyRead('too_large');
    } else if (first === undefined) first = chunk;
    else (more ??= [first]).push(chunk);
  });
  request.on('end', () => {
    if (bytes > limitBytes) return;
    const body = more === undefined ? (first ?? EMPTY) : Buffer.concat(more, bytes);
    first = undefined;
    more = undefined;
    owner.bodyRead(body);
  });
}
