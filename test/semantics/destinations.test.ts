import { describe, expect, test } from 'vitest';
import {
  codes,
  compile,
  decide,
  endpoints,
  errors,
  expectDecision,
  inBothModes,
  tiers,
} from './support/bench.fixture.ts';
import type { Bench, TestRequest } from './support/bench.fixture.ts';

const session = (id: string, more: TestRequest = {}): TestRequest => ({ ...more, headers: { 'x-session-id': id } });

function tally(bench: Bench, requests: readonly TestRequest[]): { readonly [endpoint: string]: number } {
  const counts: { [endpoint: string]: number } = {};
  for (const request of requests) {
    const endpoint = bench.send(request);
    counts[endpoint] = (counts[endpoint] ?? 0) + 1;
  }
  return counts;
}

const many = (count: number): readonly TestRequest[] => Array.from({ length: count }, () => ({}));
const sessions = (count: number): readonly TestRequest[] => Array.from({ length: count }, (_, i) => session(`s-${i}`));

describe('targets', () => {
  test('endpoints are named `<tier>/<n>` unless they have a name', () => {
    const policy = `define tier "a" { model: "m", endpoints: ["http://10.0.0.1:8000", { name: "own", url: "http://10.0.0.2:8000" }, "http://10.0.0.3:8000"] }\n`;
    expectDecision(`${policy}default to endpoint "a/1"`, 'a/1');
    expectDecision(`${policy}default to endpoint "own"`, 'own');
    expectDecision(`${policy}default to endpoint "a/3"`, 'a/3');
    expect(errors(`${policy}default to endpoint "a/2"`)).toEqual(['E0203']);
  });

  test('`define endpoint` joins a tier with the facts of the tier', () => {
    const policy = `${tiers({ a: 1 }, 'zone: "z"')}define endpoint "late" { url: "http://10.9.0.1:8000", tier: "a", weight: 2 }\n`;
    expectDecision(`${policy}default to tier "a" where name == "late" and zone == "z" and weight == 2`, 'late');
  });

  test('`any` is every endpoint; several targets are one pool', () => {
    const fleet = { 'a/1': { decodeTokens: 50 }, 'b/1': { decodeTokens: 20 }, 'c/1': { decodeTokens: 10 } };
    expectDecision(`${tiers({ a: 1, b: 1, c: 1 })}default to any by lowest(decode_tokens)`, 'c/1', {}, { fleet });
    expectDecision(
      `${tiers({ a: 1, b: 1, c: 1 })}default to tier "a", tier "b" by lowest(decode_tokens)`,
      'b/1',
      {},
      { fleet },
    );
    expect(errors(`${tiers({ a: 1 })}default to tier "a", tier "a"`)).toEqual(['E0403']);
  });

  test('a `let` may stand for a target', () => {
    expectDecision(`${tiers({ a: 1, b: 1 })}let big = tier "b"\ndefault to big`, 'b/1');
  });

  test('an unknown tier is an error with a suggestion; in a fragment without tiers it is a note', () => {
    expect(errors(`${tiers({ large: 1 })}default to tier "lage"`)).toEqual(['E0202']);
    expect(compile(`${tiers({ large: 1 })}default to tier "lage"`).diagnostics[0]?.fix?.edits[0]?.text).toBe('"large"');
    const { diagnostics } = compile(
      'route when complexity > 50 to tier "70B" by least_tokens with affinity session\ndefault to tier "8B"',
    );
    expect(diagnostics.map(({ code, severity }) => `${code} ${severity}`)).toEqual(['W0514 note']);
    expect(errors('default to tier "b"', { catalogue: { tiers: ['a'] } })).toEqual(['E0202']);
    expect(errors('default to tier "a"', { catalogue: { tiers: ['a'] } })).toEqual([]);
    // Endpoints that are found while running may bring tiers of their own.
    expect(errors(`${tiers({ a: 1 })}define discovery "k8s" { kind: "kubernetes" }\ndefault to tier "late"`)).toEqual(
      [],
    );
  });
});

describe('what is left out always', () => {
  const policy = `${tiers({ a: 2, b: 1 }, 'max_requests: 2, max_tokens_in_flight: 1000')}default to tier "a" by lowest(weight) then declared_order else to tier "b"`;

  test.each([
    ['draining', { cordoned: true }],
    ['loading', { state: 'loading' }],
    ['asleep', { state: 'asleep' }],
    ['ejected', { ejected: true }],
    ['at the limit of requests', { inflightRequests: 2 }],
  ] as const)('an endpoint that is %s', (_what, state) => {
    expectDecision(policy, 'a/1');
    expectDecision(policy, 'a/2', {}, { fleet: { 'a/1': state } });
  });

  test('an endpoint at its limit of tokens, by what this request would add', () => {
    const request = { promptTokensExact: 100, maxTokens: 100 };
    expectDecision(policy, 'a/1', request, { fleet: { 'a/1': { inflightTokens: 800 } } });
    expectDecision(policy, 'a/2', request, { fleet: { 'a/1': { inflightTokens: 801 } } });
  });

  test('all of a tier full takes the `else`', () => {
    const full = { inflightRequests: 2 };
    expectDecision(policy, 'b/1', {}, { fleet: { 'a/1': full, 'a/2': full } });
  });

  test('`where` keeps only what is known true', () => {
    const where = `${endpoints({ x: '', y: 'zone: "b"', z: 'zone: "a"' })}default to tier "t" where zone == "a"`;
    expectDecision(where, 'z');
    expectDecision(`${endpoints({ x: '', y: 'zone: "b"' })}default to tier "t" where not (zone == "a")`, 'y');
    expectDecision(`${endpoints({ x: '' })}default to tier "t" where zone == "a"`, '503 no_endpoint');
  });
});

describe('panic', () => {
  const lenient = 'ejection: { max_share: 100%, failures: 5 }';
  const down = { ejected: true };

  test('with half of a tier healthy health counts', async () => {
    await inBothModes(
      `${tiers({ a: 4 }, lenient)}default to tier "a" by round_robin`,
      (bench) => {
        expect(Object.keys(tally(bench, many(40))).sort()).toEqual(['a/3', 'a/4']);
      },
      { fleet: { 'a/1': down, 'a/2': down } },
    );
  });

  test('with less the load is spread over all', async () => {
    await inBothModes(
      `${tiers({ a: 4 }, lenient)}default to tier "a" by round_robin`,
      (bench) => {
        expect(tally(bench, many(40))).toEqual({ 'a/1': 10, 'a/2': 10, 'a/3': 10, 'a/4': 10 });
        expect(bench.records.every(({ reasons }) => reasons.includes('panic'))).toBe(true);
      },
      { fleet: { 'a/1': down, 'a/2': down, 'a/3': down } },
    );
  });

  test('draining endpoints do not count, and `where` is never passed', async () => {
    await inBothModes(
      `${tiers({ a: 4 }, lenient)}default to tier "a" where name != "a/2" by round_robin`,
      (bench) => {
        // One of three that are not draining is healthy: panic.
        expect(Object.keys(tally(bench, many(40))).sort()).toEqual(['a/1', 'a/3']);
      },
      { fleet: { 'a/1': down, 'a/2': down, 'a/4': { cordoned: true } } },
    );
  });

  test('is looked at before `where`', async () => {
    await inBothModes(
      `${tiers({ a: 4 }, lenient)}default to tier "a" where name in ["a/1", "a/2"] by round_robin else reject`,
      (bench) => {
        // Half of the tier is healthy, so that none of the two that `where` lets in is.
        expect(bench.send()).toBe('429 rejected');
      },
      { fleet: { 'a/1': down, 'a/2': down } },
    );
  });

  test('with none healthy the target is empty where an `else` or fallback remains, and tried all the same where not', () => {
    const fleet = { 'a/1': down, 'a/2': down };
    const facts = tiers({ a: 2, b: 1 }, lenient);
    expectDecision(`${facts}default to tier "a" by declared_order`, 'a/1', {}, { fleet });
    expectDecision(`${facts}default to tier "a" else to tier "b"`, 'b/1', {}, { fleet });
    expectDecision(`${facts}default to tier "a" with fallback tier "b"`, 'b/1', {}, { fleet });
    expectDecision(`${facts}default to tier "a" else reject`, '429 rejected', {}, { fleet });
    // A fallback for other causes is none for this one.
    expectDecision(
      `${facts}default to tier "a" by declared_order with fallback tier "b" (on: [timeout])`,
      'a/1',
      {},
      { fleet },
    );
  });
});

describe('splits', () => {
  const two = tiers({ a: 1, b: 1 });
  const split = (a: string, b: string, more: string = ''): string =>
    `${two}default to ${a} tier "a", ${b} tier "b"${more}`;

  test('follow the shares over many keys', async () => {
    await inBothModes(split('80%', '20%', ' with sticky user'), (bench) => {
      const counts = tally(
        bench,
        Array.from({ length: 2000 }, (_, i) => ({ user: `u-${i}` })),
      );
      // Four standard deviations of 0.4 · √2000.
      expect(Math.abs((counts['b/1'] ?? 0) - 400)).toBeLessThan(72);
    });
  });

  test('one key has one arm, request after request', async () => {
    await inBothModes(split('50%', '50%', ' with sticky user'), (bench) => {
      for (let i = 0; i < 20; i++) {
        expect(new Set(Array.from({ length: 10 }, () => bench.send({ user: `u-${i}` }))).size).toBe(1);
      }
    });
  });

  test('without `sticky` the key is the session, else the seed of the request', async () => {
    await inBothModes(split('50%', '50%'), (bench) => {
      expect(new Set(Array.from({ length: 30 }, () => bench.send(session('one')))).size).toBe(1);
      expect(new Set(Array.from({ length: 60 }, () => bench.send())).size).toBe(2);
    });
  });

  test('an unknown `sticky` is none', async () => {
    await inBothModes(split('50%', '50%', ' with sticky user'), (bench) => {
      expect(new Set(Array.from({ length: 30 }, () => bench.send(session('one')))).size).toBe(1);
    });
    await inBothModes(split('50%', '50%', ' with sticky (number(header["n"]))'), (bench) => {
      expect(new Set(Array.from({ length: 30 }, () => bench.send(session('one')))).size).toBe(1);
    });
  });

  test('keys of one name are another tenant’s own', async () => {
    await inBothModes(
      `${two}define tenant "t1" { }\ndefine tenant "t2" { }\ndefault to 50% tier "a", 50% tier "b" with sticky user`,
      (bench) => {
        const differ = Array.from({ length: 40 }, (_, i) => `u-${i}`).filter(
          (user) => bench.send({ user, tenant: 't1' }) !== bench.send({ user, tenant: 't2' }),
        );
        expect(differ.length).toBeGreaterThan(8);
      },
    );
  });

  test('an arm without a candidate gives its share to the others in proportion; other keys stay', async () => {
    const policy = `${tiers({ a: 1, b: 1, c: 1 })}default to 50% tier "a", 30% tier "b", 20% tier "c" with sticky user`;
    await inBothModes(policy, (bench) => {
      const users = Array.from({ length: 2000 }, (_, i) => ({ user: `u-${i}` }));
      const before = users.map((request) => bench.send(request));
      bench.set({ 'a/1': { cordoned: true } });
      const after = users.map((request) => bench.send(request));
      expect(after.filter((endpoint, i) => before[i] !== 'a/1' && endpoint !== before[i])).toEqual([]);
      const moved = after.filter((_, i) => before[i] === 'a/1');
      const toB = moved.filter((endpoint) => endpoint === 'b/1').length;
      expect(toB + moved.filter((endpoint) => endpoint === 'c/1').length).toBe(moved.length);
      expect(Math.abs(toB / moved.length - 0.6)).toBeLessThan(0.07);
    });
  });

  test('all empty takes the `else`', () => {
    const fleet = { 'a/1': { cordoned: true }, 'b/1': { cordoned: true } };
    expectDecision(
      `${tiers({ a: 1, b: 1, c: 1 })}default to 50% tier "a", 50% tier "b" else to tier "c"`,
      'c/1',
      {},
      { fleet },
    );
  });

  test('an arm of 0 % gets nothing while another has room, with a lint', async () => {
    expect(codes(split('100%', '0%'))).toEqual(['W0515']);
    await inBothModes(split('100%', '0%'), (bench) => {
      expect(tally(bench, many(200))).toEqual({ 'a/1': 200 });
    });
    await inBothModes(split('0%', '100%'), (bench) => {
      expect(tally(bench, many(200))).toEqual({ 'b/1': 200 });
    });
  });

  test('the total is 100 % within 0.01 %', () => {
    expect(errors(split('80%', '19%'))).toEqual(['E0401']);
    expect(errors(split('80%', '21%'))).toEqual(['E0401']);
    expect(errors(split('33.33%', '66.67%'))).toEqual([]);
    expect(
      errors(`${tiers({ a: 1, b: 1, c: 1 })}default to 33.33% tier "a", 33.33% tier "b", 33.33% tier "c"`),
    ).toEqual([]);
    expect(errors(split('80%', ''))).toEqual(['E0402']);
    expect(errors(split('120%', '0%'))).toContain('E0414');
  });

  test('`any` may be an arm', () => {
    expect(errors(`${two}default to 95% any, 5% tier "b"`)).toEqual([]);
  });

  test('forty arms are told apart', async () => {
    const names = Array.from({ length: 40 }, (_, i) => `t${i}`);
    const policy = `${tiers(Object.fromEntries(names.map((name) => [name, 1])))}default to ${names.map((name) => `2.5% tier "${name}"`).join(', ')} with sticky user`;
    await inBothModes(policy, (bench) => {
      const users = Array.from({ length: 2000 }, (_, i) => ({ user: `u-${i}` }));
      expect(Object.keys(tally(bench, users))).toHaveLength(40);
      // With but one arm left, all go there, whichever it is.
      bench.set(Object.fromEntries(names.flatMap((name, i) => (i === 35 ? [] : [[`${name}/1`, { cordoned: true }]]))));
      expect(tally(bench, users)).toEqual({ 't35/1': 2000 });
      bench.set({ 't35/1': { cordoned: true }, 't3/1': { cordoned: false } });
      expect(tally(bench, users)).toEqual({ 't3/1': 2000 });
    });
  });
});

describe('affinity', () => {
  const policy = (key: string, more: string = ''): string =>
    `${tiers({ a: 4 })}default to tier "a" by least_tokens with affinity ${key}${more}`;

  test('one key, one endpoint, whatever `by` says', async () => {
    await inBothModes(policy('session'), (bench) => {
      const first = bench.send(session('s'));
      bench.set({ [first]: { decodeTokens: 5000, queuedTokens: 5000 } });
      expect(bench.send(session('s'))).toBe(first);
      expect(Object.keys(tally(bench, sessions(100)))).toHaveLength(4);
    });
  });

  test('an unknown key is no affinity: `by` and `pick` decide', () => {
    expectDecision(
      policy('session'),
      'a/3',
      {},
      {
        fleet: { 'a/1': { decodeTokens: 9 }, 'a/2': { decodeTokens: 9 }, 'a/4': { decodeTokens: 9 } },
      },
    );
  });

  test('past the bound the next of the key’s own order is taken', async () => {
    await inBothModes(policy('session', ''), (bench) => {
      const first = bench.send(session('s'));
      // m is 10 of 4 endpoints: ceil(1.25 · ¼ · 11) is 4.
      bench.set({ [first]: { inflightRequests: 3 } });
      expect(bench.send(session('s'))).not.toBe(first);
      bench.set({
        'a/1': { inflightRequests: 3 },
        'a/2': { inflightRequests: 3 },
        'a/3': { inflightRequests: 3 },
        'a/4': { inflightRequests: 3 },
      });
      // m is 12: ceil(1.25 · ¼ · 13) is 5, and the load after is 4.
      expect(bench.send(session('s'))).toBe(first);
    });
  });

  test('the bound goes by ceil(c · w/W · (m + 1)) over the eligible endpoints', () => {
    const facts = endpoints({ x: 'weight: 3', y: 'weight: 1' });
    const ask = (bound: string, load: number): string =>
      decide(
        `${facts}default to tier "t" where under_bound(${bound}) and name == "x" else reject`,
        {},
        {
          fleet: { x: { inflightRequests: load }, y: { inflightRequests: 1 } },
        },
      );
    // W is 4, m is load + 1: 1.25 · ¾ · (load + 2) is 4.69, 5.6 and 6.6 for 3, 4 and 5: 4 ≤ 5, 5 ≤ 6, 6 ≤ 7.
    expect(ask('1.25', 3)).toBe('x');
    // 1 · ¾ · 8 is 6 and the load after 7.
    expect(ask('1', 6)).toBe('429 rejected');
  });

  test('in tokens an idle endpoint always fits', async () => {
    await inBothModes(policy('(session, unit: tokens, bound: 1)'), (bench) => {
      const first = bench.send(session('s'));
      bench.set({ [first]: { inflightTokens: 1_000_000 } });
      const second = bench.send(session('s'));
      expect(second).not.toBe(first);
      expect(bench.send(session('s'))).toBe(second);
    });
  });

  test('every eligible endpoint at its bound: `by` decides', async () => {
    // modulo_md5 knows no spill: its endpoint is gone, so `by` decides.
    await inBothModes(policy('session (method: modulo_md5)'), (bench) => {
      const first = bench.send(session('s'));
      bench.set({ [first]: { cordoned: true } });
      const best = first === 'a/2' ? 'a/3' : 'a/2';
      bench.set(
        Object.fromEntries(
          ['a/1', 'a/2', 'a/3', 'a/4'].filter((name) => name !== best).map((name) => [name, { decodeTokens: 50 }]),
        ),
      );
      expect(bench.send(session('s'))).toBe(best);
    });
  });

  test('keys may be expressions, lists, prefixes, headers', async () => {
    for (const [key, request] of [
      ['(session ?? conversation, bound: 1.25)', { messages: 'opening' }],
      ['[lora, conversation]', { model: 'adapter', messages: 'opening' }],
      ['prefix(2k)', { messages: 'opening' }],
      ['prefix(tokens: 512)', { messages: 'opening' }],
      ['user', { user: 'u' }],
      ['(header["x-thread"])', { headers: { 'x-thread': '7' } }],
    ] as const) {
      await inBothModes(
        policy(key),
        (bench) => {
          const placed = Array.from({ length: 8 }, () => bench.forward(request).attempt.endpoint);
          expect(bench.explain(request).affinity, key).not.toBeNull();
          expect(new Set(placed).size, key).toBeLessThan(5);
        },
        { fleet: { 'a/1': { loras: ['adapter'] } } },
      );
    }
  });

  test('an unknown part of a list is no affinity', async () => {
    await inBothModes(policy('[lora, conversation]'), (bench) => {
      expect(bench.explain({ messages: 'opening' }).affinity).toBeNull();
    });
  });

  test('a prefix is as long as it says', async () => {
    await inBothModes(policy('prefix(10)'), (bench) => {
      const one = bench.send({ messages: '0123456789 and this' });
      expect(bench.send({ messages: '0123456789 and that' })).toBe(one);
      const others = Array.from({ length: 20 }, (_, i) => bench.send({ messages: `${i} 23456789` }));
      expect(new Set(others).size).toBeGreaterThan(1);
    });
  });

  test('keys are scoped by tenant', async () => {
    await inBothModes(`define tenant "t1" { }\ndefine tenant "t2" { }\n${policy('session')}`, (bench) => {
      const differ = Array.from({ length: 40 }, (_, i) => `s-${i}`).filter(
        (id) => bench.send(session(id, { tenant: 't1' })) !== bench.send(session(id, { tenant: 't2' })),
      );
      expect(differ.length).toBeGreaterThan(20);
    });
  });

  test('weights share the keys out', async () => {
    await inBothModes(
      `${endpoints({ x: 'weight: 3', y: 'weight: 1' })}default to tier "t" with affinity session`,
      (bench) => {
        const counts = tally(bench, sessions(2000));
        expect(Math.abs((counts['y'] ?? 0) - 500)).toBeLessThan(80);
      },
    );
  });

  test('only the keys of an endpoint that goes are moved', async () => {
    await inBothModes(policy('session'), (bench) => {
      const before = sessions(300).map((request) => bench.send(request));
      bench.set({ 'a/2': { cordoned: true } });
      const after = sessions(300).map((request) => bench.send(request));
      expect(after.filter((endpoint, i) => endpoint !== before[i] && before[i] !== 'a/2')).toEqual([]);
      expect(after).not.toContain('a/2');
    });
  });

  test('a bound below 1 and a constant key are errors', () => {
    expect(errors(policy('(session, bound: 0.9)'))).toEqual(['E0410']);
    expect(errors(policy('"x"'))).toEqual(['E0409']);
  });
});

describe('among', () => {
  const policy = (arguments_: string): string =>
    `${tiers({ a: 6 })}default to tier "a" where among(${arguments_}) by random else reject`;

  test('is a stable subset of so many endpoints for a key', async () => {
    await inBothModes(policy('user, 3'), (bench) => {
      const subset = Object.keys(
        tally(
          bench,
          Array.from({ length: 100 }, () => ({ user: 'u' })),
        ),
      ).sort();
      expect(subset).toHaveLength(3);
      expect(
        Object.keys(
          tally(
            bench,
            Array.from({ length: 100 }, () => ({ user: 'u' })),
          ),
        ).sort(),
      ).toEqual(subset);
      const others = new Set(
        Array.from({ length: 30 }, (_, i) =>
          Object.keys(
            tally(
              bench,
              Array.from({ length: 40 }, () => ({ user: `v-${i}` })),
            ),
          )
            .sort()
            .join(),
        ),
      );
      expect(others.size).toBeGreaterThan(3);
    });
  });

  test('of an unknown key is unknown, and so no endpoint is a candidate', () => {
    expectDecision(policy('user, 3'), '429 rejected');
    expectDecision(policy('user, 3').replace('among(user, 3)', 'not among(user, 3)'), '429 rejected');
  });

  test('with as many places as endpoints is true', async () => {
    await inBothModes(policy('user, 6'), (bench) => {
      expect(
        Object.keys(
          tally(
            bench,
            Array.from({ length: 200 }, () => ({ user: 'u' })),
          ),
        ),
      ).toHaveLength(6);
    });
  });

  test('`grow: true` widens while all are at their bound', async () => {
    await inBothModes(policy('user, 1, grow: true'), (bench) => {
      const [only = ''] = Object.keys(
        tally(
          bench,
          Array.from({ length: 20 }, () => ({ user: 'u' })),
        ),
      );
      bench.set({ [only]: { inflightRequests: 50 } });
      const wider = Object.keys(
        tally(
          bench,
          Array.from({ length: 50 }, () => ({ user: 'u' })),
        ),
      );
      expect(wider.length).toBeGreaterThan(1);
      expect(wider.length).toBeLessThan(6);
    });
    await inBothModes(policy('user, 1'), (bench) => {
      const [only = ''] = Object.keys(tally(bench, [{ user: 'u' }]));
      bench.set({ [only]: { inflightRequests: 50 } });
      expect(
        Object.keys(
          tally(
            bench,
            Array.from({ length: 50 }, () => ({ user: 'u' })),
          ),
        ),
      ).toEqual([only]);
    });
  });

  test('takes a list as its key', () => {
    expect(errors(policy('[user, model], 2'))).toEqual([]);
  });
});

describe('scores', () => {
  const fleet = {
    x: { queuedTokens: 0, decodeTokens: 90 },
    y: { queuedTokens: 100, decodeTokens: 10 },
    z: { queuedTokens: 50, decodeTokens: 50 },
  };
  const by = (score: string, facts: { readonly [name: string]: string } = { x: '', y: '', z: '' }): string =>
    `${endpoints(facts)}default to tier "t" by ${score}`;

  test('without `by` it is least_tokens, without `pick` the best', () => {
    const policy = `${endpoints({ x: '', y: '', z: '' })}default to tier "t"`;
    expectDecision(policy, 'y', {}, { fleet });
  });

  test.each([
    ['lowest(queued_tokens)', 'x'],
    ['highest(queued_tokens)', 'y'],
    ['lowest(decode_tokens)', 'y'],
    ['lowest(queued_tokens + 10 * decode_tokens)', 'y'],
    // Min–max: x is 1 and 0, y 0 and 1, z ½ and ½; the heavier weight decides.
    ['0.6 * lowest(queued_tokens) + 0.4 * lowest(decode_tokens)', 'x'],
    ['0.4 * lowest(queued_tokens) + 0.6 * lowest(decode_tokens)', 'y'],
    ['60 * lowest(queued_tokens) + 40 * lowest(decode_tokens)', 'x'],
    ['60% * lowest(queued_tokens) + 40% * lowest(decode_tokens)', 'x'],
    ['1.0 * lowest(queued_tokens)', 'x'],
    ['lowest(queued_tokens) / 2', 'x'],
    ['0 * lowest(queued_tokens) + 1 * lowest(decode_tokens)', 'y'],
  ])('by %s is %s', (score, endpoint) => {
    expectDecision(by(score), endpoint, {}, { fleet });
  });

  test('weights are normalised, and parts are in [0, 1]', async () => {
    await inBothModes(
      by('30 * lowest(queued_tokens) + 10 * lowest(decode_tokens)'),
      (bench) => {
        const best = bench.explain().candidates.find(({ verdict }) => verdict === 'picked');
        expect(best?.score).toBeCloseTo(0.75, 12);
        expect(
          bench
            .explain()
            .candidates.map(({ score }) => score)
            .toSorted(),
        ).toEqual([0.25, 0.5, 0.75]);
      },
      { fleet: { ...fleet, x: { queuedTokens: 0, decodeTokens: 90 } } },
    );
  });

  test('all equal gives 1 to all, unknown gives 0 in a sum and comes last alone', async () => {
    const policy = by('0.5 * highest(throughput) + 0.5 * lowest(queued_tokens) then declared_order', {
      x: '',
      y: 'throughput: 5/s',
      z: 'throughput: 5/s',
    });
    // x has no throughput: the mean of its tier stands in, so all are equal.
    expectDecision(
      policy,
      'x',
      {},
      { fleet: { x: { queuedTokens: 5 }, y: { queuedTokens: 5 }, z: { queuedTokens: 5 } } },
    );
    const price = by('0.5 * lowest(price) + 0.5 * lowest(queued_tokens) then declared_order', {
      x: '',
      y: 'price: $5',
      z: 'price: $5',
    });
    expectDecision(price, 'y');
    expectDecision(by('lowest(price) then declared_order', { x: '', y: 'price: $5', z: 'price: $6' }), 'y');
    expectDecision(by('highest(price) then declared_order', { x: '', y: 'price: $5', z: 'price: $6' }), 'z');
    expectDecision(by('lowest(price) then declared_order', { x: '', y: '', z: '' }), 'x');
  });

  test('`then` breaks ties, in turn', () => {
    const policy = by('lowest(weight) then lowest(queued_tokens) then lowest(decode_tokens) then declared_order');
    expectDecision(
      policy,
      'x',
      {},
      { fleet: { x: { decodeTokens: 1 }, y: { queuedTokens: 5 }, z: { decodeTokens: 5 } } },
    );
    expectDecision(policy, 'x');
  });

  test('lone scorers tie on equal values, sums within 1e-9', () => {
    const facts = { x: 'price: $1.0000000001', y: 'price: $1', z: 'price: $2' };
    expectDecision(by('lowest(price) then declared_order', facts), 'y');
    // As shares of the span of 1 dollar, x and y differ by 1e-10.
    expectDecision(by('0.5 * lowest(price) + 0.5 * lowest(weight) then declared_order', facts), 'x');
  });

  test('last ties go by the request’s seed: spread over all, the same again for the same seed', async () => {
    await inBothModes(by('lowest(weight)'), (bench) => {
      const counts = tally(bench, many(300));
      expect(Object.keys(counts)).toHaveLength(3);
      for (const count of Object.values(counts)) expect(count).toBeGreaterThan(60);
    });
    expect(decide(by('lowest(weight)'), {}, { seed: 5 })).toBe(decide(by('lowest(weight)'), {}, { seed: 5 }));
  });

  test('the client’s request id plays no part', async () => {
    await inBothModes(by('lowest(weight)'), (bench) => {
      const picked = Array.from({ length: 20 }, () => bench.send());
      expect(new Set(picked).size).toBeGreaterThan(1);
    });
  });

  test.each([
    ['queued_tokens', 'E0322'],
    ['5', 'E0323'],
    ['turns', 'E0323'],
    ['lowest(turns)', 'E0323'],
    ['least_tokens - prefix_cache', 'E0324'],
    ['-least_tokens', 'E0324'],
    ['-0.5 * least_tokens', 'E0325'],
    ['0 * least_tokens', 'E0325'],
    ['0 * least_tokens + 0 * prefix_cache', 'E0325'],
    ['turns * least_tokens', 'E0326'],
    ['least_tokens * prefix_cache', 'E0326'],
    ['least_tokns', 'E0204'],
    ['power_of_two', 'E0204'],
    ['lowest(least_tokens)', 'E0311'],
  ])('by %s gives %s', (score, code) => {
    expect(errors(by(score))).toEqual([code]);
  });

  test('a bare property and a minus come with a fix', () => {
    expect(compile(by('queued_tokens')).diagnostics[0]?.fix?.edits[0]?.text).toBe('lowest(queued_tokens)');
    expect(compile(by('throughput')).diagnostics[0]?.fix?.edits[0]?.text).toBe('highest(throughput)');
    expect(compile(by('least_tokens - prefix_cache')).diagnostics[0]?.fix?.edits[0]?.text).toBe('+');
  });

  test('a `let` may stand for a scorer', () => {
    const policy = `${endpoints({ x: '', y: '', z: '' })}let mine = 0.6 * lowest(queued_tokens) + 0.4 * lowest(decode_tokens)\ndefault to tier "t" by mine`;
    expectDecision(policy, 'x', {}, { fleet });
  });

  test('an unknown picker is an error, a picker takes options', () => {
    expect(errors(`${tiers({ a: 1 })}default to tier "a" pick powr_of_two`)).toEqual(['E0205']);
    expect(errors(`${tiers({ a: 1 })}default to tier "a" pick softmax(temperature: 0.2)`)).toEqual([]);
    expect(errors(`${tiers({ a: 1 })}default to tier "a" pick softmax(temprature: 0.2)`)).toEqual(['E0310']);
    expect(errors(`${tiers({ a: 1 })}default to tier "a" pick softmax(temperature: -1)`)).toEqual(['E0508']);
  });

  test('power_of_two takes the better of two drawn ones', async () => {
    await inBothModes(
      `${by('lowest(decode_tokens)')} pick power_of_two`,
      (bench) => {
        const counts = tally(bench, many(300));
        // y beats both, z beats x; x is never the better of two.
        expect(Object.keys(counts).sort()).toEqual(['y', 'z']);
        expect(Math.abs((counts['y'] ?? 0) - 200)).toBeLessThan(40);
      },
      { fleet },
    );
  });
});
