import fc from 'fast-check';

const HEAD = `define gateway { models: ["auto"] }
define tier "a" { model: "x", gpu: "L4", max_requests: 8, endpoints: ["http://10.0.0.1:1", "http://10.0.0.2:1", "http://10.0.0.3:1"] }
define tier "b" { model: "y", zone: "z1", price: $4, throughput: 400/s, endpoints: ["http://10.0.1.1:1", "http://10.0.1.2:1"] }
define tier "c" { model: "z", max_tokens_in_flight: 4k, endpoints: ["http://10.0.2.1:1"] }
let wordy = words > 5
`;

const leaf = fc.constantFrom(
  'stream',
  'wordy',
  'questions >= 1',
  'complexity > 20',
  'prompt_tokens in 3..9',
  'user == "u1"',
  'user exists',
  'session == "s1"',
  'header["x-tier"] in ["gold", "silver"]',
  'metadata["team"] contains "a"',
  'priority == "low"',
  'model == "auto"',
  'tools > 0',
  'max_tokens < 50',
  'output_tokens > 100',
  'turns <= 1',
  'prompt matches r"stack|trace"i',
  'hour >= 12',
  'weekday in ["sat", "sun"]',
  'within("10:00-14:00")',
  'cluster.saturation > 50%',
  'cluster.inflight_requests > 4',
  'min(queued_tokens, tier "a") < 1k',
  'any(kv_cache_used < 50%)',
  'count(healthy, tier "b") > 1',
);
/** A condition of request scope. */
export const condition: fc.Arbitrary<string> = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 2 },
    leaf,
    fc.tuple(tie('condition'), fc.constantFrom('and', 'or'), tie('condition')).map(([l, op, r]) => `(${l} ${op} ${r})`),
    tie('condition').map((inner) => `not (${inner})`),
  ),
})).condition;
const where = fc.constantFrom(
  '',
  '',
  ' where kv_cache_used < 90%',
  ' where load < 200%',
  ' where under_load(95%)',
  ' where zone == "z1"',
  ' where queue_depth ?? 0 < 3',
  ' where predicted_ttft < 2s',
  ' where running < 4 or healthy',
);
const by = fc.constantFrom(
  '',
  ' by least_tokens',
  ' by lowest(queued_tokens)',
  ' by 0.5 * least_requests + 0.5 * least_kv_cache',
  ' by round_robin',
  ' by random',
  ' by lowest(price) then declared_order',
  ' by least_latency',
);
const pick = fc.constantFrom('', '', ' pick power_of_two', ' pick weighted');
const modifier = fc.constantFrom(
  '',
  '',
  ' with affinity session',
  ' with affinity(user, bound: 1.5)',
  ' with fallback tier "b" (on: [saturated])',
  ' with sticky user',
);
const target = fc.constantFrom(
  'tier "a"',
  'tier "b"',
  'tier "c"',
  'any',
  'tier "a", tier "c"',
  '50% tier "a", 50% tier "b"',
  '5% tier "c", 95% tier "a"',
  'endpoint "a/2"',
);
const destination = fc.tuple(target, where, by, pick, modifier).map((parts) => `to ${parts.join('')}`);
const ending = fc.constantFrom('next', 'reject with status 503', 'queue with max_wait 2s');
const route = fc
  .tuple(condition, destination, fc.array(destination, { maxLength: 1 }), fc.array(ending, { maxLength: 1 }))
  .map(
    ([when, to, elses, last]) =>
      ` when ${when}\n  ${to}${[...elses, ...last].map((part) => `\n  else ${part}`).join('')}`,
  );
const admission = fc
  .tuple(fc.constantFrom('reject', 'queue', 'admit'), condition)
  .map(([verb, when]) => ({ verb, when }));
/** Whole policies without errors, over tiers `a`, `b` and `c`, with routes `r0`, `r1` … and rules of admission. */
export const policyText: fc.Arbitrary<string> = fc
  .tuple(fc.array(admission, { maxLength: 2 }), fc.array(route, { minLength: 1, maxLength: 4 }), destination)
  .map(
    ([rules, routes, last]) =>
      `${HEAD}${rules.map(({ verb, when }, index) => `${verb} "rule ${index}" when ${when}\n`).join('')}${routes
        .map((text, index) => `route "r${index}"${text}\n`)
        .join('')}default ${last}\n`,
  );
