import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = fileURLToPath(new URL('support/name-change-run.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'signalbox-names-'));

interface Report {
  readonly before: readonly string[];
  /** `lastMs`: when the last request was sent that the first address answered, from the change of the name. */
  readonly moved: { readonly statuses: readonly number[]; readonly lastMs: number; readonly by: string };
  readonly stream: { readonly fromFirst: number; readonly done: boolean };
  readonly unnamedButConnected: readonly string[];
  readonly unnamed: { readonly status: number; readonly ms: number };
  readonly named: readonly string[];
  readonly slowButConnected: readonly string[];
  readonly slow: { readonly status: number; readonly ms: number };
  readonly alive: { readonly status: number; readonly ms: number };
  readonly after: readonly string[];
  readonly inflight: number;
}

/** Seconds that the resolver's answers live, and 1 s on top. */
const WITHIN_MS = 2_000;

let report: Report;
beforeAll(async () => {
  if (spawnSync('dnsmasq', ['--version']).error !== undefined)
    throw new Error('dnsmasq is not installed; run `bash test/integration/install.sh` first');
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  // Namespaces of our own: the resolver of the machine stays as it is.
  const script =
    'ip link set lo up && mount --bind "$1/resolv.conf" /etc/resolv.conf && exec "$2" --conditions=@signalbox/source "$3" "$1"';
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  const child = spawn(
    'unshare',
    [...asRoot, '--mount', '--net', 'sh', '-c', script, 'sh', folder, process.execPath, run],
    {
      env: { ...process.env, NODE_OPTIONS: '' },
    },
  );
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the run in namespaces of its own ended with ${code}: ${err}`);
  report = JSON.parse(out.trim().split('\n').at(-1) ?? '') as Report;
  console.log(`names: ${JSON.stringify(report)}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('F7: names of endpoints', () => {
  test('a name that moves is followed within its time to live and a second, under traffic that leaves no connection idle', () => {
    expect(report.before).toEqual(['200 127.0.0.2']);
    expect(report.moved).toMatchObject({ statuses: [200], by: '127.0.0.3' });
    expect(report.moved.lastMs).toBeGreaterThanOrEqual(0);
    expect(report.moved.lastMs).toBeLessThan(WITHIN_MS);
  });

  test('a stream that runs is left where it is, to its end', () => {
    expect(report.stream).toEqual({ fromFirst: 40, done: true });
  });

  test('a name that is gone or whose resolver hangs costs no request while there are connections', () => {
    expect(report.unnamedButConnected).toEqual(['200 127.0.0.3']);
    expect(report.slowButConnected).toEqual(['200 127.0.0.2']);
  });

  test('without connections it is a refusal in bounded time, and the gateway answers all else at once', () => {
    expect(report.unnamed.status).toBe(502);
    expect(report.unnamed.ms).toBeLessThan(1_000);
    expect([502, 504]).toContain(report.slow.status);
    // Two attempts of 2 s each, and the wait between them.
    expect(report.slow.ms).toBeLessThan(7_000);
    expect(report.alive.status).toBe(200);
    expect(report.alive.ms).toBeLessThan(1_000);
  });

  test('it heals by itself, and holds nothing', () => {
    expect(report.named).toEqual(['200 127.0.0.2']);
    expect(report.after).toEqual(['200 127.0.0.2']);
    expect(report.inflight).toBe(0);
  });
});
