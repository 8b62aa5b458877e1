import type { AttemptFailure, NextStep } from '@signalbox/core';

type Cause = AttemptFailure['cause'];

/** The cause of failure that an upstream status, or the code of an error event, stands for. */
export function failureOf(status: number, code = ''): Cause {
  if (code === 'context_length_exceeded') return 'context_exceeded';
  if (status === 503) return 'saturated';
  if (status === 429) return 'rate_limited';
  return 'error';
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

interface ErrorAnswer {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfterSeconds: number | undefined;
}

/** What the client is told when no attempt is left: the router's words. */
export function refusalOf(step: Extract<NextStep, { readonly kind: 'refuse' }>, cause: Cause): ErrorAnswer {
  return {
    status: step.status,
    code: step.code,
    message: step.message === '' ? `No endpoint could answer (${cause}).` : step.message,
    retryAfterSeconds: step.retryAfterSeconds,
  };
}
