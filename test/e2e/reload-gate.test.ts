import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { PolicyRefused } from '../../packages/gateway/src/gateway.ts';
import { signalbox } from './support/command.fixture.ts';
import type { Bed } from './support/gateway.fixture.ts';
import { eventually, startBed } from './support/gateway.fixture.ts';

let bed: Bed | undefined;
afterEach(async () => {
  await bed?.stop();
  bed = undefined;
});

const policy = (url: string | undefined, expected: string): string => `define gateway { models: ["auto"] }
define tier "a" { model: "sim", endpoints: ["${url ?? 'http://127.0.0.1:9'}"] }
route "hard" when complexity > 50 to tier "a"
default to tier "a" by least_tokens

test "an easy prompt" {
  given complexity = 10
  expect ${expected}
}
`;

const started = async (expected: string): Promise<Bed> =>
  (bed = await startBed({ engines: [{}], policy: ([url]) => policy(url, expected) }));

const metric = async (gateway: Bed['gateway'], name: string): Promise<number> => {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(new RegExp(`^\\S*${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
};

test('a policy whose tests fail is not started with, and the text says which and why', async () => {
  const refused: unknown = await started('route "hard"').catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(PolicyRefused);
  const { text } = refused as PolicyRefused;
  expect(text).toContain('✗ an easy prompt');
  expect(text).toMatch(/policy\.route:8:3/);
  expect(text).toContain('expected  route "hard"');
  expect(text).toContain('actual    default "default" to endpoint "a/1" of tier "a"');
  expect(text).toContain('false   complexity > 50   (complexity = 10)');
  expect(text).toContain('1 of 1 tests of the policy failed');
});

test('an edit whose tests fail leaves the last good version in force, and log, metric and answer say so', async () => {
  const { gateway, writePolicy, engines, reloads } = await started('default');
  const before = await metric(gateway, 'config_reload_failures_total');
  const inForce = await (await fetch(`${gateway.adminUrl}/-/policy`)).json();
  writePolicy(policy(engines[0]?.url, 'route "hard"'));
  await eventually(() => reloads.length === 1, 'the edit is seen');
  expect(reloads[0]).toMatchObject({
    ok: false,
    changed: false,
    failedTests: [
      {
        label: 'an easy prompt',
        file: expect.stringMatching(/policy\.route$/),
        line: 6,
        column: 1,
        unmet: [{ expected: 'route "hard"', actual: 'default "default" to endpoint "a/1" of tier "a"' }],
      },
    ],
  });
  expect(await metric(gateway, 'config_reload_failures_total')).toBe(before + 1);

  const answer = await fetch(`${gateway.adminUrl}/-/reload`, { method: 'POST' });
  expect(answer.ok).toBe(false);
  expect(await answer.json()).toMatchObject({ ok: false, failedTests: [{ label: 'an easy prompt' }] });
  expect(await metric(gateway, 'config_reload_failures_total')).toBe(before + 2);
  expect(await (await fetch(`${gateway.adminUrl}/-/policy`)).json()).toMatchObject({
    policy: (inForce as { policy: string }).policy,
    lastReload: { ok: false, text: expect.stringContaining('✗ an easy prompt') },
  });

  writePolicy(policy(engines[0]?.url, 'not route "hard"'));
  await eventually(() => reloads.length === 3, 'the remedy is seen');
  expect(reloads[2]).toMatchObject({ ok: true, changed: true, failedTests: [] });
});

test('serve ends with exit code 1 and the same text', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-gate-'));
  try {
    writeFileSync(join(folder, 'policy.route'), policy(undefined, 'route "hard"'));
    const { code, err } = await signalbox(
      ['serve', 'policy.route', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
      folder,
    );
    expect(code).toBe(1);
    expect(err).toContain('✗ an easy prompt');
    expect(err).toContain('1 of 1 tests of the policy failed');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
