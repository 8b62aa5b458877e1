import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHAT, rig, streaming } from './rig.fixture.ts';
import { chunk, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

const recordings = new URL('../../openai-wire/fixtures/', import.meta.url);

describe('F3: an upstream that is cut at any byte', () => {
  it.each(['openai-chat-stream-usage.sse', 'hf-router-novita-stream.sse'])('%s: the client has whole events and an end that says so, and no lease is left', async (name) => {
    const { upstream, router, client } = await rig();
    const stream = readFileSync(new URL(name, recordings));
    const wire = Buffer.concat([Buffer.from(STREAM_HEAD), chunk(stream), Buffer.from(LAST_CHUNK)]);
    const bodyStart = STREAM_HEAD.length + stream.length.toString(16).length + 2;
    const firstEvent = stream.indexOf('\n\n') + 2;
    const ended = stream.length;
    let cut = 0;
    upstream.onRequest = ({ socket }) => {
      socket.write(wire.subarray(0, cut), () => (cut % 2 === 0 ? socket.end() : socket.resetAndDestroy()));
    };
    for (cut = 0; cut < wire.length; cut++) {
      const one = client().post(CHAT, streaming());
      let answer = await Promise.race([one.answer().catch(() => undefined), one.closed()]);
      answer ??= await one.closed();
      const sent = Math.min(ended, cut - bodyStart);
      // A reset may overtake bytes that are still on their way, so that fewer events than were sent count.
      if (answer?.status === 502) {
        expect(answer.complete).toBe(true);
      } else if (answer?.complete === true) {
        expect(sent).toBe(ended);
        expect(answer.body).toBe(stream.toString('latin1'));
      } else {
        expect(answer?.status).toBe(200);
        expect(sent).toBeGreaterThanOrEqual(firstEvent);
        const errorAt = answer?.body.indexOf('data: {"error":') ?? -1;
        expect(errorAt).toBeGreaterThan(0);
        const before = answer?.body.slice(0, errorAt) ?? '';
        expect(before.endsWith('\n\n')).toBe(true);
        expect(stream.toString('latin1').startsWith(before)).toBe(true);
        expect(answer?.body.endsWith('"code":"upstream_disconnected"}}\n\n')).toBe(true);
      }
      one.destroy();
    }
    expect(router.traces).toHaveLength(wire.length);
    expect(router.leases).toBe(0);
    for (const trace of router.traces) expect(trace.ends).toHaveLength(1);
  });
});
