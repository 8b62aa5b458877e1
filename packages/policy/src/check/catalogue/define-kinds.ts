/** Kinds that `define` makes. */
export const defineKinds = [
  'gateway',
  'tier',
  'endpoint',
  'slo',
  'tenant',
  'limit',
  'profile',
  'discovery',
  'alarm',
  'param',
] as const;

const facts: readonly string[] = [
  'model',
  'gpu',
  'gpu_count',
  'precision',
  'model_size',
  'engine',
  'max_requests',
  'adaptive_limit',
  'max_tokens_in_flight',
  'max_batch',
  'context_window',
  'price',
  'zone',
  'region',
  'labels',
  'key',
  'ca',
  'headers',
  'ejection',
  'role',
  'throughput',
  'supports',
];

/** The keys of each kind, for suggestions and completion. Profiles and discoveries take any key. */
export const defineKeys: {
  readonly gateway: readonly string[];
  readonly tier: readonly string[];
  readonly endpoint: readonly string[];
  readonly slo: readonly string[];
  readonly tenant: readonly string[];
  readonly limit: readonly string[];
  readonly alarm: readonly string[];
  readonly param: readonly string[];
} = {
  gateway: [
    'listen',
    'admin',
    'workers',
    'models',
    'unknown_model',
    'report_model',
    'timezone',
    'keys',
    'tls',
    'body_limit',
    'early_head',
    'explain_header',
    'drain',
    'trusted_proxies',
    'cors',
    'audit',
    'shared',
  ],
  tier: ['endpoints', ...facts],
  endpoint: ['url', 'tier', 'name', 'weight', ...facts],
  slo: ['ttft', 'tpot', 'latency'],
  tenant: ['keys', 'class', 'weight', 'limits', 'models'],
  limit: [
    'key',
    'requests',
    'tokens',
    'input_tokens',
    'output_tokens',
    'cost',
    'concurrency',
    'when',
    'charge',
    'share_of',
  ],
  alarm: ['when', 'until', 'for'],
  param: ['env', 'default'],
};
