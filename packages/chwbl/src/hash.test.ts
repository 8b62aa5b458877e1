import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { frame, hashBytes, hashParts, hashString, murmur128 } from './hash.ts';
import { toUtf8 } from './utf8.ts';

describe('the hash', () => {
  test('passes the verification that SMHasher publishes for MurmurHash3_x86_128', () => {
    const digests = new Uint8Array(256 * 16);
    const digest = new Uint32Array(4);
    for (let length = 0; length < 256; length++) {
      murmur128(
        Uint8Array.from({ length }, (_, index) => index),
        256 - length,
        digest,
      );
      digests.set(new Uint8Array(digest.buffer), length * 16);
    }
    murmur128(digests, 0, digest);
    expect((digest[0] ?? 0).toString(16)).toBe('b3ece62a');
  });

  test('halves are unsigned 32-bit integers and a string hashes as its UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), (text, seed) => {
        const hash = hashString(text, seed);
        expect(hash).toEqual(hashBytes(new TextEncoder().encode(text), seed));
        for (const half of [hash.hi, hash.lo]) expect(half).toBe(half >>> 0);
      }),
    );
  });

  test('does not read bytes outside a view', () => {
    const bytes = Uint8Array.from({ length: 64 }, (_, index) => index);
    for (let length = 0; length <= 33; length++) {
      expect(hashBytes(bytes.subarray(7, 7 + length))).toEqual(hashBytes(bytes.slice(7, 7 + length)));
    }
  });

  test('flipping any one bit of the input flips each bit of the hash about half the time', () => {
    const flips = new Float64Array(64);
    let trials = 0;
    for (let key = 0; key < 200; key++) {
      const bytes = toUtf8(`session-${key}`);
      const { hi, lo } = hashBytes(bytes);
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = bytes.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
        const other = hashBytes(flipped);
        for (let at = 0; at < 32; at++) {
          flips[at] = (flips[at] ?? 0) + (((hi ^ other.hi) >>> at) & 1);
          flips[32 + at] = (flips[32 + at] ?? 0) + (((lo ^ other.lo) >>> at) & 1);
        }
        trials++;
      }
    }
    const margin = 5 * Math.sqrt(0.25 / trials);
    for (const count of flips) expect(Math.abs(count / trials - 0.5)).toBeLessThan(margin);
  });

  test('strings that differ in a lone surrogate hash apart', () => {
    expect(toUtf8('\ud800')).not.toEqual(toUtf8('\ufffd'));
    expect(hashString('a\ud800')).not.toEqual(hashString('a\ud801'));
    expect(hashString('\ud83d\udea6')).toEqual(hashBytes(Uint8Array.of(0xf0, 0x9f, 0x9a, 0xa6)));
  });
});

describe('bug-53: framed lists', () => {
  test.each([
    [['m-1', '1'], ['m-11']],
    [
      ['m-1', '1'],
      ['m-11', ''],
    ],
    [
      ['a', 'bc'],
      ['ab', 'c'],
    ],
    [[], ['']],
    [[''], ['', '']],
    [['1:a'], ['a']],
  ])('%j and %j stay apart', (one, other) => {
    expect(frame(one)).not.toBe(frame(other));
    expect(hashParts(one)).not.toEqual(hashParts(other));
  });

  test('different lists never give the same string, whatever is in them', () => {
    const part = fc.string({ unit: fc.constantFrom('0', '1', '2', ':', 'a', '-'), maxLength: 12 });
    const list = fc.array(part, { maxLength: 4 });
    fc.assert(
      fc.property(list, list, (one, other) => {
        expect(frame(one) === frame(other)).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });

  test('a frame can be read back', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (parts) => {
        let rest = frame(parts);
        const read: string[] = [];
        while (rest !== '') {
          const start = rest.indexOf(':') + 1;
          const end = start + Number(rest.slice(0, start - 1));
          read.push(rest.slice(start, end));
          rest = rest.slice(end);
        }
        expect(read).toEqual(parts);
      }),
    );
  });
});
