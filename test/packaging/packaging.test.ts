import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const node = join(root, 'node_modules/.bin/node');
const packages = ['packages', 'plugins'].flatMap((parent) =>
  readdirSync(join(root, parent))
    .filter((name) => existsSync(join(root, parent, name, 'package.json')))
    .map((name) => join(root, parent, name)),
);

let work: string;
let tarballs: string;
let empty: string;

function run(file: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(file, args, {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${file} ${args.join(' ')} in ${cwd}\n${stdout}\n${stderr}`, { cause: error });
  }
}

function nameOf(directory: string): string {
  return (JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { name: string }).name;
}

function tarballOf(name: string): string {
  const prefix = `${name.replace('@', '').replace('/', '-')}-`;
  const file = readdirSync(tarballs).find(
    (tarball) => tarball.startsWith(prefix) && /^\d/.test(tarball.slice(prefix.length)),
  );
  if (file === undefined) throw new Error(`${name} was not packed`);
  return join(tarballs, file);
}

/** The packed third-party plugin and every package of ours, installed by npm into a folder that knows nothing of this repository. */
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'signalbox-packaging-'));
  tarballs = join(work, 'tarballs');
  empty = join(work, 'empty');
  mkdirSync(tarballs);
  mkdirSync(empty);
  const npx = [
    '--yes',
    'pnpm@10.34.9',
    '-r',
    '--filter',
    '!signalbox-workspace',
    '--filter',
    '!signalbox-vscode',
    'exec',
    'pnpm',
    'pack',
    '--pack-destination',
    tarballs,
  ];
  run('npx', npx, root);
  const third = join(work, 'third-party-scorer');
  cpSync(join(root, 'examples/third-party-scorer'), third, {
    recursive: true,
    filter: (source) => !source.includes('node_modules'),
  });
  const ours = readdirSync(tarballs).map((name) => join(tarballs, name));
  const contract = ours.filter((path) => /signalbox-(plugin-api|testkit)-\d/.test(path));
  expect(contract).toHaveLength(2);
  run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', '--no-save', ...contract], third);
  run(
    'npm',
    [
      'install',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--no-save',
      'typescript@7.0.2',
      '@types/node@24.19.4',
      ...contract,
    ],
    third,
  );
  run('npm', ['run', 'build', '--if-present'], third);
  run('npm', ['pack', '--pack-destination', tarballs], third);
  writeFileSync(join(empty, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }));
  run(
    'npm',
    ['install', '--no-audit', '--no-fund', ...readdirSync(tarballs).map((name) => join(tarballs, name))],
    empty,
  );
});

afterAll(() => {
  rmSync(work, { recursive: true, force: true });
});

describe('every package', () => {
  test.each(packages.map(nameOf))('%s follows the rules of publishing', (name) => {
    run(node, [join(root, 'node_modules/publint/src/cli.js'), '--strict', tarballOf(name)], root);
  });

  test('exports what the snapshot says, and nothing else', () => {
    const script = `
      const names = ${JSON.stringify(packages.map(nameOf).filter((name) => !name.endsWith('/gateway')))};
      const all = {};
      for (const name of names) all[name] = Object.keys(await import(name)).sort();
      console.log(JSON.stringify(all));`;
    const exported = JSON.parse(run(node, ['--input-type=module', '-e', script], empty)) as {
      [name: string]: string[];
    };
    expect(Object.keys(exported).length).toBeGreaterThan(12);
    const snapshot = join(root, 'test/packaging/exports.json');
    if (process.env['SIGNALBOX_UPDATE'] === '1') writeFileSync(snapshot, `${JSON.stringify(exported, null, 2)}\n`);
    expect(exported).toEqual(JSON.parse(readFileSync(snapshot, 'utf8')));
  });

  test('has types that resolve for importers of every module system that it supports', () => {
    for (const name of readdirSync(tarballs).filter((file) => !/gateway|third|least-grams/.test(file))) {
      run(
        node,
        [join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js'), '--profile', 'esm-only', join(tarballs, name)],
        root,
      );
    }
  });
});

describe('the installed command', () => {
  const signalbox = (...args: string[]): string =>
    run(node, [join(empty, 'node_modules/.bin/signalbox'), ...args], empty);

  test('tells its version and help', () => {
    expect(signalbox('--version')).toMatch(/^signalbox \d+\.\d+\.\d+\n$/);
    expect(signalbox('--help')).toContain('signalbox serve FILE');
  });

  test('checks a policy', () => {
    writeFileSync(
      join(empty, 'one.route'),
      'route when complexity > 50 to tier "70B" by least_tokens with affinity session\n',
    );
    signalbox('check', 'one.route');
    writeFileSync(join(empty, 'two.route'), 'default to tier "8B" by least_token\n');
    expect(() => signalbox('check', 'two.route')).toThrow(/least_tokens/);
  });

  test('loads a third-party scorer from its own package, and decides with it', () => {
    const example = join(empty, 'node_modules/signalbox-scorer-least-grams/policy.route');
    cpSync(example, join(empty, 'policy.route'));
    signalbox('check', 'policy.route');
    writeFileSync(
      join(empty, 'request.json'),
      JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'hello' }] }),
    );
    const explained = JSON.parse(
      signalbox('explain', 'policy.route', 'request.json', '--json', '--allow-plugin', 'signalbox-scorer-least-grams'),
    ) as object;
    expect(JSON.stringify(explained)).toContain('least_grams');
  });
});

test('the installed command serves the playground, with each file under its own content security policy', async () => {
  writeFileSync(
    join(empty, 'served.route'),
    'define tier "8B" { model: "m", endpoints: ["http://127.0.0.1:9"] }\ndefault to tier "8B" by least_tokens\n',
  );
  // The bare command, not the shell script before it: a signal has to reach it.
  const command = join(empty, 'node_modules/@signalbox/gateway/dist/main.js');
  const args = [command, 'serve', 'served.route', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
  const gateway = spawn(process.execPath, args, { cwd: empty, env: { ...process.env, NODE_OPTIONS: '' } });
  try {
    const admin = await new Promise<string>((resolve, reject) => {
      let output = '';
      const read = (chunk: Buffer): void => {
        output += chunk.toString();
        const found = /"admin":"([^"]+)"/.exec(output)?.[1];
        if (found !== undefined) resolve(found);
      };
      gateway.stdout.on('data', read);
      gateway.stderr.on('data', read);
      gateway.on('exit', () => reject(new Error(`the gateway ended: ${output}`)));
    });
    const page = await fetch(`${admin}/playground/`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).not.toContain('unsafe');
    const html = await page.text();
    const script = /src="(main-[^"]+\.js)"/.exec(html)?.[1];
    const bundle = await fetch(`${admin}/playground/${script}`);
    expect(bundle.headers.get('cache-control')).toContain('immutable');
    const worker = /policy-worker-\w+\.js/.exec(await bundle.text())?.[0];
    const options = /option-worker-\w+\.js/.exec(await (await fetch(`${admin}/playground/${worker}`)).text())?.[0];
    const checker = await fetch(`${admin}/playground/${options}`);
    expect(checker.status).toBe(200);
    expect(checker.headers.get('content-security-policy')).toBe("default-src 'none'; script-src 'unsafe-eval'");
  } finally {
    gateway.kill('SIGKILL');
  }
});

describe('plugin new', () => {
  test.each([
    ['scorer', 'function', 5],
    ['scorer', 'expression', 2],
    ['filter', 'function', 5],
    ['filter', 'expression', 2],
    ['property', 'function', 5],
    ['property', 'expression', 2],
    ['picker', 'function', 5],
    ['signal', 'function', 5],
    ['admission', 'function', 5],
  ] as const)('a new %s as %s passes its contract suite, and a policy decides with it', (kind, form, checks) => {
    const name = `signalbox-${kind}-my-${form}`;
    run(
      node,
      [
        join(empty, 'node_modules/.bin/signalbox'),
        'plugin',
        'new',
        name,
        '--kind',
        kind,
        ...(form === 'expression' ? ['--expression'] : []),
      ],
      work,
    );
    const directory = join(work, name);
    run(
      'npm',
      [
        'install',
        '--no-audit',
        '--no-fund',
        '--no-package-lock',
        tarballOf('@signalbox/plugin-api'),
        tarballOf('@signalbox/testkit'),
      ],
      directory,
    );
    const tested = run(node, ['--test', '--test-reporter', 'tap'], directoryWithManifest(directory));
    expect(Number(/^# pass (\d+)$/m.exec(tested)?.[1])).toBeGreaterThanOrEqual(checks);
    expect(tested).toMatch(/^# fail 0$/m);
    const user = join(work, `user-of-${kind}-${form}`);
    mkdirSync(join(user, 'node_modules'), { recursive: true });
    writeFileSync(
      join(user, 'package.json'),
      JSON.stringify({ name: 'user', private: true, type: 'module', dependencies: { [name]: '*' } }),
    );
    cpSync(directory, join(user, 'node_modules', name), { recursive: true });
    cpSync(join(directory, 'policy.route'), join(user, 'policy.route'));
    writeFileSync(
      join(user, 'request.json'),
      JSON.stringify({ model: 'llama-3.1-8b', messages: [{ role: 'user', content: 'wow!!!! such wow!' }] }),
    );
    const explained = run(
      node,
      [join(empty, 'node_modules/.bin/signalbox'), 'explain', 'policy.route', 'request.json'],
      user,
    );
    expect(explained).toMatch(/^→ 8B\//);
  });
});

function directoryWithManifest(directory: string): string {
  run(node, ['write-manifest.js'], directory);
  return directory;
}

test('the third-party scorer passes the contract suite from its packed tarball, with no Signalbox but plugin-api and testkit', () => {
  const alone = join(work, 'alone');
  mkdirSync(alone);
  writeFileSync(join(alone, 'package.json'), JSON.stringify({ name: 'alone', private: true, type: 'module' }));
  const wanted = readdirSync(tarballs).filter((name) =>
    /signalbox-(plugin-api|testkit|scorer-least-grams)-\d/.test(name),
  );
  expect(wanted).toHaveLength(3);
  run('npm', ['install', '--no-audit', '--no-fund', ...wanted.map((name) => join(tarballs, name))], alone);
  writeFileSync(
    join(alone, 'contract.mjs'),
    `import plugin from 'signalbox-scorer-least-grams';
     import { scorerContract } from '@signalbox/testkit';
     const checks = scorerContract(plugin, 'least_grams');
     for (const check of checks) await check.run();
     console.log(checks.length);`,
  );
  expect(Number(run(node, ['contract.mjs'], alone))).toBeGreaterThanOrEqual(8);
});
