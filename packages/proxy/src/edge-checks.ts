import type { IncomingMessage } from 'node:http';

/** Why a request is refused at the edge, and with which status. */
export interface EdgeFault {
  readonly status: 400 | 431;
  readonly message: string;
}

/** A host as clients name one, with or without a port; an IPv6 address in brackets. */
const HOST = /^(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/**
 * What a strict parser still lets through and we do not: a version that is not 1.0 or 1.1; a second or malformed Host; a second
 * Content-Type or Authorization; HTTP/1.0 with Transfer-Encoding, a transfer coding other than chunked, length and chunked at once; GET
 * or HEAD with a body; a target that is no plain path; a hop to HTTP/2; more than `headerCount` header lines. Gives the reason, or
 * undefined for a clean request.
 */
export function edgeFault(request: IncomingMessage, headerCount: number): EdgeFault | undefined {
  if (request.rawHeaders.length > headerCount * 2)
    return { status: 431, message: `The request has more than ${headerCount} headers.` };
  const message = malformation(request);
  return message === undefined ? undefined : { status: 400, message };
}

function malformation(request: IncomingMessage): string | undefined {
  const raw = request.rawHeaders;
  let hosts = 0;
  let host = '';
  let chunked = false;
  let coding = '';
  let lengths = 0;
  let types = 0;
  let credentials = 0;
  let hasBody = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') {
          hosts++;
          host = raw[i + 1] ?? '';
        }
        break;
      case 7:
        if (name.toLowerCase() === 'upgrade' && isH2c(raw[i + 1] ?? ''))
          return 'This server does not upgrade to HTTP/2.';
        break;
      case 12:
        if (name.toLowerCase() === 'content-type' && types++ > 0) return 'The request has more than one Content-Type.';
        break;
      case 13:
        if (name.toLowerCase() === 'authorization' && credentials++ > 0)
          return 'The request has more than one Authorization.';
        break;
      case 14:
        if (name.toLowerCase() === 'content-length') {
          lengths++;
          hasBody ||= raw[i + 1] !== '0';
        }
        break;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') {
          // A second one is no plain `chunked` any more.
          coding = chunked ? 'twice' : (raw[i + 1] ?? '').toLowerCase();
          chunked = true;
          hasBody = true;
        }
        break;
      default:
    }
  }
  if (request.httpVersionMajor !== 1 || request.httpVersionMinor > 1)
    return 'The protocol must be HTTP/1.0 or HTTP/1.1.';
  if (hosts > 1) return 'The request has more than one Host header.';
  if (hosts === 0 && request.httpVersionMinor > 0) return 'The request has no Host header.';
  if (hosts === 1 && !HOST.test(host)) return 'The Host header is not a host.';
  if (chunked && lengths > 0) return 'The request has both Content-Length and Transfer-Encoding.';
  if (lengths > 1) return 'The request has more than one Content-Length.';
  if (chunked && request.httpVersionMinor === 0) return 'HTTP/1.0 has no Transfer-Encoding.';
  if (chunked && coding !== 'chunked') return 'The only transfer coding is chunked.';
  if (hasBody && (request.method === 'GET' || request.method === 'HEAD'))
    return 'A GET or HEAD request must not have a body.';
  const target = request.url ?? '';
  if (target.charCodeAt(0) !== 0x2f) return 'The request target must be a path.';
  if (target.includes('#')) return 'The request target must not have a fragment.';
  return undefined;
}

/** Whether an Upgrade header offers HTTP/2 in clear text. */
export function isH2c(upgrade: string): boolean {
  return /(?:^|,)\s*h2c\s*(?:,|$)/i.test(upgrade);
}
