import { describe, expect, test } from 'vitest';
import golden from './vectors.golden.json' with { type: 'json' };
import { frame, hashParts, hashString } from './hash.ts';
import type { Hash64 } from './hash.ts';
import { md5Hex, md5Modulo } from './md5.ts';
import type { Placement } from './placement.ts';
import { hashPair } from './rendezvous-score.ts';
import { createRendezvous } from './rendezvous.ts';
import { createRing } from './ring.ts';

function toHex({ hi, lo }: Hash64): string {
  return hi.toString(16).padStart(8, '0') + lo.toString(16).padStart(8, '0');
}

function ordersOf(placement: Placement, keys: readonly string[]): Record<string, string[]> {
  return Object.fromEntries(keys.map((key) => [key, placement.order(key)]));
}

describe('golden vectors, written by an independent program', () => {
  test('string hashes', () => {
    for (const { text, seed, hash } of golden.hashes) expect(toHex(hashString(text, seed))).toBe(hash);
  });

  test('framed lists', () => {
    for (const { parts, frame: framed, hash } of golden.parts) {
      expect(frame(parts)).toBe(framed);
      expect(toHex(hashParts(parts))).toBe(hash);
    }
  });

  test('pair hashes', () => {
    for (const { key, node, hash } of golden.pairs) {
      expect(toHex(hashPair(hashString(key), hashString(node)))).toBe(hash);
    }
  });

  test('rendezvous orders, equal and mixed weights', () => {
    for (const { nodes, seed, orders } of golden.rendezvous) {
      expect(ordersOf(createRendezvous({ nodes, seed }), Object.keys(orders))).toEqual(orders);
    }
  });

  test('ring orders', () => {
    for (const { nodes, vnodes, seed, orders } of golden.ring) {
      expect(ordersOf(createRing({ nodes, vnodes, seed }), Object.keys(orders))).toEqual(orders);
    }
  });

  test('MD5 digests and remainders', () => {
    for (const { text, hex, mod3, mod1000, mod2p32 } of golden.md5) {
      expect(md5Hex(text)).toBe(hex);
      expect([md5Modulo(text, 3), md5Modulo(text, 1000), md5Modulo(text, 2 ** 32)]).toEqual([mod3, mod1000, mod2p32]);
    }
  });
});
