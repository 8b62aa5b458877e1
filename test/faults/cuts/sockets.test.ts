import OpenAI, { APIError } from 'openai';
import { describe, expect, test } from 'vitest';
import { faultBed, oneTier, type FaultBed } from '../support/fault-bed.fixture.ts';
import type { Act } from '../support/fault-upstream.fixture.ts';
import {
  expected,
  offsets,
  recordings,
  seen,
  SHORT,
  type Death,
  type Recording,
} from '../support/recordings.fixture.ts';
import { chunk, LAST_CHUNK, STREAM_HEAD, streaming } from '../support/wire.fixture.ts';

const full = process.env['SIGNALBOX_FAULTS'] === 'full';
const body = streaming({ prompt: 'x' });
const noRetry = oneTier('ejection: false', 'default to tier "tier" with retry 0');
const CLOSE_DELIMITED = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';

/** The first `sent` bytes of a stream, in one to four writes, and then the end. */
function cut({ bytes }: Recording, sent: number, death: Death | 'reset'): readonly Act[] {
  const head = { send: death === 'closed' ? CLOSE_DELIMITED : STREAM_HEAD };
  const pieces = 1 + (sent % 4);
  const parts = Array.from({ length: pieces }, (_, i) =>
    bytes.subarray(Math.floor((i * sent) / pieces), Math.floor(((i + 1) * sent) / pieces)),
  ).filter(({ length }) => length > 0);
  const sends = parts.map((part) => ({ send: death === 'closed' ? part : chunk(part) }));
  if (death === 'framed') return [head, ...sends, { send: LAST_CHUNK }];
  return [head, ...sends, death === 'reset' ? 'reset' : 'close'];
}

async function ask(bed: FaultBed, recording: Recording, sent: number, death: Death | 'reset'): Promise<string> {
  bed.upstream.onRequest = () => cut(recording, sent, death);
  const one = bed.client().post(recording.path, body);
  const answer = await Promise.race([one.answer().catch(() => one.closed()), one.closed()]);
  one.destroy();
  return seen(answer, recording);
}

/** A reset may overtake bytes that were sent before it, so that a client may see what an earlier cut would have shown. */
function allowedOfReset(recording: Recording, sent: number): Set<string> {
  const allowed = new Set<string>(['refused']);
  for (const { end } of recording.events) if (end <= sent) allowed.add(expected(recording, end, 'broken'));
  return allowed.add(expected(recording, sent, 'broken'));
}

describe.each(recordings)('$name over sockets', (recording) => {
  const all = SHORT.includes(recording.name);
  const chosen = all ? offsets(recording, full ? 1 : 7) : offsets(recording, full ? 499 : 4_999, full ? 3 : 0);

  test('an upstream that ends by FIN: in chunks, with its last chunk, without a length', async () => {
    const bed = await faultBed({ policy: noRetry });
    for (const sent of chosen) {
      for (const death of ['broken', 'closed', 'framed'] as const) {
        const got = await ask(bed, recording, sent, death);
        const want = expected(recording, sent, death);
        if (got !== want) expect([sent, death, got]).toEqual([sent, death, want]);
      }
    }
    await bed.quiet();
    expect(bed.decisions).toHaveLength(chosen.length * 3);
  });

  test('an upstream that ends by RST', async () => {
    const bed = await faultBed({ policy: noRetry });
    for (const sent of chosen) {
      const got = await ask(bed, recording, sent, 'reset');
      expect([sent, [...allowedOfReset(recording, sent)]]).toEqual([sent, expect.arrayContaining([got])]);
    }
    await bed.quiet();
    expect(bed.decisions).toHaveLength(chosen.length);
  });
});

test('the framing itself cut at every byte: head, chunk sizes, line ends', async () => {
  const recording = recordings.find(({ name }) => name === SHORT[0]);
  if (recording === undefined) throw new Error(`${SHORT[0]} is not recorded`);
  const bed = await faultBed({ policy: noRetry });
  const half = recording.bytes.length >> 1;
  const wire = Buffer.concat([
    Buffer.from(STREAM_HEAD),
    chunk(recording.bytes.subarray(0, half)),
    chunk(recording.bytes.subarray(half)),
    Buffer.from(LAST_CHUNK),
  ]);
  const verdicts = new Set<string>();
  for (let at = 0; at < wire.length; at += full ? 1 : 5) {
    bed.upstream.onRequest = () => [{ send: wire.subarray(0, at) }, 'close'];
    const one = bed.client().post(recording.path, body);
    const answer = await Promise.race([one.answer().catch(() => one.closed()), one.closed()]);
    verdicts.add(seen(answer, recording).split(':')[0] ?? '');
    one.destroy();
  }
  expect([...verdicts].toSorted()).toEqual(['broken', 'refused', 'whole']);
});

describe('the openai client', () => {
  /** `ok` with the number of frames, or the class of error. */
  const read = async (
    client: OpenAI,
    { path }: Recording,
  ): Promise<{ readonly frames: number; readonly error: unknown }> => {
    let frames = 0;
    const counting = async (stream: AsyncIterable<unknown>): Promise<void> => {
      for await (const frame of stream) frames += frame === undefined ? 0 : 1;
    };
    try {
      if (path.endsWith('chat/completions')) {
        const messages = [{ role: 'user' as const, content: 'hi' }];
        await counting(
          await client.chat.completions.create({
            model: 'm',
            messages,
            stream: true,
            stream_options: { include_usage: true },
          }),
        );
      } else {
        await counting(
          await client.completions.create({
            model: 'm',
            prompt: 'x',
            stream: true,
            stream_options: { include_usage: true },
          }),
        );
      }
      return { frames, error: undefined };
    } catch (error) {
      return { frames, error };
    }
  };

  test.each(recordings)('$name: has all of it or raises an APIError, for every kind of end', async (recording) => {
    const bed = await faultBed({ policy: noRetry });
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${bed.port}/v1`, apiKey: 'x', maxRetries: 0 });
    const sample = offsets(recording, 10_000_000, 1).filter(
      (_, i, { length }) => full || i % Math.ceil(length / 12) === 0 || i > length - 4,
    );
    for (const sent of sample) {
      for (const death of ['broken', 'closed', 'framed'] as const) {
        bed.upstream.onRequest = () => cut(recording, sent, death);
        const want = expected(recording, sent, death);
        const { frames, error } = await read(client, recording);
        const outputs = recording.events.filter(({ kind, end }) => kind === 'output' && end <= sent).length;
        if (want.startsWith('whole')) {
          expect([sent, death, error]).toEqual([sent, death, undefined]);
          // An event that the end of the stream closes counts too.
          expect(frames - outputs).toBeLessThanOrEqual(1);
          expect(frames).toBeGreaterThanOrEqual(outputs);
        } else {
          expect([sent, death, error instanceof APIError]).toEqual([sent, death, true]);
          if (want.startsWith('broken'))
            expect([frames, (error as APIError).code]).toEqual([outputs, 'upstream_disconnected']);
        }
      }
    }
  });
});
