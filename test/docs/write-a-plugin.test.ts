import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { signalbox } from '../e2e/support/command.fixture.ts';
import { docsRoot } from './generate.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(docsRoot, 'guides/write-a-plugin.md'), 'utf8');
const blocks = (language: string): readonly string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, text = '']) => text);
const name = 'signalbox-scorer-my-idea';
const folder = mkdtempSync(join(tmpdir(), 'signalbox-plugin-guide-'));
const plugin = join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** `npm test` of the package, which writes the manifest first; the tail of its report in TAP. */
function npmTest(): string {
  const env = { ...process.env, NODE_OPTIONS: '--conditions=@signalbox/source' };
  execFileSync(process.execPath, ['write-manifest.js'], { cwd: plugin, env });
  return execFileSync(process.execPath, ['--test', '--test-reporter', 'tap'], { cwd: plugin, env, encoding: 'utf8' });
}

test('the guide, step by step: the package is as it shows, passes its suite, and a policy decides with it', async () => {
  const [code = '', expression = '', suite = ''] = blocks('js');
  expect(blocks('sh')[0]).toContain(`signalbox plugin new ${name} `);
  expect(await signalbox(['plugin', 'new', name], folder)).toMatchObject({ code: 0 });
  expect(readFileSync(join(plugin, 'index.js'), 'utf8')).toBe(code);
  expect(readFileSync(join(plugin, 'plugin.test.js'), 'utf8')).toBe(suite);
  mkdirSync(join(plugin, 'node_modules/@signalbox'), { recursive: true });
  for (const own of ['plugin-api', 'testkit'])
    symlinkSync(join(root, 'packages', own), join(plugin, 'node_modules/@signalbox', own));
  expect(npmTest()).toMatch(/^# pass 13\n# fail 0$/m);

  const user = join(folder, 'policies');
  mkdirSync(join(user, 'node_modules'), { recursive: true });
  writeFileSync(join(user, 'package.json'), JSON.stringify({ name: 'policies', dependencies: { [name]: '*' } }));
  cpSync(plugin, join(user, 'node_modules', name), { recursive: true });
  const [policy = '', finding = ''] = blocks('text');
  writeFileSync(join(user, 'policy.route'), policy);
  writeFileSync(join(user, 'request.json'), /echo '(.+)' \| signalbox explain/.exec(page)?.[1] ?? '');
  expect(await signalbox(['check', 'policy.route'], user)).toMatchObject({ code: 0 });
  expect((await signalbox(['explain', 'policy.route', 'request.json'], user)).out).toMatch(/^→ 8B\//);

  // The finding on the page is that of the policy with this line alone changed.
  const wrong = /^\d+ \| (.+)$/m.exec(finding)?.[1] ?? '';
  writeFileSync(join(user, 'policy.route'), policy.replace(/^default .+$/m, wrong));
  const checked = await signalbox(['check', 'policy.route'], user);
  expect(checked.code).toBe(1);
  expect(checked.out + checked.err).toContain(finding.trimEnd());

  const definition = code.slice(code.indexOf('      my_idea: {'), code.indexOf('\n      },\n') + '\n      },\n'.length);
  writeFileSync(join(plugin, 'index.js'), code.replace(definition, `      ${expression.trim()},\n`));
  expect(npmTest()).toMatch(/^# pass [1-9]\d*\n# fail 0$/m);
});
