export type { ForwardingRules } from './forwarding.ts';
export type { Identity, IdentityRefusal, ProxyHooks, UnroutedEnd } from './hooks.ts';
export { DEFAULT_LIMITS } from './limits.ts';
export type { ProxyLimits } from './limits.ts';
export { createProxy } from './proxy.ts';
export type { CloseOptions, ListenOptions, Proxy, ProxyOptions, ProxyStats } from './proxy.ts';
export { systemTimers } from './timers.ts';
export type { Timers } from './timers.ts';
