import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Answer } from './client.fixture.ts';
import { CHAT, rig, streaming } from './rig.fixture.ts';
import { chunk, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

const recordings = new URL('../../openai-wire/fixtures/', import.meta.url);

/**
 * What a client made of a cut stream; anything but the three good ends says what is wrong. `sent` bytes of the stream left the server; a
 * reset may overtake them.
 */
function verdictOf(answer: Answer | undefined, stream: string, firstEvent: number, sent: number): string {
  if (answer === undefined) return 'no answer';
  const { status, complete, body } = answer;
  if (status === 502) return complete ? 'a 502' : 'half a 502';
  if (status !== 200) return `status ${status}`;
  if (complete) return sent === stream.length && body === stream ? 'all of it' : `a silent cut at ${sent}`;
  if (sent < firstEvent) return `committed too early, at ${sent}`;
  const errorAt = body.indexOf('data: {"error":');
  const events = body.slice(0, Math.max(0, errorAt));
  const closes = body.endsWith('"code":"upstream_disconnected"}}\n\n');
  return errorAt > 0 && closes && events.endsWith('\n\n') && stream.startsWith(events)
    ? 'events, then the error event'
    : `a wrong end at ${sent}: ${body}`;
}

describe('F3: an upstream that is cut at any byte', () => {
  it.each(['openai-chat-stream-usage.sse', 'hf-router-novita-stream.sse'])(
    '%s: the client has whole events and an end that says so, and no lease is left',
    async (name) => {
      const { upstream, router, client } = await rig();
      const stream = readFileSync(new URL(name, recordings));
      const wire = Buffer.concat([Buffer.from(STREAM_HEAD), chunk(stream), Buffer.from(LAST_CHUNK)]);
      const bodyStart = STREAM_HEAD.length + stream.length.toString(16).length + 2;
      const firstEvent = stream.indexOf('\n\n') + 2;
      const verdicts = new Set<string>();
      let cut = 0;
      upstream.onRequest = ({ socket }) => {
        socket.write(wire.subarray(0, cut), () => (cut % 2 === 0 ? socket.end() : socket.resetAndDestroy()));
      };
      for (cut = 0; cut < wire.length; cut++) {
        const one = client().post(CHAT, streaming());
        let answer = await Promise.race([one.answer().catch(() => undefined), one.closed()]);
        answer ??= await one.closed();
        verdicts.add(
          verdictOf(answer, stream.toString('latin1'), firstEvent, Math.min(stream.length, cut - bodyStart)),
        );
        one.destroy();
      }
      expect([...verdicts].toSorted()).toEqual(['a 502', 'all of it', 'events, then the error event']);
      expect(router.traces).toHaveLength(wire.length);
      expect(router.leases).toBe(0);
      for (const trace of router.traces) expect(trace.ends).toHaveLength(1);
    },
  );
});
