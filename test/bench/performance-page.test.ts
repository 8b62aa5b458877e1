import { expect, test } from 'vitest';
import { replaceBlocks } from './performance-page.ts';

const page = 'a\n<!-- bench:one -->\nold\n<!-- /bench:one -->\nb\n<!-- bench:others -->\nc\n';

test('a block is replaced in its place, as often as wanted', () => {
  const once = replaceBlocks(page, [{ name: 'one', text: 'new' }]);
  expect(once).toBe(page.replace('old', 'new'));
  expect(replaceBlocks(once, [{ name: 'one', text: 'new' }])).toBe(once);
});

test('a block without a place goes before the mark for others, and has a place from then on', () => {
  const once = replaceBlocks(page, [{ name: 'two', text: 'x' }]);
  expect(once).toContain('b\n<!-- bench:two -->\nx\n<!-- /bench:two -->\n\n<!-- bench:others -->\nc');
  expect(replaceBlocks(once, [{ name: 'two', text: 'y' }])).toBe(once.replace('\nx\n', '\ny\n'));
});

test('a page that has lost its marks is an error that names them', () => {
  expect(() => replaceBlocks('empty', [{ name: 'two', text: 'x' }])).toThrow('bench:others');
  expect(() => replaceBlocks('<!-- bench:one -->', [{ name: 'one', text: 'x' }])).toThrow('<!-- /bench:one -->');
});
