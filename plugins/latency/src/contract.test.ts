import { readFileSync } from 'node:fs';
import { toManifest } from '@signalbox/plugin-api';
import { checkPlugin, pluginContract } from '@signalbox/testkit';
import { expect, test } from 'vitest';
import plugin from './index.ts';

test('the plugin is well formed', () => {
  expect(checkPlugin(plugin)).toEqual([]);
});

test('manifest.json is what the code gives; `node packages/testkit/scripts/write-manifest.ts` writes it', () => {
  const written: unknown = JSON.parse(readFileSync(new URL('../manifest.json', import.meta.url), 'utf8'));
  expect(written).toEqual(toManifest(plugin));
});

test.each(pluginContract(plugin).map((check) => [check.name, check] as const))('%s', (name, check) => {
  let note: string | undefined;
  expect(() => (note = check.run()?.note)).not.toThrow();
  if (note?.includes('µs') === true) process.stdout.write(`${name}: ${note}\n`);
});
