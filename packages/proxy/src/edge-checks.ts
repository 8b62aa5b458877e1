import type { IncomingMessage } from 'node:http';

/**
 * What a strict parser still lets through and we do not: a second Host, HTTP/1.0 with Transfer-Encoding, a target that is no path, GET or
 * HEAD with a body, length and chunked at once, and a hop to HTTP/2. Gives the reason, or undefined for a clean request.
 */
export function edgeFault(request: IncomingMessage): string | undefined {
  const raw = request.rawHeaders;
  let hosts = 0;
  let chunked = false;
  let lengths = 0;
  let hasBody = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') hosts++;
        break;
      case 14:
        if (name.toLowerCase() === 'content-length') {
          lengths++;
          hasBody ||= raw[i + 1] !== '0';
        }
        break;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') {
          chunked = true;
          hasBody = true;
        }
        break;
      default:
    }
  }
  if (hosts > 1) return 'The request has more than one Host header.';
  if (hosts === 0 && request.httpVersionMinor > 0) return 'The request has no Host header.';
  if (chunked && lengths > 0) return 'The request has both Content-Length and Transfer-Encoding.';
  if (lengths > 1) return 'The request has more than one Content-Length.';
  if (chunked && request.httpVersionMinor === 0) return 'HTTP/1.0 has no Transfer-Encoding.';
  if (hasBody && (request.method === 'GET' || request.method === 'HEAD'))
    return 'A GET or HEAD request must not have a body.';
  const target = request.url ?? '';
  if (target.charCodeAt(0) !== 0x2f) return 'The request target must be a path.';
  return undefined;
}
