import { Registry } from 'prom-client';
import type { DecisionRecord } from './decision-record.ts';
import {
  createHistogram,
  DECISION_BOUNDS,
  DURATION_BOUNDS,
  INTER_TOKEN_BOUNDS,
  observe,
  TTFT_BOUNDS,
} from './histogram.ts';
import type { Histogram } from './histogram.ts';

/** The state of one endpoint when metrics are scraped. */
export interface EndpointGauges {
  readonly tier: string;
  readonly endpoint: string;
  readonly inflightRequests: number;
  readonly inflightTokens: number;
  readonly healthy: boolean;
  /** Taken out of routing by an operator. */
  readonly cordoned: boolean;
  /** Most requests in flight, as it is at present; NaN without a limit. */
  readonly maxRequests: number;
  /** Ejections since start. */
  readonly ejections: number;
}

export interface QueueGauges {
  readonly tier: string;
  readonly class: string;
  readonly size: number;
}

/** How fast a queue empties. */
export interface QueueRate {
  readonly tier: string;
  /** Prompt and expected output tokens of those in line. */
  readonly tokens: number;
  /** NaN while it is unknown. */
  readonly tokensPerSecond: number;
}

/** What metrics ask of the running gateway at each scrape. */
export interface MetricsSource {
  endpoints(): Iterable<EndpointGauges>;
  queues(): Iterable<QueueGauges>;
  queueRates(): Iterable<QueueRate>;
  /** Tiers in panic. */
  panicking(): Iterable<string>;
  /** Calls that threw, and values that were no numbers, by plugin name. */
  plugins(): Iterable<{ readonly plugin: string; readonly errors: number; readonly invalidValues: number }>;
  /** How often each scorer knew nothing of any candidate, by its name in the policy. */
  unknownScorers?(): Iterable<readonly [scorer: string, times: number]>;
  /** Client connections closed at once because there were as many as there may be. */
  connectionsDropped?(): number;
  /** Leases found unreleased; 0 unless there is a bug. */
  leaseLeaks(): number;
  /** Lines of the audit file since the start; absent where none is kept. */
  audit?(): { readonly written: number; readonly dropped: number } | undefined;
  /** Policy versions and trials; absent where there is but one policy. */
  lifecycle?(): LifecycleGauges;
}

/** Policy versions by what they do, and what came of trials since the start. */
export interface LifecycleGauges {
  /** By state: in_force, canary, shadow, retiring. */
  readonly versions: { readonly [state: string]: number };
  /** Requests under way on versions that get no new ones. */
  readonly retiringRequests: number;
  /** Whether versions of the policy file are held back. */
  readonly pinned: boolean;
  /** Requests that ended while a canary ran, by what decided them. */
  readonly canaryRequests: readonly { readonly version: string; readonly outcome: string; readonly count: number }[];
  /** Canaries that were rolled back, by reason. */
  readonly canaryRollbacks: { readonly [reason: string]: number };
  /** Decisions of shadows, by whether they were as those in force: agreed, moved, failed. */
  readonly shadowDecisions: { readonly [outcome: string]: number };
  readonly shadowSeconds: number;
}

/** The reload state that operators watch. */
export interface ConfigState {
  reloads: number;
  failures: number;
  lastSuccessful: boolean;
  lastSuccessEpochSeconds: number;
  hash: string;
  /** Properties that the policy reads and nothing feeds. */
  unfed: readonly string[];
}

export interface Metrics {
  /** Counts a finished request. */
  record(decision: DecisionRecord): void;
  /** Counts a request that ended before a policy saw it: malformed, too large, of an unknown path, or left by its client. */
  recordUnrouted(status: number, code: string, durationMs: number): void;
  /** The names that the `model` label may have; every other model is counted as `other`. */
  setModels(models: Iterable<string>): void;
  readonly config: ConfigState;
  /** Prometheus text exposition of everything. */
  expose(): Promise<string>;
  readonly contentType: string;
}

interface RequestSeries {
  readonly labels: readonly string[];
  readonly status: number;
  readonly duration: Histogram;
}

interface TokenSeries {
  readonly labels: readonly string[];
  readonly ttft: Histogram;
  readonly interToken: Histogram;
  input: number;
  cached: number;
  output: number;
}

interface MetricValue {
  readonly metricName?: string;
  readonly labels: { readonly [name: string]: string | number };
  readonly value: number;
}

const PREFIX = 'signalbox_';
const SEPARATOR = '\u0000';

/**
 * The gateway's Prometheus metrics (names of docs/reference/metrics.md). Requests are counted into typed series; prom-client formats them
 * when scraped. Label values come from the policy, fixed sets, or are `other`.
 */
export function createMetrics(source: MetricsSource): Metrics {
  const registry = new Registry();
  const requests = new Map<string, RequestSeries>();
  const tokens = new Map<string, TokenSeries>();
  const queueWaits = new Map<string, Histogram>();
  const retries = new Map<string, number>();
  const shed = new Map<string, number>();
  const decisions = createHistogram(DECISION_BOUNDS);
  let models = new Set<string>();
  const config: ConfigState = {
    reloads: 0,
    failures: 0,
    lastSuccessful: false,
    lastSuccessEpochSeconds: 0,
    hash: '',
    unfed: [],
  };

  // perf: requests come in runs of one kind, whose series is found by a comparison of its labels.
  let lastRequest: RequestSeries | undefined;
  let lastTokens: TokenSeries | undefined;

  function requestSeries(route: string, tier: string, model: string, status: number, reason: string): RequestSeries {
    if (lastRequest !== undefined && lastRequest.status === status) {
      const { labels } = lastRequest;
      if (labels[0] === route && labels[1] === tier && labels[2] === model && labels[4] === reason) return lastRequest;
    }
    const labels = [route, tier, model, String(status), reason];
    lastRequest = upsert(requests, labels, () => ({ labels, status, duration: createHistogram(DURATION_BOUNDS) }));
    return lastRequest;
  }

  function tokenSeries(tier: string, model: string): TokenSeries {
    if (lastTokens?.labels[0] === tier && lastTokens.labels[1] === model) return lastTokens;
    const labels = [tier, model];
    lastTokens = upsert(tokens, labels, () => ({
      labels,
      ttft: createHistogram(TTFT_BOUNDS),
      interToken: createHistogram(INTER_TOKEN_BOUNDS),
      input: 0,
      cached: 0,
      output: 0,
    }));
    return lastTokens;
  }

  function record(decision: DecisionRecord): void {
    const model = models.has(decision.model) ? decision.model : 'other';
    const reason = decision.code === '' ? (decision.reasons[0] ?? 'matched') : decision.code;
    observe(
      requestSeries(decision.route, decision.tier, model, decision.status, reason).duration,
      decision.durationMs / 1000,
    );
    observe(decisions, decision.decideMs / 1000);
    if (decision.queuedMs > 0) {
      observe(
        upsert(queueWaits, [decision.shed?.queue ?? decision.tier], () => createHistogram(DURATION_BOUNDS)),
        decision.queuedMs / 1000,
      );
    }
    if (decision.attempts.length > 1) {
      const key = [decision.tier, decision.code === '' ? 'recovered' : 'failed'].join(SEPARATOR);
      retries.set(key, (retries.get(key) ?? 0) + decision.attempts.length - 1);
    }
    if (decision.shed !== undefined) {
      const key = [decision.shed.queue, decision.shed.class, decision.code].join(SEPARATOR);
      shed.set(key, (shed.get(key) ?? 0) + 1);
    }
    if (decision.attempts.length === 0) return;
    const counted = tokenSeries(decision.tier, model);
    if (decision.stream) {
      observe(counted.ttft, decision.ttftMs / 1000);
      if (decision.outputTokens > 1) {
        // both times are from receipt, so that a wait in a queue is in both
        observe(counted.interToken, (decision.durationMs - decision.ttftMs) / 1000 / (decision.outputTokens - 1));
      }
    }
    counted.input += decision.inputTokens || 0;
    counted.cached += decision.cachedTokens || 0;
    counted.output += decision.outputTokens || 0;
  }

  function recordUnrouted(status: number, code: string, durationMs: number): void {
    observe(requestSeries('', '', 'other', status, code).duration, durationMs / 1000);
  }

  function define(
    name: string,
    help: string,
    type: 'counter' | 'gauge' | 'histogram',
    values: () => MetricValue[],
  ): void {
    const metric = {
      name: PREFIX + name,
      help,
      type,
      get: () => Promise.resolve({ name: PREFIX + name, help, type, values: values(), aggregator: 'sum' }),
      reset() {},
    };
    registry.registerMetric(metric as unknown as Parameters<typeof registry.registerMetric>[0]);
  }

  const requestLabels = ['route', 'tier', 'model', 'code', 'reason'];
  define('requests_total', 'Finished requests', 'counter', () =>
    [...requests.values()].map(({ labels, duration }) => ({
      labels: named(requestLabels, labels),
      value: duration.count,
    })),
  );
  define('request_duration_seconds', 'Time from receipt to the end of the answer', 'histogram', () =>
    [...requests.values()].flatMap(({ labels, duration }) =>
      buckets('request_duration_seconds', named(requestLabels, labels), duration),
    ),
  );
  define('ttft_seconds', 'Time from receipt to the first data event of a stream', 'histogram', () =>
    [...tokens.values()].flatMap(({ labels, ttft }) => buckets('ttft_seconds', named(['tier', 'model'], labels), ttft)),
  );
  define('inter_token_seconds', 'Mean time between output tokens of a stream', 'histogram', () =>
    [...tokens.values()].flatMap(({ labels, interToken }) =>
      buckets('inter_token_seconds', named(['tier', 'model'], labels), interToken),
    ),
  );
  define('tokens_total', 'Tokens as reported by the endpoints', 'counter', () =>
    [...tokens.values()].flatMap((series) =>
      (['input', 'cached', 'output'] as const).map((type) => ({
        labels: { ...named(['tier', 'model'], series.labels), type },
        value: series[type],
      })),
    ),
  );
  const endpointGauge = (
    name: string,
    help: string,
    value: (gauges: EndpointGauges) => number,
    type: 'gauge' | 'counter' = 'gauge',
  ) =>
    define(name, help, type, () =>
      [...source.endpoints()].map((gauges) => ({
        labels: { tier: gauges.tier, endpoint: gauges.endpoint },
        value: value(gauges),
      })),
    );
  endpointGauge(
    'inflight_requests',
    'Requests in flight by the gateway’s own ledger',
    (gauges) => gauges.inflightRequests,
  );
  endpointGauge('inflight_tokens', 'Tokens in flight by the gateway’s own ledger', (gauges) => gauges.inflightTokens);
  define('endpoint_max_requests', 'Most requests in flight, adaptive limits as they stand', 'gauge', () =>
    [...source.endpoints()].flatMap(({ tier, endpoint, maxRequests }) =>
      Number.isNaN(maxRequests) ? [] : [{ labels: { tier, endpoint }, value: maxRequests }],
    ),
  );
  endpointGauge('endpoint_healthy', '1 while the endpoint is not ejected', (gauges) => (gauges.healthy ? 1 : 0));
  endpointGauge('endpoint_cordoned', '1 while an operator keeps the endpoint out of routing', (gauges) =>
    gauges.cordoned ? 1 : 0,
  );
  endpointGauge('ejections_total', 'Times the endpoint was ejected', (gauges) => gauges.ejections, 'counter');
  define('queue_size', 'Requests waiting in an admission queue', 'gauge', () =>
    [...source.queues()].map((queue) => ({ labels: { tier: queue.tier, class: queue.class }, value: queue.size })),
  );
  define('queue_tokens', 'Prompt and expected output tokens of the requests in a queue', 'gauge', () =>
    [...source.queueRates()].map(({ tier, tokens }) => ({ labels: { tier }, value: tokens })),
  );
  define('queue_drain_tokens_per_second', 'Tokens a second that leave a queue while somebody waits', 'gauge', () =>
    [...source.queueRates()].flatMap(({ tier, tokensPerSecond }) =>
      Number.isNaN(tokensPerSecond) ? [] : [{ labels: { tier }, value: tokensPerSecond }],
    ),
  );
  define('queue_wait_seconds', 'Time that admitted requests spent in a queue', 'histogram', () =>
    [...queueWaits].flatMap(([tier, histogram]) => buckets('queue_wait_seconds', { tier }, histogram)),
  );
  define('shed_total', 'Requests refused by overload protection', 'counter', () =>
    [...shed].map(([key, value]) => ({ labels: named(['tier', 'class', 'reason'], key.split(SEPARATOR)), value })),
  );
  define('retries_total', 'Attempts beyond the first', 'counter', () =>
    [...retries].map(([key, value]) => ({ labels: named(['tier', 'outcome'], key.split(SEPARATOR)), value })),
  );
  define('panic_active', '1 while health is ignored because too few endpoints of the tier are healthy', 'gauge', () =>
    [...source.panicking()].map((tier) => ({ labels: { tier }, value: 1 })),
  );
  define(
    'plugin_errors_total',
    'Calls into a plugin that threw, and values it gave that are no numbers',
    'counter',
    () =>
      [...source.plugins()].map(({ plugin, errors, invalidValues }) => ({
        labels: { plugin },
        value: errors + invalidValues,
      })),
  );
  define(
    'scorer_unknown_total',
    'Rankings in which a scorer knew nothing of any candidate and had no say',
    'counter',
    () => [...(source.unknownScorers?.() ?? [])].map(([scorer, value]) => ({ labels: { scorer }, value })),
  );
  define('decision_seconds', 'Time to decide: admit, route, filter, score, pick', 'histogram', () =>
    buckets('decision_seconds', {}, decisions),
  );
  define(
    'lease_leak_total',
    'Leases that were not released by the path that took them; above 0 is a bug',
    'counter',
    () => [{ labels: {}, value: source.leaseLeaks() }],
  );
  define(
    'connections_dropped_total',
    'Client connections closed at once because there were as many as the limit on open files has room for',
    'counter',
    () => [{ labels: {}, value: source.connectionsDropped?.() ?? 0 }],
  );
  define('audit_records_total', 'Lines of the audit file', 'counter', () => {
    const audit = source.audit?.();
    if (audit === undefined) return [];
    return (['written', 'dropped'] as const).map((outcome) => ({ labels: { outcome }, value: audit[outcome] }));
  });
  const byLabel = (
    name: string,
    help: string,
    type: 'counter' | 'gauge',
    label: string,
    counts: (lifecycle: LifecycleGauges) => { readonly [value: string]: number },
  ): void =>
    define(name, help, type, () => {
      const lifecycle = source.lifecycle?.();
      if (lifecycle === undefined) return [];
      return Object.entries(counts(lifecycle)).map(([key, value]) => ({ labels: { [label]: key }, value }));
    });
  byLabel('policy_versions', 'Policy versions that decide or still hold requests', 'gauge', 'state', (l) => l.versions);
  define('policy_retiring_requests', 'Requests under way on versions that get no new ones', 'gauge', () => {
    const lifecycle = source.lifecycle?.();
    return lifecycle === undefined ? [] : [{ labels: {}, value: lifecycle.retiringRequests }];
  });
  define('policy_pinned', '1 while versions of the policy file are held back', 'gauge', () => {
    const lifecycle = source.lifecycle?.();
    return lifecycle === undefined ? [] : [{ labels: {}, value: lifecycle.pinned ? 1 : 0 }];
  });
  define('canary_requests_total', 'Requests that ended while a canary ran', 'counter', () =>
    (source.lifecycle?.().canaryRequests ?? []).map(({ version, outcome, count }) => ({
      labels: { version, outcome },
      value: count,
    })),
  );
  byLabel('canary_rollbacks_total', 'Canaries that were rolled back', 'counter', 'reason', (l) => l.canaryRollbacks);
  byLabel(
    'shadow_decisions_total',
    'Decisions of shadow policies, by whether they were as those in force',
    'counter',
    'outcome',
    (l) => l.shadowDecisions,
  );
  define('shadow_seconds_total', 'Time spent on decisions of shadow policies', 'counter', () => {
    const lifecycle = source.lifecycle?.();
    return lifecycle === undefined ? [] : [{ labels: {}, value: lifecycle.shadowSeconds }];
  });
  const single = (name: string, help: string, type: 'counter' | 'gauge', value: () => number) =>
    define(name, help, type, () => [{ labels: {}, value: value() }]);
  single('config_reloads_total', 'Policy reloads that were tried', 'counter', () => config.reloads);
  single(
    'config_reload_failures_total',
    'Policy reloads that left the last good version in force',
    'counter',
    () => config.failures,
  );
  single('config_last_reload_successful', '1 if the last reload took effect', 'gauge', () =>
    config.lastSuccessful ? 1 : 0,
  );
  single(
    'config_last_reload_success_timestamp_seconds',
    'When a policy last took effect',
    'gauge',
    () => config.lastSuccessEpochSeconds,
  );
  define('config_hash_info', 'The policy version in force', 'gauge', () =>
    config.hash === '' ? [] : [{ labels: { hash: config.hash }, value: 1 }],
  );
  define('config_unfed_info', 'Properties that the policy reads and nothing feeds', 'gauge', () =>
    config.unfed.map((property) => ({ labels: { property }, value: 1 })),
  );

  return {
    record,
    recordUnrouted,
    setModels(names) {
      models = new Set(names);
    },
    config,
    expose: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function upsert<T>(map: Map<string, T>, labels: readonly string[], create: () => T): T {
  const key = labels.join(SEPARATOR);
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}

function named(names: readonly string[], values: readonly string[]): { [name: string]: string } {
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']));
}

function buckets(name: string, labels: { readonly [name: string]: string }, histogram: Histogram): MetricValue[] {
  const values: MetricValue[] = [];
  let cumulative = 0;
  histogram.counts.forEach((count, i) => {
    cumulative += count;
    const le = histogram.bounds[i] ?? '+Inf';
    values.push({ metricName: `${PREFIX}${name}_bucket`, labels: { le, ...labels }, value: cumulative });
  });
  values.push({ metricName: `${PREFIX}${name}_sum`, labels, value: histogram.sum });
  values.push({ metricName: `${PREFIX}${name}_count`, labels, value: histogram.count });
  return values;
}
