/** The hash that stands before the first block; different roots (adapters, cache salts) share nothing. */
export function rootHash(salt: string): number {
  let high = 0x9e3779b9;
  let low = 0x85ebca6b;
  for (let i = 0; i < salt.length; i++) {
    high = mix(high, salt.charCodeAt(i));
    low = mix(low, salt.charCodeAt(i) + 0x51ed);
  }
  return join(high, low);
}

/**
 * The hash of one block: a chain of its parent's hash and its own token ids, 53 bits in a number. Equal chains of tokens under equal
 * roots give equal hashes in every process.
 * @param tokenAt token id at a position of the sequence
 * @param from first position of the block; `length` positions are read
 */
export function chainHash(parent: number, tokenAt: (position: number) => number, from: number, length: number): number {
  let high = mix(0x2545f491, Math.floor(parent / 0x200000));
  let low = mix(0x6c078965, parent % 0x200000);
  for (let position = from; position < from + length; position++) {
    const token = tokenAt(position);
    high = mix(high, token);
    low = mix(low, token ^ 0x5bd1e995);
  }
  return join(high, low);
}

function mix(hash: number, value: number): number {
  let mixed = Math.imul(hash ^ value, 0xcc9e2d51);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x1b873593);
  return (mixed ^ (mixed >>> 13)) | 0;
}

const join = (high: number, low: number): number => (high >>> 0) * 0x200000 + (low >>> 11);
