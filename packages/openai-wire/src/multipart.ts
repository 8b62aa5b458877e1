import { kindOf } from './request-kind.ts';
import { emptyScan, ScannedRequest } from './scanned-request.ts';
import { wireError, type WireError } from './wire-error.ts';

const latin1 = new TextDecoder('latin1');
const utf8 = new TextDecoder();
const MAX_FIELD_BYTES = 1024;
const MAX_PARTS = 128;

/** The boundary named by a `multipart/form-data` content type; undefined if there is none or it is not legal (RFC 2046: 1 to 70). */
export function multipartBoundary(contentType: string): string | undefined {
  const found = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  return found?.[1] ?? found?.[2];
}

/**
 * Reads the `model` and `stream` parts of a multipart body (RFC 7578), and nothing else. The body is never rebuilt: a new model name is
 * spliced into its part, so boundary and files stay as they came.
 */
export function parseMultipart(path: string, bytes: Uint8Array, boundary: string): ScannedRequest | WireError {
  const scan = emptyScan(kindOf(path));
  scan.kind = 'other';
  scan.multipart = true;
  const delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
  const opening = delimiter.subarray(2);
  const found = startsWith(bytes, 0, opening) ? -2 : indexOf(bytes, delimiter, 0);
  if (found === -1) return malformed('its boundary does not appear');
  let at = found + delimiter.length;
  for (let parts = 0; ; parts++) {
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d) break;
    if (parts === MAX_PARTS) return malformed(`it has more than ${MAX_PARTS} parts`);
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++;
    if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) return malformed('a boundary line does not end in CR LF');
    // The line end behind the boundary may be the first half of the blank line that ends an empty header block.
    const headEnd = indexOf(bytes, BLANK_LINE, at);
    if (headEnd < 0) return malformed('a part has no blank line behind its headers');
    const bodyStart = headEnd + 4;
    const bodyEnd = indexOf(bytes, delimiter, bodyStart);
    if (bodyEnd < 0) return malformed('the closing boundary is missing');
    const name = partName(latin1.decode(bytes.subarray(at, headEnd)));
    if (name === 'model') {
      if (bodyEnd - bodyStart > MAX_FIELD_BYTES)
        return wireError(400, 'invalid_request', 'The field "model" is too long.', 'model');
      scan.model = utf8.decode(bytes.subarray(bodyStart, bodyEnd));
      scan.modelSpans.push({ start: bodyStart, end: bodyEnd });
    } else if (name === 'stream' && bodyEnd - bodyStart <= 5) {
      scan.stream = utf8.decode(bytes.subarray(bodyStart, bodyEnd)).toLowerCase() === 'true';
    }
    at = bodyEnd + delimiter.length;
  }
  if (scan.model === '')
    return wireError(400, 'invalid_request', 'The part "model" is missing or empty. Name the model to use.', 'model');
  return new ScannedRequest(path, bytes, scan);
}

const BLANK_LINE: Uint8Array = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a);

function malformed(why: string): WireError {
  return wireError(400, 'invalid_request', `The multipart body is malformed: ${why}.`);
}

function partName(head: string): string | undefined {
  const line = /^content-disposition:[^\r\n]*/im.exec(head)?.[0];
  if (line === undefined || /;\s*filename\*?=/i.test(line)) return undefined;
  return /;\s*name="([^"]*)"/i.exec(line)?.[1] ?? /;\s*name=([^\s;"]+)/i.exec(line)?.[1];
}

function startsWith(bytes: Uint8Array, at: number, what: Uint8Array): boolean {
  for (let i = 0; i < what.length; i++) if (bytes[at + i] !== what[i]) return false;
  return true;
}

function indexOf(bytes: Uint8Array, what: Uint8Array, from: number): number {
  const first = what[0] ?? 0;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (startsWith(bytes, at, what)) return at;
  }
  return -1;
}
