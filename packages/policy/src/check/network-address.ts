/**
 * What is wrong with a network as written: an IPv4 or IPv6 address, with `/` and the length of its prefix or without, as in `10.0.0.0/8`,
 * `192.0.2.7`, `fd00::/8`. Undefined if nothing is.
 */
export const networkProblem = (text: string): { readonly problem: string; readonly help: string } | undefined => {
  const [, address = '', prefix] = /^([^/]*)(?:\/(.*))?$/.exec(text) ?? [];
  const bits = bitsOf(address);
  if (bits === undefined)
    return {
      problem: `${JSON.stringify(address)} is no IP address`,
      help: 'write a network as in `10.0.0.0/8` or `fd00::/8`, or one address; names are not looked up',
    };
  if (prefix === undefined) return undefined;
  const length = /^(?:0|[1-9]\d{0,2})$/.test(prefix) ? Number(prefix) : Number.POSITIVE_INFINITY;
  if (length > bits.length)
    return {
      problem: `the length of the prefix is a whole number from 0 to ${bits.length}`,
      help: `write \`${address}/${bits.length}\` for this address alone`,
    };
  if (bits.includes('1', length))
    return {
      problem: `the address has bits behind its prefix of ${length}`,
      help: `write \`${addressOf(bits.slice(0, length).padEnd(bits.length, '0'))}/${length}\` for the network, or \`${address}\` for the address alone`,
    };
  return undefined;
};

/** The bits of an address, 32 or 128 of `0` and `1`. */
const bitsOf = (address: string): string | undefined => {
  if (/^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(address) && !/(?:^|\.)0\d/.test(address))
    return address
      .split('.')
      .map((part) => binary(Number(part), 8))
      .join('');
  if (!address.includes(':') || !/^[\da-f:.]+$/i.test(address)) return undefined;
  let canonical: string;
  try {
    // The URL standard's reading of IPv6 gives plain hexadecimal groups.
    canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  } catch {
    return undefined;
  }
  const [head = '', tail = ''] = canonical.split('::');
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const left = groups(head);
  const right = groups(tail);
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].map((group) => binary(Number.parseInt(group, 16), 16)).join('');
};

const binary = (value: number, width: number): string => value.toString(2).padStart(width, '0');

const addressOf = (bits: string): string => {
  const numbers = (width: number): number[] =>
    Array.from({ length: bits.length / width }, (_, i) => Number.parseInt(bits.slice(i * width, (i + 1) * width), 2));
  if (bits.length === 32) return numbers(8).join('.');
  const groups = numbers(16).map((group) => group.toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
};
