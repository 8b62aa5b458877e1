import { expect, test } from 'vitest';
import {
  destination,
  ProgramBuilder,
  admission,
  compare,
  constant,
  route,
  testCore,
  tier,
} from '../program.fixture.ts';
import type { TestCore } from '../program.fixture.ts';
import { explanationHeader } from './explanation-header.ts';

function build(): TestCore {
  const b = new ProgramBuilder();
  return testCore(
    b.program({
      tiers: [tier('A', 5, { model: 'm' })],
      admission: [admission('reject', 'no tools', compare('>', b.signal('tools', 'number'), constant(0)))],
      routes: [
        route(
          'easy',
          [destination('A', [b.lowest('inflight_requests')])],
          compare('>', b.signal('prompt_tokens', 'count'), constant(0)),
        ),
      ],
    }),
  );
}

test('endpoint and rule come first, then the shortlist with its scores, what was left out, and the signals', () => {
  const t = build();
  t.core.cordon('A/1', true);
  const { decision } = t.forward();
  const first = decision.endpoint;
  expect(explanationHeader(decision)).toMatch(
    new RegExp(
      `^${first} by "easy"; ${first} inflight_requests=0 > A/\\d inflight_requests=0 > A/\\d inflight_requests=0 > 1 more; left out: draining=1; tools=0 prompt_tokens=3$`,
    ),
  );
});

test('a refusal tells the rule and what it read', () => {
  const t = build();
  expect(explanationHeader(t.refuse({ body: { tools: 2 } }).decision)).toBe(
    'rejected by "no tools"; tools=2 prompt_tokens=3',
  );
  const { decision } = t.refuse({ body: { text: '' } });
  expect(explanationHeader(decision)).toBe('no_route; tools=0 prompt_tokens=0');
});
