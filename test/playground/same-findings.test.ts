import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { createOptionChecker } from '../../packages/config/src/index.ts';
import { createPolicyService } from '../../packages/console/src/playground/policy-service.ts';
import { EMPTY_STATE } from '../../packages/console/src/playground/state.ts';
import { createPolicyLoader } from '../../packages/gateway/src/policy/load-policy.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'signalbox-findings-'));
const check = createOptionChecker();
const service = createPolicyService({ askOptionCheck: async (schema, value) => check(schema, value) });
const loader = createPolicyLoader({ cwd: folder, allowPlugins: [] });
afterAll(() => rmSync(folder, { recursive: true }));

/** What is said of a policy: code, text, place and help of each finding. */
async function inPlayground(policy: string): Promise<unknown> {
  const time = new Date().toISOString().slice(0, 16);
  const { findings } = await service.evaluate({ ...EMPTY_STATE, policy, time });
  return findings.map(({ code, severity, message, help, from, to, fix }) => ({
    code,
    severity,
    message,
    help,
    from,
    to,
    fix: fix?.message,
  }));
}

function onGateway(policy: string): unknown {
  writeFileSync(join(folder, 'policy.route'), policy);
  return loader.load('policy.route').diagnostics.map(({ code, severity, message, help, span, fix }) => ({
    code,
    severity,
    message,
    help,
    from: span.start,
    to: span.end,
    fix: fix?.message,
  }));
}

const examples = readdirSync(join(root, 'examples/policies')).filter((name) => /^[^.]+\.route$/.test(name));
/** Wrong policies that stand on their own: the playground has neither other files nor packages. */
const wrong = readdirSync(join(root, 'test/language/errors'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.txt'))
  .flatMap((name) => {
    const policy = readFileSync(join(root, 'test/language/errors', name), 'utf8').split('\n---\n')[0] ?? '';
    return /\b(?:import|use)\b/.test(policy) ? [] : [[name, policy] as const];
  });

test.each(examples)('%s has the findings in the playground that the gateway has when it loads it', async (name) => {
  const policy = readFileSync(join(root, 'examples/policies', name), 'utf8');
  expect(await inPlayground(policy)).toEqual(onGateway(policy));
});

test('wrong policies have the findings in the playground that the gateway has', async () => {
  expect(wrong.length).toBeGreaterThan(100);
  for (const [name, policy] of wrong) expect([name, await inPlayground(policy)]).toEqual([name, onGateway(policy)]);
});
