import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@signalbox/plugin-api';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AuditSink, AuditSinkOptions } from './audit-sink.ts';
import { openAuditSink } from './audit-sink.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-audit-'));
  file = join(folder, 'audit.ndjson');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (more: Partial<AuditSinkOptions> = {}): Promise<AuditSink> =>
  openAuditSink({ file, logger: silentLogger, retryMs: 5, ...more });
const linesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\n').filter(Boolean);
const addLines = (sink: AuditSink, from: number, to: number): void => {
  for (let i = from; i < to; i++) sink.add(() => `${JSON.stringify({ i })}\n`);
};

async function until(condition: () => boolean, what: string): Promise<void> {
  const giveUpMs = performance.now() + 5000;
  while (!condition()) {
    if (performance.now() > giveUpMs) throw new Error(`not within 5 s: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('lines are appended in order, to a file that only its owner reads', async () => {
  writeFileSync(file, '{"i":-1}\n', { mode: 0o600 });
  const sink = await open();
  addLines(sink, 0, 3000);
  expect(sink.written).toBe(0);
  await sink.close(5000);
  expect(linesOf(file)).toEqual(Array.from({ length: 3001 }, (_, i) => JSON.stringify({ i: i - 1 })));
  expect([sink.written, sink.dropped]).toEqual([3000, 0]);
  expect(statSync(file).mode & 0o077).toBe(0);
});

test('a file is put aside before it grows beyond its size, and the oldest go', async () => {
  const sink = await open({ maxBytes: 400, keep: 2 });
  for (let i = 0; i < 100; i++) {
    addLines(sink, i, i + 1);
    await until(() => sink.written === i + 1, `line ${i}`);
  }
  await sink.close(5000);
  const all = [`${file}.2`, `${file}.1`, file].flatMap(linesOf);
  expect(all).toEqual(Array.from({ length: all.length }, (_, i) => JSON.stringify({ i: 100 - all.length + i })));
  expect(all.length).toBeGreaterThan(70);
  expect([file, `${file}.1`, `${file}.2`].every((path) => statSync(path).size <= 400)).toBe(true);
  expect(existsSync(`${file}.3`)).toBe(false);
});

test('while the disk is full lines wait, beyond a bound they are dropped and counted, and writing goes on when there is room', async () => {
  symlinkSync('/dev/full', file);
  const warnings: string[] = [];
  const logger = {
    ...silentLogger,
    error: (text: string) => warnings.push(text),
    info: (text: string) => warnings.push(text),
  };
  const sink = await open({ mostPending: 100, logger });
  addLines(sink, 0, 50);
  await until(() => warnings.length === 1, 'the fault is logged');
  addLines(sink, 50, 250);
  expect([sink.written, sink.dropped]).toEqual([0, 150]);
  unlinkSync(file);
  await until(() => sink.written === 100, 'the lines that waited are written');
  addLines(sink, 250, 260);
  await sink.close(5000);
  expect(linesOf(file)).toHaveLength(110);
  expect(linesOf(file).at(-1)).toBe('{"i":259}');
  expect(warnings).toEqual([expect.stringMatching(/cannot be written/), 'the audit file is written again']);
  expect(sink.written + sink.dropped).toBe(260);
});

test('a line that cannot be rendered is dropped, counted and logged, and holds up no other', async () => {
  const told: unknown[] = [];
  const logger = { ...silentLogger, error: (text: string, fields?: object) => told.push({ text, ...fields }) };
  const sink = await open({ logger });
  const broken = (): string => {
    throw new RangeError('no such date');
  };
  sink.add(broken);
  addLines(sink, 0, 300);
  sink.add(broken);
  addLines(sink, 300, 301);
  sink.add(broken);
  await until(() => sink.written === 301, 'the lines that can be rendered');
  addLines(sink, 301, 302);
  await sink.close(5000);
  expect(linesOf(file)).toEqual(Array.from({ length: 302 }, (_, i) => JSON.stringify({ i })));
  expect([sink.written, sink.dropped]).toEqual([302, 3]);
  const text = 'audit lines could not be rendered and are dropped';
  const error = expect.stringContaining('no such date') as string;
  // The first batch of 256 has one, the rest two.
  expect(told).toEqual([1, 2].map((dropped) => ({ text, dropped, error })));
});

test('a file that is moved or deleted is made anew, and one that ends in half a line spoils no other', async () => {
  writeFileSync(file, '{"i":-2}\n{"i":');
  const sink = await open();
  addLines(sink, 0, 1);
  await until(() => sink.written === 1, 'the first line');
  expect(linesOf(file)).toEqual(['{"i":-2}', '{"i":', '{"i":0}']);
  renameSync(file, `${file}.moved`);
  addLines(sink, 1, 2);
  await until(() => sink.written === 2, 'the second line');
  expect(linesOf(file)).toEqual(['{"i":1}']);
  unlinkSync(file);
  addLines(sink, 2, 3);
  await sink.close(5000);
  expect(linesOf(file)).toEqual(['{"i":2}']);
});

test('what cannot be written by the end is dropped, in bounded time; a file that cannot be opened is told at once', async () => {
  symlinkSync('/dev/full', file);
  const sink = await open({ retryMs: 3_600_000 });
  addLines(sink, 0, 10);
  await sink.close(5000);
  addLines(sink, 10, 11);
  expect([sink.written, sink.dropped]).toEqual([0, 11]);
  mkdirSync(join(folder, 'd'));
  await expect(open({ file: join(folder, 'd') })).rejects.toThrow(/EISDIR/);
  await expect(open({ file: join(folder, 'none', 'x') })).rejects.toThrow(/ENOENT/);
});

test('a write that ends in the middle of a line leaves whole lines only, and no line is lost or written twice', () => {
  const script = fileURLToPath(new URL('short-of-space.fixture.ts', import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    'sh',
    // Files of at most 4 KiB; beyond, a write is cut short and the next one fails.
    [
      '-c',
      'trap "" XFSZ; ulimit -f 8; exec "$@"',
      'sh',
      process.execPath,
      '--conditions=@signalbox/source',
      '--import',
      import.meta.resolve('tsx'),
      script,
      file,
      '1000',
    ],
    { encoding: 'utf8', env: { PATH: process.env['PATH'], TSX_DISABLE_CACHE: '1' }, timeout: 30_000 },
  );
  expect([stderr, status]).toEqual(['', 0]);
  const [written, dropped, moved, failures] = stdout.trim().split(' ').map(Number);
  expect([written, dropped]).toEqual([1000, 0]);
  expect(moved).toBeGreaterThan(5);
  expect(failures).toBeGreaterThan(0);
  const files = [...Array.from({ length: moved ?? 0 }, (_, n) => `${file}.moved-${n}`), file];
  const numbers = files.flatMap(linesOf).map((line) => (JSON.parse(line) as { readonly i: number }).i);
  expect(numbers).toEqual(Array.from({ length: 1000 }, (_, i) => i));
});
