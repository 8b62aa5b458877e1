// perf: one hash per request and one per node; 32-bit arithmetic only, since BigInt costs some 50 times as much.
import { toUtf8 } from './utf8.ts';

/** A 64-bit hash as two unsigned 32-bit halves, each an integer in [0, 2^32). */
export interface Hash64 {
  readonly hi: number;
  readonly lo: number;
}

/**
 * The 64-bit hash of a string: its UTF-8 bytes through {@link hashBytes}. The same in every process, engine and machine.
 * Not for secrets: whoever can choose keys can make them collide.
 *
 * @param seed integer in [0, 2^32); another seed is another, independent hash.
 */
export function hashString(text: string, seed: number = 0): Hash64 {
  return hashBytes(toUtf8(text), seed);
}

/**
 * The 64-bit hash of bytes: the first eight bytes (little-endian) of MurmurHash3_x86_128 by Austin Appleby (public domain,
 * https://github.com/aappleby/smhasher), which needs 32-bit multiplication alone.
 */
export function hashBytes(bytes: Uint8Array, seed: number = 0): Hash64 {
  const digest = new Uint32Array(4);
  murmur128(bytes, seed, digest);
  return { hi: digest[1]!, lo: digest[0]! };
}

/**
 * Several strings as one, so that different lists never give the same string: each part goes in as
 * `<length in UTF-16 units>:<part>`. `frame(['m-1', '1'])` is `3:m-11:1`, `frame(['m-11'])` is `4:m-11`.
 */
export function frame(parts: readonly string[]): string {
  let framed = '';
  for (const part of parts) framed += `${part.length}:${part}`;
  return framed;
}

/** The 64-bit hash of a list of strings, told apart from every other list (see {@link frame}). */
export function hashParts(parts: readonly string[], seed: number = 0): Hash64 {
  return hashString(frame(parts), seed);
}

/** The final mix of MurmurHash3: a permutation of 32-bit integers in which every bit of the input reaches every bit. */
export function mix32(value: number): number {
  let x = value;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}

/** The whole 128-bit digest, written to `out` (length 4, in the order h1 to h4 of the reference). */
export function murmur128(bytes: Uint8Array, seed: number, out: Uint32Array): void {
  const length = bytes.length;
  const blocksEnd = length - (length % 16);
  let h1 = seed | 0;
  let h2 = seed | 0;
  let h3 = seed | 0;
  let h4 = seed | 0;

  for (let at = 0; at < blocksEnd; at += 16) {
    h1 ^= scramble(word(bytes, at), 0x239b961b, 15, 0xab0e9789);
    h1 = (Math.imul(rotate(h1, 19) + h2, 5) + 0x561ccd1b) | 0;
    h2 ^= scramble(word(bytes, at + 4), 0xab0e9789, 16, 0x38b34ae5);
    h2 = (Math.imul(rotate(h2, 17) + h3, 5) + 0x0bcaa747) | 0;
    h3 ^= scramble(word(bytes, at + 8), 0x38b34ae5, 17, 0xa1e38b93);
    h3 = (Math.imul(rotate(h3, 15) + h4, 5) + 0x96cd1c35) | 0;
    h4 ^= scramble(word(bytes, at + 12), 0xa1e38b93, 18, 0x239b961b);
    h4 = (Math.imul(rotate(h4, 13) + h1, 5) + 0x32ac3b17) | 0;
  }

  // A word of zero scrambles to zero, so words past the end leave their lane as it is.
  h4 ^= scramble(lastWord(bytes, blocksEnd + 12), 0xa1e38b93, 18, 0x239b961b);
  h3 ^= scramble(lastWord(bytes, blocksEnd + 8), 0x38b34ae5, 17, 0xa1e38b93);
  h2 ^= scramble(lastWord(bytes, blocksEnd + 4), 0xab0e9789, 16, 0x38b34ae5);
  h1 ^= scramble(lastWord(bytes, blocksEnd), 0x239b961b, 15, 0xab0e9789);

  h1 ^= length;
  h2 ^= length;
  h3 ^= length;
  h4 ^= length;
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = mix32((h2 + h1) | 0);
  h3 = mix32((h3 + h1) | 0);
  h4 = mix32((h4 + h1) | 0);
  h1 = mix32(h1);
  h1 = (h1 + h2 + h3 + h4) | 0;
  out[0] = h1;
  out[1] = h2 + h1;
  out[2] = h3 + h1;
  out[3] = h4 + h1;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function scramble(value: number, before: number, bits: number, after: number): number {
  return Math.imul(rotate(Math.imul(value, before), bits), after);
}

function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

function lastWord(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let index = Math.min(at + 3, bytes.length - 1); index >= at; index--) value = (value << 8) | bytes[index]!;
  return value;
}
