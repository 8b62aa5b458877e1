import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../../packages/gateway/src/gateway.ts';
import { signalbox } from '../../e2e/support/command.fixture.ts';
import { faultBed, oneTier } from '../support/fault-bed.fixture.ts';
import { ANSWER, CHAT, chat, plain } from '../support/wire.fixture.ts';

function policyFile(text: string): { readonly folder: string; readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-faults-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'policy.route');
  writeFileSync(path, text);
  return { folder, path };
}

interface Finding {
  readonly code: string;
  readonly severity: string;
}

const BROKEN = `define tier "a" { model: "m", endpoints: ["http://127.0.0.1:9"] }
route "one" when complexty > 50 to tier "a"
route "two" when user == 3 to tier "b"
route "three" when prompt_tokens > 5 to tier "a" by least_token
default to tier "a"
  with retries 2`;

test('bug-72: a policy with an error ends every command with 1 and starts no server', async () => {
  const { folder, path } = policyFile(BROKEN);
  for (const command of [['check'], ['compile'], ['test'], ['explain']]) {
    const { code } = await signalbox([...command, 'policy.route'], folder);
    expect([command, code === 0]).toEqual([command, false]);
  }
  expect((await signalbox(['check', 'policy.route'], folder)).code).toBe(1);
  await expect(startGateway({ policyPath: path, listen: '127.0.0.1:0', admin: '127.0.0.1:0' })).rejects.toMatchObject({
    code: 'policy_refused',
  });
});

test('bug-73: an unknown signal is an error at its line and column, in the last block too', async () => {
  const { folder } = policyFile(
    `define tier "a" { model: "m", endpoints: ["http://127.0.0.1:9"] }\ndefault to tier "a"\nalert "x" when nosuchsignal > 1`,
  );
  writeFileSync(
    join(folder, 'last.route'),
    `define tier "a" { model: "m", endpoints: ["http://127.0.0.1:9"] }\nroute to tier "a"\ndefault to tier "a" where nosuch > 1`,
  );
  const { code, out, err } = await signalbox(['check', 'last.route'], folder);
  expect(code).toBe(1);
  expect(out + err).toMatch(/last\.route:3:27/);
  expect(out + err).toContain('nosuch');
});

test('bug-74: all independent errors are told in one run, each with its place', async () => {
  const { folder } = policyFile(BROKEN);
  const { out } = await signalbox(['check', '--format', 'json', 'policy.route'], folder);
  const { diagnostics } = JSON.parse(out) as {
    readonly diagnostics: readonly (Finding & { readonly [key: string]: unknown })[];
  };
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const text = JSON.stringify(errors);
  for (const wrong of ['complexty', 'least_token', 'retries']) expect(text).toContain(wrong);
  expect(errors.length).toBeGreaterThanOrEqual(5);
});

test('bug-75: many readers of one body share its parsed view, and what is sent on is untouched', async () => {
  const bed = await faultBed({
    policy: oneTier(
      '',
      `reject "x" when prompt contains "nothing like it" and complexity > 99 and turns > 50 and prompt_tokens > 1M with status 418, message "x"
       route when complexity > 0 and prompt matches r"needle" to tier "tier" by least_tokens with affinity prefix(64)
       default to tier "tier"`,
    ),
  });
  bed.upstream.onRequest = () => plain(ANSWER);
  const sent = JSON.stringify(chat({ messages: [{ role: 'user', content: `needle ${'word '.repeat(2_000)}` }] }));
  expect((await bed.client().post(CHAT, sent).answer()).status).toBe(200);
  expect(bed.upstream.requests[0]?.body).toBe(sent);
});
