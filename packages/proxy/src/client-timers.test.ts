import { afterEach, expect, it, vi } from 'vitest';
import { ANSWER, CHAT, chat, rig } from './rig.fixture.ts';
import { json } from './upstream.fixture.ts';

afterEach(() => {
  vi.useRealTimers();
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The process's own clock goes on by 20 minutes; that of the rig, which the exchange's timers follow, stands still. */
async function twentyMinutes(): Promise<void> {
  for (let i = 0; i < 40; i++) {
    vi.advanceTimersByTime(30_000);
    await turn();
  }
}

// One test for both: the client keeps one timer for all of its fast ones, which would not outlive a second set of fake timers.
it('the HTTP client has no timers of its own: 20 minutes before the head of an answer and as many within its body are no error', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const { upstream, router, client } = await rig();
  const answer = client().post(CHAT, chat()).answer();
  await upstream.received(1);
  await twentyMinutes();
  const whole = json(200, ANSWER);
  const socket = upstream.requests[0]?.socket;
  socket?.write(whole.slice(0, -9));
  await twentyMinutes();
  socket?.write(whole.slice(-9));
  expect((await answer).status).toBe(200);
  expect(router.last.failures).toEqual([]);
  expect(upstream.requests).toHaveLength(1);
});
