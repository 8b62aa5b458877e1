import { describe, expect, test } from 'vitest';
import { WorkerClient } from './worker-client.ts';
import type { WorkerHandle } from './worker-client.ts';
import type { Call, Reply } from './worker-protocol.ts';

/** A worker whose answers the test gives. */
class ScriptedWorker implements WorkerHandle {
  readonly calls: Call[] = [];
  isEnded = false;
  readonly #listeners = { message: [] as ((event: { data: unknown }) => void)[], error: [] as (() => void)[] };

  postMessage(message: unknown): void {
    this.calls.push(message as Call);
  }

  addEventListener(type: 'message' | 'error', listener: (event: { readonly data: unknown }) => void): void {
    this.#listeners[type].push(listener as () => void);
  }

  terminate(): void {
    this.isEnded = true;
  }

  say(reply: Reply): void {
    for (const listener of this.#listeners.message) listener({ data: reply });
  }

  answer(value: unknown): void {
    this.say({ id: this.calls.at(-1)?.id ?? -1, kind: 'result', value });
  }

  fail(): void {
    for (const listener of this.#listeners.error) listener();
  }
}

function rig(): {
  readonly client: WorkerClient;
  readonly workers: ScriptedWorker[];
  readonly pass: (ms: number) => void;
} {
  const workers: ScriptedWorker[] = [];
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>();
  let nowMs = 0;
  const client = new WorkerClient({
    start() {
      const worker = new ScriptedWorker();
      workers.push(worker);
      return worker;
    },
    scheduler: {
      setTimer(delayMs, run) {
        const timer = { atMs: nowMs + delayMs, run };
        timers.add(timer);
        return () => timers.delete(timer);
      },
    },
    limitMs: 2000,
    startLimitMs: 10_000,
  });
  return {
    client,
    workers,
    pass(ms) {
      nowMs += ms;
      for (const timer of timers) {
        if (timer.atMs > nowMs || !timers.delete(timer)) continue;
        timer.run();
      }
    },
  };
}

const place = { policy: '', offset: 0 };
const outcome = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => value,
    (error: { readonly reason: string }) => error.reason,
  );

describe('the worker seen from the page', () => {
  test('a call waits until the worker is loaded, and its answer comes back', async () => {
    const { client, workers } = rig();
    const hover = client.call('hover', place);
    expect(workers[0]?.calls).toEqual([]);
    workers[0]?.say({ kind: 'ready' });
    expect(workers[0]?.calls).toMatchObject([{ method: 'hover', argument: place }]);
    workers[0]?.answer(null);
    expect(await hover).toBeNull();
  });

  test('loading does not count against a call', async () => {
    const { client, workers, pass } = rig();
    const hover = outcome(client.call('hover', place));
    pass(9000);
    workers[0]?.say({ kind: 'ready' });
    pass(1999);
    workers[0]?.answer(null);
    expect(await hover).toBeNull();
    pass(60_000);
    expect(workers[0]?.isEnded).toBe(false);
  });

  test('a worker that takes too long is ended, and the next call has a new one', async () => {
    const { client, workers, pass } = rig();
    const slow = client.call('format', 'a');
    workers[0]?.say({ kind: 'ready' });
    pass(2000);
    await expect(slow).rejects.toMatchObject({
      reason: 'too_slow',
      message: 'it took longer than 2 s and was stopped',
    });
    expect(workers[0]?.isEnded).toBe(true);
    const next = client.call('format', 'b');
    expect(workers).toHaveLength(2);
    workers[1]?.say({ kind: 'ready' });
    workers[0]?.say({ id: 2, kind: 'result', value: 'of the one that was ended' });
    workers[1]?.answer('b');
    expect(await next).toBe('b');
  });

  test('a call that waits while a worker is ended is made to the new one', async () => {
    const { client, workers, pass } = rig();
    const slow = outcome(client.call('format', 'a'));
    workers[0]?.say({ kind: 'ready' });
    const waiting = client.call('hover', place);
    pass(2000);
    expect(await slow).toBe('too_slow');
    workers[1]?.say({ kind: 'ready' });
    workers[1]?.answer(null);
    expect(await waiting).toBeNull();
  });

  test('of calls that wait, the latest of each method stands', async () => {
    const { client, workers } = rig();
    const running = client.call('format', '1');
    workers[0]?.say({ kind: 'ready' });
    const superseded = outcome(client.call('format', '2'));
    const other = client.call('hover', place);
    const latest = client.call('format', '3');
    expect(await superseded).toBe('superseded');
    workers[0]?.answer('1');
    expect(await running).toBe('1');
    workers[0]?.answer(null);
    expect(await other).toBeNull();
    workers[0]?.answer('3');
    expect(await latest).toBe('3');
    expect(workers[0]?.calls.map(({ method, argument }) => [method, argument])).toEqual([
      ['format', '1'],
      ['hover', place],
      ['format', '3'],
    ]);
  });

  test('a fault in the worker is the answer to its call alone', async () => {
    const { client, workers } = rig();
    const call = client.call('format', 'a');
    workers[0]?.say({ kind: 'ready' });
    workers[0]?.say({ id: 1, kind: 'fault', message: 'what went wrong' });
    await expect(call).rejects.toMatchObject({ reason: 'fault', message: 'what went wrong' });
    const next = client.call('format', 'b');
    workers[0]?.answer('b');
    expect(await next).toBe('b');
  });

  test('a worker that cannot be loaded, or does not start, is said to be', async () => {
    const { client, workers, pass } = rig();
    const call = client.call('format', 'a');
    workers[0]?.fail();
    await expect(call).rejects.toMatchObject({ reason: 'fault', message: /could not be loaded/ });
    const next = client.call('format', 'b');
    pass(10_000);
    await expect(next).rejects.toMatchObject({ reason: 'fault', message: 'the worker did not start' });
  });

  test('closing ends the worker and whoever waits', async () => {
    const { client, workers } = rig();
    const running = outcome(client.call('format', 'a'));
    workers[0]?.say({ kind: 'ready' });
    const waiting = outcome(client.call('hover', place));
    client.close();
    expect(workers[0]?.isEnded).toBe(true);
    expect(await running).toBe('superseded');
    expect(await waiting).toBe('superseded');
  });
});
