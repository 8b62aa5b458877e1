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

it('a deadline that has passed is one, of whatever form; one that is no number is told apart from none', () => {
  const read = (...headers: string[]): unknown => {
    const { timeoutMs, deadlineUnreadable } = readHead(headers, false, () => 1_700_000_000_000);
    return deadlineUnreadable ? 'unreadable' : timeoutMs;
  };
  for (const [value, timeoutMs] of [
    ['0', 0],
    ['-250', -250],
    ['+1.5', 1.5],
    ['1700000000000', 0],
    ['1699999999000', -1000],
    ['1700000002000', 2000],
  ] as const)
    expect([value, read('x-request-deadline-ms', value)]).toEqual([value, timeoutMs]);
  for (const value of ['', 'soon', '5s', '0x10', '1e3', 'NaN', 'Infinity', '1,2', '--1', '.'])
    expect([value, read('x-request-deadline-ms', value)]).toEqual([value, 'unreadable']);
  expect(read('x-request-deadline-ms', '0', 'x-stainless-timeout', '600')).toBe(0);
  // The OpenAI clients cut what is under a second to 0.
  for (const value of ['0', '-1', '', 'NOT_GIVEN']) expect(read('x-stainless-timeout', value)).toBeNaN();
  expect(read()).toBeNaN();
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
