import { afterEach, expect, it, vi } from 'vitest';
import { ANSWER, CHAT, chat, rig } from './rig.fixture.ts';
import { json } from './upstream.fixture.ts';

afterEach(() => {
  vi.useRealTimers();
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The exchange's own timers stand still here, by the clock of the rig; those of the HTTP client run on the process's. */
it.each([
  ['head', ''],
  ['body', json(200, ANSWER).slice(0, -9)],
])('the HTTP client has no timer of its own for the %s of an answer: 20 minutes are no error', async (_name, begun) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const { upstream, client } = await rig();
  upstream.onRequest = ({ socket }) => socket.write(begun);
  const answer = client().post(CHAT, chat()).answer();
  await upstream.received(1);
  for (let i = 0; i < 40; i++) {
    vi.advanceTimersByTime(30_000);
    await turn();
  }
  upstream.requests[0]?.socket.write(json(200, ANSWER).slice(begun.length));
  expect((await answer).status).toBe(200);
  expect(upstream.requests).toHaveLength(1);
});
