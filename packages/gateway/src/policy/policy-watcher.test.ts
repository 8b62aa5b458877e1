import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
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
