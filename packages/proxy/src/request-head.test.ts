import { expect, it } from 'vitest';
import { refusalOf } from './failure.ts';
import { readHead } from './request-head.ts';

it('of several deadlines that a caller states the earliest holds, in whatever order they come', () => {
  const holds = (stainlessSeconds: string, deadlineMs: string): readonly number[] => {
    const stainless = ['x-stainless-timeout', stainlessSeconds];
    const deadline = ['x-request-deadline-ms', deadlineMs];
    return [
      [...stainless, ...deadline],
      [...deadline, ...stainless],
    ].map((headers) => readHead(headers, false, () => 0).timeoutMs);
  };
  expect(holds('2', '5000')).toEqual([2000, 2000]);
  expect(holds('9', '5000')).toEqual([5000, 5000]);
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
