import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const packageRoot = join(import.meta.dirname, '..');

function runModule(code: string, env: NodeJS.ProcessEnv = {}, flags: readonly string[] = []): string {
  const args = [...flags, '--conditions=@signalbox/source', '--input-type=module', '--eval', code];
  return execFileSync(process.execPath, args, { cwd: packageRoot, encoding: 'utf8', env: { ...process.env, ...env } });
}

test('orders and picks are the same in processes of other locale, time zone and hash seed', () => {
  const code = `
    import { createRendezvous, createRing, hashParts, md5Hex } from '@signalbox/chwbl';
    const nodes = Array.from({ length: 40 }, (_, index) => ({ id: 'Gürtel-I-' + index, weight: 1 + (index % 4) / 3 }));
    const out = [];
    for (const placement of [createRendezvous({ nodes }), createRing({ nodes, vnodes: 20 })]) {
      for (let key = 0; key < 60; key++) {
        out.push(placement.order('sitzung-' + key), placement.pick('sitzung-' + key, (id) => id.length + key % 3));
      }
    }
    process.stdout.write(md5Hex(JSON.stringify([out, hashParts(['ı', 'I'])])));
  `;
  const here = runModule(code);
  expect(here).toMatch(/^[0-9a-f]{32}$/);
  expect(runModule(code, { LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8', TZ: 'Asia/Tokyo' }, ['--hash-seed=7'])).toBe(
    here,
  );
  expect(runModule(code, { TZ: 'America/Lima' }, ['--no-opt', '--random-seed=99'])).toBe(here);
});

test('the README’s example runs and prints what the README says', () => {
  const readme = readFileSync(join(packageRoot, 'README.md'), 'utf8');
  const [, example = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
  const [, output = ''] = /```text\n(node [\s\S]*?)```/.exec(readme) ?? [];
  const [, ...lines] = output.split('\n');
  expect(example).toContain("from '@signalbox/chwbl'");
  expect(runModule(example)).toBe(lines.join('\n'));
});
