import { expect, it } from 'vitest';
import { addErrorHeaders } from './client-answer.ts';

const retryAfter = (status: number, seconds?: number): string | undefined => {
  const headers: string[] = [];
  addErrorHeaders(headers, status, seconds);
  const at = headers.indexOf('retry-after');
  return at < 0 ? undefined : headers[at + 1];
};

it('429 and 503 say when to come back, in whole seconds of at least 1; other errors only where somebody said so', () => {
  for (const status of [429, 503]) {
    expect([undefined, 0, 0.2, 1, 1.2, 30].map((seconds) => retryAfter(status, seconds))).toEqual([
      '1',
      '1',
      '1',
      '1',
      '2',
      '30',
    ]);
  }
  expect([400, 404, 500, 502, 504].map((status) => retryAfter(status))).toEqual(Array(5).fill(undefined));
  expect(retryAfter(400, 7)).toBe('7');
});
