import { describe, expect, test } from 'vitest';
import { candidateTruth, compile, errors, tiers, truth, value } from './support/bench.fixture.ts';

const rule = (condition: string): string => `${tiers({ a: 1 })}route when ${condition} to tier "a"\ndefault reject`;
const filter = (condition: string): string => `${tiers({ a: 1 })}default to tier "a" where ${condition}`;

describe('spellings', () => {
  test.each([
    ['1k', 1000],
    ['1Ki', 1024],
    ['2M', 2e6],
    ['1Mi', 1048576],
    ['1B', 1e9],
    ['1_000', 1000],
    ['2.5', 2.5],
    ['500ms', 0.5],
    ['250us', 0.00025],
    ['2s', 2],
    ['2m', 120],
    ['1h', 3600],
    ['1d', 86400],
    ['95%', 0.95],
    ['60/min', 1],
    ['5k/s', 5000],
    ['3600/h', 1],
    ['86400/d', 1],
    ['1KB', 1000],
    ['1KiB', 1024],
    ['1MB', 1e6],
    ['1MiB', 1048576],
    ['1GB', 1e9],
    ['1GiB', 1073741824],
    ['$2.5', 2.5],
  ])('`%s` is %d', (written, canonical) => {
    expect(value(written)).toBeCloseTo(canonical, 12);
  });

  test.each([
    ['prompt_tokens > 5m', 'E0303'],
    ['prompt_tokens > 1e3', 'E0106'],
    ['prompt_tokens > .5', 'E0106'],
    ['deadline > 90sec', 'E0104'],
    ['deadline > 5 s', 'E0105'],
    ['cluster.requests_per_second > 60/m', 'E0107'],
  ])('`%s` gives %s', (condition, code) => {
    expect(errors(rule(condition))).toEqual([code]);
  });

  test('`5m` tokens asks for five million, `90sec` for `90s`, `60/m` for `60/min`, with a fix', () => {
    for (const [condition, text] of [
      ['prompt_tokens > 5m', '5M'],
      ['deadline > 90sec', '90s'],
      ['cluster.requests_per_second > 60/m', '60/min'],
      ['deadline > 5 s', '5s'],
    ] as const) {
      const [finding] = compile(rule(condition)).diagnostics;
      expect(JSON.stringify([finding?.help, finding?.fix]), condition).toContain(text);
      expect(finding?.fix, condition).toBeDefined();
    }
  });
});

describe('dimensions', () => {
  test.each([
    'deadline > 5',
    'turns > 5s',
    'prompt_tokens + deadline > 5',
    'deadline + 1 > 2s',
    'cluster.requests_per_second > 5',
    'cluster.requests_per_second > 5s',
  ])('`%s` does not compile', (condition) => {
    expect(errors(rule(condition))).toEqual(['E0302']);
  });

  test('a percent compared with a plain number is an error with the fix `90%`', () => {
    for (const written of ['90', '0.9']) {
      const [finding] = compile(filter(`kv_cache_used < ${written}`)).diagnostics;
      expect(finding?.code).toBe('E0305');
      expect(finding?.fix?.edits[0]?.text).toBe('90%');
    }
    expect(errors(rule('cluster.saturation > 85'))).toEqual(['E0305']);
  });

  test('strings, conditions and numbers do not mix', () => {
    expect(errors(rule('model == 5'))).toEqual(['E0301']);
    expect(errors(rule('stream == "true"'))).toEqual(['E0301']);
    expect(errors(rule('header["x"] > 5'))).toEqual(['E0301']);
    expect(errors(rule('turns'))).toEqual(['E0308']);
    expect(errors(rule('turns and stream'))).toEqual(['E0308']);
    expect(errors(rule('turns in ["a"]'))).toEqual(['E0301']);
    expect(errors(rule('"a" in model'))).toEqual(['E0314']);
    expect(errors(rule('turns matches r"a"'))).toEqual(['E0315']);
    expect(errors(rule('turns contains 5'))).toEqual(['E0316']);
    expect(errors(rule('session ?? 5 == "s"'))).toEqual(['E0317']);
    expect(errors(rule('turns in [1, "a"]'))).toEqual(['E0333']);
  });

  test('an enumeration takes its own words only', () => {
    expect(errors(rule('priority == "lwo"'))).toEqual(['E0304']);
    expect(errors(rule('weekday in ["sat", "son"]'))).toEqual(['E0304']);
    expect(errors(filter('state == "redy"'))).toEqual(['E0304']);
    expect(errors(filter('precision == "fp7"'))).toEqual(['E0304']);
  });
});

describe('algebra', () => {
  test.each([
    ['percent times T is T', '50% * 10s', 5],
    ['T times percent is T', '10s * 50%', 5],
    ['percent of a count', '50% * prompt_tokens', 50],
    ['T by T is a number', '10s / 4s', 2.5],
    ['a count over a duration is a rate', 'prompt_tokens / 4s', 25],
    ['bytes over a duration are a rate', '10MB / 2s', 5e6],
    ['a rate times a duration is a count', '25/s * 4s', 100],
    ['a duration times a number keeps its unit', '2 * 3s', 6],
    ['a duration by a number keeps its unit', '6s / 2', 3],
    ['minus', '-(5s - 8s)', 3],
  ])('%s: `%s` is %d', (_what, expression, expected) => {
    expect(value(expression, { promptTokensExact: 100 })).toBeCloseTo(expected, 9);
  });

  test.each([
    ['prompt_tokens / 4s > 20/s', 'true'],
    ['25/s * 4s == prompt_tokens', 'true'],
    ['prompt_tokens / 4s > 30/s', 'false'],
    ['50% * prompt_tokens >= 50', 'true'],
    ['deadline / 2s == 2', 'true'],
  ] as const)('`%s` compares by the unit that comes out: %s', (condition, expected) => {
    expect(truth(condition, { promptTokensExact: 100, deadlineMs: 4000 })).toBe(expected);
  });

  test.each(['2s * 3s > 1s', 'deadline * cluster.saturation > 5', '1s / prompt_tokens > 5', '$5 * $5 > $1'])(
    '`%s` has no meaning',
    (condition) => {
      expect(errors(rule(condition))).toHaveLength(1);
      expect(errors(rule(condition))[0]).toMatch(/E03(02|21)/);
    },
  );

  test('a division by nothing is unknown at run time, and an error where it is written', () => {
    expect(value('prompt_tokens / (prompt_tokens - 100)', { promptTokensExact: 100 })).toBeUndefined();
    expect(errors(rule('turns / 0 > 5'))).toEqual(['E0329']);
  });
});

describe('the types of names', () => {
  test.each([
    ['tools == 0 and images == 0 and turns == 1 and words == 2 and questions == 0', 'true'],
    ['complexity in 0..100', 'true'],
    ['hour in 0..23', 'true'],
    ['prompt_tokens < 32k', 'true'],
    ['cluster.healthy == 100%', 'true'],
    ['weekday in ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]', 'true'],
    ['priority in ["critical", "high", "normal", "low"]', 'true'],
  ] as const)('`%s` is %s', (condition, expected) => {
    expect(truth(condition)).toBe(expected);
  });

  test.each([
    ['model_size == 70B', 'model_size: 70B'],
    ['context_window >= 32k', 'context_window: 32Ki'],
    ['precision == "fp8"', 'precision: "fp8"'],
    ['state == "ready"', ''],
    ['price == $2.5', 'price: $2.5'],
    ['throughput == 100/s', 'throughput: 100/s'],
    ['load == 0%', 'throughput: 100/s'],
    ['gpu == "H100" and gpu_count == 4', 'gpu: "H100", gpu_count: 4'],
    ['zone == "z" and region == "r" and tier == "t"', 'zone: "z", region: "r"'],
    ['predicted_wait == 0s', 'throughput: 100/s'],
    ['weight == 2', 'weight: 2'],
    ['max_requests == 3', 'max_requests: 3'],
    ['labels.rack == "r1"', 'labels: { rack: "r1" }'],
    ['labels.slots > 4', 'labels: { slots: 8 }'],
    ['name == "x"', ''],
    ['healthy and not draining', ''],
  ])('`%s` of an endpoint with { %s }', (condition, facts) => {
    expect(candidateTruth(condition, facts)).toBe('true');
  });

  test('what is not stated is unknown', () => {
    for (const name of [
      'zone == "z"',
      'price < $5',
      'throughput > 1/s',
      'load < 95%',
      'labels.rack == "r1"',
      'kv_cache_used < 90%',
    ]) {
      expect(candidateTruth(name), name).toBe('unknown');
    }
  });

  test('load is (0.1 · prompt + decode tokens) over one second of throughput, and may exceed 100 %', () => {
    const fleet = { x: { queuedTokens: 500, decodeTokens: 20 } };
    expect(candidateTruth('load in 69.9%..70.1%', 'throughput: 100/s', { fleet })).toBe('true');
    expect(candidateTruth('load > 100%', 'throughput: 50/s', { fleet })).toBe('true');
  });

  test('`under_load(95%)` is out at 95 % and in just below', () => {
    expect(candidateTruth('under_load(95%)', 'throughput: 100/s', { fleet: { x: { decodeTokens: 95 } } })).toBe(
      'false',
    );
    expect(candidateTruth('under_load(95%)', 'throughput: 1000/s', { fleet: { x: { decodeTokens: 949 } } })).toBe(
      'true',
    );
    expect(candidateTruth('under_load', 'throughput: 100/s', { fleet: { x: { decodeTokens: 95 } } })).toBe('false');
  });

  test('fits_context, has_model and has_lora', () => {
    const request = { promptTokensExact: 900, maxTokens: 100 };
    expect(candidateTruth('fits_context', 'context_window: 1000', { request })).toBe('true');
    expect(candidateTruth('fits_context', 'context_window: 999', { request })).toBe('false');
    expect(candidateTruth('fits_context', '', { request })).toBe('unknown');
    expect(candidateTruth('has_model')).toBe('true');
    expect(candidateTruth('has_model', 'model: "other"', { definitions: 'define gateway { models: ["m"] }\n' })).toBe(
      'false',
    );
    const fleet = { x: { loras: ['adapter'] } };
    expect(candidateTruth('has_lora', '', { fleet, request: { model: 'adapter' } })).toBe('true');
    expect(candidateTruth('has_lora', '', { fleet })).toBe('unknown');
  });
});

describe('annotated lets', () => {
  test.each([
    'bool = stream',
    'number = 5',
    'string = "x"',
    'duration = 5s',
    'bytes = 5MB',
    'percent = 5%',
    'rate = 5/s',
    'money = $5',
    'list[string] = ["a"]',
    'priority = "low"',
  ])('`let x: %s` fits', (rest) => {
    expect(errors(`${tiers({ a: 1 })}let x: ${rest}\ndefault to tier "a"`)).toEqual([]);
  });

  test('another type than annotated is an error, and so is an unknown type', () => {
    expect(errors(`${tiers({ a: 1 })}let x: duration = 5\ndefault to tier "a"`)).toEqual(['E0319']);
    expect(errors(`${tiers({ a: 1 })}let x: priority = "lo"\ndefault to tier "a"`)).toEqual(['E0304']);
    expect(errors(`${tiers({ a: 1 })}let x: nmber = 5\ndefault to tier "a"`)).toEqual(['E0320']);
  });
});
