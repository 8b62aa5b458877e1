import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { PluginManifest } from '../../packages/plugin-api/src/index.ts';
import { compilePolicy } from '../../packages/policy/src/index.ts';
import { checkOptions, manifests } from './support/policy-bench.fixture.ts';

const folder = new URL('../../examples/third-party-scorer/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8')) as PluginManifest;
const readme = readFileSync(new URL('README.md', folder), 'utf8');

test.each([
  ['policy.route', readFileSync(new URL('policy.route', folder), 'utf8')],
  ['README.md', /```route\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''],
])("the third-party scorer's %s is checked by its manifest alone, without running it", (_name, text) => {
  const asked: string[] = [];
  const { program, diagnostics } = compilePolicy({
    path: 'policy.route',
    text,
    manifests,
    checkOptions,
    resolvePlugin(name) {
      asked.push(name);
      return { manifest };
    },
  });
  expect(diagnostics).toEqual([]);
  expect(asked).toEqual(['signalbox-scorer-least-grams']);
  expect(JSON.stringify(program?.routes)).toContain('least_grams');
});
