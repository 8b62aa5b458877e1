import { readdirSync, readFileSync } from 'node:fs';
import type { Answer } from '../../../packages/proxy/src/client.fixture.ts';

const folder = new URL('../../../packages/openai-wire/fixtures/', import.meta.url);

interface RecordedEvent {
  /** Offset behind its blank line. */
  readonly end: number;
  readonly kind: 'comment' | 'output' | 'done' | 'error';
  /** A reason to finish is given. */
  readonly finishes: boolean;
}

/** A stream as a server really sent it. */
export interface Recording {
  readonly name: string;
  readonly path: string;
  readonly bytes: Buffer;
  readonly events: readonly RecordedEvent[];
}

/** How the bytes of a cut stream end. */
export type Death =
  /** The connection breaks, or closes inside of a body with chunks or a length. */
  | 'broken'
  /** It closes, and the body has neither chunks nor a length. */
  | 'closed'
  /** The body ends with its last chunk, as a server does that lost its own upstream and does not say so. */
  | 'framed';

export const recordings: readonly Recording[] = readdirSync(folder)
  .filter((name) => name.endsWith('.sse'))
  .map((name) => {
    const bytes = readFileSync(new URL(name, folder));
    const path = name.includes('-completions-') ? '/v1/completions' : '/v1/chat/completions';
    return { name, path, bytes, events: eventsOf(bytes) };
  });

/** The two that are cut at every offset over sockets too. */
export const SHORT: readonly string[] = ['openai-chat-stream-usage.sse', 'hf-router-novita-stream.sse'];

/** Reads events the plain way, independent of the gateway's own reader. Recordings have LF line ends. */
function eventsOf(bytes: Buffer): readonly RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (let start = 0; ;) {
    const blank = bytes.indexOf('\n\n', start);
    if (blank < 0) return events;
    events.push({ end: blank + 2, ...eventIn(bytes.subarray(start, blank).toString()) });
    start = blank + 2;
  }
}

function eventIn(text: string): Omit<RecordedEvent, 'end'> {
  const lines = text.split('\n');
  const data = lines
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim())
    .join('\n');
  if (data === '') return { kind: 'comment', finishes: false };
  if (data === '[DONE]') return { kind: 'done', finishes: false };
  const frame = JSON.parse(data) as {
    readonly error?: unknown;
    readonly choices?: readonly { readonly finish_reason?: string | null }[];
  };
  if ((frame.error !== undefined && frame.error !== null) || lines.includes('event: error'))
    return { kind: 'error', finishes: false };
  return {
    kind: 'output',
    finishes: frame.choices?.some((choice) => (choice.finish_reason ?? null) !== null) ?? false,
  };
}

/**
 * What a client must see of a stream that ends after `sent` bytes, in the words of `seen`: `refused` before the first output; then
 * `whole:N` for N bytes with a proper end, `broken:N` for N bytes of whole events and the gateway's error event, `failed:N` for N bytes up
 * to and with the server's own error event.
 */
export function expected({ bytes, events }: Recording, sent: number, death: Death): string {
  const whole = events.filter(({ end }) => end <= sent);
  const committed = whole.some(({ kind }) => kind === 'output' || kind === 'done');
  const wholeEnd = whole.at(-1)?.end ?? 0;
  const rest = bytes.subarray(wholeEnd, sent).toString();
  let torn = rest !== '' && !rest.startsWith(':');
  if (death !== 'broken' && rest !== '') {
    const last = restIn(rest);
    if (last !== undefined) {
      torn = false;
      // The gateway closes an error event that the server left open.
      const end = last.kind === 'error' ? (events.find((event) => event.end >= sent)?.end ?? sent) : sent;
      whole.push({ end, ...last });
    }
  }
  const error = whole.find(({ kind }) => kind === 'error');
  if (error !== undefined) return committed ? `failed:${error.end}` : 'refused';
  const done = whole.some(({ kind }) => kind === 'done');
  const complete = done || (death === 'framed' && !torn && whole.some(({ finishes }) => finishes));
  if (!committed && !complete) return 'refused';
  return complete ? `whole:${death === 'broken' ? wholeEnd : sent}` : `broken:${wholeEnd}`;
}

/** The unclosed rest as an event, if its payload is whole. */
function restIn(rest: string): Omit<RecordedEvent, 'end'> | undefined {
  if (!/^data:/m.test(rest)) return undefined;
  try {
    const event = eventIn(rest);
    return event.kind === 'comment' ? undefined : event;
  } catch {
    return undefined;
  }
}

const OWN_ERROR =
  /data: \{"error":\{"message":"[^"]+","type":"server_error","param":null,"code":"upstream_disconnected"\}\}\n\n$/;

/** What a client saw, in the same words; anything wrong in words of its own. */
export function seen(answer: Answer | undefined, { bytes }: Recording): string {
  if (answer === undefined) return 'no answer';
  if (answer.status >= 400) return answer.complete ? 'refused' : 'half a refusal';
  const body = Buffer.from(answer.body, 'latin1');
  const own = answer.complete ? -1 : answer.body.search(OWN_ERROR);
  const given = own < 0 ? body : body.subarray(0, own);
  if (!given.equals(bytes.subarray(0, given.length))) return `other bytes: …${given.subarray(-200).toString()}`;
  if (answer.complete) return `whole:${given.length}`;
  return own < 0 ? `failed:${given.length}` : `broken:${given.length}`;
}

/** Offsets that a run looks at: all of them, or the borders of events ± `around` and every `step`th. */
export function offsets({ bytes, events }: Recording, step: number, around = 3): readonly number[] {
  const chosen = new Set<number>();
  for (let at = 0; at <= bytes.length; at += step) chosen.add(at);
  for (const { end } of events)
    for (let at = end - around; at <= end + around; at++) if (at >= 0 && at <= bytes.length) chosen.add(at);
  return [...chosen].toSorted((a, b) => a - b);
}
