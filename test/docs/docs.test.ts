import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createPolicyLoader } from '../../packages/gateway/src/policy/load-policy.ts';
import { compilePolicy, diagnosticCodes, formatPolicy } from '../../packages/policy/src/index.ts';
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

test('example policies and the quickstart are in the canonical layout', () => {
  const paths = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.route') && !name.includes('node_modules'))
    .map((name) => `examples/${name}`);
  const unformatted = [...paths, 'packages/gateway/policies/quickstart.route'].filter((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    return formatPolicy(text, { file: path }).text !== text;
  });
  expect(paths.length).toBeGreaterThan(5);
  expect(unformatted).toEqual([]);
});

/** Pages that people read: the README, everything under docs but generated pages of diagnostics, the READMEs of packages and examples. */
function pages(): string[] {
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(
        (name) => name.endsWith('.md') && !name.includes('node_modules') && !name.includes('reference/diagnostics/'),
      )
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`);
  return ['README.md', 'CONTRIBUTING.md', ...['docs', 'packages', 'plugins', 'examples'].flatMap(below)];
}

test('links between files lead to files and headings that exist', () => {
  const slug = (heading: string): string =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
  const broken = pages().flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)]*))?\)/g)]
      .filter(([, path = '', anchor]) => {
        const target = path === '' ? join(root, page) : join(root, dirname(page), path);
        if (!existsSync(target)) return true;
        if (anchor === undefined) return false;
        const headings = [...readFileSync(target, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
          slug(heading),
        );
        return !headings.includes(anchor);
      })
      .map(([link]) => `${page}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test('TypeScript blocks marked `ts check` are accepted by the compiler', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'));
  try {
    const blocks = pages().flatMap((page) => [
      ...readFileSync(join(root, page), 'utf8').matchAll(/^```ts check\n([\s\S]*?)^```/gm),
    ]);
    expect(blocks.length).toBeGreaterThan(0);
    blocks.forEach(([, text = ''], index) => writeFileSync(join(folder, `block-${index}.mts`), text));
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.json'),
        compilerOptions: {
          typeRoots: [join(root, 'node_modules/@types')],
          isolatedDeclarations: false,
          declaration: false,
          paths: { '@signalbox/*': [join(root, 'packages/*/src/index.ts')] },
        },
        include: ['*.mts'],
      }),
    );
    const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      encoding: 'utf8',
    });
    expect(stdout).toBe('');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
