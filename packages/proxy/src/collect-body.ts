import type { IncomingMessage } from 'node:http';

const EMPTY: Buffer = Buffer.alloc(0);

/** Called exactly once: with the whole body, `too_large` as soon as it passes the limit, or `gone` when the client left. */
export type BodyCallback = (body: Buffer | 'too_large' | 'gone') => void;

/** Reads a request's body whole, at most `limitBytes` of it. On `too_large` the rest is left unread. */
export function collectBody(request: IncomingMessage, declaredBytes: number, limitBytes: number, done: BodyCallback): void {
  if (declaredBytes > limitBytes) {
    done('too_large');
    return;
  }
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let bytes = 0;
  let settled = false;
  const settle = (body: Buffer | 'too_large' | 'gone'): void => {
    if (settled) return;
    settled = true;
    first = undefined;
    more = undefined;
    done(body);
  };
  request.on('data', (chunk: Buffer) => {
    if (settled) return;
    bytes += chunk.length;
    if (bytes > limitBytes) {
      request.pause();
      settle('too_large');
    } else if (first === undefined) first = chunk;
    else (more ??= [first]).push(chunk);
  });
  request.on('end', () => settle(more === undefined ? (first ?? EMPTY) : Buffer.concat(more, bytes)));
  request.on('error', () => settle('gone'));
  request.on('close', () => settle('gone'));
}
