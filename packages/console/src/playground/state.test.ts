import { expect, test } from 'vitest';
import { withCell } from './state.ts';

test('a cell is written, written over and taken away, and others stay', () => {
  const one = withCell({}, 'a', 'queued_tokens', '9k');
  expect(one).toEqual({ a: { queued_tokens: '9k' } });
  const two = withCell(withCell(one, 'a', 'queued_tokens', '2k'), 'b', 'healthy', 'false');
  expect(two).toEqual({ a: { queued_tokens: '2k' }, b: { healthy: 'false' } });
  expect(withCell(two, 'a', 'queued_tokens', '  ')).toEqual({ b: { healthy: 'false' } });
  expect(one).toEqual({ a: { queued_tokens: '9k' } });
});
