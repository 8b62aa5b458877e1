import { BlockList, isIP } from 'node:net';
import type { ForwardingRules } from '@signalbox/proxy';

/** Rules by which the peers in `networks` (checked with the policy: `10.0.0.0/8`, `::1`) are believed; undefined if none is listed. */
export function forwardingRules(networks: readonly string[]): ForwardingRules | undefined {
  if (networks.length === 0) return undefined;
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const family = familyOf(address);
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  // An IPv4 peer of a socket for both families is shown as ::ffff:a.b.c.d, which the list understands.
  return { trusts: (address) => isIP(address) !== 0 && list.check(address, familyOf(address)) };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
