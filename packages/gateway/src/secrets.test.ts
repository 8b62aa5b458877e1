import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { secretResolver } from './secrets.ts';

test('secrets come from the environment, or from a file beside the policy without its last line break', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-secrets-'));
  try {
    writeFileSync(join(folder, 'key'), 'sk-1 2\r\n');
    writeFileSync(join(folder, 'empty'), '\n');
    const resolve = secretResolver(folder, { KEY: 'sk-env', NOTHING: '' });
    expect(resolve({ env: 'KEY' })).toBe('sk-env');
    expect(resolve({ file: 'key' })).toBe('sk-1 2');
    for (const missing of [{ env: 'NOTHING' }, { env: 'ABSENT' }, { file: 'empty' }, { file: 'absent' }])
      expect(resolve(missing)).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
