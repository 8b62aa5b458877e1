import type { UpstreamHeaders } from './upstream-call.ts';

/** JSON or a form; a body without a content type is taken for JSON. */
export function isReadable(contentType: string | undefined): boolean {
  return (
    contentType === undefined ||
    contentType === 'application/json' ||
    /^\s*(?:application\/(?:json|[\w.-]+\+json)|multipart\/form-data)\s*(?:;|$)/i.test(contentType)
  );
}

export function isEventStream(contentType: string | string[] | undefined): boolean {
  return typeof contentType === 'string' && /^\s*text\/event-stream\s*(?:;|$)/i.test(contentType);
}

export function isJsonType(contentType: string | string[] | undefined): boolean {
  return (
    typeof contentType === 'string' &&
    (contentType === 'application/json' || /^\s*application\/(?:json|[\w.-]+\+json)\s*(?:;|$)/i.test(contentType))
  );
}

/** Whether the end of the body is stated by its framing and not by the mere close of the connection. */
export function isFramed(headers: UpstreamHeaders): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}
