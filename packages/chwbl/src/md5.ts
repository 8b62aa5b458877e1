// perf: typed-array reads in the round loop are in range by construction.
import { ChwblError } from './errors.ts';
import { toUtf8 } from './utf8.ts';

/**
 * The MD5 digest (RFC 1321) of the UTF-8 bytes of a string, as 16 bytes. Here for agreement with routers that hash
 * sessions by MD5, not for security.
 */
export function md5(text: string): Uint8Array {
  const message = toUtf8(text);
  const padded = new Uint8Array(((message.length + 8) >>> 6) * 64 + 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, message.length << 3, true);
  view.setUint32(padded.length - 4, Math.floor(message.length / 0x20000000), true);

  let a = 0x67452301;
  let b = 0xefcdab89 | 0;
  let c = 0x98badcfe | 0;
  let d = 0x10325476;
  for (let block = 0; block < padded.length; block += 64) {
    const [a0, b0, c0, d0] = [a, b, c, d];
    for (let step = 0; step < 64; step++) {
      const round = step >> 4;
      let mixed: number;
      let source: number;
      if (round === 0) {
        mixed = (b & c) | (~b & d);
        source = step;
      } else if (round === 1) {
        mixed = (d & b) | (~d & c);
        source = (5 * step + 1) & 15;
      } else if (round === 2) {
        mixed = b ^ c ^ d;
        source = (3 * step + 5) & 15;
      } else {
        mixed = c ^ (b | ~d);
        source = (7 * step) & 15;
      }
      const sum = (a + mixed + SINES[step]! + view.getInt32(block + source * 4, true)) | 0;
      const bits = SHIFTS[round * 4 + (step & 3)]!;
      a = d;
      d = c;
      c = b;
      b = (b + ((sum << bits) | (sum >>> (32 - bits)))) | 0;
    }
    a = (a + a0) | 0;
    b = (b + b0) | 0;
    c = (c + c0) | 0;
    d = (d + d0) | 0;
  }

  const digest = new Uint8Array(16);
  const out = new DataView(digest.buffer);
  out.setInt32(0, a, true);
  out.setInt32(4, b, true);
  out.setInt32(8, c, true);
  out.setInt32(12, d, true);
  return digest;
}

/** The MD5 digest as 32 lower-case hexadecimal digits. */
export function md5Hex(text: string): string {
  let hex = '';
  for (const byte of md5(text)) hex += byte.toString(16).padStart(2, '0');
  return hex;
}

/**
 * `md5(text) mod modulus`: the digest read as one 128-bit big-endian integer — what Python's
 * `int(hashlib.md5(text.encode()).hexdigest(), 16) % modulus` gives. In [0, modulus).
 *
 * This is plain modulo hashing: when the modulus changes, nearly every key moves. It is kept for agreement with routers
 * that do the same; {@link import('./rendezvous.ts').createRendezvous} is the better tool.
 *
 * @param modulus integer in [1, 2^32]
 */
export function md5Modulo(text: string, modulus: number): number {
  if (!Number.isInteger(modulus) || modulus < 1 || modulus > 2 ** 32) {
    throw new ChwblError('ERR_CHWBL_ARGUMENT', `md5Modulo: modulus is ${modulus}; expected an integer from 1 to 2^32`);
  }
  let remainder = 0;
  for (const byte of md5(text)) remainder = (remainder * 256 + byte) % modulus;
  return remainder;
}

const SHIFTS = Uint8Array.of(7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21);

// floor(2^32 * abs(sin(i + 1))), RFC 1321 section 3.4; written out, since Math.sin may differ between engines.
const SINES = Int32Array.of(
  0xd76aa478,
  0xe8c7b756,
  0x242070db,
  0xc1bdceee,
  0xf57c0faf,
  0x4787c62a,
  0xa8304613,
  0xfd469501,
  0x698098d8,
  0x8b44f7af,
  0xffff5bb1,
  0x895cd7be,
  0x6b901122,
  0xfd987193,
  0xa679438e,
  0x49b40821,
  0xf61e2562,
  0xc040b340,
  0x265e5a51,
  0xe9b6c7aa,
  0xd62f105d,
  0x02441453,
  0xd8a1e681,
  0xe7d3fbc8,
  0x21e1cde6,
  0xc33707d6,
  0xf4d50d87,
  0x455a14ed,
  0xa9e3e905,
  0xfcefa3f8,
  0x676f02d9,
  0x8d2a4c8a,
  0xfffa3942,
  0x8771f681,
  0x6d9d6122,
  0xfde5380c,
  0xa4beea44,
  0x4bdecfa9,
  0xf6bb4b60,
  0xbebfbc70,
  0x289b7ec6,
  0xeaa127fa,
  0xd4ef3085,
  0x04881d05,
  0xd9d4d039,
  0xe6db99e5,
  0x1fa27cf8,
  0xc4ac5665,
  0xf4292244,
  0x432aff97,
  0xab9423a7,
  0xfc93a039,
  0x655b59c3,
  0x8f0ccc92,
  0xffeff47d,
  0x85845dd1,
  0x6fa87e4f,
  0xfe2ce6e0,
  0xa3014314,
  0x4e0811a1,
  0xf7537e82,
  0xbd3af235,
  0x2ad7d2bb,
  0xeb86d391,
);
