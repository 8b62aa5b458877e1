import type { Clock, Plugin, Value } from '@signalbox/plugin-api';
import type { GivenEndpoint, PolicyProgram } from '@signalbox/policy';
import { createCore } from '../core.ts';
import { planFleet } from '../policy-tests/given-fleet.ts';
import type { RouteRequest } from '../router.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Explanation } from './explain.ts';

/** A request and the fleet that it is supposed to meet. */
export interface SupposedRequest {
  readonly program: PolicyProgram;
  /** Plugins that the policy uses, first-party ones among them. Their `setup` runs. */
  readonly plugins: readonly Plugin[];
  /** Endpoints with the properties that are given, as `given endpoint` of a test states them; all else is idle, healthy, or unknown. */
  readonly endpoints: readonly GivenEndpoint[];
  readonly request: Omit<RouteRequest, 'receivedAtMs' | 'deadlineMs' | 'onAbort'>;
  /** Milliseconds that the caller waits at most; Infinity unless given. */
  readonly deadlineInMs?: number;
  /** Wall clock of the decision, milliseconds since 1970. */
  readonly epochMs: number;
  /** `interpreted` unless given: what is asked once is not worth generating code for. */
  readonly evaluators?: 'generated' | 'interpreted';
}

/**
 * Why a request would go where on a fleet that is given, by a core of its own: its ledgers are empty, its clock stands still and its seed is
 * always the same, so that equal questions have equal answers. Throws a SignalboxError where core does: a plugin fails, a rule of
 * ejection is invalid.
 */
export function explainOnFleet({ program, plugins, endpoints, request, ...options }: SupposedRequest): Explanation {
  const fleet = planFleet(program, endpoints);
  const clock: Clock = { now: () => NOW_MS, epochMs: () => options.epochMs };
  const core = createCore({
    clock,
    scheduler: NO_TIMERS,
    capacity: Math.max(
      1,
      fleet.definitions.tiers.reduce((sum, tier) => sum + tier.endpoints.length, 0),
    ),
    evaluators: options.evaluators ?? 'interpreted',
    resolveSecret: () => 'unset',
    given: {
      signal: () => undefined,
      property: (key): ReadonlyMap<string, Value> | undefined => fleet.columns.get(key),
    },
  });
  try {
    core.activate(core.prepare({ ...program, definitions: fleet.definitions }, plugins));
    fleet.apply(core.fleet, NOW_MS);
    return core.explain({
      ...request,
      receivedAtMs: NOW_MS,
      deadlineMs: NOW_MS + (options.deadlineInMs ?? Number.POSITIVE_INFINITY),
    });
  } finally {
    core.close();
  }
}

/** Any time after the start of the clock. */
const NOW_MS = 60_000;
const NO_TIMERS: Scheduler = { setTimer: () => () => {} };
