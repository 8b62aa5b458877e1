import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { compile, firstPartyEntries } from './support/policy-bench.fixture.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const readmes = globSync('plugins/*/src/*/README.md', { cwd: root }).sort();
const SECTIONS = ['What it does', 'When to use it', 'When not', 'What it reads', 'Options', 'Example'];

test('every first-party name has a README in its own folder', () => {
  const titles = readmes.map((path) =>
    readFileSync(root + path, 'utf8')
      .split('\n', 1)[0]
      ?.slice(2),
  );
  expect(titles.toSorted()).toEqual(firstPartyEntries.map(({ name }) => name).toSorted());
});

describe.each(readmes)('%s', (path) => {
  const text = readFileSync(root + path, 'utf8');
  const name = text.slice(2, text.indexOf('\n'));
  const entry = firstPartyEntries.find((one) => one.name === name);

  test('has the fixed form', () => {
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title)).toEqual(SECTIONS);
    expect(text).toMatch(/^\*\*Type:\*\* /m);
  });

  test('names what the code reads and every option with its default', () => {
    for (const key of entry?.reads ?? []) expect(text).toContain(`\`${key}\``);
    for (const option of Object.keys(entry?.options?.properties ?? {}))
      expect(text).toMatch(new RegExp(`^\\| \`${option}\` \\|`, 'm'));
  });

  test('its example compiles and uses the name', () => {
    const [, example = ''] = text.match(/```route\n([\s\S]*?)```/) ?? [];
    expect(example).toContain(name);
    expect(() => compile(example)).not.toThrow();
  });
});
