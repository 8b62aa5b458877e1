import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createPolicyLoader } from '../../packages/gateway/src/policy/load-policy.ts';
import { compilePolicy, diagnosticCodes } from '../../packages/policy/src/index.ts';
import { createOptionChecker } from '../../packages/config/src/index.ts';
import { BUILTIN_PLUGINS } from '../../packages/gateway/src/plugins/builtin-plugins.ts';
import { toManifest } from '../../packages/plugin-api/src/index.ts';
import { docsRoot, generatedPages } from './generate.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function compile(text: string): readonly string[] {
  const { diagnostics } = compilePolicy({
    path: 'example.route',
    text,
    readFile: () => undefined,
    manifests: BUILTIN_PLUGINS.map(toManifest),
    resolvePlugin: () => ({ error: 'the package is not installed' }),
    checkOptions: createOptionChecker(),
    nowEpochMs: Date.UTC(2026, 11, 1),
  });
  return diagnostics.map(({ code }) => code);
}

test('the generated pages are fresh; `npm run docs` writes them', async () => {
  const stale = [...(await generatedPages())].filter(
    ([path, text]) => readFileSync(join(docsRoot, path), 'utf8') !== text,
  );
  expect(stale.map(([path]) => path)).toEqual([]);
});

test('codes and diagnostics pages agree both ways', () => {
  const pages = readdirSync(join(docsRoot, 'reference/diagnostics')).map((name) => name.replace('.md', ''));
  expect(pages.toSorted()).toEqual(Object.keys(diagnosticCodes).toSorted());
});

describe('policies in the docs compile', () => {
  const files = [
    'README.md',
    ...readdirSync(docsRoot, { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
  ].filter((name) => name.endsWith('.md') && !name.includes('reference/diagnostics/'));
  const blocks = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/^```route\n([\s\S]*?)^```/gm)].map(
      (match, index) => [`${file} block ${index + 1}`, match[1] ?? ''] as const,
    ),
  );
  test.each(blocks)('%s', (_name, text) => {
    expect(compile(text).filter((code) => code.startsWith('E'))).toEqual([]);
  });
});

test('example policies compile with the loader that serve uses', () => {
  const loader = createPolicyLoader({ cwd: root, allowPlugins: [] });
  const policies = readdirSync(join(root, 'examples/policies')).filter((name) => name.endsWith('.route'));
  expect(policies.length).toBeGreaterThan(0);
  const findings = policies.flatMap((name) => loader.load(`examples/policies/${name}`).diagnostics);
  expect(findings).toEqual([]);
});
