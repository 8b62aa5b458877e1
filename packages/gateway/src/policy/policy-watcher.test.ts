import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PolicyWatcher } from './policy-watcher.ts';
import { createPolicyWatcher } from './policy-watcher.ts';

let folder: string;
let watcher: PolicyWatcher;
let changes: number;
let onChanged: (() => void) | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-watch-'));
  changes = 0;
  watcher = createPolicyWatcher({
    pollMs: 50,
    onChange() {
      changes++;
      onChanged?.();
    },
  });
});
afterEach(() => {
  watcher.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Resolves at the next change; a change that never comes fails the test by its time limit. */
const nextChange = (): Promise<void> => new Promise((resolve) => (onChanged = resolve));

test('a changed text is one change, and the same text written again is none', async () => {
  const file = join(folder, 'a.route');
  writeFileSync(file, 'one');
  watcher.follow([file]);
  let change = nextChange();
  writeFileSync(file, 'two');
  await change;
  writeFileSync(file, 'two');
  change = nextChange();
  writeFileSync(file, 'three');
  await change;
  expect(changes).toBe(2);
});

test('an edit that came while the file was read is seen', async () => {
  const [main, part] = [join(folder, 'main.route'), join(folder, 'part.route')];
  writeFileSync(main, 'written while it was read');
  writeFileSync(part, 'one');
  const change = nextChange();
  watcher.follow(
    [main, part],
    new Map([
      [main, 'written while it was read'],
      [part, undefined],
    ]),
  );
  await change;
  watcher.follow([main, part], new Map([[main, 'written while it was read']]));
  const next = nextChange();
  writeFileSync(part, 'two');
  await next;
  expect(changes).toBe(2);
});

test('a file replaced by a rename is seen', async () => {
  const file = join(folder, 'a.route');
  writeFileSync(file, 'one');
  watcher.follow([file]);
  const change = nextChange();
  writeFileSync(join(folder, 'a.route.tmp'), 'two');
  renameSync(join(folder, 'a.route.tmp'), file);
  await change;
  expect(changes).toBe(1);
});

test('a swapped symlink of the directory, as Kubernetes mounts a ConfigMap, is seen', async () => {
  for (const version of ['v1', 'v2']) {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, 'a.route'), version);
  }
  symlinkSync('v1', join(folder, '..data'));
  symlinkSync('..data/a.route', join(folder, 'a.route'));
  watcher.follow([join(folder, 'a.route')]);
  const change = nextChange();
  symlinkSync('v2', join(folder, '..data.new'));
  renameSync(join(folder, '..data.new'), join(folder, '..data'));
  await change;
  expect(changes).toBe(1);
});

test('a deleted file and its return are two changes', async () => {
  const file = join(folder, 'a.route');
  writeFileSync(file, 'one');
  watcher.follow([file]);
  let change = nextChange();
  unlinkSync(file);
  await change;
  change = nextChange();
  writeFileSync(file, 'one');
  await change;
  expect(changes).toBe(2);
});

test('an imported file is followed, and one that is no longer imported is not', async () => {
  const [main, part] = [join(folder, 'main.route'), join(folder, 'part.route')];
  writeFileSync(main, 'one');
  writeFileSync(part, 'one');
  watcher.follow([main, part]);
  let change = nextChange();
  writeFileSync(part, 'two');
  await change;
  watcher.follow([main]);
  writeFileSync(part, 'three');
  change = nextChange();
  writeFileSync(main, 'two');
  await change;
  expect(changes).toBe(2);
});

/** Lets the poll come round some times: at 1 ms, each turn of the timers is one. */
const rounds = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 1));
};

test('between changes files are looked at and not read, however much is written beside them', async () => {
  const file = join(folder, 'a.route');
  writeFileSync(file, 'one');
  const reads = { count: 0 };
  let late = 0;
  const quick = createPolicyWatcher({
    pollMs: 1,
    settleMs: 1,
    reads,
    // Long after the file was written, so that its times tell all.
    epochMs: () => Date.now() + late,
    onChange: () => changes++,
  });
  try {
    quick.follow([file]);
    await rounds(5);
    expect(reads.count).toBeGreaterThan(1);
    late = 60_000;
    await rounds(5);
    const before = reads.count;
    for (let i = 0; i < 100; i++) {
      appendFileSync(join(folder, 'audit.ndjson'), 'a line\n');
      await rounds(1);
    }
    expect(reads.count).toBe(before);
    const change = nextChange();
    quick.close();
    watcher.follow([file]);
    writeFileSync(file, 'two');
    await change;
    expect(changes).toBe(1);
  } finally {
    quick.close();
  }
});

test('a file written in pieces is one change, looked at when it has been quiet for a moment', async () => {
  const file = join(folder, 'a.route');
  writeFileSync(file, 'one');
  const seen: string[] = [];
  const patient = createPolicyWatcher({
    settleMs: 200,
    pollMs: 10,
    onChange() {
      seen.push(readFileSync(file, 'utf8'));
      onChanged?.();
    },
  });
  try {
    patient.follow([file]);
    const change = nextChange();
    writeFileSync(file, '');
    for (const piece of ['a ', 'longer ', 'text ', 'in ', 'pieces']) {
      appendFileSync(file, piece);
      await rounds(3);
    }
    await change;
    expect(seen).toEqual(['a longer text in pieces']);
  } finally {
    patient.close();
  }
});

test('a directory that is swapped by its symlink is watched where it leads to then', async () => {
  for (const version of ['v1', 'v2']) {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, 'a.route'), version);
  }
  symlinkSync('v1', join(folder, 'current'));
  const file = join(folder, 'current', 'a.route');
  watcher.follow([file]);
  let change = nextChange();
  symlinkSync('v2', join(folder, 'next'));
  renameSync(join(folder, 'next'), join(folder, 'current'));
  await change;
  watcher.follow([file]);
  change = nextChange();
  writeFileSync(join(folder, 'v2', 'a.route'), 'changed');
  await change;
  expect(changes).toBe(2);
});

test('a file of the same size that was written twice within a tick of the clock is seen', async () => {
  const file = join(folder, 'a.route');
  writeFileSync(file, 'one');
  const times = new Date(Date.now() - 1);
  utimesSync(file, times, times);
  watcher.follow([file]);
  const change = nextChange();
  writeFileSync(file, 'two');
  utimesSync(file, times, times);
  await change;
  expect(changes).toBe(1);
});
