import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { RequestHead } from './request-head.ts';

/** Which peers are believed when they say on whose behalf they call. */
export interface ForwardingRules {
  /** Whether the peer with this IP address is a proxy whose forwarding headers may pass. */
  readonly trusts: (address: string) => boolean;
}

/**
 * The head with `X-Forwarded-For`, `-Proto` and `-Host` set: what a trusted peer wrote, with its own address behind the list; of any other
 * peer, whose headers `readHead` has dropped, what the connection tells.
 */
export function withForwarding(head: RequestHead, request: IncomingMessage): RequestHead {
  const forwarded: string[] = [];
  const callers: string[] = [];
  let proto: string | undefined;
  let host: string | undefined;
  for (let i = 0; i + 1 < head.forwarded.length; i += 2) {
    const name = head.forwarded[i] ?? '';
    const value = head.forwarded[i + 1] ?? '';
    if (name === 'x-forwarded-for') callers.push(value);
    else if (name === 'x-forwarded-proto') proto ??= value;
    else if (name === 'x-forwarded-host') host ??= value;
    else forwarded.push(name, value);
  }
  const { socket } = request;
  const peer = socket.remoteAddress;
  if (peer !== undefined) callers.push(peer.startsWith('::ffff:') ? peer.slice('::ffff:'.length) : peer);
  forwarded.push('x-forwarded-for', callers.join(', '));
  forwarded.push('x-forwarded-proto', proto ?? ((socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http'));
  const asked = host ?? request.headers.host;
  if (asked !== undefined) forwarded.push('x-forwarded-host', asked);
  return { ...head, forwarded };
}
