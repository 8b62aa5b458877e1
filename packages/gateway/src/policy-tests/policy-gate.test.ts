import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import { createPolicyLoader } from '../policy/load-policy.ts';
import type { LoadedPolicy } from '../policy/load-policy.ts';
import { testPolicy } from './policy-gate.ts';
import type { GateReport } from './policy-gate.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'signalbox-gate-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function load(text: string, files: { readonly [name: string]: string } = {}): LoadedPolicy {
  for (const [name, part] of Object.entries({ ...files, 'policy.route': text }))
    writeFileSync(join(folder, name), part);
  return createPolicyLoader({ cwd: folder, allowPlugins: [] }).load('policy.route');
}

const gate = (loaded: LoadedPolicy, now: () => number = () => 0): Promise<GateReport> =>
  testPolicy(loaded, { plugins: BUILTIN_PLUGINS, colour: false, now });

const good = (name: string): string => `test "${name}" { expect default }\n`;
const bad = (name: string): string => `test "${name}" {\n  expect reject\n}\n`;

test('a policy without tests, or whose tests pass, may be put in force; files of tests beside it do not count', async () => {
  expect(await gate(load('default to tier "a"'))).toEqual({ passed: true, failed: [], text: '' });
  expect((await gate(load(`default to tier "a"\n${good('a')}`))).passed).toBe(true);
  const files = { 'policy.test.route': `import "./policy.route"\n${bad('beside')}` };
  expect((await gate(load(`default to tier "a"\n${good('a')}`, files))).passed).toBe(true);
});

test('every failure is told, with its place, those of imported files too', async () => {
  const report = await gate(
    load(`import "./part.route"\ndefault to tier "a"\n${bad('first')}${good('second')}`, {
      'part.route': bad('third'),
    }),
  );
  expect(report.passed).toBe(false);
  expect(report.failed.map(({ label, file, line, column }) => [label, file, line, column])).toEqual([
    ['third', 'part.route', 1, 1],
    ['first', 'policy.route', 3, 1],
  ]);
  expect(report.text).toContain('2 of 3 tests of the policy failed');
  expect(report.text).toContain('part.route:2:3');
});

test('ensures are not looked at', async () => {
  const report = await gate(load('default to tier "a"\nensure "e" never to tier "a"\n'));
  expect(report.passed).toBe(true);
});

test('tests that take too long are cut off, and the policy is refused', async () => {
  const loaded = load(`default to tier "a"\n${good('a')}${good('b')}${good('c')}`);
  let nowMs = 0;
  const report = await gate(loaded, () => (nowMs += 6000));
  expect(report).toEqual({
    passed: false,
    failed: [],
    text: 'the tests of the policy took longer than 10 s: 1 of 3 were not run\n',
  });
});

test('other work is done between two tests', async () => {
  const loaded = load(`default to tier "a"\n${Array.from({ length: 20 }, (_, n) => good(`t${n}`)).join('')}`);
  let turns = 0;
  let running = true;
  const turn = (): void => {
    turns++;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  await gate(loaded);
  running = false;
  expect(turns).toBeGreaterThanOrEqual(20);
});
