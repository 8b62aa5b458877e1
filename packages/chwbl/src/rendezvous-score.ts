// perf: the pair hash runs once per candidate per request; two of its three rounds settle most comparisons.
import type { Hash64 } from './hash.ts';
import { mix32 } from './hash.ts';

/**
 * The 64-bit hash of a (key, node) pair: a three-round Feistel network over the node's hash, keyed by the key's. For one
 * key it is a permutation, so nodes with different hashes never tie. The two arguments are not interchangeable.
 */
export function hashPair(key: Hash64, node: Hash64): Hash64 {
  const high = pairHigh(keyLeft(key), keyRight(key), node.hi, node.lo);
  return { hi: high, lo: pairLow(keyLeft(key), keyRight(key), node.hi, node.lo) };
}

/**
 * The weighted rendezvous score of a node for a key: `ln(u) / weight`, where u in (0, 1) is the pair's hash as a fraction.
 * Always below zero; **the highest comes first**. Each node comes first for a share of keys proportional to its weight:
 * `-ln(u) / weight` is an exponential waiting time of rate `weight`, and the shortest wins.
 *
 * Source: Schindelhauer and Schomaker, Weighted distributed hash tables, SPAA 2005 (logarithmic method), over Thaler and
 * Ravishankar, Using name-based mappings to increase hit rates, IEEE/ACM Transactions on Networking 6(1), 1998.
 *
 * @param weight above 0 and finite; only ratios between weights matter.
 */
export function rendezvousScore(key: Hash64, node: Hash64, weight: number): number {
  const pair = hashPair(key, node);
  return logOfFraction(pair.hi, pair.lo) / weight;
}

/** The part of the pair hash's key schedule that XORs the node's high half. */
export function keyLeft(key: Hash64): number {
  return Math.imul(key.lo, 0x9e3779b1);
}

/** The part of the pair hash's key schedule that XORs the node's low half. */
export function keyRight(key: Hash64): number {
  return Math.imul(key.hi, 0x85ebca77);
}

/** The high half of {@link hashPair}, unsigned. */
export function pairHigh(left: number, right: number, nodeHi: number, nodeLo: number): number {
  const a = nodeHi ^ left;
  const b = nodeLo ^ right ^ mix32(a + 0x27d4eb2f);
  return (a ^ mix32(b + 0x165667b1)) >>> 0;
}

/** The low half of {@link hashPair}, unsigned. */
export function pairLow(left: number, right: number, nodeHi: number, nodeLo: number): number {
  const a = nodeHi ^ left;
  const b = nodeLo ^ right ^ mix32(a + 0x27d4eb2f);
  return (b ^ mix32((a ^ mix32(b + 0x165667b1)) + 0x61c88647)) >>> 0;
}

/**
 * Natural logarithm of the fraction u = (x + ½) / 2^48, x being the top 48 bits of (hi, lo). Rises strictly with x.
 *
 * Only +, −, ×, ÷ are used, which IEEE 754 rounds alike everywhere; `Math.log` may differ in its last bit between engines
 * and would then order nodes differently. 48 bits leave steps of several units in the last place, so rounding cannot
 * swap neighbours. Method and coefficients: e_log.c of fdlibm (Copyright 1993 Sun Microsystems, freely granted).
 */
export function logOfFraction(hi: number, lo: number): number {
  const top = lo >>> 16;
  let exponent: number;
  let scale: number;
  if (hi !== 0) {
    exponent = -1 - Math.clz32(hi);
    scale = ((1 << (exponent + 32)) >>> 0) * 65536;
  } else if (top !== 0) {
    exponent = -17 - Math.clz32(top);
    scale = 1 << (exponent + 48);
  } else {
    exponent = -49;
    scale = 0.5;
  }
  let mantissa = (hi * 65536 + top + 0.5) / scale;
  if (mantissa > Math.SQRT2) {
    mantissa *= 0.5;
    exponent += 1;
  }

  const f = mantissa - 1;
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const even = w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373));
  const odd = z * (0.6666666666666735 + w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)));
  const half = 0.5 * f * f;
  const rest = s * (half + even + odd);
  return exponent * LN2_HIGH - (half - (rest + exponent * LN2_LOW) - f);
}

const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
