import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { RawClient } from '../../packages/proxy/src/client.fixture.ts';
import { FaultUpstream } from './support/fault-upstream.fixture.ts';
import { ANSWER, CHAT, chat, errorCode, plain } from './support/wire.fixture.ts';

const main = fileURLToPath(new URL('../../packages/gateway/src/main.ts', import.meta.url));

interface Serving {
  readonly child: ChildProcessWithoutNullStreams;
  readonly upstream: FaultUpstream;
  readonly port: number;
  readonly adminUrl: string;
  /** Answers to that many requests, one after another on one connection, by status. */
  readonly ask: (count: number) => Promise<{ readonly [status: number]: number }>;
  readonly said: () => string;
}

/** `signalbox serve` in a process of its own. */
async function serving(policy: (origin: string) => string, nodeOptions: readonly string[] = []): Promise<Serving> {
  const upstream = new FaultUpstream();
  const origin = await upstream.listen();
  upstream.onRequest = () => plain(ANSWER);
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-process-'));
  writeFileSync(join(folder, 'policy.route'), policy(origin));
  const child = spawn(
    process.execPath,
    [
      ...nodeOptions,
      '--conditions=@signalbox/source',
      main,
      'serve',
      'policy.route',
      '--listen',
      '127.0.0.1:0',
      '--admin',
      '127.0.0.1:0',
    ],
    { cwd: folder, env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' } },
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream
      .setEncoding('utf8')
      .on('data', (text: string) => (said += text))
      .on('error', () => undefined);
  onTestFinished(async () => {
    if (child.exitCode === null) {
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('close', resolve));
    }
    upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const urls = (): string[] =>
    [...new Set(said.match(/http:\/\/127\.0\.0\.1:\d+/g) ?? [])].filter((url) => url !== origin);
  await expect.poll(() => urls().length, { timeout: 60_000 }).toBe(2);
  const [url = '', adminUrl = ''] = urls();
  const port = Number(new URL(url).port);
  const ask = async (count: number): Promise<{ readonly [status: number]: number }> => {
    const statuses: { [status: number]: number } = {};
    const client = new RawClient(port);
    for (let i = 0; i < count; i++) {
      const { status } = await client.post(CHAT, chat()).answer();
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
    client.destroy();
    return statuses;
  };
  return { child, upstream, port, adminUrl, ask, said: () => said };
}

const tier =
  (keys = '', rule = 'default to tier "t"', gateway = ''): ((origin: string) => string) =>
  (origin) =>
    `define gateway { ${gateway} }\ndefine tier "t" { model: "m", endpoints: ["${origin}"] ${keys} }\n${rule}\n`;
const metric = async ({ adminUrl }: Serving, name: string): Promise<number> => {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`signalbox_${name}`))
      ?.split(' ')[1],
  );
};

test('F9: an audit file on a full disk costs no request, and its lines are counted as waiting or dropped, not as written', async () => {
  const one = await serving(tier('', undefined, 'audit: { file: "/dev/full" }'));
  expect(await one.ask(500)).toEqual({ 200: 500 });
  expect(await metric(one, 'audit_records_total{outcome="written"}')).toBe(0);
  expect(one.said()).toMatch(/audit/);
  expect(await one.ask(100)).toEqual({ 200: 100 });
  one.child.kill('SIGTERM');
  one.child.kill('SIGINT');
});

test('F9: a standard output whose reader has gone costs no request, and the process lives on', async () => {
  const one = await serving(tier());
  expect(await one.ask(10)).toEqual({ 200: 10 });
  one.child.stdout.destroy();
  one.child.stderr.destroy();
  // Enough lines that several writes fail.
  expect(await one.ask(2_000)).toEqual({ 200: 2_000 });
  expect((await fetch(`${one.adminUrl}/livez`)).status).toBe(200);
  expect(one.child.exitCode).toBeNull();
});

test('F16: with a heap of 256 MB, bodies beyond what may be held are shed, and the process lives on', async () => {
  const rule = 'default to tier "t" else queue with max_wait 2m, max_depth 2000';
  const one = await serving(tier('max_requests: 4', rule), ['--max-old-space-size=256']);
  one.upstream.onRequest = () => [];
  const body = JSON.stringify(chat({ messages: [{ role: 'user', content: 'x'.repeat(2 * 1024 * 1024) }] }));
  const clients = Array.from({ length: 180 }, () => new RawClient(one.port));
  onTestFinished(() => clients.forEach((client) => client.destroy()));
  const shed: string[] = [];
  for (const client of clients) {
    client.post(CHAT, body);
    void client.answer().then(
      (answer) => shed.push(`${answer.status} ${errorCode(answer.body)}`),
      () => undefined,
    );
    // The upload of one is under way at a time, as from one link.
    await new Promise((resolve) =>
      client.socket.writableLength === 0 ? resolve(undefined) : client.socket.once('drain', resolve),
    );
  }
  await expect.poll(() => shed.length, { timeout: 60_000 }).toBeGreaterThan(20);
  expect(new Set(shed)).toEqual(new Set(['503 queue_full']));
  expect(shed.length).toBeLessThan(120);
  expect((await fetch(`${one.adminUrl}/livez`)).status).toBe(200);
  console.log(`shed ${shed.length} of ${clients.length}; resident at that: ${residentMb(one.child.pid)} MB`);
  one.upstream.onRequest = () => plain(ANSWER);
  for (const client of clients) client.destroy();
  await expect.poll(() => metric(one, 'inflight_requests'), { timeout: 30_000 }).toBe(0);
  expect(await one.ask(50)).toEqual({ 200: 50 });
  expect(one.child.exitCode).toBeNull();
});

function residentMb(pid: number | undefined): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
}
