import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Running } from './support/command.fixture.ts';
import { startSignalbox } from './support/command.fixture.ts';

const quickstart = fileURLToPath(new URL('../../packages/gateway/policies/quickstart.route', import.meta.url));
/** From Ctrl-C to the end of the process. */
const STOP_LIMIT_MS = 2000;

let folder: string;
let running: Running | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-dev-'));
  copyFileSync(quickstart, join(folder, 'policy.route'));
});
afterEach(async () => {
  running?.child.kill('SIGKILL');
  await running?.ended;
  rmSync(folder, { recursive: true, force: true });
});

async function startDev(...args: string[]): Promise<{ url: string; admin: string; dev: Running }> {
  running = startSignalbox(['dev', 'policy.route', '--speed', '5', ...args], folder);
  await running.saw('Ctrl-C stops');
  const url = /running on (http:\S+)/.exec(running.out())?.[1] ?? '';
  const admin = /admin +(http:\S+?)\/metrics/.exec(running.out())?.[1] ?? '';
  return { url, admin, dev: running };
}

test('dev tells an address and a curl that streams an answer, prints a line for each decision, and stops within two seconds of Ctrl-C', async () => {
  const { url, dev } = await startDev('--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0');
  const [, address = '', body = ''] =
    /curl -N (\S+) -H 'content-type: application\/json' \\\n +-d '(.*)'/.exec(dev.out()) ?? [];
  expect(address).toBe(`${url}/v1/chat/completions`);
  const response = await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
  await dev.saw(/200 "hard" → 70B\/\w+ · .*complexity \d/);

  const open = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: body.replace('"stream"', '"max_tokens":4000,"ignore_eos":true,"stream"'),
  });
  const pressedAtMs = performance.now();
  dev.child.kill('SIGINT');
  const code = await dev.ended;
  const tookMs = performance.now() - pressedAtMs;
  process.stdout.write(`dev with an open stream stopped ${tookMs.toFixed(0)} ms after Ctrl-C\n`);
  expect(code).toBe(0);
  expect(tookMs).toBeLessThan(STOP_LIMIT_MS);
  expect(await open.text().catch(() => 'cut')).not.toContain('[DONE]');
});

test('an edit takes effect at once, and a broken one prints its findings and changes nothing', async () => {
  const { url, dev } = await startDev('--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0');
  const tier = async (): Promise<string | null> => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'auto', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    await response.arrayBuffer();
    return response.headers.get('x-signalbox-tier');
  };
  const text = readFileSync(quickstart, 'utf8');
  expect(await tier()).toBe('8B');
  writeFileSync(join(folder, 'policy.route'), text.replace('default to tier "8B"', 'default to tier "70B"'));
  await dev.saw(/policy \w+ \(generation 2\) is in force/);
  expect(await tier()).toBe('70B');
  writeFileSync(join(folder, 'policy.route'), text.replace('by least_latency', 'by least_latensy'));
  await dev.saw(/did you mean|least_latency/);
  await dev.saw(/stays in force/);
  expect(dev.err()).toContain('^^^');
  expect(await tier()).toBe('70B');
});

test('the next free port is taken, and said, where the wanted one is in use', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  try {
    const text = readFileSync(quickstart, 'utf8').replace('127.0.0.1:8080', `127.0.0.1:${port}`);
    writeFileSync(join(folder, 'policy.route'), text);
    const { url, dev } = await startDev('--admin', '127.0.0.1:0');
    expect(url).not.toBe(`http://127.0.0.1:${port}`);
    expect(dev.out()).toContain(`(127.0.0.1:${port} is taken)`);
    expect((await fetch(`${url}/v1/models`)).status).toBe(200);
  } finally {
    taken.close();
  }
});

test('serve says in one line that its address is in use, and exits with 1', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  running = startSignalbox(
    ['serve', 'policy.route', '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0'],
    folder,
  );
  expect(await running.ended).toBe(1);
  expect(running.err()).toMatch(/the address 127\.0\.0\.1:\d+ is in use/);
  taken.close();
});

test('SIGHUP reloads', async () => {
  const { dev } = await startDev('--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0');
  writeFileSync(join(folder, 'policy.route'), readFileSync(quickstart, 'utf8').replace('> 4k', '> 3k'));
  dev.child.kill('SIGHUP');
  await dev.saw(/policy \w+ \(generation 2\) is in force/);
});
