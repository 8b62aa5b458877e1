import { describe, expect, test } from 'vitest';
import { compilePolicy } from '../compile.ts';
import { findAmbiguity } from './regex-ambiguity.ts';
import { parseRegex } from './regex-parser.ts';

const verdict = (source: string, flags = ''): string => {
  const parsed = parseRegex(source, flags);
  if ('problem' in parsed) return 'refused';
  const found = findAmbiguity(parsed.root);
  return found === undefined ? 'fine' : `${found.kind} ${source.slice(found.start, found.end)}`;
};

describe('patterns that can match one text in several ways are refused', () => {
  test.each([
    ['^(a+)+$', 'ambiguous (a+)+'],
    ['(a*)*', 'ambiguous (a*)*'],
    ['(a|a)*b', 'ambiguous (a|a)*'],
    ['(a|aa)+$', 'ambiguous (a|aa)+'],
    ['(\\w+\\s*)+:', 'ambiguous (\\w+\\s*)+'],
    ['(a?b?)*c', 'ambiguous (a?b?)*'],
    ['(foo|bar.*)*x', 'ambiguous (foo|bar.*)*'],
    ['((a+)|b)+c', 'ambiguous ((a+)|b)+'],
    ['(a+b*)+c', 'ambiguous (a+b*)+'],
    ['(?:[a-z]|x)+!', 'ambiguous (?:[a-z]|x)+'],
    ['x(a+)+y', 'ambiguous (a+)+'],
    ['(a{1,20}){1,20}!', 'ambiguous (a{1,20}){1,20}'],
    ['(.*,){20}x', 'ambiguous (.*,){20}'],
  ])('%s', (source, expected) => {
    expect(verdict(source)).toBe(expected);
  });

  test('letters that fold together count as one with the flag i', () => {
    expect(verdict('(a|A)+b')).toBe('fine');
    expect(verdict('(a|A)+b', 'i')).toBe('ambiguous (a|A)+');
  });

  test('a dot meets a line end with the flag s only', () => {
    expect(verdict('(.|\\n)+b')).toBe('fine');
    expect(verdict('(.|\\n)+b', 's')).toBe('ambiguous (.|\\n)+');
  });
});

test.each([
  '\\bstack trace\\b|\\bTypeError\\b',
  'a+b+c+',
  '.*foo.*bar',
  '(ab)+',
  '(a+b)+',
  '(\\d+,)*\\d+',
  '[^"]*"([^"\\\\]|\\\\.)*"',
  '^(?:GET|POST) /v\\d+/',
  '\\d{4}-\\d{2}-\\d{2}',
  '(?<year>\\d+)-x',
  '(a|b)*c',
  '(foo|bar|baz)+',
  '\\u{1F600}+|\\x41|\\cA|[\\b\\d-]',
  '',
])('%s is fine', (source) => {
  expect(verdict(source)).toBe('fine');
});

test.each(['(?=a)b', 'a(?!b)', '(?<=a)b', '(?<!a)b', '(a)\\1', '(?<x>a)\\k<x>'])(
  '%s is refused: look-around or a back-reference',
  (source) => {
    expect(verdict(source)).toBe('refused');
  },
);

test('the check itself ends soon', () => {
  const letters = (from: number, count: number): string =>
    Array.from({ length: count }, (_, index) => `\\u{${(from + index).toString(16)}}`).join('|');
  expect(verdict(`(${letters(0x4e00, 60)})+`)).toBe('fine');
  const start = performance.now();
  expect(verdict(`(${letters(0x4e00, 399)})+`)).toMatch(/^too_large/);
  expect(verdict(`(${Array.from({ length: 399 }, () => '[a-z]').join('|')})+`)).toMatch(/^(ambiguous|too_large)/);
  expect(performance.now() - start).toBeLessThan(5000);
});

test('a huge repetition is refused and not written out', () => {
  expect(verdict('(a{500}b{500}){1,500}')).toMatch(/^too_large/);
});

test('the caret stands on the ambiguous part', () => {
  const text = 'default to any\nreject when prompt matches r"x(a+)+y"';
  const [found] = compilePolicy({ path: 'a.route', text }).diagnostics.filter(({ code }) => code === 'E0330');
  expect(text.slice(found?.span.start, found?.span.end)).toBe('(a+)+');
});
