import { describe, expect, test } from 'vitest';
import { policyBench, tier } from './support/policy-bench.fixture.ts';
import type { PolicyBench } from './support/policy-bench.fixture.ts';

const session = (id: string): { readonly headers: { readonly [name: string]: string } } => ({
  headers: { 'x-session-id': id },
});

test.each([
  ['user-123-conv-456', 'gpu-0'],
  ['user-123-conv-456', 'gpu-0'],
  ['user-100', 'gpu-0'],
  ['user-200', 'gpu-1'],
  ['user-300', 'gpu-0'],
])('10. md5(%s) mod 3 is %s', (id, endpoint) => {
  const bench = policyBench(
    `${tier('t', ['', '', ''])} default to tier "t" with affinity session (method: modulo_md5)`,
  );
  expect(bench.send(session(id))).toBe(endpoint);
  expect(bench.send(session(id))).toBe(endpoint);
});

describe('11. bounded-load hashing with one endpoint removed', () => {
  const ids = [
    'user-123-conv-456',
    'user-100',
    'user-200',
    'user-300',
    ...Array.from({ length: 600 }, (_, i) => `session-${i}`),
  ];
  const policy = (endpoints: readonly number[]): string => {
    const list = endpoints.map((n) => `{ name: "gpu-${n}", url: "http://10.0.0.${n + 1}:8000" }`).join(', ');
    return `define tier "t" { model: "m", endpoints: [${list}] } default to tier "t" with affinity session`;
  };
  const placed = (bench: PolicyBench): ReadonlyMap<string, string> =>
    new Map(ids.map((id) => [id, bench.send(session(id))]));

  test.each([0, 1, 2])('without gpu-%i only its own sessions move', (removed) => {
    const bench = policyBench(policy([0, 1, 2]));
    const before = placed(bench);
    bench.reload(policy([0, 1, 2].filter((n) => n !== removed)));
    const after = placed(bench);
    const own = ids.filter((id) => before.get(id) === `gpu-${removed}`);
    const moved = ids.filter((id) => after.get(id) !== before.get(id));
    expect(moved).toEqual(own);
    expect(own.length).toBeGreaterThan(150);
    expect(own.length).toBeLessThan(255);
  });
});
