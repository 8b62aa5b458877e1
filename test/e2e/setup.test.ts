import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

let folder: string;
let bin: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-setup-'));
  bin = join(folder, 'bin');
  mkdirSync(join(folder, '.ci'));
  mkdirSync(bin);
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  copyFileSync(fileURLToPath(new URL('../../.ci/setup.mjs', import.meta.url)), join(folder, '.ci/setup.mjs'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function script(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

function setUp(): { readonly code: number | null; readonly err: string } {
  const { status, stderr } = spawnSync(process.execPath, [join(folder, '.ci/setup.mjs')], {
    encoding: 'utf8',
    env: { PATH: `${bin}:/bin:/usr/bin` },
  });
  return { code: status, err: stderr };
}

test('without npm, set-up says in one line what is missing', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(folder, '.ci/setup.mjs')], {
    encoding: 'utf8',
    env: { PATH: dirname(bin) },
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /^signalbox: could not run npx \(.*\); install npm, which comes with Node\.js, and try again\n$/,
  );
});

test('where the dependencies cannot be installed, set-up says so and stops', () => {
  script(join(bin, 'npx'), 'exit 7');
  expect(setUp()).toEqual({
    code: 1,
    err: 'signalbox: the dependencies could not be installed (exit 7); see the lines above, check that the npm registry can be reached, and try again\n',
  });
});

test('where Node 24 cannot be provided, set-up says in one line what is wrong', () => {
  script(join(bin, 'npx'), 'exit 0');
  const missing = setUp();
  expect(missing.code).toBe(1);
  expect(missing.err).toMatch(
    /^signalbox: Node 24 could not be provided: \S+ is missing; .* install Node 24 by hand .*\n$/,
  );
  script(join(folder, 'node_modules/.bin/node'), 'echo v20.20.2');
  expect(setUp().err).toMatch(/^signalbox: Node 24 could not be provided: \S+ is v20\.20\.2; .*\n$/);
  script(join(folder, 'node_modules/.bin/node'), 'echo v24.21.0');
  expect(setUp()).toEqual({ code: 0, err: '' });
});
