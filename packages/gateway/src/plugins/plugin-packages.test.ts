import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PluginPackage } from './plugin-packages.ts';
import { createPluginFinder, importPlugin } from './plugin-packages.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-plugins-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content: unknown): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content));
}

const MANIFEST = {
  manifestVersion: 1,
  name: 'mine',
  apiVersion: 1,
  entries: [{ kind: 'scorer', name: 'first', doc: 'x' }],
};
const CODE = `export default { name: 'mine', apiVersion: 1, provides: { scorer: { first: { doc: 'x', setup: () => ({ score() {} }) } } } };`;

function install({
  manifest = MANIFEST,
  code = CODE,
  json = {},
}: { manifest?: unknown; code?: string; json?: object } = {}): void {
  write('node_modules/mine/package.json', {
    name: 'mine',
    version: '1.2.3',
    type: 'module',
    exports: { '.': { types: './x.d.ts', default: './index.js' } },
    signalbox: './manifest.json',
    ...json,
  });
  write('node_modules/mine/manifest.json', manifest);
  write('node_modules/mine/index.js', code);
}

const find = (...allow: string[]): ReturnType<ReturnType<typeof createPluginFinder>['find']> =>
  createPluginFinder(folder, allow).find('mine');
const found = (): PluginPackage => {
  const result = find('mine');
  if ('reason' in result) throw new Error(result.message);
  return result;
};

test('a dependency of the nearest package.json may load; another package may not, unless it is allowed', () => {
  install();
  expect(find()).toMatchObject({ reason: 'not_allowed' });
  expect(find('mine')).toMatchObject({ name: 'mine', version: '1.2.3' });
  write('package.json', { dependencies: { mine: '*' } });
  expect(find()).toMatchObject({ name: 'mine' });
  mkdirSync(join(folder, 'policies/deep'), { recursive: true });
  expect(createPluginFinder(join(folder, 'policies/deep'), []).find('mine')).toMatchObject({ name: 'mine' });
});

test('a plugin package may be used by a policy in its own folder', () => {
  install();
  const own = join(folder, 'node_modules/mine');
  expect(createPluginFinder(own, []).find('mine')).toMatchObject({ name: 'mine', directory: own });
});

test('what may load is settled when the finder is made', () => {
  install();
  write('package.json', {});
  const finder = createPluginFinder(folder, []);
  write('package.json', { dependencies: { mine: '*' } });
  expect(finder.find('mine')).toMatchObject({ reason: 'not_allowed' });
});

test('a package that is not installed, no plugin, stale or of another API says so and what to do', () => {
  expect(find('mine')).toMatchObject({
    reason: 'not_found',
    message: 'the package is not installed; run: npm install mine',
  });
  install({ json: { signalbox: undefined } });
  expect(find('mine')).toMatchObject({ reason: 'invalid' });
  install({ manifest: { ...MANIFEST, apiVersion: 7 } });
  expect(find('mine')).toMatchObject({ reason: 'api_version' });
  install({ manifest: 'not json' });
  expect(find('mine')).toMatchObject({ reason: 'invalid' });
});

test('a plugin is imported from its package', async () => {
  install();
  expect((await importPlugin(found())).provides.scorer).toHaveProperty('first');
});

test.each([
  ['a module that throws', 'throw new Error("boom")', /could not be imported: boom/],
  ['no default export', 'export const plugin = 1', /default export/],
  ['another API in code', CODE.replace('apiVersion: 1', 'apiVersion: 2'), /plugin API 2/],
  [
    'a name that the manifest promises and the code lacks',
    CODE.replace('first:', 'second:'),
    /promises the scorer "first"/,
  ],
])('%s is one clear error', async (_name, code, message) => {
  install({ code });
  await expect(importPlugin(found())).rejects.toThrow(message);
});
