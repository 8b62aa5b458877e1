import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { toHundredths } from './hundredths.ts';
import { Utf8Text } from './utf8-text.ts';

const written = (write: (text: Utf8Text) => void): string => {
  const text = new Utf8Text();
  write(text);
  return text.toString();
};

test('any text is written as JSON', () => {
  const unit = fc.constantFrom('grapheme', 'binary', 'binary-ascii');
  fc.assert(
    fc.property(
      unit.chain((of) => fc.string({ unit: of as 'grapheme' })),
      (given) => {
        expect(written((text) => text.addQuoted(given))).toBe(JSON.stringify(given));
      },
    ),
  );
});

test('any finite number is written as JSON, and to hundredths', () => {
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer({ min: -10, max: 2 ** 33 }),
    fc.constantFrom(0, -0, 9, 10, 99, 100, 99_999, 100_000, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32),
    fc.integer({ min: 0, max: 30_000 }).map((value) => value / 100),
  );
  fc.assert(
    fc.property(number, (value) => {
      expect(written((text) => text.addNumber(value))).toBe(JSON.stringify(value));
      expect(written((text) => text.addHundredths(value))).toBe(toHundredths(value));
    }),
    { numRuns: 1000 },
  );
});

test('whole numbers are filled up with zeros', () => {
  for (const value of [0, 7, 12, 999, 1000, 12_345])
    expect(written((text) => text.addPadded(value, 3))).toBe(String(value).padStart(3, '0'));
});

test('pieces of every kind stand one behind another, however many there are', () => {
  const pieces = 20_000;
  const text = new Utf8Text();
  for (let i = 0; i < pieces; i++) {
    text.addAscii('{"a":');
    text.addNumber(i);
    text.addBytes(Buffer.from(',"é":'));
    text.addQuoted('x"ü');
    text.add('}\n');
  }
  const expected = Array.from({ length: pieces }, (_, i) => `{"a":${i},"é":"x\\"ü"}\n`).join('');
  expect(text.toString()).toBe(expected);
  const taken = text.take();
  text.add('next');
  expect(taken.toString()).toBe(expected);
  expect(text.toString()).toBe('next');
});
