import { once } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import { DEFAULT_LIMITS } from './limits.ts';
import { ANSWER, CHAT, chat, rig, type Rig } from './rig.fixture.ts';
import { json } from './upstream.fixture.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** Has one request answered, with `headers` among those of the answer, and gives the connection that it went over, idle now. */
async function idleConnection({ upstream, client }: Rig, headers: readonly string[]): Promise<NodeJS.EventEmitter> {
  upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER, headers));
  expect((await client().post(CHAT, chat()).answer()).status).toBe(200);
  const { socket } = upstream.requests.at(-1) ?? {};
  if (socket === undefined) throw new Error('no request came');
  return socket;
}

it('an idle connection to an endpoint is used again for 4 s, and then closed: before the 5 s of uvicorn', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const made = await rig();
  await idleConnection(made, []);
  await vi.advanceTimersByTimeAsync(3999);
  const connection = await idleConnection(made, []);
  expect(made.upstream.connections).toBe(1);
  const closed = once(connection, 'close');
  await vi.advanceTimersByTimeAsync(4000);
  await closed;
  expect(DEFAULT_LIMITS.upstreamKeepAliveMs).toBe(4000);
});

it.each([
  ['that it closes sooner: two seconds before that', 'timeout=5', 3000],
  ['that it closes later: ours holds', 'timeout=600', 4000],
])('a server says %s', async (_name, hint, afterMs) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const made = await rig();
  await idleConnection(made, [`keep-alive: ${hint}`]);
  await vi.advanceTimersByTimeAsync(afterMs - 1);
  const connection = await idleConnection(made, [`keep-alive: ${hint}`]);
  expect(made.upstream.connections).toBe(1);
  const closed = once(connection, 'close');
  await vi.advanceTimersByTimeAsync(afterMs);
  await closed;
});

it('a server that closes within two seconds is not trusted with a second request', async () => {
  const made = await rig();
  const connection = await idleConnection(made, ['keep-alive: timeout=2']);
  await once(connection, 'close');
  await idleConnection(made, []);
  expect(made.upstream.connections).toBe(2);
});
