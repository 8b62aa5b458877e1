import type { StreamDialect } from './sse-reader.ts';

/** `type` of the OpenAI error envelope for a status. */
export function errorType(status: number): string {
  switch (status) {
    case 401:
      return 'authentication_error';
    case 403:
      return 'permission_error';
    case 429:
      return 'rate_limit_error';
    default:
      return status >= 400 && status < 500 ? 'invalid_request_error' : 'server_error';
  }
}

/** `type` in the envelope of the Messages API. */
function messagesErrorType(status: number): string {
  switch (status) {
    case 401:
      return 'authentication_error';
    case 403:
      return 'permission_error';
    case 404:
      return 'not_found_error';
    case 413:
      return 'request_too_large';
    case 429:
      return 'rate_limit_error';
    case 503:
      return 'overloaded_error';
    default:
      return status >= 400 && status < 500 ? 'invalid_request_error' : 'api_error';
  }
}

/** The body of an error answer, in the shape that the API at `path` uses. */
export function errorBody(
  path: string,
  status: number,
  code: string,
  message: string,
  param: string | null = null,
): string {
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) {
    return JSON.stringify({ type: 'error', error: { type: messagesErrorType(status), message } });
  }
  return JSON.stringify({ error: { message, type: errorType(status), param, code } });
}

/** The event that tells the client of a failure after the commit point, in the shape that the stream's API uses. */
export function errorEvent(dialect: StreamDialect, code: string, message: string): string {
  switch (dialect) {
    case 'messages':
      return `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message } })}\n\n`;
    case 'responses': {
      const response = { object: 'response', status: 'failed', error: { code: 'server_error', message } };
      return `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', response })}\n\n`;
    }
    default:
      return `data: ${JSON.stringify({ error: { message, type: 'server_error', param: null, code } })}\n\n`;
  }
}

/** The API whose events a stream on `path` carries. */
export function dialectOf(path: string): StreamDialect {
  switch (path) {
    case '/v1/chat/completions':
    case '/v1/completions':
      return 'chat';
    case '/v1/responses':
      return 'responses';
    case '/v1/messages':
      return 'messages';
    default:
      return 'other';
  }
}
