import { describe, expect, test } from 'vitest';
import { codes, decide, errors, expectDecision, inBothModes, tiers } from './support/bench.fixture.ts';

const abc = tiers({ a: 1, b: 1, c: 1 });
const full = { inflightRequests: 1 };
const one = 'max_requests: 1';

describe('routes', () => {
  test('the first rule whose condition is known true is taken, top to bottom', () => {
    const policy = `${abc}
route when turns == 1 to tier "a"
route when turns >= 1 to tier "b"
default to tier "c"`;
    expectDecision(policy, 'a/1');
    expectDecision(policy, 'b/1', {
      messages: [
        { role: 'user', text: 'x' },
        { role: 'user', text: 'y' },
      ],
    });
    expectDecision(policy, 'c/1', { messages: [] });
  });

  test('a rule whose condition is unknown is passed over', () => {
    const policy = `${abc}route when session == "s" to tier "a"\nroute when not (session == "s") to tier "b"\ndefault to tier "c"`;
    expectDecision(policy, 'c/1');
  });

  test('a route without candidates takes its next `else`', () => {
    const policy = `${tiers({ a: 1, b: 1, c: 1 }, one)}route when stream to tier "a" else to tier "b" else to tier "c"\ndefault reject`;
    expectDecision(policy, 'a/1', { stream: true });
    expectDecision(policy, 'b/1', { stream: true }, { fleet: { 'a/1': full } });
    expectDecision(policy, 'c/1', { stream: true }, { fleet: { 'a/1': full, 'b/1': full } });
  });

  test('a route that has run out of `else` ends the request and never falls through to a later rule', () => {
    const policy = `${tiers({ a: 1, b: 1 }, one)}route when stream to tier "a"\ndefault to tier "b"`;
    expectDecision(policy, '503 no_endpoint', { stream: true }, { fleet: { 'a/1': full } });
    expectDecision(policy, 'b/1', { stream: false }, { fleet: { 'a/1': full } });
  });

  test('`else next` goes on with the rules below, past those whose condition does not hold', () => {
    const policy = `${tiers({ a: 1, b: 1, c: 1 }, one)}route when stream to tier "a" else next
route when not stream to tier "b"
default to tier "c"`;
    expectDecision(policy, 'c/1', { stream: true }, { fleet: { 'a/1': full } });
    expectDecision(policy, 'a/1', { stream: true });
  });

  test('`else next` with nothing below is no_route', () => {
    const policy = `${tiers({ a: 1 }, one)}route to tier "a" else next`;
    expectDecision(policy, '503 no_route', {}, { fleet: { 'a/1': full } });
  });

  test('`else reject` answers with what is written', async () => {
    const policy = `${tiers({ a: 1 }, one)}default to tier "a" else reject with status 503, retry_after 5s, message "later"`;
    await inBothModes(
      policy,
      (bench) => {
        expect(bench.route()).toMatchObject({
          kind: 'refuse',
          status: 503,
          code: 'rejected',
          message: 'later',
          retryAfterSeconds: 5,
        });
      },
      { fleet: { 'a/1': full } },
    );
  });

  test('an `else` has its own `where`, `by` and `with`', async () => {
    const policy = `${tiers({ a: 2 })}default to tier "a" where name == "a/9" by least_tokens
      else to tier "a" where name == "a/2" with timeout 7s`;
    await inBothModes(policy, (bench) => {
      const forward = bench.forward();
      expect(forward.attempt.endpoint).toBe('a/2');
      expect(forward.deadlineMs).toBe(7000);
    });
  });

  test('without a default a request that meets no rule is no_route, with a warning, with `--strict` an error', () => {
    const policy = `${abc}route when stream to tier "a"`;
    expectDecision(policy, '503 no_route');
    expect(codes(policy)).toEqual(['W0506']);
    expect(errors(policy)).toEqual([]);
    expect(errors(policy, { strict: true })).toEqual(['W0506']);
  });

  test('a `route` without `when` counts as a default', () => {
    expect(codes(`${abc}route when stream to tier "a"\nroute to tier "b"`)).toEqual([]);
    expect(codes(`${abc}route to tier "b"\nroute when stream to tier "a"`)).toEqual(['W0501']);
    // With `else next` it may be passed by.
    expect(codes(`${abc}route to tier "b" else next\nroute when stream to tier "a"\ndefault reject`)).toEqual([]);
  });

  test('`default reject` refuses with 429 rejected', () => {
    expectDecision(`${abc}route when stream to tier "a"\ndefault reject`, '429 rejected');
  });

  test('the order of clauses is fixed', () => {
    for (const rest of [
      'to tier "a" with timeout 5s where healthy',
      'to tier "a" by least_tokens where healthy',
      'to tier "a" pick best by least_tokens',
      'when stream',
    ]) {
      expect(errors(`${abc}default ${rest}`), rest).not.toEqual([]);
    }
    expect(errors(`${abc}route to tier "a" when stream\ndefault reject`)).toEqual(['E0123']);
  });

  test('an unreachable `else` and `else admit` are errors', () => {
    expect(errors(`${abc}default to tier "a" else reject else to tier "b"`)).toEqual(['E0412']);
    expect(errors(`${abc}default to tier "a" else next else to tier "b"`)).toEqual(['E0412']);
    expect(errors(`${abc}default to tier "a" else admit`)).toEqual(['E0417']);
  });
});

describe('groups', () => {
  const eu = { headers: { region: 'eu' } };
  const group = (inside: string, more: string = ''): string =>
    `${abc}group "eu" when header["region"] == "eu" ${more}{ ${inside} }\ndefault to tier "c"`;

  test('the condition is and-ed to every rule inside', () => {
    const policy = group('route when stream to tier "a" route when not stream to tier "b"');
    expectDecision(policy, 'a/1', { ...eu, stream: true });
    expectDecision(policy, 'b/1', { ...eu, stream: false });
    expectDecision(policy, 'c/1', { stream: true });
  });

  test('to admission rules too', () => {
    const policy = group('reject when stream');
    expectDecision(policy, '429 rejected', { ...eu, stream: true });
    expectDecision(policy, 'c/1', { stream: true });
  });

  test('no match inside goes on after the group', () => {
    expectDecision(group('route when stream to tier "a"'), 'c/1', { ...eu, stream: false });
  });

  test('unless the group has a default', () => {
    const policy = group('route when stream to tier "a" default to tier "b"');
    expectDecision(policy, 'b/1', { ...eu, stream: false });
    expectDecision(policy, 'c/1', { stream: false });
  });

  test('groups nest', () => {
    const policy = `${abc}group "o" when stream { group "i" when turns == 1 { default to tier "a" } default to tier "b" }\ndefault to tier "c"`;
    expectDecision(policy, 'a/1', { stream: true });
    expectDecision(policy, 'b/1', { stream: true, messages: [] });
    expectDecision(policy, 'c/1', {});
  });

  test('`with` is merged modifier by modifier, the inner one wins', async () => {
    const policy = group(
      'route to tier "a" with timeout 3s, header "x-b" "inner" else to tier "b"',
      'with timeout 9s, idle 4s, header "x-a" "outer", header "x-b" "outer" ',
    );
    await inBothModes(policy, (bench) => {
      const forward = bench.forward(eu);
      expect(forward.deadlineMs).toBe(3000);
      expect(forward.attempt.idleMs).toBe(4000);
      expect(forward.attempt.headers).toEqual([
        { name: 'x-a', value: 'outer' },
        { name: 'x-b', value: 'inner' },
      ]);
    });
    await inBothModes(
      policy,
      (bench) => {
        expect(bench.forward(eu)).toMatchObject({ deadlineMs: 9000, attempt: { endpoint: 'b/1', idleMs: 4000 } });
      },
      { fleet: { 'a/1': { cordoned: true } } },
    );
  });

  test('`with` does not touch admission rules or verdicts', async () => {
    const policy = group('reject when stream default reject with status 503', 'with timeout 9s ');
    await inBothModes(policy, (bench) => {
      expect(bench.send({ ...eu, stream: true })).toBe('429 rejected');
      expect(bench.send(eu)).toBe('503 rejected');
    });
  });

  test('a `let` in a group is scoped to it', () => {
    expect(errors(group('let hard = turns > 5 route when hard to tier "a"'))).toEqual([]);
    expect(
      errors(
        group('let hard = turns > 5 route when hard to tier "a"').replace(
          'default',
          'route when hard to tier "b"\ndefault',
        ),
      ),
    ).toEqual(['E0201']);
  });

  test('definitions, imports and tests do not stand in a group', () => {
    expect(errors(group('define slo "s" { ttft: 1s }'))).toEqual(['E0335']);
    expect(errors(group('test "t" { given turns = 1 expect default }'))).toEqual(['E0335']);
  });
});

describe('order and names of statements', () => {
  test('a default closes its block: a rule below is unreachable, a second one is an error', () => {
    expect(codes(`${abc}default to tier "a"\nroute when stream to tier "b"`)).toEqual(['W0501']);
    expect(errors(`${abc}default to tier "a"\ndefault to tier "b"`)).toEqual(['E0214']);
    expectDecision(`${abc}default to tier "a"\nroute when stream to tier "b"`, 'a/1', { stream: true });
    // Each block has its own.
    expect(errors(`${abc}group "g" when stream { default to tier "a" }\ndefault to tier "b"`)).toEqual([]);
  });

  test('two rules of one label are an error', () => {
    expect(errors(`${abc}route "x" when stream to tier "a"\nroute "x" to tier "b"`)).toEqual(['E0212']);
    expect(errors(`${abc}reject "x" when stream\nroute "x" to tier "b"`)).toEqual(['E0212']);
  });

  test('where an unreachable rule is reported: on its keyword and label, with the earlier as second place', async () => {
    const { compile } = await import('./support/bench.fixture.ts');
    const text = `${abc}default to tier "a"\nroute "late" when stream to tier "b"`;
    const [finding] = compile(text).diagnostics;
    expect(text.slice(finding?.span.start, finding?.span.end)).toBe('route "late"');
    const [label] = finding?.labels ?? [];
    expect(text.slice(label?.span.start, label?.span.end)).toBe('default');
  });

  test('a condition that always or never holds is a warning', () => {
    expect(codes(`${abc}route when 1 > 2 to tier "a"\ndefault reject`)).toEqual(['W0503']);
    expect(codes(`${abc}route when 2 > 1 or stream to tier "a"\ndefault reject`)).toEqual(['W0504']);
  });

  test('line breaks and clause layout do not matter', () => {
    const policy = `${abc}route\nwhen\nstream\nto\ntier\n"a"\ndefault to tier "b"`;
    expectDecision(policy, 'a/1', { stream: true });
    expectDecision(policy.replaceAll('\n', '\r\n'), 'a/1', { stream: true });
    expectDecision(`\uFEFF${policy}`, 'a/1', { stream: true });
  });

  test('`language 2` is one clear error', () => {
    expect(errors(`language 2\n${abc}route wehn foo to nowhere`)).toEqual(['E0133']);
    expect(errors(`language 1\n${abc}default to tier "a"`)).toEqual([]);
  });
});

describe('the same request gives the same decision', () => {
  test('by the same policy, fleet and seed', () => {
    const policy = `${tiers({ a: 4 })}default to tier "a" by random pick softmax(temperature: 0.5)`;
    const first = Array.from({ length: 5 }, (_, seed) => decide(policy, {}, { seed }));
    expect(Array.from({ length: 5 }, (_, seed) => decide(policy, {}, { seed }))).toEqual(first);
    expect(new Set(Array.from({ length: 40 }, (_, seed) => decide(policy, {}, { seed }))).size).toBe(4);
  });

  test('`random` is the same in both modes over a run of requests', async () => {
    const runs: string[][] = [];
    await inBothModes(`${tiers({ a: 4 })}default to tier "a" by random pick weighted`, (bench) => {
      runs.push(Array.from({ length: 50 }, () => bench.send()));
    });
    expect(runs[1]).toEqual(runs[0]);
  });
});
