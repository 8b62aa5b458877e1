import { chunk, DONE, event, json, LAST_CHUNK, STREAM_HEAD } from '../../../packages/proxy/src/upstream.fixture.ts';
import type { Act } from './fault-upstream.fixture.ts';

export { chunk, DONE, event, json, LAST_CHUNK, STREAM_HEAD };
export { ANSWER, CHAT, chat, streaming } from '../../../packages/proxy/src/rig.fixture.ts';

/** The code of an error in our envelope. */
export const errorCode = (body: string): string =>
  (JSON.parse(body) as { readonly error: { readonly code: string } }).error.code;

/** A plain answer, whole. */
export const plain = (body: unknown, status = 200, headers: readonly string[] = []): readonly Act[] => [
  { send: json(status, body, headers) },
];

/** The head of a stream and one chunk of body; the stream stays open. */
export const opened = (body: string | Uint8Array): readonly Act[] => [
  { send: Buffer.concat([Buffer.from(STREAM_HEAD), chunk(body)]) },
];

/** A stream, whole, in one chunk. */
export const streamed = (body: string | Uint8Array): readonly Act[] => [
  { send: Buffer.concat([Buffer.from(STREAM_HEAD), chunk(body), Buffer.from(LAST_CHUNK)]) },
];

export const FINISH = 'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
