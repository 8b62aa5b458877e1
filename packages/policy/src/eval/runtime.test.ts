import { describe, expect, test } from 'vitest';
import { clampValue, listOf, memberOf, sameValue, toBool, toDuration, toList, toLower, toNumber } from './runtime.ts';

describe('conversions of what callers send', () => {
  test.each([
    ['5', 5],
    [' -3.5 ', -3.5],
    ['+.5', 0.5],
    ['2.', 2],
    ['1e3', 1000],
    ['', Number.NaN],
    [' ', Number.NaN],
    ['0x10', Number.NaN],
    ['1_000', Number.NaN],
    ['Infinity', Number.NaN],
    ['1e400', Number.NaN],
    ['5 apples', Number.NaN],
    [undefined, Number.NaN],
  ])('number(%j) is %d', (text, expected) => {
    expect(toNumber(text)).toBe(expected);
  });

  test.each([
    ['250', 0.001, 0.25],
    ['2', 60, 120],
    ['-1', 1, Number.NaN],
    ['1e308', 3600, Number.NaN],
    ['soon', 1, Number.NaN],
  ])('duration(%j, %d s) is %d', (text, unit, expected) => {
    expect(toDuration(text, unit)).toBe(expected);
  });

  test.each([
    ['true', true],
    [' TRUE ', true],
    ['1', true],
    ['False', false],
    ['0', false],
    ['yes', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('bool(%j) is %s', (text, expected) => {
    expect(toBool(text)).toBe(expected);
  });

  test('list and lower', () => {
    expect(toList(' a, b,,c ', ',')).toEqual(['a', 'b', 'c']);
    expect(toList('', ',')).toEqual([]);
    expect(toList(undefined, ',')).toBeUndefined();
    expect(toLower('ÄB')).toBe('äb');
    expect(toLower(undefined)).toBeUndefined();
  });
});

test('clamp gives the upper bound where the bounds are reversed', () => {
  expect(clampValue(5, 10, 1)).toBe(1);
  expect(clampValue(Number.NaN, 0, 1)).toBeNaN();
});

test('lists are equal by their members in order', () => {
  expect(sameValue(['a', ['b']], ['a', ['b']])).toBe(true);
  expect(sameValue(['a', 'b'], ['b', 'a'])).toBe(false);
  expect(sameValue([], ['a'])).toBe(false);
  expect(sameValue('1', 1)).toBe(false);
});

test('an unknown member makes a list unknown, and a failed search in it', () => {
  expect(listOf(['a', undefined])).toBeUndefined();
  expect(listOf([1, Number.NaN])).toBeUndefined();
  expect(listOf(['a', 'b'])).toEqual(['a', 'b']);
  expect(memberOf('a', ['a', undefined])).toBe(true);
  expect(memberOf('b', ['a', undefined])).toBeUndefined();
  expect(memberOf(2, [1, Number.NaN])).toBeUndefined();
});
