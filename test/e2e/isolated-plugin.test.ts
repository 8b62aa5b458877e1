import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Isolation } from '../../packages/gateway/src/plugins/plugin-packages.ts';
import { NO_ISOLATION } from '../../packages/gateway/src/plugins/plugin-packages.ts';
import { signalbox } from './support/command.fixture.ts';
import type { Bed } from './support/gateway.fixture.ts';
import { startBed } from './support/gateway.fixture.ts';

let folder: string;
let bed: Bed | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-isolated-'));
});
afterEach(async () => {
  await bed?.stop();
  bed = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const CALL_MS = 100;
const ISOLATION: Isolation = {
  ...NO_ISOLATION,
  all: true,
  limits: { ...NO_ISOLATION.limits, callMs: CALL_MS, firstCallMs: 1000, setupMs: 5000 },
};
/** The plugin prefers the endpoint of the highest throughput. It obeys what the file says, and tells its process's id in another. */
const CODE = (): string => `
  import { existsSync, readFileSync, writeFileSync } from 'node:fs';
  writeFileSync(${JSON.stringify(join(folder, 'pid'))}, String(process.pid));
  const order = () => (existsSync(${JSON.stringify(join(folder, 'order'))}) ? readFileSync(${JSON.stringify(join(folder, 'order'))}, 'utf8') : '');
  export default { name: 'mine', apiVersion: 1, provides: { scorer: { strongest: { doc: 'x', reads: ['candidate.throughput'], setup: () => ({
    score(request, candidates, out) {
      const told = order();
      while (told === 'loop');
      if (told === 'grow') new Array(134217728).fill(1);
      if (told === 'exit') process.exit(1);
      if (told === 'throw') throw new Error('boom');
      const throughput = candidates.column('candidate.throughput');
      for (let i = 0; i < candidates.length; i++) out[i] = told === 'nan' ? NaN : throughput[candidates.slots[i]] / 1000;
    },
  }) } } } };`;

function install(): string {
  const directory = join(folder, 'mine');
  mkdirSync(directory);
  const entries = [{ kind: 'scorer', name: 'strongest', doc: 'x', reads: ['candidate.throughput'] }];
  const files = {
    'package.json': JSON.stringify({
      name: 'mine',
      version: '1.0.0',
      main: './index.mjs',
      signalbox: './manifest.json',
    }),
    'manifest.json': JSON.stringify({ manifestVersion: 1, name: 'mine', apiVersion: 1, entries }),
    'index.mjs': CODE(),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

const policy = (directory: string, urls: readonly string[], by = 'mine.strongest'): string => `
  ${by.startsWith('mine') ? `use ${JSON.stringify(directory)} as mine {}` : ''}
  define gateway { models: ["auto"] }
  define tier "t" { model: "sim", endpoints: [{ name: "weak", url: "${urls[0]}", throughput: 100/s }, { name: "strong", url: "${urls[1]}", throughput: 900/s }] }
  default to tier "t" by ${by}`;

async function start(): Promise<{ readonly running: Bed; readonly directory: string }> {
  const directory = install();
  const running = await startBed({
    engines: [{}, {}],
    policy: (urls) => policy(directory, urls),
    gateway: { allowPlugins: [directory], isolation: ISOLATION },
  });
  bed = running;
  return { running, directory };
}

async function ask(running: Bed): Promise<{ readonly status: number; readonly endpoint: string | null }> {
  const response = await fetch(`${running.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'hello' }], max_tokens: 1 }),
  });
  await response.arrayBuffer();
  return { status: response.status, endpoint: response.headers.get('x-signalbox-endpoint') };
}

const order = (text: string): void => writeFileSync(join(folder, 'order'), text);
const pluginPid = (): number => Number(readFileSync(join(folder, 'pid'), 'utf8'));
const metric = async (running: Bed): Promise<number> => {
  const text = await (await fetch(`${running.gateway.adminUrl}/metrics`)).text();
  return Number(/^signalbox_plugin_errors_total\{[^}]*\} (\d+)/m.exec(text)?.[1] ?? 0);
};

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '');
  } catch {
    return false;
  }
}

test.each(['loop', 'grow', 'exit', 'throw', 'nan'])(
  'isolated plugin, told to %s: traffic and health go on, it is counted, and it comes back',
  async (fault) => {
    const { running } = await start();
    expect(await ask(running)).toEqual({ status: 200, endpoint: 'strong' });
    order(fault);
    for (let i = 0; i < 5; i++) {
      expect((await ask(running)).status).toBe(200);
      expect((await fetch(`${running.gateway.adminUrl}/livez`)).status).toBe(200);
    }
    if (fault !== 'nan') expect(await metric(running)).toBeGreaterThanOrEqual(5);
    order('');
    await vi.waitFor(
      async () => {
        const failures = await metric(running);
        expect((await ask(running)).endpoint).toBe('strong');
        expect(await metric(running)).toBe(failures);
      },
      { timeout: 20_000, interval: 50 },
    );
  },
);

test('its process ends with the reload that drops it, and with the gateway', async () => {
  const { running, directory } = await start();
  const first = pluginPid();
  expect(first).not.toBe(process.pid);
  const urls = running.engines.map(({ url }) => url);
  running.writePolicy(policy(directory, urls, 'highest(throughput)'));
  await vi.waitFor(() => expect(isRunning(first)).toBe(false), { timeout: 10_000 });
  running.writePolicy(policy(directory, urls));
  await vi.waitFor(async () => expect(pluginPid() !== first && running.reloads.length === 2).toBe(true), {
    timeout: 10_000,
  });
  expect(await ask(running)).toEqual({ status: 200, endpoint: 'strong' });
  const second = pluginPid();
  await running.stop();
  bed = undefined;
  await vi.waitFor(() => expect(isRunning(second)).toBe(false), { timeout: 10_000 });
});

test.each(['loop', 'exit'])('commands that decide go on where an isolated plugin is told to %s', async (fault) => {
  const directory = install();
  const urls = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
  writeFileSync(join(folder, 'p.route'), policy(directory, urls));
  writeFileSync(join(folder, 'r.json'), '{"model":"auto","messages":[{"role":"user","content":"hello"}]}');
  writeFileSync(
    join(folder, 'p.test.route'),
    'import "./p.route"\ntest "it goes somewhere" {\n  expect to tier "t"\n}\n',
  );
  const isolated = ['--isolate-plugins', '--isolate-timeout', '1s', '--allow-plugin', directory];
  const explained = await signalbox(['explain', 'p.route', 'r.json', ...isolated], folder);
  expect(explained).toMatchObject({ code: 0 });
  expect(explained.out).toContain('→ strong');
  order(fault);
  expect(await signalbox(['explain', 'p.route', 'r.json', ...isolated], folder)).toMatchObject({ code: 0 });
  expect(await signalbox(['test', 'p.test.route', ...isolated], folder)).toMatchObject({ code: 0 });
});
