import type { Attempt } from '@signalbox/core';
import type { RequestHead } from './request-head.ts';

/**
 * Headers of one attempt, as a flat list: the client's that may pass, the request id, the endpoint's own, the policy's. A later source
 * replaces an earlier one of the same name; nothing is joined. `plain` asks for an answer without compression.
 */
export function upstreamHeaders(head: RequestHead, attempt: Attempt, plain: boolean): string[] {
  const client = head.forwarded;
  const own = attempt.target.headers;
  const policy = attempt.headers;
  const headers: string[] = [];
  const overridden = own.length > 0 || policy.length > 0;
  for (let i = 0; i + 1 < client.length; i += 2) {
    const name = client[i] ?? '';
    if (overridden && (isSetBy(own, name) || isSetBy(policy, name))) continue;
    headers.push(name, client[i + 1] ?? '');
  }
  headers.push('x-request-id', head.requestId);
  if (plain) headers.push('accept-encoding', 'identity');
  else if (head.acceptEncoding !== undefined) headers.push('accept-encoding', head.acceptEncoding);
  for (const { name, value } of own) if (!isSetBy(policy, name)) headers.push(name, value);
  for (const { name, value } of policy) headers.push(name, value);
  return headers;
}

function isSetBy(headers: readonly { readonly name: string }[], name: string): boolean {
  for (const header of headers)
    if (header.name === name || header.name.toLowerCase() === name.toLowerCase()) return true;
  return false;
}
