import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { connectionLimit, openFileLimit } from './connection-limit.ts';

test('each connection has room for itself and for one to an endpoint', () => {
  expect(connectionLimit(1024)).toBe(384);
  expect(connectionLimit(20_000)).toBe(9872);
  expect(connectionLimit(100)).toBe(1);
  expect(connectionLimit(undefined)).toBe(Number.POSITIVE_INFINITY);
});

// Windows has neither such a limit nor a shell to ask.
test.skipIf(process.platform === 'win32')('the limit on open files is that of the system', () => {
  const asked = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim();
  expect(openFileLimit()).toBe(asked === 'unlimited' ? undefined : Number(asked));
});
