import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterAll, expect, test } from 'vitest';
import { systemTimers } from '../../packages/proxy/src/index.ts';
import { ANSWER, CHAT, chat, rig } from '../../packages/proxy/src/rig.fixture.ts';
import { json } from '../../packages/proxy/src/upstream.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'signalbox-slow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONNECTIONS = 100;
const SECONDS = 12;
const LIMITS = { headersTimeoutMs: 2_000, requestTimeoutMs: 4_000, keepAliveTimeoutMs: 2_000, stalledReaderMs: 2_000 };
const clock = { now: () => performance.now(), epochMs: () => Date.now() };
const descriptors = (): number => readdirSync('/proc/self/fd').length;

interface Attack {
  /** How long it held a connection; it ends when all of its connections are closed, else after `SECONDS`. */
  readonly seconds: number;
  /** Seconds in which the attacker's own probe was not answered. */
  readonly unavailable: number;
}

/** `slowhttptest` with a statistic of each second. */
async function attack(name: string, options: readonly string[], url: string): Promise<Attack> {
  const file = join(folder, name);
  const load = `-c ${CONNECTIONS} -r ${CONNECTIONS} -l ${SECONDS} -i 1 -p 3 -g -o`.split(' ');
  const child = spawn('slowhttptest', [...options, ...load, file, '-u', url], { stdio: 'ignore' });
  const failed = once(child, 'error').then(([cause]) => {
    throw new Error('slowhttptest is not installed; run `bash test/integration/install.sh` first', { cause });
  });
  await Promise.race([once(child, 'close'), failed]);
  const rows = readFileSync(`${file}.csv`, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').map(Number));
  // The first row is of the moment before the probe has connected.
  return { seconds: rows.at(-1)?.[0] ?? Number.NaN, unavailable: rows.slice(1).filter((row) => row[4] === 0).length };
}

test('F4: slow heads, slow bodies and slow readers of slowhttptest are closed in time, and cost the others nothing', async () => {
  const { port, upstream, client, proxy, router } = await rig(undefined, {
    limits: LIMITS,
    clock,
    timers: systemTimers,
  });
  upstream.onRequest = ({ socket }) => socket.write(json(200, ANSWER));
  // A list that is more than a socket takes at once.
  router.modelInfos = Array.from({ length: 2_000 }, (_, i) => ({
    id: `model-${i}`,
    ownedBy: 'nobody',
    maxModelLen: undefined,
  }));
  const url = `http://127.0.0.1:${port}`;
  const quick = client();
  await quick.post(CHAT, chat()).answer();
  const before = descriptors();

  let over = false;
  const latencies: number[] = [];
  const others = (async () => {
    while (!over) {
      const startMs = performance.now();
      expect((await client().post(CHAT, chat(), ['connection: close']).answer()).status).toBe(200);
      latencies.push(performance.now() - startMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  const [heads, bodies, readers] = await Promise.all([
    attack('heads', ['-H'], `${url}/v1/models`),
    attack('bodies', ['-B', '-f', 'application/json', '-s', '100000'], `${url}${CHAT}`),
    attack('readers', ['-X', '-w', '256', '-y', '512', '-n', '1', '-z', '32'], `${url}/v1/models`),
  ]);
  over = true;
  await others;

  // Each limit, and what lies between two looks at it, and the second in which the attack begins.
  expect(heads.seconds).toBeLessThanOrEqual((LIMITS.headersTimeoutMs * 2) / 1_000 + 2);
  expect(bodies.seconds).toBeLessThanOrEqual((LIMITS.requestTimeoutMs + LIMITS.headersTimeoutMs) / 1_000 + 2);
  expect([heads.unavailable, bodies.unavailable, readers.unavailable]).toEqual([0, 0, 0]);
  const sorted = latencies.toSorted((a, b) => a - b);
  const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN;
  console.log(
    `slowhttptest: ${latencies.length} quick requests beside it, p50 ${sorted[sorted.length >> 1]?.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  );
  expect(latencies.length).toBeGreaterThan(30);
  expect(p99).toBeLessThan(1_000);
  await expect.poll(() => proxy.stats, { timeout: 10_000 }).toMatchObject({ live: 0, timers: 0 });
  // Our own ends of all the slow connections are closed, though a slow reader has not seen that yet.
  await expect.poll(descriptors, { timeout: 10_000 }).toBeLessThanOrEqual(before + 1);
  expect(router.leases).toBe(0);
});
