import { expect, it } from 'vitest';
import { refusalOf } from './failure.ts';
import { readHead } from './request-head.ts';

it('of several deadlines that a caller states the earliest holds, in whatever order they come', () => {
  const early = ['x-stainless-timeout', '2'];
  const late = ['x-request-deadline-ms', '5000'];
  for (const headers of [
    [...early, ...late],
    [...late, ...early],
  ])
    expect(readHead(headers, false, () => 0).timeoutMs).toBe(2000);
});

it('the code of an engine’s error is told only where it is a plain name; its words never are', () => {
  const refusal = {
    kind: 'refuse',
    status: 502,
    code: 'upstream_error',
    message: 'ours',
    retryAfterSeconds: 3,
  } as const;
  const told = (code: string): string => refusalOf(refusal, { status: 400, code, type: 'words' }).code;
  expect(['tool_use_failed', 'Two words', 'a"b', '', 'x'.repeat(65)].map((code) => told(code))).toEqual([
    'tool_use_failed',
    'upstream_error',
    'upstream_error',
    'upstream_error',
    'upstream_error',
  ]);
});
