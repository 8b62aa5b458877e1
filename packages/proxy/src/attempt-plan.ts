import type { Attempt } from '@signalbox/core';
import { spliceBody, type ScannedRequest } from '@signalbox/openai-wire';
import type { Dispatcher } from 'undici';
import { toSend } from './released-body.ts';
import type { RequestHead } from './request-head.ts';
import { upstreamHeaders } from './upstream-headers.ts';

/** A request as far as what goes upstream depends on it. */
export interface AskedRequest {
  readonly head: RequestHead;
  readonly parsed: ScannedRequest;
  /** Path and query. */
  readonly upstreamPath: string;
}

/** One attempt as it goes on the wire, and what of it is to be undone in the answer. */
export interface AttemptPlan {
  readonly options: Dispatcher.DispatchOptions;
  /** The answer names a model that the client did not ask for. */
  readonly renamed: boolean;
  /** The answer holds a usage event that only we asked for. */
  readonly dropUsage: boolean;
}

/** Makes the request of `attempt` from the client's, always from the original bytes. */
export function planAttempt({ head, parsed, upstreamPath }: AskedRequest, attempt: Attempt): AttemptPlan {
  const asksUsage = parsed.stream && isTextual(parsed.kind) && parsed.mayAskUsage && attempt.target.engine !== 'other';
  const body = spliceBody(parsed, {
    model: attempt.model,
    includeUsage: asksUsage,
    set: attempt.set,
    drop: attempt.drop,
  });
  // Events and usage can be read only where the answer is not compressed.
  const headers = upstreamHeaders(head, attempt, parsed.kind !== 'other' || parsed.stream);
  return {
    options: {
      path: attempt.target.basePath + upstreamPath,
      method: 'POST',
      body: toSend(body, headers, parsed.stream),
      headers,
    },
    renamed: attempt.model !== undefined && attempt.model !== parsed.model && parsed.kind !== 'other',
    dropUsage: asksUsage,
  };
}

function isTextual(kind: string): boolean {
  return kind === 'chat' || kind === 'completion';
}
