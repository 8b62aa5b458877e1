import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { isMetadataAddress, type Resolve } from './metadata-addresses.ts';

/** How often a name in use is looked up anew. Where a resolver keeps answers for their time to live, this comes on top of it. */
const LOOK_MS = 1_000;
/** A change is followed at most so often: names of large services give other addresses each time, all of them good. */
const FOLLOW_MS = 5_000;

/**
 * Follows the addresses of one host name, so that connections which never become idle do not stay with an address that the name has left.
 * Looks only while it is asked, never twice at once, and takes a name that cannot be resolved for one that has not changed.
 */
export class AddressWatch {
  private readonly host: string;
  private readonly resolve: Resolve;
  private readonly onMoved: () => void;
  private addresses: ReadonlySet<string> | undefined;
  private lookAgainMs: number;
  private followAgainMs = Number.NEGATIVE_INFINITY;

  /** `onMoved` is called when no address of the name is one that it had before. */
  constructor(host: string, onMoved: () => void, resolve: Resolve = lookup) {
    this.host = host;
    this.onMoved = onMoved;
    this.resolve = resolve;
    // An address that is written as one never changes.
    const bare = host.startsWith('[') ? host.slice(1, -1) : host;
    this.lookAgainMs = isIP(bare) === 0 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }

  /** To be called whenever the host is used. */
  used(nowMs: number): void {
    if (nowMs < this.lookAgainMs) return;
    this.lookAgainMs = Number.POSITIVE_INFINITY;
    this.resolve(this.host, { all: true }, (error, found) => {
      this.lookAgainMs = nowMs + LOOK_MS;
      const addresses = new Set(found?.map(({ address }) => address).filter((address) => !isMetadataAddress(address)));
      if (error !== null || addresses.size === 0) return;
      const before = this.addresses;
      if (before !== undefined && ![...before].some((address) => addresses.has(address))) {
        if (nowMs < this.followAgainMs) return;
        this.followAgainMs = nowMs + FOLLOW_MS;
        this.addresses = addresses;
        this.onMoved();
      } else {
        this.addresses = addresses;
      }
    });
  }
}
