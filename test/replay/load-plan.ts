import { capacityPerSecond } from './engines.ts';
import { slowGpu } from './fleet.ts';
import type { ReplayEndpoint } from './fleet.ts';
import type { TraceRequest } from './trace.ts';

/** How fast the requests come, and what that means for the engines. Rates are requests per second of the trace's clock. */
export interface LoadPlan {
  /** Asked for: arrivals at a slow engine under round robin ÷ what it can end. */
  readonly utilisation: number;
  readonly slowCapacity: number;
  readonly fastCapacity: number;
  readonly rate: number;
  /** `rate` ÷ capacity of the whole fleet. */
  readonly fleetUtilisation: number;
  /** Factor on the trace's arrival times: above 1 the requests come more slowly than they did. */
  readonly stretch: number;
}

/** Scales arrivals so that a quarter of them keeps a slow engine at `utilisation` of its capacity on this mix of requests, on the mean of the trace. */
export function planLoad(
  endpoints: readonly ReplayEndpoint[],
  trace: readonly TraceRequest[],
  utilisation: number,
): LoadPlan {
  const capacities = endpoints.map((endpoint) => capacityPerSecond(endpoint, trace));
  const slowCapacity = Math.min(...capacities.filter((_capacity, i) => endpoints[i]?.gpu === slowGpu));
  const rate = utilisation * slowCapacity * endpoints.length;
  const ownRate = (1000 * (trace.length - 1)) / ((trace.at(-1)?.atMs ?? 0) - (trace[0]?.atMs ?? 0));
  return {
    utilisation,
    slowCapacity,
    fastCapacity: Math.max(...capacities),
    rate,
    fleetUtilisation: rate / capacities.reduce((sum, capacity) => sum + capacity, 0),
    stretch: ownRate / rate,
  };
}
