import { describe, expect, test } from 'vitest';
import { reservedWords } from '../../packages/policy/src/index.ts';
import { codes, compile, errors, tiers, value } from './support/bench.fixture.ts';

const a = tiers({ a: 1 });
const to = '\ndefault to tier "a"';

describe('characters', () => {
  test('a string has JSON escapes and no raw line break', () => {
    expect(value('"a\\"b\\\\c\\n\\u00e9"')).toBe('a"b\\c\né');
    expect(errors(`${a}default reject with message "a\nb"`)).toContain('E0102');
    expect(errors(`${a}default reject with message "a\\qb"`)).toEqual(['E0103']);
  });

  test('names are ASCII; look-alikes and bidirectional characters are flagged', () => {
    expect(errors(`${a}route when cоmplexity > 5 to tier "a"${to}`)).toEqual(['E0111']);
    expect(errors(`${a}default reject with message "a\u202Eb"`)).toEqual(['E0112']);
    expect(errors(`${a}# a \u202E b${to}`)).toEqual(['E0112']);
    expect(codes(`${a}default reject with message "a\u200Bb"`)).toEqual(['W0518']);
  });

  test('comments reach to the end of the line', () => {
    expect(errors(`${a}# route nowhere\n## doc\ndefault to tier "a" # really`)).toEqual([]);
  });
});

test('the reserved words are these 36', () => {
  expect([...reservedWords].toSorted()).toEqual(
    `language import as use define let group route default admit reject queue test given expect ensure always never when to where by then
    pick with else next and or not in matches contains exists true false`
      .split(/\s+/)
      .toSorted(),
  );
  expect(reservedWords).toHaveLength(36);
});

describe('places', () => {
  test('offsets are right with CRLF, tabs, a BOM, emoji and CJK', () => {
    for (const before of ['', '\uFEFF', '# 😀 漢字\r\n', '\t\t', '\r\n\r\n']) {
      const text = `${before}${a}route when complexty > 5 to tier "a"${to}`;
      const [finding] = compile(text).diagnostics;
      expect(text.slice(finding?.span.start, finding?.span.end), JSON.stringify(before)).toBe('complexty');
    }
  });
});

describe('recovery', () => {
  test('a misspelled statement word after a `with` clause is reported there', () => {
    const text = `${a}route when stream to tier "a" with timeout 5s\ndefualt to tier "a"`;
    const [finding, ...more] = compile(text).diagnostics;
    expect(more).toEqual([]);
    expect(finding?.fix?.edits[0]?.text).toBe('default');
    expect(text.slice(finding?.span.start, finding?.span.end)).toBe('defualt');
  });

  test('a missing `to` stands at the token found instead', () => {
    const text = `${a}route when stream tier "a"${to}`;
    const [finding] = compile(text).diagnostics;
    expect(finding?.code).toBe('E0122');
    expect(text.slice(finding?.span.start, finding?.span.end)).toBe('tier');
  });

  test('an unclosed bracket, a stray one and an empty file do not hide the rest', () => {
    expect(errors(`${a}route when (stream to tier "a"\nroute when tools > 5s to tier "a"${to}`)).toEqual([
      'E0126',
      'E0302',
    ]);
    expect(errors(`${a}}\nroute when tools > 5s to tier "a"${to}`)).toEqual(['E0127', 'E0302']);
    expect(errors('')).toEqual([]);
  });

  test('no message speaks of the parser', () => {
    for (const text of [
      'route',
      'route when',
      'default',
      'to',
      'with',
      'route when stream to',
      'group "x" {',
      'define tier "a" {',
      'let',
      '@',
      '"',
      'r"',
      '1.',
      '..',
      '??',
      'route when a ?? to any',
    ]) {
      for (const { message, help } of compile(text).diagnostics) {
        expect(`${message} ${help ?? ''}`, text).not.toMatch(
          /NoViable|Mismatched|EarlyExit|EOF|Redundant|token|undefined|end of file/i,
        );
      }
    }
  });
});
