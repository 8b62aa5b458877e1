import { frame, hashString } from '@signalbox/chwbl';
import type { PolicyVersion } from './policy-version.ts';
import type { RouteRequest } from './router.ts';
import { spread } from './seeded-random.ts';
import { sessionOf } from './signals/signal-producers.ts';

/** A version that a share of the requests goes by. */
export interface Canary {
  readonly version: PolicyVersion;
  /** From 0 to 1. */
  readonly share: number;
}

/** Seeds of requests are also what ties and splits are drawn by: each use mixes in a number of its own. */
const CANARY_SEED = 0x3c6ef372;
const SHADOW_SEED = 0x510e527f;

/**
 * Whether a request goes by the canary: by its session, else its user, both within the tenant, else its seed, so that a conversation stays
 * with one version. Each canary draws anew, so that it is not always the same callers who try.
 */
export function goesByCanary({ version, share }: Canary, request: RouteRequest, seed: number): boolean {
  if (share >= 1) return true;
  return pointOf(request, version.id, seed) < share;
}

/** Whether a sample of this share has a request, by its seed. */
export function isSampled(share: number, seed: number): boolean {
  return share >= 1 || spread(seed ^ SHADOW_SEED) / 2 ** 32 < share;
}

/** Uniform in [0, 1) over keys. */
function pointOf(request: RouteRequest, salt: string, seed: number): number {
  const key = sessionOf({ request, parsed: request.parsed }) ?? request.parsed.user;
  if (key === undefined || key === '') return spread(seed ^ CANARY_SEED) / 2 ** 32;
  return hashString(frame([salt, request.tenant ?? '', key])).hi / 2 ** 32;
}
