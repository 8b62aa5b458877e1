import { describe, expect, test } from 'vitest';
import { errors, inBothModes, tiers } from './support/bench.fixture.ts';
import type { TestRequest } from './support/bench.fixture.ts';
import type { Attempt } from '../../packages/core/src/index.ts';

const policy = (with_: string): string => `${tiers({ a: 1 })}default to tier "a" with ${with_}`;

async function attempt(
  with_: string,
  check: (attempt: Attempt, deadlineMs: number) => void,
  request?: TestRequest,
): Promise<void> {
  await inBothModes(policy(with_), (made) => {
    const forward = made.forward(request);
    check(forward.attempt, forward.deadlineMs);
  });
}

describe('time limits', () => {
  test('without any: connect 2 s, first token 30 s and 1 s for each 200 prompt tokens, idle 60 s, the whole 1 h', async () => {
    await attempt(
      'priority normal',
      (made, deadlineMs) => {
        expect(made).toMatchObject({
          connectMs: 2000,
          firstTokenMs: 35_000,
          idleMs: 60_000,
          attemptTimeoutMs: Infinity,
        });
        expect(deadlineMs).toBe(3_600_000);
      },
      { promptTokensExact: 1000 },
    );
    await attempt('priority normal', ({ firstTokenMs }) => expect(firstTokenMs).toBe(600_000), {
      promptTokensExact: 1_000_000,
    });
  });

  test('as written', async () => {
    await attempt('timeout 90s, attempt_timeout 30s, first_token 5s, idle 4s', (made, deadlineMs) => {
      expect(made).toMatchObject({ attemptTimeoutMs: 30_000, firstTokenMs: 5000, idleMs: 4000 });
      expect(deadlineMs).toBe(90_000);
    });
  });

  test('the caller’s deadline holds where it is earlier', async () => {
    await attempt('timeout 90s', (_made, deadlineMs) => expect(deadlineMs).toBe(500), { deadlineMs: 500 });
    await attempt('timeout 90s', (_made, deadlineMs) => expect(deadlineMs).toBe(90_000), { deadlineMs: 500_000 });
  });

  test('may be expressions, and an unknown one is as if it were not written', async () => {
    const written = 'first_token (duration(header["x"], ms)), timeout (2 * duration(header["y"], s) ?? 8s)';
    await attempt(written, ({ firstTokenMs }, deadlineMs) => {
      expect(firstTokenMs).toBeGreaterThanOrEqual(30_000);
      expect(deadlineMs).toBe(8000);
    });
    await attempt(
      written,
      ({ firstTokenMs }, deadlineMs) => {
        expect(firstTokenMs).toBeCloseTo(700, 6);
        expect(deadlineMs).toBe(6000);
      },
      { headers: { x: '700', y: '3' } },
    );
  });

  test('a duration without a unit, of zero or below is an error', () => {
    expect(errors(policy('timeout 90'))).toHaveLength(1);
    expect(errors(policy('timeout 0s'))).toEqual(['E0329']);
    expect(errors(policy('timeout(0s - 5s)'))).toEqual(['E0329']);
    expect(errors(policy('timeout'))).toEqual(['E0408']);
    expect(errors(policy('timeout 5s, timeout 6s'))).toEqual(['E0411']);
  });
});

describe('what goes upstream', () => {
  test('`header` sets headers, names lower-cased, values from expressions', async () => {
    await attempt(
      'header "X-Team" "search", header "x-user" (user ?? "nobody"), header "x-none" (session)',
      ({ headers }) => {
        expect(headers).toEqual([
          { name: 'x-team', value: 'search' },
          { name: 'x-user', value: 'ann' },
        ]);
      },
      { user: 'ann' },
    );
  });

  test('headers of the gateway, credentials and line breaks are refused', () => {
    for (const name of [
      'Host',
      'content-length',
      'Authorization',
      'transfer-encoding',
      'connection',
      'x-signalbox-tier',
    ]) {
      expect(errors(policy(`header "${name}" "x"`)), name).toEqual(['E0416']);
    }
    expect(errors(policy('header "x y" "x"'))).toEqual(['E0409']);
    expect(errors(policy('header "x" "a\\r\\nb: c"'))).toEqual(['E0409']);
  });

  test('`model` rewrites', async () => {
    await attempt('model "other"', ({ model }) => expect(model).toBe('other'));
    await attempt('model (header["x-model"] ?? "m")', ({ model }) => expect(model).toBe('q'), {
      headers: { 'x-model': 'q' },
    });
  });

  test('`set` and `drop` change top-level fields', async () => {
    await attempt(
      'set "temperature" 0.2, set "stop" ["a", "b"], set "user" (user), set "seed" (max_tokens), drop "logprobs", drop ["n", "seed"]',
      ({ set, drop }) => {
        expect(set).toEqual([
          { field: 'temperature', json: '0.2' },
          { field: 'stop', json: '["a","b"]' },
        ]);
        expect(drop).toEqual(['logprobs', 'n', 'seed']);
      },
    );
  });

  test('fields that decide the route may not be changed', () => {
    for (const field of ['messages', 'prompt', 'input', 'stream', 'model']) {
      expect(errors(policy(`set "${field}" 1`)), field).toEqual(['E0416']);
      expect(errors(policy(`drop "${field}"`)), field).toEqual(['E0416']);
    }
  });
});

describe('form', () => {
  test('an argument list belongs to the word or literal just before it', () => {
    expect(errors(policy('fallback tier "a" (on: [error]), affinity prefix(2k), retry_after(5s)'))).toEqual(['E0407']);
    expect(errors(policy('fallback tier "a" (on: [error]), affinity prefix(2k), retry 2 (on: [connect])'))).toEqual([]);
  });

  test('an unknown modifier has a suggestion, `and` and a missing comma a fix', () => {
    expect(errors(policy('timeot 5s'))).toEqual(['E0206']);
    expect(errors(policy('timeout 5s and idle 4s'))).toEqual(['E0110']);
    expect(errors(policy('timeout 5s idle 4s'))).toEqual(['E0413']);
    expect(errors(policy('least_tokens'))).toEqual(['E0206']);
  });

  test('`priority` takes its four words, or an expression of them', () => {
    expect(errors(policy('priority low'))).toEqual([]);
    expect(errors(policy('priority (header["p"] ?? "low")'))).toEqual([]);
    expect(errors(policy('priority lwo'))).toEqual(['E0304']);
  });

  test('`hedge`, `mirror` and `prefill` compile, and the core says that it does not act on them', async () => {
    const text = `${tiers({ a: 1, b: 1 })}default to tier "a" with hedge 800ms (share: 1%), mirror 1% tier "b", prefill tier "b"`;
    expect(errors(text)).toEqual([]);
    await inBothModes(text, (made) => {
      expect(made.core.active?.notices.map((notice) => /`(\w+)` is not acted on/.exec(notice)?.[1])).toEqual([
        'hedge',
        'mirror',
        'prefill',
      ]);
      expect(made.send()).toBe('a/1');
    });
  });
});
