import type { PolicyProgram } from '@signalbox/policy';
import type { Explanation } from '../explain/explain.ts';
import type { EndpointStatus } from '../fleet/fleet.ts';
import { signalName } from '../recorded-facts.ts';
import type { RouteRequest } from '../router.ts';
import { sessionOf } from '../signals/signal-producers.ts';
import { createZoneClock, WEEKDAYS } from '../signals/zone-clock.ts';
import { factId } from './facts.ts';
import { canBeGiven, givenText } from './given-text.ts';
import { routeOf } from './outcomes.ts';
import { writtenValue } from './written-value.ts';

export interface WrittenTestOptions {
  readonly label: string;
  readonly program: PolicyProgram;
  readonly request: RouteRequest;
  readonly explanation: Explanation;
  /** The fleet as the request found it. */
  readonly endpoints: readonly EndpointStatus[];
  /** When it was decided, in milliseconds since 1970. Tests know of whole hours. */
  readonly epochMs: number;
}

/**
 * The explained decision as a `test` that holds it fast: what the policy read of the request, the fleet as it stood, and the outcome. It passes
 * on the policy that decided. What facts cannot state is as in every test: no limit is used up, and ties and random picks are those of
 * the first request.
 */
export function writtenTest(options: WrittenTestOptions): string {
  const { label, program, request, explanation, endpoints, epochMs } = options;
  const { timezone } = program.definitions.gateway;
  const facts = new Map(
    program.signals.flatMap((signal) => {
      const value = explanation.signals[signalName(signal)];
      if (value === undefined || value === null || !canBeGiven(signal, timezone)) return [];
      return [[factId(signal.key, signal.arguments), value] as const];
    }),
  );
  if (program.signals.some(({ key }) => key === 'within' || key === 'hour' || key === 'weekday')) {
    const { hour, weekday } = createZoneClock(timezone)(epochMs);
    facts.set(factId('hour', [{ kind: 'value', value: timezone }]), hour);
    facts.set(factId('weekday', [{ kind: 'value', value: timezone }]), WEEKDAYS[weekday] ?? '');
  }
  // A split goes by the session, whether a rule reads it or not.
  const session = sessionOf({ request, parsed: request.parsed });
  if (session !== undefined) facts.set(factId('session'), session);
  if (program.signals.some(({ key }) => key === 'prefix')) facts.set(factId('prompt'), request.parsed.prompt());
  // An endpoint has room for a request or not by its tokens, whether the policy reads them or not.
  if (explanation.estimate !== null) facts.set(factId('prompt_tokens'), explanation.estimate.promptTokens);
  const given = givenText({ facts, tenant: tenantOf(options) }, [program]);
  return [
    `test ${JSON.stringify(label)} {`,
    `  given ${given}`,
    ...endpoints.filter(({ defined }) => defined).flatMap(endpointLine),
    ...expectations(explanation).map((outcome) => `  expect ${outcome}`),
    '}\n',
  ].join('\n');
}

function tenantOf({ program, request }: WrittenTestOptions): string | undefined {
  return program.definitions.tenants.find(({ name }) => name === request.tenant)?.name;
}

function endpointLine(endpoint: EndpointStatus): readonly string[] {
  const count = (name: string, value: number): readonly string[] =>
    value > 0 ? [`${name}: ${writtenValue(value, 'count')}`] : [];
  const known = (name: string, value: number, type: 'count' | 'percent'): readonly string[] =>
    Number.isNaN(value) ? [] : [`${name}: ${writtenValue(value, type)}`];
  const stated = [
    ...(endpoint.state === 'ready' ? [] : [`state: ${JSON.stringify(endpoint.state)}`]),
    ...(endpoint.healthy ? [] : ['healthy: false']),
    ...count('inflight_requests', endpoint.inflightRequests),
    ...count('inflight_tokens', endpoint.inflightTokens),
    ...count('queued_tokens', endpoint.queuedTokens),
    ...count('decode_tokens', endpoint.decodeTokens),
    ...known('queue_depth', endpoint.queueDepth, 'count'),
    ...known('running', endpoint.running, 'count'),
    ...known('kv_cache_used', endpoint.kvCacheUsed, 'percent'),
  ];
  return stated.length === 0 ? [] : [`  given endpoint ${JSON.stringify(endpoint.name)} { ${stated.join(', ')} }`];
}

function expectations(explanation: Explanation): readonly string[] {
  const { outcome, refusal, endpoint } = explanation;
  const route = routeOf(explanation);
  const by =
    route === undefined ? [] : route.kind === 'default' ? ['default'] : [`route ${JSON.stringify(route.label)}`];
  if (outcome === 'forward') return [...by, `to endpoint ${JSON.stringify(endpoint)}`];
  if (outcome === 'queue') return [...by, 'queue'];
  if (refusal?.code === 'rejected') return [...by, `reject with status ${refusal.status}`];
  return [...by, 'not to any'];
}
