import type { Router } from '@signalbox/core';
import type { Clock, Logger } from '@signalbox/plugin-api';
import type { EndpointPools } from './endpoint-pools.ts';
import type { ProxyHooks } from './hooks.ts';
import type { ProxyLimits } from './limits.ts';
import type { LiveItem, LiveList } from './live-list.ts';
import type { TimerWheel } from './timer-wheel.ts';

/** What a live request offers to the proxy that ends. */
export interface LiveExchange extends LiveItem {
  /** Ends whatever still runs, with a word to the client. */
  shutDown(): void;
  /** Destroys the client's connection. */
  destroy(): void;
}

/** What exchanges share: one per proxy. */
export interface ExchangeHost {
  readonly router: Router;
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly pools: EndpointPools;
  readonly limits: ProxyLimits;
  readonly logger: Logger;
  readonly hooks: ProxyHooks;
  readonly reportModel: () => 'asked' | 'real';
  readonly live: LiveList<LiveExchange>;
  readonly isClosing: () => boolean;
  /** As in `ProxyOptions`; Infinity keeps heads back for as long as it takes. */
  readonly earlyHeadMs: () => number;
}
