import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { signalbox } from '../e2e/support/command.fixture.ts';
import type { Bed } from '../e2e/support/gateway.fixture.ts';
import { startBed } from '../e2e/support/gateway.fixture.ts';
import { docsRoot } from './generate.ts';

const page = readFileSync(join(docsRoot, 'guides/change-a-policy.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, text = '']) => text);

let bed: Bed | undefined;
afterEach(() => bed?.stop());

test('the commands of the guide run in the order in which they stand', async () => {
  const [before = '', after = ''] = blocks('route');
  const here = (text: string, [small, large]: readonly string[]): string =>
    text.replace('http://10.0.0.11:8000', small ?? '').replace('http://10.0.0.21:8000', large ?? '');
  const running = (bed = await startBed({ engines: [{}, {}], policy: (urls) => here(before, urls) }));
  writeFileSync(
    running.path('next.route'),
    here(
      after,
      running.engines.map(({ url }) => url),
    ),
  );
  const first = (await states(running))[0];
  const seen: string[] = [];
  for (const line of blocks('sh').join('').trim().split('\n')) {
    const [program, ...args] = line.split(/\s+/);
    expect(program).toBe('signalbox');
    const { code, err, out } = await signalbox([...args, '--admin', running.gateway.adminUrl], running.path('.'));
    expect([line, code, err]).toEqual([line, 0, '']);
    seen.push(`${args[1]}: ${out.split('\n')[0]}`);
  }
  expect(seen.map((text) => text.replaceAll(/[0-9a-f]{12}/g, 'ID').replaceAll(/since \S+Z/g, 'since T'))).toEqual([
    'shadow: ID decides along with ID (generation 1), without effect',
    'shadow: shadow ID on 50.0 % of the requests since T',
    'shadow: the shadow is off',
    'canary: the canary has started: ID beside ID (generation 1)',
    'canary: canary ID for 5.0 % of the requests since T: running',
    'promote: ID (generation 3) is in force',
    'rollback: ID (generation 4) is in force',
    'list: VERSION       GEN  STATE     CAME BY   SINCE                     REQUESTS  DECIDED  FILES',
    'pin: ID (generation 4) is in force, pinned: versions of the policy file are held back',
    'unpin: ID (generation 4) is in force',
  ]);
  expect((await states(running)).find((row) => row.state === 'in_force')?.id).toBe(first?.id);
});

async function states({ gateway }: Bed): Promise<readonly { readonly id: string; readonly state: string }[]> {
  const answer = await fetch(`${gateway.adminUrl}/-/policy/versions`);
  return ((await answer.json()) as { readonly versions: readonly { readonly id: string; readonly state: string }[] })
    .versions;
}
