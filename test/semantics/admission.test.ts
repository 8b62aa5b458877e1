import { describe, expect, test } from 'vitest';
import { codes, errors, expectDecision, inBothModes, tiers } from './support/bench.fixture.ts';

const a = tiers({ a: 1 });
const to = 'default to tier "a"';
const gold = { headers: { plan: 'gold' } };

describe('admission', () => {
  test('statements run in file order, the first match wins', () => {
    const policy = `${a}admit "gold" when header["plan"] == "gold"
reject "streams" when stream with status 403
reject "long" when turns > 1 with status 404
${to}`;
    expectDecision(policy, 'a/1', { ...gold, stream: true });
    expectDecision(policy, '403 rejected', { stream: true });
    expectDecision(policy, '404 rejected', {
      messages: [
        { role: 'user', text: 'a' },
        { role: 'user', text: 'b' },
      ],
    });
  });

  test('no match means admitted', () => {
    expectDecision(`${a}reject when stream\n${to}`, 'a/1');
  });

  test('runs before any route, wherever it stands in the file', () => {
    expectDecision(`${a}route when stream to tier "a"\nreject when stream\n${to}`, '429 rejected', { stream: true });
  });

  test('an unknown condition does not refuse, and the lint says so', () => {
    const policy = `${a}reject when session == "bad"\n${to}`;
    expectDecision(policy, 'a/1');
    expect(codes(policy)).toEqual(['W0511']);
    expect(codes(`${a}reject when (session ?? "bad") == "bad"\n${to}`)).toEqual([]);
    expect(codes(`${a}reject when not (session exists)\n${to}`)).toEqual([]);
    expect(codes(`${a}admit when session == "good"\n${to}`)).toEqual([]);
    expect(codes(`${a}route when session == "good" to tier "a"\n${to}`)).toEqual([]);
    expect(
      codes(`${a}reject when model == "bad" or turns > 5 or hour > 5 or priority == "low" or stream\n${to}`),
    ).toEqual([]);
  });

  test('`reject` answers 429 `rejected` with Retry-After 1 unless written', async () => {
    await inBothModes(`${a}reject when stream\n${to}`, (bench) => {
      expect(bench.route({ stream: true })).toMatchObject({ status: 429, code: 'rejected', retryAfterSeconds: 1 });
    });
  });

  test('status, message and retry_after of a refusal, which may be expressions', async () => {
    const policy = `${tiers({ a: 1 }, 'throughput: 100/s')}
reject when stream with status 503, message (user ?? "nobody"), retry_after (min(decode_tokens, tier "a") / 100/s + 2500ms)
${to}`;
    await inBothModes(
      policy,
      (bench) => {
        expect(bench.route({ stream: true, user: 'ann' })).toMatchObject({
          status: 503,
          code: 'rejected',
          message: 'ann',
          // 1 s and 2.5 s, in whole seconds.
          retryAfterSeconds: 4,
        });
        expect(bench.route({ stream: true })).toMatchObject({ message: 'nobody' });
      },
      { fleet: { 'a/1': { decodeTokens: 100 } } },
    );
  });

  test('`retry_after` may be a prediction of the fleet', async () => {
    const policy = `${tiers({ a: 1 }, 'throughput: 100/s')}reject when stream with retry_after(min(predicted_wait, tier "a"))\n${to}`;
    await inBothModes(
      policy,
      (bench) => {
        const outcome = bench.route({ stream: true });
        expect('retryAfterSeconds' in outcome && Number(outcome.retryAfterSeconds)).toBeGreaterThan(1);
      },
      { fleet: { 'a/1': { queuedTokens: 50_000 } } },
    );
  });

  test('other statuses carry a Retry-After only where it is written', async () => {
    await inBothModes(
      `${a}reject when stream with status 403\nreject when turns > 1 with status 403, retry_after 9s\n${to}`,
      (bench) => {
        expect(bench.route({ stream: true })).toMatchObject({ status: 403, retryAfterSeconds: undefined });
        expect(
          bench.route({
            messages: [
              { role: 'user', text: 'a' },
              { role: 'user', text: 'b' },
            ],
          }),
        ).toMatchObject({
          status: 403,
          retryAfterSeconds: 9,
        });
      },
    );
  });

  test('a status that is no refusal is an error', () => {
    for (const status of ['200', '302', '600', '429.5']) {
      expect(errors(`${a}reject when stream with status ${status}\n${to}`), status).toEqual(['E0415']);
    }
  });

  test('`by` belongs to `queue` only', () => {
    expect(errors(`${a}reject when stream by weighted_fair(key: user)\n${to}`)).toEqual(['E0406']);
    expect(errors(`${a}queue when stream by weighted_fair(key: user)\n${to}`)).toEqual([]);
    expect(errors(`${a}queue when stream by deadline\n${to}`)).toEqual([]);
    expect(errors(`${a}queue when stream by least_tokens\n${to}`)).toEqual(['E0311']);
    expect(errors(`${a}queue when stream by sla("x")\n${to}`)).toEqual(['E0201']);
    expect(errors(`${a}queue when stream by deadline then weighted_fair(key: user)\n${to}`)).toEqual(['E0311']);
  });

  test('modifiers stand where they belong', () => {
    expect(errors(`${a}reject when stream with max_wait 2s\n${to}`)).toEqual(['E0407']);
    expect(errors(`${a}reject when stream with timeout 2s\n${to}`)).toEqual(['E0407']);
    expect(errors(`${a}default to tier "a" with status 503`)).toEqual(['E0407']);
    expect(errors(`${a}queue when stream with max_wait 2s, max_depth 5, overflow lowest, priority low\n${to}`)).toEqual(
      [],
    );
    expect(errors(`${a}admit when stream with priority high\n${to}`)).toEqual([]);
    expect(errors(`${a}admit when stream with status 503\n${to}`)).toEqual(['E0407']);
  });
});

describe('predicates', () => {
  test('`sla`: some candidate of the target is predicted to meet it', () => {
    const policy = `${tiers({ a: 2 }, 'throughput: 100/s')}define slo "fast" { ttft: 1s }
reject when not sla("fast", tier "a") with status 503
${to}`;
    const request = { promptTokensExact: 0, maxTokens: 1 };
    expectDecision(policy, 'a/1', request, { fleet: { 'a/2': { queuedTokens: 5000 }, 'a/1': { queuedTokens: 5 } } });
    expectDecision(policy, '503 rejected', request, {
      fleet: { 'a/1': { queuedTokens: 5000 }, 'a/2': { queuedTokens: 5000 } },
    });
  });

  test('an unknown objective, limit or target is an error with a suggestion', () => {
    expect(errors(`${a}define slo "fast" { ttft: 1s }\nreject when not sla("fst", tier "a")\n${to}`)).toEqual([
      'E0221',
    ]);
    expect(errors(`${a}define limit "l" { key: user, requests: 1/s }\nreject when over_limit("k")\n${to}`)).toEqual([
      'E0222',
    ]);
    expect(errors(`${a}define slo "fast" { ttft: 1s }\nreject when not sla("fast", tier "b")\n${to}`)).toEqual([
      'E0202',
    ]);
  });
});

describe('models', () => {
  const policy = `define gateway { models: ["auto"] }
define tier "a" { model: "llama", endpoints: ["http://10.0.0.1:8000"] }
route when model == "gpt" to tier "a"
route when model in ["one", "two"] to tier "a"
default to tier "a"`;

  test.each(['llama', 'auto', 'gpt', 'one', 'two'])('%s is known', (model) => {
    expectDecision(policy, 'a/1', { model });
  });

  test('so is one that a `where`, a `??`, a `let` or a limit compares with', () => {
    const other = `define limit "l" { key: user, requests: 1/s, when: model == "limited" }
define tier "a" { model: "llama", endpoints: ["http://10.0.0.1:8000"] }
let mini = model == "mini"
reject when over_limit("l")
route when (model == "x") ?? false or mini to tier "a"
default to tier "a" where model != "y"`;
    for (const model of ['x', 'mini', 'limited']) expectDecision(other, 'a/1', { model });
    expectDecision(other, '503 no_endpoint', { model: 'y' });
    expectDecision(other, '404 model_not_found', { model: 'z' });
  });

  test('an adapter that is resident is known', () => {
    expectDecision(policy, 'a/1', { model: 'adapter' }, { fleet: { 'a/1': { loras: ['adapter'] } } });
  });

  test('all else is 404 model_not_found, before admission', () => {
    expectDecision(policy, '404 model_not_found', { model: 'other' });
    expectDecision(policy.replace('default', 'reject when true with status 403\ndefault'), '404 model_not_found', {
      model: 'other',
    });
  });

  test('`unknown_model: route` lets the policy decide', () => {
    expectDecision(policy.replace('models: ["auto"]', 'unknown_model: "route"'), 'a/1', { model: 'other' });
  });

  test('what goes upstream is the model of the tier, or the adapter, or what `model` says', async () => {
    await inBothModes(
      policy,
      (bench) => {
        expect(bench.forward({ model: 'auto' }).attempt.model).toBe('llama');
        expect(bench.forward({ model: 'llama' }).attempt.model).toBeUndefined();
        expect(bench.forward({ model: 'adapter' }).attempt.model).toBeUndefined();
      },
      { fleet: { 'a/1': { loras: ['adapter'] } } },
    );
    await inBothModes(`${policy} with model "other"`, (bench) => {
      expect(bench.forward({ model: 'auto' }).attempt.model).toBe('other');
    });
  });
});
