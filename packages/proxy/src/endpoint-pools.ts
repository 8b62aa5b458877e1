import { Socket } from 'node:net';
import type { EndpointTarget } from '@signalbox/core';
import { buildConnector, Client, Pool, type Dispatcher } from 'undici';
import { AddressWatch } from './address-watch.ts';
import { guardedLookup, isMetadataAddress, metadataRefused } from './metadata-addresses.ts';

/** The connection that a call runs on, as far as retries care. */
export interface Connection {
  /** Requests written to the present socket. */
  requests: number;
  /** The socket while it is being opened. */
  opening: Socket | undefined;
}

/** A dispatch handler that is told its connection before anything else. */
export interface ConnectionAware extends Dispatcher.DispatchHandler {
  connection: Connection | undefined;
}

type Connector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket;

class TrackedClient extends Client {
  private readonly connection: Connection;

  constructor(origin: URL, options: object, connect: Connector) {
    const connection: Connection = { requests: 0, opening: undefined };
    super(origin, {
      ...options,
      connect: (target: buildConnector.Options, callback: buildConnector.Callback): Socket => {
        const socket = connect(target, (...result) => {
          connection.opening = undefined;
          connection.requests = 0;
          callback(...result);
        });
        connection.opening = socket;
        return socket;
      },
    });
    this.connection = connection;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    (handler as ConnectionAware).connection = this.connection;
    return super.dispatch(options, handler);
  }
}

interface PoolEntry {
  readonly pool: Pool;
  readonly addresses: AddressWatch;
  usedMs: number;
}

/** A pool that nobody has used for so long is closed when the next one is opened. */
const UNUSED_MS = 600_000;

/**
 * One connection pool per endpoint, kept by the identity of its `EndpointTarget` from first use until `retire`, or until it has long
 * been idle. Its clients have no timers but the idle one: all others belong to the exchange.
 */
export class EndpointPools {
  private readonly pools = new Map<EndpointTarget, PoolEntry>();
  private readonly keepAliveMs: number;

  constructor(keepAliveMs: number) {
    this.keepAliveMs = keepAliveMs;
  }

  get size(): number {
    return this.pools.size;
  }

  dispatch(target: EndpointTarget, options: Dispatcher.DispatchOptions, handler: ConnectionAware, nowMs: number): void {
    let entry = this.pools.get(target);
    if (entry === undefined) {
      this.sweep(nowMs);
      const addresses = new AddressWatch(new URL(target.origin).hostname, () => this.reopen(target));
      entry = { pool: this.open(target), addresses, usedMs: nowMs };
      this.pools.set(target, entry);
    }
    entry.usedMs = nowMs;
    entry.addresses.used(nowMs);
    entry.pool.dispatch(options, handler);
  }

  /**
   * The same on a connection that is opened for this call and closed behind it. Where one idle connection was stale, as after a restart of
   * the server, the others of its pool may be so too.
   */
  dispatchFresh(target: EndpointTarget, options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    const client = new TrackedClient(new URL(target.origin), this.options(), connectorOf(target));
    client.dispatch(options, handler);
    client.close().catch(() => undefined);
  }

  /** Closes the pool of an endpoint that has left; its running calls end by themselves. */
  retire(target: EndpointTarget): void {
    const entry = this.pools.get(target);
    if (entry === undefined) return;
    this.pools.delete(target);
    void entry.pool.close();
  }

  /** The name of an endpoint has moved: running calls end where they are, all others go to the new address. */
  private reopen(target: EndpointTarget): void {
    const entry = this.pools.get(target);
    if (entry === undefined) return;
    this.pools.set(target, { ...entry, pool: this.open(target) });
    void entry.pool.close();
  }

  private sweep(nowMs: number): void {
    for (const [target, { pool, usedMs }] of this.pools) {
      if (nowMs - usedMs > UNUSED_MS && pool.stats.size === 0) this.retire(target);
    }
  }

  async destroy(): Promise<void> {
    const pools = [...this.pools.values()];
    this.pools.clear();
    await Promise.all(pools.map(({ pool }) => pool.destroy()));
  }

  private open(target: EndpointTarget): Pool {
    const connect = connectorOf(target);
    const pool = new Pool(target.origin, {
      ...this.options(),
      connections: null,
      factory: (origin: URL, options: object) => new TrackedClient(origin, options, connect),
    });
    dropDisconnected(pool);
    return pool;
  }

  private options(): Client.Options {
    return {
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: this.keepAliveMs,
      keepAliveMaxTimeout: this.keepAliveMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 64 * 1024,
    };
  }
}

/**
 * A pool of undici keeps the client of every connection that it ever had at once, with its parser and buffers, long after the connection
 * has closed, and looks through all of them for each request. It lets go only of those that could not connect; told that of one that has
 * lost its connection, it lets go of it too, and opens another when there is need.
 */
function dropDisconnected(pool: Pool): void {
  pool.on('disconnect', (origin, targets, error) => {
    if (!pool.closed && !pool.destroyed) pool.emit('connectionError', origin, targets, error);
  });
}

/** Opens connections to `target`, never to an address of cloud metadata. */
function connectorOf(target: EndpointTarget): Connector {
  const tls = target.ca === undefined ? {} : { ca: target.ca };
  const reach = buildConnector({
    ...tls,
    timeout: 0,
    allowH2: false,
    lookup: guardedLookup(),
  }) as unknown as Connector;
  return (options, callback) => {
    if (!isMetadataAddress(options.hostname)) return reach(options, callback);
    queueMicrotask(() => callback(metadataRefused(options.hostname), null));
    return new Socket();
  };
}
