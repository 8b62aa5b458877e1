import type { AttemptFailure, NextStep, RequestEnd } from '@signalbox/core';
import type { StreamError } from '@signalbox/openai-wire';
import type { ErrorAnswer } from './client-answer.ts';

type Cause = AttemptFailure['cause'];

/** The cause of failure that an upstream status, or the code of an error event, stands for. */
export function failureOf(status: number, code = ''): Cause {
  if (code === 'context_length_exceeded') return 'context_exceeded';
  if (status === 503) return 'saturated';
  if (status === 429) return 'rate_limited';
  return 'error';
}

/** What an error event says of an attempt that failed behind a head that went out early. `status` is the upstream's, 0 if none came. */
export function earlyFailure(
  cause: Cause,
  status: number,
): { readonly code: string; readonly message: string; readonly outcome: RequestEnd['outcome'] } {
  if (cause === 'timeout' || cause === 'first_token') {
    const message = 'The upstream did not begin its answer in time.';
    return { code: 'upstream_timeout', message, outcome: 'upstream_timeout' };
  }
  if (status < 300) {
    const message = 'The upstream failed before its first event.';
    return { code: 'upstream_error', message, outcome: 'upstream_error' };
  }
  const message = `The upstream refused the request with status ${status}.`;
  // A refusal of the request itself speaks no word against the endpoint.
  const atFault = status >= 500 || status < 400;
  return { code: 'upstream_error', message, outcome: atFault ? 'upstream_error' : 'ok' };
}

/** Seconds of a Retry-After header, given as a number or an HTTP date; NaN if there is none. */
export function retryAfterOf(value: string | string[] | undefined, epochMs: () => number): number {
  const text = Array.isArray(value) ? value[0] : value;
  if (text === undefined || text === '') return Number.NaN;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const date = Date.parse(text);
  return Number.isNaN(date) ? Number.NaN : Math.max(0, (date - epochMs()) / 1000);
}

/**
 * What the client is told when no attempt is left: the router's words; but where an engine opened its stream with an error event, the
 * status and code that the event names, as if it had come as a plain answer.
 */
export function refusalOf(
  step: Extract<NextStep, { readonly kind: 'refuse' }>,
  error: StreamError | undefined,
): ErrorAnswer {
  const { status, code, message, retryAfterSeconds } = step;
  if (code !== 'upstream_error' || error === undefined || error.status < 400)
    return { status, code, message, retryAfterSeconds };
  const named = /^[a-z][a-z0-9_]{0,63}$/.test(error.code) ? error.code : code;
  return {
    status: error.status,
    code: named,
    message: 'The model server refused the request in its stream.',
    retryAfterSeconds,
  };
}
