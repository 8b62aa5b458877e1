import type { Expression, PolicyProgram } from '../../../packages/policy/src/index.ts';

const span = { file: 'bench.route', start: 0, end: 0 };
const number = (value: number): Expression => ({ kind: 'constant', value, type: 'number', scope: 'constant', span });
const text = (value: string): Expression => ({ kind: 'constant', value, type: 'string', scope: 'constant', span });
const property = (index: number): Expression => ({
  kind: 'property',
  index,
  type: PROPERTIES[index]?.type ?? 'number',
  scope: 'candidate',
  span,
});
const signal = (index: number): Expression => ({
  kind: 'signal',
  index,
  type: SIGNALS[index]?.type ?? 'number',
  scope: 'request',
  span,
});
const arithmetic = (op: '+' | '*' | '/', left: Expression, right: Expression): Expression => ({
  kind: 'arithmetic',
  op,
  left,
  right,
  type: 'number',
  scope: 'candidate',
  span,
});
const compare = (op: '==' | '<' | '>', left: Expression, right: Expression): Expression => ({
  kind: 'compare',
  op,
  left,
  right,
  type: 'bool',
  scope: 'candidate',
  span,
});
const and = (...operands: Expression[]): Expression => ({
  kind: 'and',
  operands,
  type: 'bool',
  scope: 'candidate',
  span,
});
const not = (operand: Expression): Expression => ({ kind: 'not', operand, type: 'bool', scope: 'candidate', span });

const SIGNALS = [
  { key: 'complexity', type: 'number' },
  { key: 'prompt_tokens', type: 'count' },
  { key: 'tenant.region', type: 'string' },
  { key: 'header', type: 'string' },
] as const;
const PROPERTIES = [
  { key: 'queued_tokens', type: 'count' },
  { key: 'decode_tokens', type: 'count' },
  { key: 'inflight_requests', type: 'count' },
  { key: 'queue_depth', type: 'count' },
  { key: 'throughput', type: 'rate' },
  { key: 'kv_cache_used', type: 'percent' },
  { key: 'region', type: 'string' },
  { key: 'healthy', type: 'bool' },
] as const;

/** The cost of an endpoint, lower is better: `(0.1 * queued_tokens + decode_tokens + 200 * inflight_requests + 50 * queue_depth) / throughput`. */
export const score: Expression = arithmetic(
  '/',
  arithmetic(
    '+',
    arithmetic(
      '+',
      arithmetic('+', arithmetic('*', number(0.1), property(0)), property(1)),
      arithmetic('*', number(200), property(2)),
    ),
    arithmetic('*', number(50), property(3)),
  ),
  property(4),
);
/** Numbers alone: `kv_cache_used < 90% and queue_depth < 100`. */
export const numericGuard: Expression = and(
  compare('<', property(5), number(0.9)),
  compare('<', property(3), number(100)),
);
/** A text, a bool and a number: `region == "eu" and healthy and kv_cache_used < 90%`. */
export const mixedGuard: Expression = and(
  compare('==', property(6), text('eu')),
  property(7),
  compare('<', property(5), number(0.9)),
);

/** The `when`s of five rules: a pattern, two numbers and texts, a list, a number. */
export const whens: readonly Expression[] = [
  {
    kind: 'matches',
    value: signal(3),
    pattern: '^batch-',
    flags: '',
    prompt: false,
    type: 'bool',
    scope: 'request',
    span,
  },
  and(compare('>', signal(1), number(32_000)), not(compare('==', signal(2), text('us')))),
  {
    kind: 'in',
    value: signal(2),
    list: { kind: 'constant', value: ['us', 'ca', 'mx'], type: { list: 'string' }, scope: 'constant', span },
    type: 'bool',
    scope: 'request',
    span,
  },
  and(compare('==', signal(2), text('eu')), compare('>', signal(0), number(80))),
  compare('>', signal(0), number(50)),
];

const builtin = { kind: 'builtin' } as const;
/** A program that holds all of these. */
export const program: PolicyProgram = {
  irVersion: 1,
  language: 1,
  hash: 'bench',
  files: [],
  definitions: {
    gateway: {
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      workers: 1,
      models: [],
      unknownModel: 'reject',
      reportModel: 'alias',
      timezone: 'UTC',
      bodyLimit: 1,
      drain: { accept: 10, grace: 300 },
      trustedProxies: [],
    },
    tiers: [],
    slos: [],
    tenants: [],
    limits: [],
    alarms: [],
    params: [],
  },
  uses: [],
  signals: SIGNALS.map((reference) => ({ ...reference, known: 'maybe', provider: builtin, arguments: [] })),
  properties: PROPERTIES.map((reference) => ({ ...reference, provider: builtin, arguments: [] })),
  admission: [],
  routes: [
    ...[numericGuard, mixedGuard].map((where, index) => ({ when: undefined, where, label: `where ${index}` })),
    ...whens.map((when, index) => ({ when, where: undefined, label: `when ${index}` })),
  ].map(({ when, where, label }) => ({
    kind: 'route',
    label,
    span,
    headSpan: span,
    ...(when === undefined ? {} : { when }),
    steps: [
      {
        kind: 'destination',
        span,
        targets: [{ target: { kind: 'any' } }],
        split: false,
        ...(where === undefined ? {} : { where }),
        by: [
          {
            span,
            terms: [
              {
                weight: 1,
                scorer: { kind: 'expression', name: 'bench', expression: score, direction: 'lowest', span },
              },
            ],
          },
        ],
        pick: { name: 'best', provider: builtin, options: {}, span },
        with: {},
      },
    ],
  })),
};
