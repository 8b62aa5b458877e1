/**
 * The data plane alone: packages/proxy with a router that takes the endpoint with the fewest requests in flight. Its distance from the bare relay is what proxy and
 * openai-wire cost; the distance of `signalbox` from it is what decisions, limits, telemetry and polling cost. Runs from sources.
 *
 * Run: `node --conditions=@signalbox/source test/bench/proxy/data-plane.ts LISTEN_PORT ENDPOINT_PORT…`
 */
import type {
  Attempt,
  EndpointTarget,
  Forward,
  NextStep,
  Router,
  RouteRequest,
} from '../../../packages/core/src/index.ts';
import { createProxy } from '../../../packages/proxy/src/index.ts';

type Decision = Forward['decision'];

interface Endpoint {
  readonly target: EndpointTarget;
  requestsInFlight: number;
}

const [listenPort = 0, ...endpointPorts] = process.argv.slice(2).map(Number);
const endpoints: Endpoint[] = endpointPorts.map((port) => ({
  target: { origin: `http://127.0.0.1:${port}`, basePath: '', headers: [], ca: undefined, engine: 'vllm' },
  requestsInFlight: 0,
}));

function leastBusy(): Endpoint {
  const [first] = endpoints;
  if (first === undefined) throw new Error('no endpoint ports were given');
  let best = first;
  for (const endpoint of endpoints) if (endpoint.requestsInFlight < best.requestsInFlight) best = endpoint;
  return best;
}

function decisionOf(request: RouteRequest): Decision {
  return {
    v: 1,
    requestId: request.id,
    timeMs: request.receivedAtMs,
    seed: 1,
    traceId: '',
    tenant: request.tenant ?? '',
    model: request.parsed.model ?? '',
    path: request.parsed.path,
    stream: request.parsed.stream,
    policy: 'none',
    generation: 1,
    verdict: 'routed',
    route: 'default',
    reasons: [],
    signals: {},
    queuedMs: 0,
    decideMs: 0,
    shortlist: [],
    dropped: {},
    keys: { affinity: null, split: null },
    attempts: [],
    servedModel: '',
    tier: 'endpoints',
    endpoint: '',
    status: 0,
    code: '',
    ttftMs: Number.NaN,
    durationMs: 0,
    inputTokens: Number.NaN,
    cachedTokens: Number.NaN,
    outputTokens: Number.NaN,
  };
}

function forward(request: RouteRequest): Forward {
  const endpoint = leastBusy();
  endpoint.requestsInFlight++;
  const attempt: Attempt = {
    number: 1,
    tier: 'endpoints',
    endpoint: endpoint.target.origin,
    target: endpoint.target,
    model: undefined,
    set: [],
    drop: [],
    headers: [],
    attemptTimeoutMs: Infinity,
    firstTokenMs: 30_000,
    idleMs: 60_000,
    connectMs: 2000,
  };
  const last: NextStep = {
    kind: 'refuse',
    status: 502,
    code: 'upstream_error',
    message: 'the endpoint failed',
    retryAfterSeconds: undefined,
  };
  return {
    kind: 'forward',
    decision: decisionOf(request),
    attempt,
    deadlineMs: request.deadlineMs,
    next: () => last,
    commit: () => {},
    finish: () => {
      endpoint.requestsInFlight--;
    },
  };
}

const router: Router = { route: forward, models: () => [], ready: () => true };
const clock = { now: () => performance.now(), epochMs: () => Date.now() };
await createProxy({ router, clock }).listen({ host: '127.0.0.1', port: listenPort });
