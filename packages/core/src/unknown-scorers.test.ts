import { expect, test } from 'vitest';
import type { ScoreSum } from '@signalbox/policy';
import {
  destination,
  OK,
  ProgramBuilder,
  request,
  route,
  SPAN,
  testCore,
  tier,
  type TestCore,
} from './program.fixture.ts';

function build(by: (b: ProgramBuilder) => readonly ScoreSum[]): TestCore {
  const b = new ProgramBuilder();
  const scores = by(b);
  return testCore(
    b.program({ tiers: [tier('A', 3, { model: 'm' })], routes: [route('default', [destination('A', scores)])] }),
  );
}

const counted = (t: TestCore): readonly (readonly [string, number])[] => [...t.core.status().unknownScorers];
const weighed = (...sums: readonly ScoreSum[]): ScoreSum => ({
  span: SPAN,
  terms: sums.flatMap(({ terms }) => terms.map((term) => ({ ...term, weight: 1 / sums.length }))),
});

test.each<readonly [name: string, by: (b: ProgramBuilder) => readonly ScoreSum[]]>([
  ['in a sum', (b) => [weighed(b.lowest('kv_cache_used'), b.lowest('declared_order'))]],
  ['alone', (b) => [b.lowest('kv_cache_used'), b.lowest('declared_order')]],
])('a scorer that knows nothing of any candidate has no say and is counted: %s', (_name, by) => {
  const t = build(by);
  for (let i = 0; i < 3; i++) {
    const one = t.forward();
    expect(one.attempt.endpoint).toBe('A/1');
    one.finish(OK);
  }
  expect(counted(t)).toEqual([['kv_cache_used', 3]]);
  t.core.explain(request());
  expect(counted(t)).toEqual([['kv_cache_used', 3]]);
  // What is known of one endpoint is known.
  t.core.feed('A/2', { kvCacheUsed: 0.5 });
  t.forward().finish(OK);
  expect(counted(t)).toEqual([['kv_cache_used', 3]]);
  // Reports that stop become unknown again.
  t.time.advance(60_000);
  t.forward().finish(OK);
  expect(counted(t)).toEqual([['kv_cache_used', 4]]);
});
