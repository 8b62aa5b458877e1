import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonFault, JsonScanner } from './json-scanner.ts';

const encoder = new TextEncoder();

/** A scanner over `json` that stands `shift` bytes into a longer buffer, with quotes before and behind it. */
function scannerOf(json: string | Uint8Array, shift = 0): JsonScanner {
  const bytes = typeof json === 'string' ? encoder.encode(json) : json;
  const room = new Uint8Array(shift + bytes.length + 16).fill(0x22);
  room.set(bytes, shift);
  return new JsonScanner(room.subarray(shift), 0, bytes.length, 8);
}

/** What reading the one value in `bytes` fails with; undefined if it is JSON. */
function faultOf(bytes: Uint8Array): JsonFault | undefined {
  const scanner = scannerOf(bytes);
  try {
    scanner.value(0);
    return undefined;
  } catch (fault) {
    if (fault instanceof JsonFault) return fault;
    throw fault;
  }
}

function filled(length: number, byte: number): number[] {
  return Array.from({ length }, () => byte);
}

// Two words are read at once: 24 bytes hold every place in them, the next two words, and the end of the text.
const places = Array.from({ length: 24 }, (_, i) => i);

describe('strings, at every place in the words that are read at once', () => {
  it.each([
    '',
    '\\n',
    '\\"',
    '\\\\',
    '\\u0041',
    '\\ud83d\\ude00',
    '\\ud83d',
    'é',
    '北京',
    '😀',
    '#',
    ']',
    '\u007f',
    '\uffff',
  ])('%j is stepped over and counted as JSON.parse gives it', (piece) => {
    const read: unknown[] = [];
    const expected: unknown[] = [];
    for (const before of places) {
      for (const behind of places) {
        const json = `"${'a'.repeat(before)}${piece}${']'.repeat(behind)}"`;
        const scanner = scannerOf(json, before % 5);
        scanner.string();
        read.push([scanner.pos, scanner.chars, scanner.escaped]);
        expected.push([encoder.encode(json).length, [...(JSON.parse(json) as string)].length, piece.startsWith('\\')]);
      }
    }
    expect(read).toEqual(expected);
  });

  it.each([
    ['a control character', [0x1f], 'a control character inside a string must be escaped'],
    ['NUL', [0x00], 'a control character inside a string must be escaped'],
    ['an unknown escape', [0x5c, 0x78], 'unknown escape in a string'],
    ['a continuation byte', [0x80], 'the text is not valid UTF-8'],
    ['a byte that UTF-8 does not use', [0xff], 'the text is not valid UTF-8'],
    ['a two-byte form of ASCII', [0xc1, 0xbf], 'the text is not valid UTF-8'],
    ['a three-byte form of two bytes', [0xe0, 0x9f, 0xbf], 'the text is not valid UTF-8'],
    ['a surrogate', [0xed, 0xa0, 0x80], 'the text is not valid UTF-8'],
    ['a broken sequence of two', [0xc3, 0x28], 'the text is not valid UTF-8'],
    ['a broken sequence of three', [0xe4, 0xb8, 0x28], 'the text is not valid UTF-8'],
    ['a code point that there is not', [0xf4, 0x90, 0x80, 0x80], 'the text is not valid UTF-8'],
  ])('%s is refused where it stands', (_name, bad, message) => {
    const told: unknown[] = [];
    const expected: unknown[] = [];
    for (const before of places) {
      for (const quotes of places) {
        const fault = faultOf(
          Uint8Array.from([0x22, ...filled(before, 0x61), ...bad, 0x61, 0x61, ...filled(quotes, 0x22)]),
        );
        told.push([fault?.message, fault?.offset]);
        expected.push([message, before + 1]);
      }
    }
    expect(told).toEqual(expected);
  });

  it.each(['', 'é', '北', '\\n', '\\u0041'])('a string that ends in %j without a quote is told at its end', (piece) => {
    for (const before of places) {
      const bytes = encoder.encode(`"${'a'.repeat(before)}${piece}`);
      for (let end = before + 1; end <= bytes.length; end++)
        expect(faultOf(bytes.subarray(0, end))).toMatchObject({ message: 'unexpected end of the text', offset: end });
    }
  });

  it('any mixture is counted as JSON.parse gives it', () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.string({ unit: 'binary', maxLength: 6 }),
      fc.constantFrom('\n\t\t', '"', '\\', 'Привет, ', '北京大学', '😀'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(7), fc.boolean(), (pieces, shift, ascii) => {
        const text = new TextDecoder().decode(encoder.encode(pieces.join('')));
        const json = ascii
          ? JSON.stringify(text).replaceAll(/[^\0-~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
          : JSON.stringify(text);
        const scanner = scannerOf(json, shift);
        scanner.string();
        expect(scanner.chars).toBe([...text].length);
        expect(scanner.pos).toBe(encoder.encode(json).length);
      }),
    );
  });
});

describe('keys', () => {
  /** Whether `role: 1` comes next. */
  function isRole(json: string): boolean {
    const scanner = scannerOf(json);
    try {
      return (scanner.takeKey('role') || scanner.keyIs(scanner.key(), 'role')) && scanner.readNumber(0) === 1;
    } catch (fault) {
      if (fault instanceof JsonFault) return false;
      throw fault;
    }
  }

  it.each(['"role":1', '"role" :1', ' "role": 1', '"\\u0072ole":1', '"r\\u006Fle"\n:1'])('%j is `role`', (json) => {
    expect(isRole(json)).toBe(true);
  });

  it.each(['"rol":1', '"roles":1', '"rule":1', '"role":', '"role"', '"role', '"', '', 'role":1', '"\\u0072oles":1'])(
    '%j is not',
    (json) => {
      expect(isRole(json)).toBe(false);
    },
  );
});

describe('numbers', () => {
  const written = fc.oneof(
    fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }).map(String),
    fc.nat().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: -400, max: 400 })).map(([a, b, e]) => `${a}.${b}e${e}`),
    fc.constantFrom('0', '-0', '999999999999999', '1000000000000000', '9007199254740993', '1E400', '-1E400', '1e-400'),
  );

  it('are what JSON.parse makes of them', () => {
    fc.assert(
      fc.property(written, (json) => {
        expect(scannerOf(json).readNumber(0)).toBe(JSON.parse(json));
      }),
      { numRuns: 1000 },
    );
  });

  it.each(['"1"', 'null', 'true', '[1]', '{"a":1}'])('%s is none', (json) => {
    expect(scannerOf(json).readNumber(0)).toBeNaN();
  });
});
