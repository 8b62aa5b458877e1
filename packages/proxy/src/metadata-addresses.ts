import { lookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/**
 * Where clouds answer any process of a machine with its credentials: link-local IPv4 (AWS, Azure, Google, Oracle, ECS tasks), Alibaba's
 * address, and AWS by IPv6. No model server is ever there.
 */
const METADATA: BlockList = (() => {
  const list = new BlockList();
  list.addSubnet('169.254.0.0', 16, 'ipv4');
  list.addAddress('100.100.100.200', 'ipv4');
  list.addSubnet('fd00:ec2::', 32, 'ipv6');
  return list;
})();

/** Whether an IP address, in brackets or not, is one of a cloud's metadata service. False for names. */
export function isMetadataAddress(host: string): boolean {
  const address = host.startsWith('[') ? host.slice(1, -1) : host;
  const family = isIP(address);
  return family !== 0 && METADATA.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

export function metadataRefused(host: string): Error {
  return Object.assign(new Error(`${host} is the address of a cloud's metadata service; no request is sent there`), {
    code: 'SIGNALBOX_METADATA_ADDRESS',
  });
}

/** `dns.lookup` for all addresses of a host. */
export type Resolve = (
  host: string,
  options: { readonly all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A name look-up that leaves metadata addresses out of the result, so that a name which is bound anew cannot lead there. Fails with
 * `SIGNALBOX_METADATA_ADDRESS` where nothing else is left.
 */
export function guardedLookup(resolve: Resolve = lookup): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) {
        callback(error, '', 0);
        return;
      }
      const allowed = addresses.filter(({ address }) => !isMetadataAddress(address));
      const [first] = allowed;
      if (first === undefined) callback(metadataRefused(host), '', 0);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
