import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChwblError } from './errors.ts';
import { md5, md5Hex, md5Modulo } from './md5.ts';

describe('MD5', () => {
  test.each([
    ['', 'd41d8cd98f00b204e9800998ecf8427e'],
    ['a', '0cc175b9c0f1b6a831c399e269772661'],
    ['abc', '900150983cd24fb0d6963f7d28e17f72'],
    ['message digest', 'f96b697d7cb7938d525a2f31aaf161d0'],
    ['abcdefghijklmnopqrstuvwxyz', 'c3fcd3d76192e4007dfb496cca67e13b'],
    [
      '12345678901234567890123456789012345678901234567890123456789012345678901234567890',
      '57edf4a22be3c955ac49da2e2107b67a',
    ],
  ])('of %j is the digest that RFC 1321 prints', (text, hex) => {
    expect(md5Hex(text)).toBe(hex);
  });

  test('equals the platform’s own for texts of every length up to 200', () => {
    for (let length = 0; length <= 200; length++) {
      const text = 'ü'.repeat(length >> 3) + 'x'.repeat(length - (length >> 3));
      expect(md5(text)).toEqual(new Uint8Array(createHash('md5').update(text).digest()));
    }
  });
});

describe('worked example 10: md5(id) mod 3 over gpu-0 to gpu-2', () => {
  test.each([
    ['user-123-conv-456', 0],
    ['user-123-conv-456', 0],
    ['user-100', 0],
    ['user-200', 1],
    ['user-300', 0],
  ])('%s goes to gpu-%i', (session, gpu) => {
    expect(md5Modulo(session, 3)).toBe(gpu);
  });

  test('the digest is one big-endian integer', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 2 ** 32 }), (text, modulus) => {
        expect(BigInt(md5Modulo(text, modulus))).toBe(BigInt(`0x${md5Hex(text)}`) % BigInt(modulus));
      }),
    );
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 33])('a modulus of %d is refused', (modulus) => {
    expect(() => md5Modulo('x', modulus)).toThrow(ChwblError);
  });
});
