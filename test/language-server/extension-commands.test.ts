import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  explainCommand,
  modelFor,
  requestOf,
  serverCommand,
  testCommand,
} from '../../editors/vscode/src/command-line.ts';
import type { CommandLine, CommandSettings } from '../../editors/vscode/src/command-line.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const settings: CommandSettings = {
  command: [
    join(root, 'node_modules/node/bin/node'),
    '--conditions=@signalbox/source',
    join(root, 'packages/gateway/src/main.ts'),
  ],
  allowPlugins: [],
};

const POLICY = `define tier "8B" { model: "llama-3.1-8b", endpoints: ["http://10.0.0.11:8000"] }
define tier "70B" { model: "llama-3.1-70b", endpoints: ["http://10.0.0.21:8000"] }

route "long" when prompt_tokens > 100 to tier "70B"
default to tier "8B"

test "a long prompt goes up" {
  given prompt_tokens = 500
  expect route "long"
}

test "a short prompt stays" {
  given prompt_tokens = 5
  expect route "long"
}
`;

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-extension-'));
  file = join(folder, 'policy.route');
  writeFileSync(file, POLICY);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = ({ program, args }: CommandLine, input = ''): { readonly code: number | null; readonly text: string } => {
  const { status, stdout, stderr } = spawnSync(program, [...args], {
    cwd: folder,
    input,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  return { code: status, text: stdout + stderr };
};

describe('what the extension runs', () => {
  test('the test of a code lens is the one that runs', () => {
    const passed = run(testCommand(settings, file, 'a long prompt goes up'));
    expect(passed.code, passed.text).toBe(0);
    expect(passed.text).toContain('a long prompt goes up');
    expect(passed.text).not.toContain('a short prompt stays');
  });

  test('without a label all tests of the file run, and a failure shows', () => {
    const failed = run(testCommand(settings, file, null));
    expect(failed.code).toBe(1);
    expect(failed.text).toContain('a short prompt stays');
  });

  test('a prompt that is typed is explained', () => {
    const short = run(explainCommand(settings, file), requestOf('Is Paris in France?', modelFor(POLICY)));
    expect(short.code, short.text).toBe(0);
    expect(short.text).toContain('default');
    const long = run(explainCommand(settings, file), requestOf('word '.repeat(400), modelFor(POLICY)));
    expect(long.text).toContain('"long"');
  });

  test('a request that is typed as JSON is taken as it stands', () => {
    const request = '{ "model": "auto", "messages": [] }';
    expect(requestOf(request, 'm')).toBe(request);
    expect(JSON.parse(requestOf('{ not json', 'm'))).toMatchObject({
      model: 'm',
      messages: [{ role: 'user', content: '{ not json' }],
    });
    expect(JSON.parse(requestOf('7', 'm'))).toMatchObject({ messages: [{ content: '7' }] });
  });

  test('a typed prompt names a model that the policy knows', () => {
    expect(modelFor('define gateway { models: ["auto", "b"] }\ndefine tier "x" { model: "m" }')).toBe('auto');
    expect(modelFor(POLICY)).toBe('llama-3.1-8b');
    expect(modelFor('default reject')).toBe('auto');
  });

  test('packages that are allowed go with every command', () => {
    const allowing = { command: ['npx', 'signalbox'], allowPlugins: ['@acme/carbon'] };
    expect(serverCommand(allowing)).toEqual({
      program: 'npx',
      args: ['signalbox', 'lsp', '--stdio', '--allow-plugin', '@acme/carbon'],
    });
  });
});
