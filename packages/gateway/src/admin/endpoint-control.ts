import type { Core, EndpointStatus } from '@signalbox/core';
import { SignalboxError } from '@signalbox/plugin-api';
import type { Logger } from '@signalbox/plugin-api';
import { suggest } from '@signalbox/policy';

/** What an operator may do to an endpoint: take it out of routing, the same with the aim of an idle endpoint, or take it back in. */
export const ENDPOINT_ACTIONS = ['cordon', 'drain', 'uncordon'] as const;
export type EndpointAction = (typeof ENDPOINT_ACTIONS)[number];

/** What an action came to. */
export interface EndpointReport {
  readonly endpoint: EndpointStatus;
  /** It gets no requests and has none in flight: it may be stopped. */
  readonly drained: boolean;
}

/** The endpoints as an operator sees and handles them. Cordons are kept by address, outside of policy versions, until the process ends. */
export interface EndpointControl {
  list(): readonly EndpointStatus[];
  /** Acts at once, and again without harm. Throws a SignalboxError `endpoint_unknown` (404) for a name that the policy in force has not. */
  act(action: EndpointAction, name: string): EndpointReport;
}

/** Control over the endpoints of `core`; `logger` is told of each change. */
export function createEndpointControl(core: Pick<Core, 'endpoints' | 'cordon'>, logger: Logger): EndpointControl {
  const find = (name: string): EndpointStatus => {
    const defined = core.endpoints().filter((row) => row.defined);
    const row = defined.find((one) => one.name === name);
    if (row !== undefined) return row;
    throw unknownEndpoint(
      name,
      defined.map((one) => one.name),
    );
  };
  return {
    list: () => core.endpoints(),
    act(action, name) {
      const before = find(name);
      core.cordon(name, action !== 'uncordon');
      const endpoint = find(name);
      if (endpoint.cordoned !== before.cordoned)
        logger.info(endpoint.cordoned ? 'an endpoint was taken out of routing' : 'an endpoint was taken back in', {
          endpoint: name,
          inflight: endpoint.inflightRequests,
        });
      return { endpoint, drained: endpoint.cordoned && endpoint.inflightRequests === 0 };
    },
  };
}

function unknownEndpoint(name: string, known: readonly string[]): SignalboxError {
  const near = suggest(name, known);
  const hint = near === undefined ? '.' : `; did you mean ${JSON.stringify(near)}?`;
  return new SignalboxError(
    `the policy in force has no endpoint ${JSON.stringify(name)}${hint} "signalbox endpoints", or GET /-/endpoints, lists them`,
    { code: 'endpoint_unknown', source: 'client', status: 404 },
  );
}
