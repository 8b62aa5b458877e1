import { describe, expect, test } from 'vitest';
import {
  candidateTruth,
  codes,
  endpoints,
  errors,
  expectDecision,
  tiers,
  truth,
  value,
} from './support/bench.fixture.ts';

const slow = { messages: 'one two three' };
const unknownSession = {};
const known = { headers: { 'x-session-id': 's' } };

describe('unknown', () => {
  test('a condition fires only when it is known true, and so does its negation', () => {
    expect(truth('session == "s"', known)).toBe('true');
    expect(truth('session == "t"', known)).toBe('false');
    expect(truth('session == "s"', unknownSession)).toBe('unknown');
    expect(truth('session != "s"', unknownSession)).toBe('unknown');
  });

  test('a comparison of two signals is unknown if either is', () => {
    expect(truth('session == user', { ...known, user: 's' })).toBe('true');
    expect(truth('session != user', { user: 's' })).toBe('unknown');
    expect(truth('session != user', known)).toBe('unknown');
    expect(truth('session == user', {})).toBe('unknown');
    expect(truth('max_tokens != session_tokens', {})).toBe('unknown');
  });

  test('numbers that are unknown compare to nothing, by any operator', () => {
    for (const operator of ['==', '!=', '<', '<=', '>', '>=']) {
      expect(truth(`max_tokens ${operator} 5`, {}), operator).toBe('unknown');
      expect(truth(`not (max_tokens ${operator} 5)`, {}), operator).toBe('unknown');
    }
    expect(truth('max_tokens in 0..5', {})).toBe('unknown');
    expect(truth('max_tokens not in 0..5', {})).toBe('unknown');
  });

  const unknown = 'session == "s"';
  test.each([
    [`${unknown} and stream`, { stream: true }, 'unknown'],
    [`${unknown} and stream`, { stream: false }, 'false'],
    [`${unknown} or stream`, { stream: true }, 'true'],
    [`${unknown} or stream`, { stream: false }, 'unknown'],
    [`stream and ${unknown}`, { stream: false }, 'false'],
    [`not (${unknown}) and stream`, { stream: true }, 'unknown'],
    [`not (${unknown} and stream)`, { stream: false }, 'true'],
    [`not (${unknown} or stream)`, { stream: true }, 'false'],
  ] as const)('Kleene: `%s` with %o is %s', (condition, request, expected) => {
    expect(truth(condition, request)).toBe(expected);
  });

  test('`??` supplies a value, binds tighter than comparison, and goes on from unknown to unknown', () => {
    expect(truth('max_tokens ?? 100 > 50', {})).toBe('true');
    expect(truth('max_tokens ?? 100 > 50', { maxTokens: 10 })).toBe('false');
    expect(truth('session ?? user ?? "x" == "x"', {})).toBe('true');
    expect(truth('session ?? user == "u"', { user: 'u' })).toBe('true');
    expect(truth('session ?? user == "u"', {})).toBe('unknown');
    expect(truth('(session == "s") ?? true', {})).toBe('true');
    expect(truth('(session == "s") ?? true', { headers: { 'x-session-id': 'q' } })).toBe('false');
  });

  test('`exists` tests for a value and is never unknown itself', () => {
    expect(truth('session exists', known)).toBe('true');
    expect(truth('session exists', {})).toBe('false');
    expect(truth('not (max_tokens exists)', {})).toBe('true');
    expect(truth('max_tokens exists', { maxTokens: 0 })).toBe('true');
  });

  test('`&&`, `||`, `!` and `=` are errors with a fix', () => {
    for (const [condition, code] of [
      ['stream && stream', 'E0108'],
      ['stream || stream', 'E0108'],
      ['!stream', 'E0108'],
      ['turns = 5', 'E0109'],
    ] as const) {
      expect(errors(`${tiers({ a: 1 })}route when ${condition} to tier "a"\ndefault reject`), condition).toEqual([
        code,
      ]);
    }
  });
});

describe('ranges and lists', () => {
  test('a range includes both ends', () => {
    for (const [words, expected] of [
      [1, 'false'],
      [2, 'true'],
      [3, 'true'],
      [4, 'true'],
      [5, 'false'],
    ] as const) {
      expect(truth('words in 2..4', { messages: Array.from({ length: words }, () => 'w').join(' ') })).toBe(expected);
    }
    expect(truth('words not in 2..4', slow)).toBe('false');
  });

  test('a range with an unknown end is false where the other end decides', () => {
    expect(truth('words in 10..max_tokens', slow)).toBe('false');
    expect(truth('words in 2..max_tokens', slow)).toBe('unknown');
  });

  test('a reversed range is an error, and points to `within` for hours', () => {
    expect(errors(`${tiers({ a: 1 })}route when hour in 22..6 to tier "a"\ndefault reject`)).toEqual(['E0312']);
  });

  test('`in` is true on a match, else unknown if a member is unknown', () => {
    expect(truth('model in ["m", "n"]')).toBe('true');
    expect(truth('model in ["n"]')).toBe('false');
    expect(truth('model in ["m", session]')).toBe('true');
    expect(truth('model in ["n", session]')).toBe('unknown');
    expect(truth('model not in ["n", session]')).toBe('unknown');
    expect(truth('model not in ["m", session]')).toBe('false');
    expect(truth('model in []')).toBe('false');
    expect(truth('session in ["s"]')).toBe('unknown');
  });

  test('`in` and `contains` look into lists of the request and of endpoints', () => {
    expect(truth('"f" in tool_names', { toolNames: ['f', 'g'] })).toBe('true');
    expect(truth('tool_names contains "g"', { toolNames: ['f', 'g'] })).toBe('true');
    expect(truth('tool_names contains "h"', { toolNames: ['f', 'g'] })).toBe('false');
    expect(candidateTruth('supports contains "vision"', 'supports: ["vision", "tools"]')).toBe('true');
    expect(candidateTruth('"audio" in supports', 'supports: ["vision"]')).toBe('false');
    expect(candidateTruth('"audio" in supports')).toBe('unknown');
  });
});

describe('text', () => {
  test('`contains` searches a substring and minds case', () => {
    expect(truth('prompt contains "lo th"')).toBe('true');
    expect(truth('prompt contains "Hello"')).toBe('false');
    expect(truth('session contains "s"')).toBe('unknown');
  });

  test('`matches` searches, with the flags written', () => {
    expect(truth('prompt matches r"th.re"')).toBe('true');
    expect(truth('prompt matches r"^there"')).toBe('false');
    expect(truth('prompt matches r"HELLO"')).toBe('false');
    expect(truth('prompt matches r"HELLO"i')).toBe('true');
    expect(truth('prompt matches r"^b$"', { messages: 'a\nb\nc' })).toBe('false');
    expect(truth('prompt matches r"^b$"m', { messages: 'a\nb\nc' })).toBe('true');
    expect(truth('prompt matches r"a.b"', { messages: 'a\nb' })).toBe('false');
    expect(truth('prompt matches r"a.b"s', { messages: 'a\nb' })).toBe('true');
    expect(truth('session matches r"s"')).toBe('unknown');
  });

  test('`matches` sees the first 16 KiB of a prompt; no match in a longer one is unknown, a match stands', () => {
    const long = `needle ${'x'.repeat(20_000)} tail`;
    expect(truth('prompt matches r"needle"', { messages: long })).toBe('true');
    expect(truth('prompt matches r"tail"', { messages: long })).toBe('unknown');
    expect(truth('prompt matches r"zzz"', { messages: 'x'.repeat(16_384) })).toBe('false');
    expect(truth('prompt matches r"zzz"', { messages: 'x'.repeat(16_385) })).toBe('unknown');
  });

  test('in r"…" only \\" is an escape', () => {
    expect(truth('prompt matches r"say \\"yes\\""', { messages: 'say "yes"' })).toBe('true');
    expect(truth('prompt matches r"a\\\\b"', { messages: 'a\\b' })).toBe('true');
    expect(truth('prompt matches r"\\d{3}"', { messages: 'a 123' })).toBe('true');
  });

  test('an order of strings is an error', () => {
    expect(errors(`${tiers({ a: 1 })}route when model < "n" to tier "a"\ndefault reject`)).toEqual(['E0313']);
  });

  test.each(['(a+)+$', '^(a+)+$', '(a|a)*$', '(?=a)b', '(a)\\1'])('the expression `%s` is refused', (source) => {
    expect(errors(`${tiers({ a: 1 })}route when prompt matches r"${source}" to tier "a"\ndefault reject`)).toEqual([
      'E0330',
    ]);
  });
});

describe('what callers send', () => {
  test('header names ignore case', () => {
    expect(truth('header["X-Tier"] == "gold"', { headers: { 'x-tier': 'gold' } })).toBe('true');
    expect(truth('header["x-tier"] == "Gold"', { headers: { 'x-tier': 'gold' } })).toBe('false');
    expect(truth('header["x-tier"] == "gold"')).toBe('unknown');
  });

  test('metadata is read by key', () => {
    expect(truth('metadata["team"] == "a"', { metadata: { team: 'a' } })).toBe('true');
    expect(truth('metadata["Team"] == "a"', { metadata: { team: 'a' } })).toBe('unknown');
    expect(truth('metadata["__proto__"] exists', { metadata: {} })).toBe('false');
    expect(truth('header["constructor"] exists')).toBe('false');
  });

  const given = (text: string): { readonly headers: { readonly [name: string]: string } } => ({ headers: { x: text } });
  test.each([
    ['number(header["x"])', '5', 5],
    ['number(header["x"])', '-2.5', -2.5],
    ['number(header["x"])', 'five', undefined],
    ['number(header["x"])', '', undefined],
    ['number(header["x"])', '5 apples', undefined],
    ['number(header["x"])', 'Infinity', undefined],
    ['number(header["x"])', '0x10', undefined],
    ['duration(header["x"], ms)', '1500', 1.5],
    ['duration(header["x"], s)', '2', 2],
    ['duration(header["x"], ms)', 'soon', undefined],
    ['bool(header["x"])', 'true', true],
    ['bool(header["x"])', 'false', false],
    ['bool(header["x"])', 'perhaps', undefined],
    ['list(header["x"], ",")', 'a,b', ['a', 'b']],
    ['lower(header["x"])', 'GoLD', 'gold'],
  ])('`%s` of %j is %j', (expression, text, expected) => {
    expect(value(expression, given(text))).toEqual(expected);
  });

  test.each([
    'number(header["x"])',
    'duration(header["x"], ms)',
    'bool(header["x"])',
    'list(header["x"], ",")',
    'lower(header["x"])',
  ])('`%s` of nothing is unknown', (expression) => {
    expect(value(expression)).toBeUndefined();
    expect(truth(`${expression} exists`)).toBe('false');
  });

  test('a converted value is compared as what it is', () => {
    expect(truth('number(header["x"]) > 4', given('5'))).toBe('true');
    expect(truth('number(header["x"]) > 4', given('rubbish'))).toBe('unknown');
    expect(truth('number(header["x"]) ?? 9 > 4', given('rubbish'))).toBe('true');
    expect(truth('duration(header["x"], ms) < 2s', given('1500'))).toBe('true');
    expect(truth('bool(header["x"])', given('true'))).toBe('true');
    expect(truth('"b" in list(header["x"], ",")', given('a,b'))).toBe('true');
    expect(truth('"b" in list(header["x"], ",")', given('a, b'))).toBe('true');
    expect(truth('lower(header["x"]) == "gold"', given('GOLD'))).toBe('true');
  });

  test('the session is header `x-session-id`, else `metadata.session_id`, else `prompt_cache_key`', () => {
    expect(
      value('session', { headers: { 'x-session-id': 'h' }, metadata: { session_id: 'b' }, promptCacheKey: 'c' }),
    ).toBe('h');
    expect(value('session', { metadata: { session_id: 'b' }, promptCacheKey: 'c' })).toBe('b');
    expect(value('session', { promptCacheKey: 'c' })).toBe('c');
    expect(value('session')).toBeUndefined();
  });

  test('plain facts of the body', () => {
    const request = {
      model: 'm',
      stream: true,
      reasoning: true,
      jsonSchema: true,
      user: 'u',
      toolNames: ['f'],
      maxTokens: 7,
      promptTokensExact: 12,
      messages: [
        { role: 'system', text: 'be kind' },
        { role: 'user', text: 'why? how?', images: 2 },
        { role: 'assistant', text: 'so' },
        { role: 'user', text: 'and then?' },
      ],
    };
    const facts: { readonly [name: string]: unknown } = {
      model: 'm',
      stream: true,
      reasoning: true,
      json_schema: true,
      user: 'u',
      tools: 1,
      tool_names: ['f'],
      images: 2,
      turns: 2,
      questions: 1,
      words: 2,
      max_tokens: 7,
      prompt_tokens: 12,
      output_tokens: 7,
      path: '/v1/chat/completions',
      system_prompt: 'be kind',
      first_user_message: 'why? how?',
      priority: 'normal',
    };
    for (const [name, expected] of Object.entries(facts)) expect(value(name, request), name).toEqual(expected);
  });

  test.each(['chat', 'completion', 'embedding', 'other'] as const)(
    'what the catalogue calls always known is so for %s requests that say nothing',
    (kind) => {
      const request = { kind, messages: [], nameless: true };
      const always = `model prompt_tokens prompt_chars questions words turns stream tools images path complexity complexity.textbook
        priority hour weekday within("mon-sun")`;
      for (const name of always.split(/\s+/)) {
        expect(truth(`${name} exists`, request), name).toBe('true');
      }
    },
  );

  test('a conversation is known by its opening, whatever follows', () => {
    const opening = [{ role: 'user', text: 'first' }];
    const later = [...opening, { role: 'assistant', text: 'a' }, { role: 'user', text: 'second' }];
    const conversation = value('conversation', { messages: opening });
    expect(conversation).toBeTypeOf('string');
    expect(value('conversation', { messages: later })).toBe(conversation);
    expect(value('conversation', { messages: 'other' })).not.toBe(conversation);
  });

  test('the deadline is the time that is left', () => {
    expect(value('deadline', { deadlineMs: 2500 })).toBe(2.5);
    expect(value('deadline')).toBeUndefined();
    expect(truth('deadline < 3s', { deadlineMs: 2500 })).toBe('true');
  });
});

describe('functions of values', () => {
  test('min and max of two or more compare values, and are unknown if one is', () => {
    expect(value('min(prompt_tokens, 100)', { promptTokensExact: 12 })).toBe(12);
    expect(value('max(prompt_tokens, 100, 200)', { promptTokensExact: 12 })).toBe(200);
    expect(value('max(prompt_tokens, max_tokens)', { promptTokensExact: 12 })).toBeUndefined();
  });

  test('clamp keeps a value between two others', () => {
    for (const [tokens, expected] of [
      [1, 10],
      [15, 15],
      [99, 20],
    ] as const) {
      expect(value('clamp(prompt_tokens, 10, 20)', { promptTokensExact: tokens })).toBe(expected);
    }
  });
});

describe('aggregates', () => {
  const fleet = {
    'a/1': { queuedTokens: 10, decodeTokens: 1 },
    'a/2': { queuedTokens: 30, decodeTokens: 2 },
    'b/1': { queuedTokens: 50, decodeTokens: 3 },
  };
  const definitions = tiers({ b: 1 }).replaceAll('10.0.', '10.3.') + tiers({ a: 2 }).replaceAll('10.0.', '10.4.');
  const over = (condition: string, more: { readonly [endpoint: string]: object } = {}): string =>
    truth(condition, {}, { definitions, fleet: { ...fleet, ...more } });
  const amount = (expression: string, more: { readonly [endpoint: string]: object } = {}): unknown =>
    value(expression, {}, { definitions: tiers({ b: 1, c: 2 }).replaceAll('10.0.', '10.3.'), fleet: more });

  test.each([
    ['min(queued_tokens, tier "a") == 10'],
    ['max(queued_tokens, tier "a") == 30'],
    ['avg(queued_tokens, tier "a") == 20'],
    ['sum(queued_tokens, tier "a") == 40'],
    ['count(queued_tokens > 5, tier "a") == 2'],
    ['count(queued_tokens > 20, tier "a") == 1'],
    ['any(queued_tokens > 20, tier "a")'],
    ['all(queued_tokens > 5, tier "a")'],
    ['not all(queued_tokens > 20, tier "a")'],
    ['max(queued_tokens) == 50'],
    ['sum(queued_tokens) == 90'],
    ['max(queued_tokens, endpoint "a/2") == 30'],
    ['max(queued_tokens + decode_tokens, tier "a") == 32'],
  ])('`%s`', (condition) => {
    expect(over(condition)).toBe('true');
  });

  test('range over the endpoints that are neither ejected nor draining', () => {
    expect(over('sum(queued_tokens, tier "a") == 30', { 'a/1': { cordoned: true } })).toBe('true');
    expect(over('count(queued_tokens >= 0, tier "a") == 1', { 'a/2': { ejected: true } })).toBe('true');
  });

  test('over no endpoint are unknown, but count and sum are 0', () => {
    const none = { 'b/1': { cordoned: true } };
    for (const name of ['min', 'max', 'avg'])
      expect(amount(`${name}(queued_tokens, tier "b")`, none), name).toBeUndefined();
    for (const name of ['any', 'all'])
      expect(amount(`${name}(queued_tokens > 1, tier "b")`, none), name).toBeUndefined();
    expect(amount('sum(queued_tokens, tier "b")', none)).toBe(0);
    expect(amount('count(queued_tokens > 1, tier "b")', none)).toBe(0);
  });

  test('skip what is unknown; all unknown is unknown, and count counts what is known true', () => {
    const one = { 'c/1': { kvCacheUsed: 0.5 } };
    expect(amount('min(kv_cache_used, tier "c")', one)).toBe(0.5);
    expect(amount('avg(kv_cache_used, tier "c")', one)).toBe(0.5);
    expect(amount('sum(kv_cache_used, tier "c")', one)).toBe(0.5);
    expect(amount('count(kv_cache_used > 10%, tier "c")', one)).toBe(1);
    for (const name of ['min', 'max', 'avg', 'sum'])
      expect(amount(`${name}(kv_cache_used, tier "c")`), name).toBeUndefined();
    expect(amount('count(kv_cache_used > 10%, tier "c")')).toBe(0);
  });

  test('any and all skip nothing', () => {
    const one = { 'c/1': { kvCacheUsed: 0.5 } };
    expect(amount('any(kv_cache_used > 10%, tier "c")', one)).toBe(true);
    expect(amount('any(kv_cache_used > 60%, tier "c")', one)).toBeUndefined();
    expect(amount('all(kv_cache_used > 10%, tier "c")', one)).toBeUndefined();
    expect(amount('all(kv_cache_used > 60%, tier "c")', one)).toBe(false);
  });

  test('inside `where` an aggregate ranges over its target as a whole', () => {
    const policy = `${endpoints({ x: '', y: '', z: '' })}
default to tier "t" where queued_tokens == max(queued_tokens, tier "t") else reject`;
    expectDecision(
      policy,
      'y',
      {},
      { fleet: { x: { queuedTokens: 1 }, y: { queuedTokens: 9 }, z: { queuedTokens: 5 } } },
    );
  });

  test('do not nest, and need a property', () => {
    const policy = (condition: string): string =>
      `${tiers({ a: 1 })}route when ${condition} to tier "a"\ndefault reject`;
    expect(errors(policy('max(queued_tokens - min(queued_tokens)) > 5'))).toEqual(['E0332']);
    expect(errors(policy('max(turns, tier "a") > 5'))).toEqual(['E0307']);
  });
});

describe('scopes', () => {
  test('a property in `when` is an error that offers an aggregate', () => {
    expect(errors(`${tiers({ a: 1 })}route when kv_cache_used < 90% to tier "a"\ndefault reject`)).toEqual(['E0306']);
  });

  test('request signals and cluster values stand in `where` too', () => {
    expectDecision(
      `${tiers({ a: 1 })}default to tier "a" where turns == 1 and cluster.healthy == 100% else reject`,
      'a/1',
    );
  });

  test('a property through a `let` is reported at the use', () => {
    const policy = `${tiers({ a: 1 })}let full = load > 90%\nroute when full to tier "a"\ndefault to tier "a" where not full`;
    expect(codes(policy)).toEqual(['E0306']);
  });
});
