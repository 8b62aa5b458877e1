import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLogStream } from './log-stream.ts';

let folder: string;
let path: string;
let fd: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-log-'));
  path = join(folder, 'log');
  fd = openSync(path, 'w');
});
afterEach(() => {
  closeSync(fd);
  rmSync(folder, { recursive: true, force: true });
});

const written = async (lines: number): Promise<string> => {
  for (;;) {
    const text = readFileSync(path, 'utf8');
    if (text.split('\n').length - 1 >= lines) return text;
    await new Promise((resolve) => setImmediate(resolve));
  }
};

test('lines come out whole and in order, however many there are', async () => {
  const stream = createLogStream(fd);
  const lines = Array.from({ length: 5000 }, (_, i) => `line ${i} ${'é'.repeat(i % 50)}\n`);
  for (const line of lines) stream.write(line);
  expect(await written(lines.length)).toBe(lines.join(''));
  expect(stream.dropped).toBe(0);
});

test('lines that are rendered where they are gathered stand among the others, in order', () => {
  const stream = createLogStream(fd);
  stream.write('one\n');
  stream.append((text, number) => {
    text.addNumber(number);
    text.addAscii('\n');
  }, 2);
  stream.write('é\n');
  stream.flushSync();
  expect(readFileSync(path, 'utf8')).toBe('one\n2\né\n');
  expect(stream.dropped).toBe(0);
});

test('a single line is written without others to follow', async () => {
  const stream = createLogStream(fd);
  stream.write('alone\n');
  expect(await written(1)).toBe('alone\n');
});

test('a flush writes what is held at once', () => {
  const stream = createLogStream(fd);
  stream.write('one\n');
  stream.write('two\n');
  stream.flushSync();
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n');
});

test.runIf(process.platform === 'linux')(
  'a pipe whose reader is stuck keeps nobody: what it does not take is lost and counted',
  () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    // Reader and writer in one, which never reads.
    const stuck = openSync(pipe, constants.O_RDWR);
    const stream = createLogStream(stuck);
    const line = `${'x'.repeat(1023)}\n`;
    for (let i = 0; i < 20; i++) stream.write(line);
    stream.flushSync();
    expect(stream.dropped).toBe(0);
    for (let i = 0; i < 500; i++) stream.write(line);
    stream.flushSync();
    expect(stream.dropped).toBeGreaterThan(0);
    closeSync(stuck);
  },
);

test('a descriptor that takes nothing loses lines and nothing else', () => {
  const unwritable = openSync(path, 'r');
  const stream = createLogStream(unwritable);
  for (let i = 0; i < 10; i++) stream.write('lost\n');
  stream.append((text, line) => text.add(line), 'lost\n');
  stream.flushSync();
  expect(stream.dropped).toBe(11);
  closeSync(unwritable);
});
