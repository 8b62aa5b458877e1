// Installs the workspace and makes sure that Node 24 runs it. Written for any Node from 14 on: it is the machine's own Node that starts it.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PNPM = 'pnpm@10.34.9';
const root = fileURLToPath(new URL('..', import.meta.url));
const windows = process.platform === 'win32';

function fail(what) {
  process.stderr.write(`signalbox: ${what}\n`);
  process.exit(1);
}

const install = spawnSync(
  'npx',
  [
    '--yes',
    PNPM,
    'install',
    '--frozen-lockfile',
    '--prefer-offline',
    '--reporter=append-only',
    '--config.confirm-modules-purge=false',
  ],
  {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: windows,
  },
);
if (install.error)
  fail(`could not run npx (${install.error.message}); install npm, which comes with Node.js, and try again`);
if (install.status !== 0)
  fail(
    `the dependencies could not be installed (exit ${install.status}); see the lines above, check that the npm registry can be reached, and try again`,
  );

const node = fileURLToPath(new URL(`../node_modules/.bin/node${windows ? '.cmd' : ''}`, import.meta.url));
const version = existsSync(node)
  ? spawnSync(node, ['--version'], { encoding: 'utf8', shell: windows }).stdout || ''
  : '';
if (!/^v(2[4-9]|[3-9]\d)\./.test(version.trim())) {
  fail(
    `Node 24 could not be provided: ${node} ${version ? `is ${version.trim()}` : 'is missing'}; the npm package "node" has no binary for ${process.platform}-${process.arch} here, so install Node 24 by hand and run the command with it`,
  );
}
