import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatPolicy } from '../../packages/policy/src/index.ts';
import { signalbox } from '../e2e/support/command.fixture.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const guide = readFileSync(join(root, 'docs/guides/test-a-policy.md'), 'utf8');
const files = [...guide.matchAll(/^```route (\S+)\n([\s\S]*?)^```/gm)].map(([, name = '', text = '']) => ({
  name,
  text,
}));
const sessions = [...guide.matchAll(/^```console\n\$ signalbox (.*)\n([\s\S]*?)^```/gm)].map(
  ([, command = '', shown = '']) => ({ command, shown }),
);

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'signalbox-guide-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the guide to tests', () => {
  test('its policies are in the canonical layout', () => {
    expect(files.length).toBeGreaterThan(2);
    expect(files.map(({ name, text }) => formatPolicy(text, { file: name }).text)).toEqual(
      files.map(({ text }) => text),
    );
  });

  test.each(sessions)('$command', async ({ command, shown }) => {
    // As far as the page has come: each command sees the files written above it.
    const position = guide.indexOf(`$ signalbox ${command}\n`);
    for (const { name, text } of files)
      if (guide.indexOf(`\`\`\`route ${name}\n`) < position) writeFileSync(join(folder, name), text);
    const { code, out, err } = await signalbox(command.split(' '), folder);
    const [whole, cut] = [shown.replace(/…\n$/, ''), shown.endsWith('…\n')];
    expect(cut ? out.slice(0, whole.length) : out).toBe(whole);
    expect([code, err]).toEqual([shown.includes('✗') ? 1 : 0, '']);
  });
});

test('the tests of the example policies pass, and show nearly all of them', async () => {
  const { code, out } = await signalbox(['test', 'examples/policies', '--fail-under', '80'], root);
  expect(out).not.toContain('✗');
  expect(out).toMatch(/\d\d passed/);
  expect(code).toBe(0);
});
