import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS } from './limits.ts';
import { CHAT, rig, streaming, type Rig } from './rig.fixture.ts';
import { target } from './scripted-router.fixture.ts';
import { chunk, DONE, event, LAST_CHUNK, STREAM_HEAD } from './upstream.fixture.ts';

const HELD = 4096;
/** An event of `bytes` bytes, its blank line left out. */
const unfinished = (bytes: number): string => event('x'.repeat(bytes - event('').length + 2)).slice(0, -2);

function held(attempts: number): Promise<Rig> {
  const script = (origin: string): { attempts: { target: ReturnType<typeof target> }[] } => ({
    attempts: Array.from({ length: attempts }, () => ({ target: target(origin) })),
  });
  return rig(script, { limits: { ...DEFAULT_LIMITS, heldStreamBytes: HELD } });
}

/** In pieces, as the network would bring it. */
const pieces = (text: string): Buffer[] =>
  [0, 1, 2, 3].map((part) => chunk(text.slice((part * text.length) / 4, ((part + 1) * text.length) / 4)));

describe('what is held of a stream before its first output', () => {
  it('is bounded also where it is one event that does not end: 502 upstream_error, the call ended, nothing left in the ledger', async () => {
    const { upstream, router, client } = await held(1);
    let closed: Promise<unknown> | undefined;
    upstream.onRequest = ({ socket }) => {
      closed = once(socket, 'close');
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), ...pieces(unfinished(HELD + 1))]));
    };
    const answer = await client().post(CHAT, streaming()).answer();
    expect(answer).toMatchObject({
      status: 502,
      headers: { 'x-signalbox-reason': expect.stringContaining('upstream_error') },
    });
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'upstream_error', type: 'server_error' } });
    await closed;
    expect(router.last.failures).toMatchObject([{ cause: 'error', status: 200 }]);
    expect(router.last.commits).toEqual([]);
    expect(router.last.ends).toMatchObject([{ outcome: 'upstream_error', status: 502, upstreamStatus: 200 }]);
    expect(router.leases).toBe(0);
  });

  it('counts what came before the event', async () => {
    const { upstream, router, client } = await held(1);
    const comment = `: ${'c'.repeat(HELD / 2)}\n\n`;
    upstream.onRequest = ({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunk(comment), chunk(unfinished(HELD / 2))]));
    expect((await client().post(CHAT, streaming()).answer()).status).toBe(502);
    expect(router.leases).toBe(0);
  });

  it('may be all of the bound', async () => {
    const { upstream, router, client } = await held(1);
    const first = unfinished(HELD);
    upstream.onRequest = ({ socket }) =>
      socket.write(
        Buffer.concat([Buffer.from(STREAM_HEAD), ...pieces(first), chunk(`\n\n${DONE}`), Buffer.from(LAST_CHUNK)]),
      );
    expect(await client().post(CHAT, streaming()).answer()).toMatchObject({ status: 200, body: `${first}\n\n${DONE}` });
    expect(router.leases).toBe(0);
  });

  it('is let go for another attempt', async () => {
    const { upstream, router, client } = await held(2);
    upstream.onRequest = ({ socket }, index) =>
      socket.write(
        index === 0
          ? Buffer.concat([Buffer.from(STREAM_HEAD), chunk(unfinished(HELD + 1))])
          : STREAM_HEAD + chunk(event('a') + DONE).toString() + LAST_CHUNK,
      );
    expect(await client().post(CHAT, streaming()).answer()).toMatchObject({ status: 200, body: event('a') + DONE });
    expect(router.last.failures).toMatchObject([{ cause: 'error', status: 200 }]);
    expect(router.leases).toBe(0);
  });

  it('binds no event behind the first output', async () => {
    const { upstream, client } = await held(1);
    const long = event('x'.repeat(2 * HELD));
    upstream.onRequest = ({ socket }) =>
      socket.write(
        Buffer.concat([
          Buffer.from(STREAM_HEAD),
          chunk(event('a')),
          ...pieces(long),
          chunk(DONE),
          Buffer.from(LAST_CHUNK),
        ]),
      );
    const { status, body } = await client().post(CHAT, streaming()).answer();
    expect([status, body]).toEqual([200, event('a') + long + DONE]);
  });
});
