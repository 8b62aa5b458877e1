import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findJsonFault } from './json-fault.ts';

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test('it finds a fault in exactly the texts that JSON.parse refuses, at a place up to which they can be completed', () => {
  const edits = fc.record({
    at: fc.nat(),
    text: fc.constantFrom('', '"', '}', ']', ',', ':', '{', '[', '1', 'x', '\\', '\n'),
  });
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), fc.array(edits, { maxLength: 2 }), (json, changes) => {
      let text = json;
      for (const { at, text: put } of changes) {
        const place = at % (text.length + 1);
        text = text.slice(0, place) + put + text.slice(place + 1);
      }
      const fault = findJsonFault(text);
      expect(fault === undefined).toBe(isJson(text));
      if (fault !== undefined) expect(fault.offset).toBeLessThanOrEqual(text.length);
    }),
    { numRuns: 3000 },
  );
});

test.each([
  ['{ "model": }', 11, 'a value'],
  ['{ "model": "m"', 14, '`,` or `}`'],
  ['{ "a": 1, }', 10, 'a name in quotes'],
  ['[1 2]', 3, '`,` or `]`'],
  ["{ 'a': 1 }", 2, 'a name in quotes'],
  ['{ "a" 1 }', 6, '`:`'],
  ['"line\nbreak"', 5, 'a closing `"`'],
  ['"\\q"', 1, 'an escape that JSON has'],
  ['{} {}', 3, 'the end'],
  ['', 0, 'a value'],
  ['01', 1, 'the end'],
  ['['.repeat(100_000), 201, 'at most 200 levels'],
])('%j', (text, offset, expected) => {
  expect(findJsonFault(text)).toEqual({ offset, expected });
});
