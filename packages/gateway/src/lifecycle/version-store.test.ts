import { expect, test } from 'vitest';
import type { PolicyProgram } from '@signalbox/policy';
import { createVersionStore, filesOf } from './version-store.ts';
import type { VersionStore, VersionStoreOptions } from './version-store.ts';

const needed = new Set<string>();
let clock = 0;
const store = (more: Partial<VersionStoreOptions> = {}): VersionStore =>
  createVersionStore({
    most: 3,
    mostCharacters: 1e6,
    now: () => `t${clock++}`,
    needed: (id) => needed.has(id),
    ...more,
  });
const version = (id: string, text = id): Parameters<VersionStore['keep']>[0] => ({
  id,
  program: {} as PolicyProgram,
  plugins: [],
  sources: new Map([['a.route', text]]),
  origin: 'file',
});
const ids = (kept: VersionStore): string[] => kept.list().map(({ id }) => id);

test('the oldest version that nobody needs gives way, and the newest never does', () => {
  needed.clear();
  needed.add('1111');
  const kept = store();
  for (const id of ['1111', '2222', '3333', '4444', '5555']) kept.keep(version(id));
  expect(ids(kept)).toEqual(['5555', '4444', '1111']);
  const small = store({ mostCharacters: 10 });
  small.keep(version('6666', 'x'.repeat(8)));
  small.keep(version('7777', 'x'.repeat(80)));
  expect(ids(small)).toEqual(['7777']);
});

test('a version that comes again is the newest, and remembers when it first came', () => {
  needed.clear();
  const kept = store();
  const first = kept.keep(version('1111'));
  kept.keep(version('2222'));
  kept.decided('1111');
  const again = kept.keep({ ...version('1111'), origin: 'canary' });
  expect(ids(kept)).toEqual(['1111', '2222']);
  expect(again).toMatchObject({ since: first.since, origin: 'canary', decided: 1 });
});

test('a version is found by the beginning of its id, if only one begins so', () => {
  const kept = store();
  kept.keep(version('abcd1111'));
  kept.keep(version('abcd2222'));
  expect(kept.find('abcd1').id).toBe('abcd1111');
  expect(() => kept.find('abcd')).toThrow(/several versions/);
  expect(() => kept.find('ffff')).toThrow(/no version is kept whose id begins with "ffff"/);
  expect(() => kept.find('abc')).toThrow(/four|4 characters or more/);
});

test('going back goes down the line of versions that were in force; a new one ends the line where it stands', () => {
  needed.clear();
  const kept = store({ most: 10 });
  for (const id of ['v1v1', 'v2v2', 'v3v3']) {
    kept.keep(version(id));
    kept.enforced(id, false);
  }
  expect(kept.before('v3v3')?.id).toBe('v2v2');
  kept.enforced('v2v2', true);
  expect(kept.before('v2v2')?.id).toBe('v1v1');
  kept.enforced('v1v1', true);
  expect(kept.before('v1v1')).toBeUndefined();
  kept.keep(version('v4v4'));
  kept.enforced('v4v4', false);
  expect(kept.before('v4v4')?.id).toBe('v1v1');
  // One that is named by hand and was in force before is its place in the line.
  kept.enforced('v1v1', true);
  kept.enforced('v4v4', true);
  expect(kept.before('v4v4')?.id).toBe('v1v1');
});

test('files are told by their bytes', () => {
  expect(filesOf({ sources: new Map([['a.route', 'é']]) })).toEqual([
    { path: 'a.route', bytes: 2, sha256: '4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c' },
  ]);
});
