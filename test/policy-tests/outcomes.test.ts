import { describe, expect, test } from 'vitest';
import { compilePolicy } from '../../packages/policy/src/index.ts';
import { manifests } from '../semantics/support/bench.fixture.ts';
import { compileChecked, expectPass, failures, report, resultOf } from './support/checked-policy.fixture.ts';

const TIERS = `
define gateway { models: ["auto"] }
define tier "8B" { model: "small", endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "70B" { model: "large", endpoints: ["http://10.0.0.21:8000", "http://10.0.0.22:8000"] }
`;
const HARD = `${TIERS}
route "hard" when complexity > 50 to tier "70B" by least_tokens with affinity session
default to tier "8B" by least_tokens
`;

describe('what a test may give', () => {
  test('the example of the language: a hard prompt goes to the least loaded endpoint', () => {
    const body = `
      given complexity = 72
      given endpoint "gpu-a" { tier: "70B", queued_tokens: 9k }
      given endpoint "gpu-b" { tier: "70B", queued_tokens: 2k }
      expect route "hard" to endpoint "gpu-b"
      expect route "hard" to tier "70B"
      expect to endpoint "gpu-b"
      expect not to endpoint "gpu-a"
      expect not default`;
    expectPass(HARD, body);
  });

  test('a signal that is not given is unknown, and no condition on it fires', () => {
    expectPass(HARD, 'expect default');
    const policy = `${TIERS}route "r" when not (user == "a") to tier "8B"\ndefault to tier "70B"`;
    expectPass(policy, 'expect default');
    expectPass(policy, 'given user = "b"\nexpect route "r"');
  });

  test('what every request has is that of an empty one, where it is not given', () => {
    const plain = 'not stream and tools == 0 and prompt_tokens == 0 and complexity < 1 and priority == "normal"';
    const policy = `${TIERS}route "plain" when ${plain} and hour == 0 and weekday == "mon" and model == "" to tier "8B"
      default to tier "70B"`;
    expectPass(policy, 'expect route "plain"');
    for (const fact of [
      'stream = true',
      'tools = 1',
      'prompt_tokens = 1',
      'complexity = 1',
      'priority = "low"',
      'hour = 1',
      'weekday = "tue"',
      'model = "auto"',
    ])
      expectPass(policy, `given ${fact}\nexpect default`);
  });

  test('of a signal that a plugin works out, the fact counts and the plugin is not asked', () => {
    expectPass(
      `${TIERS}route "code" when code and words in 3..4 to tier "70B"\ndefault to tier "8B"`,
      'given code = true, words = 3\nexpect route "code"',
    );
  });

  test('headers, metadata, the tenant by name and single fields of it', () => {
    const policy = `${TIERS}
      define tenant "acme" { keys: ["${'0'.repeat(64)}"], class: "high", region: "eu" }
      route "eu" when tenant.region == "eu" and tenant.id == "acme" to tier "70B"
      route "us" when tenant.region == "us" to tier "8B"
      route "slow" when header["X-Slo"] == "batch" and metadata["team"] == "a" to tier "8B"
      default to tier "8B"`;
    expectPass(policy, 'given tenant = "acme"\nexpect route "eu"');
    expectPass(
      policy.replace('route "eu"', 'route "high" when priority == "high" to tier "8B" route "eu"'),
      'given tenant = "acme"\nexpect route "high"',
    );
    expectPass(policy, 'given tenant = "acme", tenant.region = "us"\nexpect route "us"');
    expectPass(policy, 'given tenant.region = "us"\nexpect route "us"');
    expectPass(policy, 'given header["x-slo"] = "batch", metadata["team"] = "a"\nexpect route "slow"');
  });

  test('the hour and the day in the zone of the gateway tell windows and other zones', () => {
    const policy = `define gateway { models: ["auto"], timezone: "Europe/Berlin" }
      define tier "8B" { model: "m", endpoints: ["http://10.0.0.11:8000"] }
      route "night" when within("mon-fri 22:00-06:00") to tier "8B"
      route "utc noon" when hour(zone: "UTC") == 12 to tier "8B"
      default to tier "8B"`;
    expectPass(policy, 'given hour = 23, weekday = "tue"\nexpect route "night"');
    expectPass(policy, 'given hour = 3, weekday = "sat"\nexpect route "night"');
    expectPass(policy, 'given hour = 23, weekday = "sat"\nexpect default');
    expectPass(policy, 'given hour = 13\nexpect route "utc noon"');
    expectPass(policy, 'given hour = 13, weekday = "sun"\nexpect route "utc noon"');
    expectPass(policy, 'expect default');
  });

  test('a prompt that is given has a prefix; a parameter has its default, whatever the environment says', () => {
    const policy = `${TIERS}define param "zone" { env: "PATH", default: "a" }
      route "a" when param.zone == "a" and prompt matches r"stack trace" to tier "8B" with affinity prefix(2k)
      default to tier "8B"`;
    expectPass(policy, 'given prompt = "a stack trace"\nexpect route "a"');
    expectPass(policy, 'given prompt = "a stack trace", param.zone = "b"\nexpect default');
    expect(resultOf(policy, 'given prompt = "a stack trace"\nexpect route "a"').explanation?.affinity).toBe('hit');
  });

  test('a limit is fresh: only a request that is too big by itself exceeds it', () => {
    const policy = `${TIERS}define limit "small" { key: user, tokens: 10k/min }
      reject "quota" when over_limit("small") with status 429, message "no more"
      default to tier "8B"`;
    expectPass(policy, 'given user = "u", prompt_tokens = 20k\nexpect reject with status 429, message "no more"');
    expectPass(policy, 'given user = "u", prompt_tokens = 1k\nexpect default\nexpect not reject');
  });
});

describe('the fleet of a test', () => {
  test('endpoints by new names take the place of their tier, and other tiers stay', () => {
    expectPass(HARD, 'given complexity = 60\ngiven endpoint "only" { tier: "70B" }\nexpect to endpoint "only"');
    expectPass(HARD, 'given endpoint "only" { tier: "70B" }\nexpect to tier "8B"');
  });

  test('an endpoint that the policy defines keeps its place, its tier and its neighbours', () => {
    expectPass(HARD, 'given complexity = 60\ngiven endpoint "70B/1" { queued_tokens: 9k }\nexpect to endpoint "70B/2"');
    expectPass(HARD, 'given complexity = 60\ngiven endpoint "70B/2" { queued_tokens: 9k }\nexpect to endpoint "70B/1"');
  });

  test('draining, asleep, failed and full endpoints are passed over', () => {
    for (const state of [
      'draining: true',
      'state: "asleep"',
      'state: "loading"',
      'state: "draining"',
      'healthy: false',
      'max_requests: 4, inflight_requests: 4',
    ])
      expectPass(HARD, `given complexity = 60\ngiven endpoint "70B/1" { ${state} }\nexpect to endpoint "70B/2"`);
  });

  test('a load comes out to the last bit, with and without a known throughput', () => {
    const policy = `${TIERS}route "r" when stream to any where under_load(95%) by declared_order\ndefault to any where load == 96% by least_tokens`;
    for (const rate of ['', ', throughput: 300/s', ', throughput: 37/s, queued_tokens: 17']) {
      const given = (load: string): string =>
        `given stream = true\ngiven endpoint "a" { tier: "8B", load: ${load}${rate} }\ngiven endpoint "b" { tier: "70B", load: 200% }`;
      expectPass(policy, `${given('95%')}\nexpect not to any`);
      expectPass(policy, `${given('94.9%')}\nexpect to endpoint "a"`);
      if (!rate.includes('queued'))
        expectPass(policy, `given endpoint "a" { tier: "8B", load: 96%${rate} }\nexpect to endpoint "a"`);
    }
  });

  test('what engines report and plugins predict may be given', () => {
    const policy = `${TIERS}route "r" when stream to any where kv_cache_used < 90% and predicted_ttft < 500ms and labels.rack == "a" by lowest(predicted_ttft)
      default to any where "tools" in supports by lowest(queue_depth)`;
    const given = `
      given endpoint "a" { tier: "8B", kv_cache_used: 50%, predicted_ttft: 400ms, labels: { rack: "a" } }
      given endpoint "b" { tier: "8B", kv_cache_used: 50%, predicted_ttft: 300ms, labels: { rack: "a" } }
      given endpoint "c" { tier: "8B", kv_cache_used: 95%, predicted_ttft: 100ms, labels: { rack: "a" }, supports: ["tools"], queue_depth: 2 }
      given endpoint "d" { tier: "8B", kv_cache_used: 50%, predicted_ttft: 100ms, labels: { rack: "b" }, supports: ["tools"], queue_depth: 1 }`;
    expectPass(policy, `given stream = true\n${given}\nexpect to endpoint "b"`);
    expectPass(policy, `${given}\nexpect to endpoint "d"`);
  });

  test('a tier whose endpoints nobody names has one', () => {
    const policy =
      'route "hard" when complexity > 50 to tier "70B"\nroute "one" when stream to endpoint "x"\ndefault to tier "8B"';
    expectPass(policy, 'given complexity = 51\nexpect route "hard" to tier "70B"');
    expectPass(policy, 'given stream = true\nexpect route "one" to endpoint "x"');
  });
});

describe('what may be expected', () => {
  const VERDICTS = `${TIERS}
    reject "too long" when prompt_tokens > 100k with status 413, message "too long", retry_after 7s
    admit "vip" when user == "vip"
    queue "hot" when priority == "low" with max_wait 3s, max_depth 10
    route "hard" when complexity > 50 to tier "70B" else to tier "8B" else queue with max_wait 5s
    route "sure" when stream to tier "70B" else reject with status 418
    route "on" when tools > 0 to tier "70B" else next
    default to tier "8B"`;

  test('verdicts, by what was answered and what the rule says', () => {
    expectPass(
      VERDICTS,
      'given prompt_tokens = 200k\nexpect reject\nexpect reject with status 413, message "too long", retry_after 7s\nexpect not admit\nexpect not default',
    );
    expect(
      failures(
        VERDICTS,
        'given prompt_tokens = 200k\nexpect reject with status 429\nexpect reject with message "else"\nexpect reject with retry_after 8s\nexpect queue',
      ),
    ).toEqual([
      'reject with status 429 ≠ reject with status 413 rejected by rule "too long"',
      'reject with message "else" ≠ reject with status 413 rejected by rule "too long"',
      'reject with retry_after 8s ≠ reject with status 413 rejected by rule "too long"',
      'queue ≠ reject with status 413 rejected by rule "too long"',
    ]);
    expectPass(
      VERDICTS,
      'given priority = "low"\nexpect queue\nexpect queue with max_wait 3s\nexpect queue with max_wait 3s, max_depth 10\nexpect not queue with max_wait 4s\nexpect not queue with overflow lowest',
    );
    expectPass(VERDICTS, 'given user = "vip", priority = "low"\nexpect admit\nexpect default');
    expectPass(VERDICTS, 'expect admit');
  });

  test('a route is the one that took the request, whatever came of it', () => {
    const none = 'given endpoint "70B/1" { draining: true }\ngiven endpoint "70B/2" { draining: true }';
    expectPass(VERDICTS, `given complexity = 60\n${none}\nexpect route "hard" to tier "8B"`);
    expectPass(
      VERDICTS,
      `given stream = true\n${none}\nexpect route "sure"\nexpect reject with status 418\nexpect not to any`,
    );
    expectPass(VERDICTS, `given tools = 1\n${none}\nexpect default\nexpect not route "on"`);
    expect(
      failures(`${TIERS}route "r" to tier "70B"`, `${none}\nexpect route "r" to tier "70B"\nexpect reject`),
    ).toEqual([
      'route "r" to tier "70B" ≠ route "r", which found no endpoint: status 503 no_endpoint',
      'reject ≠ route "r", which found no endpoint: status 503 no_endpoint',
    ]);
  });

  test('a queue of an `else` waits only for something that may come', () => {
    const full = '{ max_requests: 1, inflight_requests: 1 }';
    const all = ['8B/1', '8B/2', '70B/1', '70B/2'].map((name) => `given endpoint "${name}" ${full}`).join('\n');
    expectPass(VERDICTS, `given complexity = 60\n${all}\nexpect queue with max_wait 5s\nexpect route "hard"`);
  });

  test('a model that nobody serves is no outcome of a rule', () => {
    expect(failures(HARD, 'given model = "unheard of"\nexpect default')).toEqual([
      'default ≠ status 404 model_not_found',
    ]);
    expectPass(HARD, 'given model = "auto"\nexpect default');
  });

  test('a negation fails where the outcome came about', () => {
    expect(failures(HARD, 'given complexity = 51\nexpect not route "hard"')).toEqual([
      expect.stringMatching(/^not route "hard" ≠ route "hard" to endpoint "70B\/[12]" of tier "70B"$/),
    ]);
  });

  test('a test without an expectation fails, and so does one whose plugin cannot be had', () => {
    expect(resultOf(HARD, 'given complexity = 51')).toMatchObject({
      passed: false,
      error: 'it expects nothing; write `expect …`',
    });
    const { tests } = report(`${HARD}test "t" { expect default }`, { plugins: [] });
    expect(tests[0]).toMatchObject({ passed: false, error: expect.stringContaining('plugin "') });
  });

  test('spans lead to the expectation', () => {
    const policy = `${HARD}\ntest "t" {\n  expect default\n  expect route "hard"\n}\n`;
    const { unmet } = report(policy).tests[0] ?? { unmet: [] };
    expect(unmet.map(({ span }) => policy.slice(span.start, span.end))).toEqual(['expect route "hard"']);
  });
});

test('equal tests give equal results, round robin and random pickers too', () => {
  const policy = `${TIERS}route "a" when stream to any by random pick weighted\nroute "b" when complexity > 1 to 50% tier "8B", 50% tier "70B" by round_robin pick power_of_two\ndefault to any by round_robin
    test "a" { given stream = true expect to any }
    test "b" { given complexity = 2, session = "s" expect to any }
    test "c" { expect to any }`;
  const endpoints = (): readonly unknown[] => report(policy).tests.map(({ explanation }) => explanation?.endpoint);
  const first = endpoints();
  expect(first).not.toContain(null);
  for (let again = 0; again < 5; again++) expect(endpoints()).toEqual(first);
});

test('only the tests asked for run', () => {
  const { tests } = report(`${HARD}test "a" { expect default }\ntest "b" { expect default }`, {
    select: ({ label }) => label === 'b',
  });
  expect(tests.map(({ label }) => label)).toEqual(['b']);
  expect(compileChecked(HARD).checks.tests).toEqual([]);
});

test('what is written out where it is used cannot be given, and the finding says what can', () => {
  const findings = (property: string, given = `given endpoint "a" { tier: "8B", ${property} }`): readonly string[] =>
    compilePolicy({
      path: 'main.route',
      text: `${HARD}test "t" { ${given} expect default }`,
      manifests,
    }).diagnostics.flatMap(({ code, help }) => (code.startsWith('E') ? [`${code} ${help ?? ''}`] : []));
  expect(findings('has_lora: true')).toEqual(['E0339 give what it is computed from: `lora in loras`']);
  expect(findings('under_load: true')).toEqual(['E0339 give what it is computed from: `load < max`']);
  expect(findings('under_bound: true')).toEqual(['E0339 give what it is computed from']);
  expect(findings('load: 50%')).toEqual([]);
  expect(findings('', 'given tenant "acme" { region: "eu" }')).toEqual([
    'E0207 write `given tenant = "acme"`, or single facts as `tenant.region = "eu"`',
  ]);
  expect(findings('', 'given tier "8B" { model: "m" }')).toEqual([
    'E0207 what the policy defines holds in its tests too',
  ]);
});
