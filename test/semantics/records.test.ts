import { describe, expect, test } from 'vitest';
import { DONE, endpoints, inBothModes, tiers } from './support/bench.fixture.ts';
import { codes, errors } from './support/bench.fixture.ts';

describe('the record of a decision', () => {
  const policy = `${endpoints({ x: 'zone: "a"', y: 'zone: "a"', z: 'zone: "a"', far: 'zone: "b"', full: 'zone: "a", max_requests: 1', down: 'zone: "a"', asleep: 'zone: "a"' })}
route "r" when turns == 1 and session exists and prompt contains "hello" and header["x-plan"] == "gold"
  to tier "t" where zone == "a" by 0.5 * lowest(queued_tokens) + 0.5 * lowest(decode_tokens) with retry 1
default reject with status 403`;
  const request = { headers: { 'x-session-id': 'secret-session', 'x-plan': 'gold' } };
  const fleet = {
    x: { queuedTokens: 10, decodeTokens: 1 },
    y: { queuedTokens: 5, decodeTokens: 2 },
    z: { queuedTokens: 50, decodeTokens: 50 },
    full: { inflightRequests: 1 },
    down: { cordoned: true },
    asleep: { state: 'asleep' as const },
  };

  test('keeps the shortlist with parts and properties, drop counts by reason, and every signal read', async () => {
    await inBothModes(
      policy,
      (made) => {
        made.forward(request).finish(DONE);
        const [record] = made.records;
        expect(record).toMatchObject({
          verdict: 'routed',
          route: 'r',
          tier: 't',
          status: 200,
          dropped: { draining: 1, unavailable: 1, capacity: 1, where: 1 },
          signals: { turns: 1 },
        });
        // One more than the retries.
        expect(record?.shortlist.map(({ endpoint }) => endpoint)).toHaveLength(2);
        const [first] = record?.shortlist ?? [];
        expect(Object.keys(first?.properties ?? {}).toSorted()).toEqual(['decode_tokens', 'queued_tokens', 'zone']);
        expect(Object.values(first?.parts ?? {}).length).toBeGreaterThan(0);
        expect(record?.attempts).toMatchObject([{ tier: 't', outcome: 'ok', status: 200 }]);
      },
      { fleet },
    );
  });

  test('holds no prompt and no session in clear', async () => {
    await inBothModes(
      policy,
      (made) => {
        made.forward(request).finish(DONE);
        const written = JSON.stringify(made.records);
        expect(written).not.toContain('hello there');
        expect(written).not.toContain('secret-session');
      },
      { fleet },
    );
  });

  test('keeps 64-bit keys of affinity and split', async () => {
    await inBothModes(
      `${tiers({ a: 1, b: 1 })}route when stream to tier "a" with affinity session\ndefault to 50% tier "a", 50% tier "b" with sticky session`,
      (made) => {
        made.forward({ ...request, stream: true }).finish(DONE);
        made.forward(request).finish(DONE);
        expect(made.records[0]?.keys).toEqual({ affinity: expect.stringMatching(/^[0-9a-f]{16}$/), split: null });
        expect(made.records[1]?.keys).toEqual({ affinity: null, split: expect.stringMatching(/^[0-9a-f]{16}$/) });
      },
    );
  });

  test('of a refusal says why', async () => {
    await inBothModes(policy, (made) => {
      expect(made.send()).toBe('403 rejected');
      expect(made.records[0]).toMatchObject({ verdict: 'rejected', status: 403, code: 'rejected' });
    });
  });

  test('has a seed of ours, another for each request', async () => {
    await inBothModes(policy, (made) => {
      for (let i = 0; i < 10; i++) made.send();
      expect(new Set(made.records.map(({ seed }) => seed)).size).toBe(10);
      expect(new Set(made.records.map(({ requestId }) => requestId)).size).toBe(1);
    });
  });
});

describe('the list of models', () => {
  test('names the known ones with the longest context window of the endpoints that serve them', async () => {
    const text = `define gateway { models: ["auto"] }
define tier "a" { model: "big", endpoints: ["http://10.0.0.1:8000", { url: "http://10.0.0.2:8000", context_window: 8k }], context_window: 32k }
route when model == "alias" to tier "a"\ndefault to tier "a"`;
    await inBothModes(
      text,
      (made) => {
        expect(made.core.router.models().map(({ id, maxModelLen }) => [id, maxModelLen])).toEqual([
          ['adapter', 32_000],
          ['alias', undefined],
          ['auto', undefined],
          ['big', 32_000],
        ]);
      },
      { fleet: { 'a/1': { loras: ['adapter'] } } },
    );
  });
});

describe('reports of engines', () => {
  test('are unknown after three scrapes of 500 ms without a new one, and routing goes on by our own counts', async () => {
    await inBothModes(
      `${tiers({ a: 2 })}route when max(kv_cache_used, tier "a") > 50% to endpoint "a/2"
default to tier "a" where (kv_cache_used ?? 0%) < 90% by least_queue then declared_order`,
      (made) => {
        made.set({ 'a/1': { kvCacheUsed: 0.8, queueDepth: 5 } });
        expect(made.send()).toBe('a/2');
        made.time.advance(1501);
        expect(made.send()).toBe('a/1');
      },
    );
  });
});

describe('versions', () => {
  test('a reload keeps what endpoints hold; one that is removed takes no new request and is let go at its last', async () => {
    const policy = (names: readonly string[]): string =>
      `define tier "a" { model: "m", endpoints: [${names.map((name, i) => `{ name: "${name}", url: "http://10.0.0.${name === 'two' ? 2 : i + 1}:8000", max_requests: 1 }`).join(', ')}] }\ndefault to tier "a" by declared_order`;
    await inBothModes(policy(['one', 'two']), (made) => {
      const first = made.forward();
      const second = made.forward();
      expect([first.attempt.endpoint, second.attempt.endpoint]).toEqual(['one', 'two']);
      made.reload(policy(['one']));
      expect(made.send()).toBe('503 no_endpoint');
      expect(made.core.endpoints().map(({ name, state }) => `${name} ${state}`)).toEqual(['one ready', 'two draining']);
      first.finish(DONE);
      expect(made.send()).toBe('one');
      second.finish(DONE);
      expect(made.core.endpoints().map(({ name }) => name)).toEqual(['one']);
      expect(made.core.status()).toMatchObject({ leasesOpen: 0, leaseFaults: 0, versions: 1 });
    });
  });

  test('a version that cannot be bound leaves the one in force', async () => {
    await inBothModes(`${tiers({ a: 1 })}default to tier "a"`, (made) => {
      expect(() =>
        made.reload(
          `${tiers({ a: 1 })}define param "n" { env: "N", default: 5 }\nroute when turns > param.n to tier "b"\ndefault to tier "a"`,
        ),
      ).toThrow();
      expect(made.send()).toBe('a/1');
    });
  });

  test('a policy with errors has no program, one with warnings has', () => {
    expect(errors(`${tiers({ a: 1 })}let x = 5\ndefault to tier "a"`)).toEqual([]);
    expect(codes(`${tiers({ a: 1 })}let x = 5\ndefault to tier "a"`)).toEqual(['W0507']);
  });
});
