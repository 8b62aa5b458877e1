import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startGateway } from './gateway.ts';

test.each([
  ['define gateway { keys: { env: "KEYS" } }', /`keys` in define gateway would not be enforced/],
  [`define tenant "a" { keys: ["${'ab'.repeat(32)}"] }`, /`keys` of a tenant would not be enforced/],
])('a policy that counts on API keys is refused: %s', async (text, message) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-keys-'));
  try {
    const policyPath = join(folder, 'policy.route');
    writeFileSync(policyPath, `${text}\ndefine tier "a" { model: "m", endpoints: ["http://127.0.0.1:9"] }\ndefault to tier "a"\n`);
    await expect(startGateway({ policyPath, listen: '127.0.0.1:0', admin: '127.0.0.1:0' })).rejects.toThrow(message);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
