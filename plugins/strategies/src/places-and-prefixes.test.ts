import type { Json, ScorerDefinition } from '@signalbox/plugin-api';
import { candidates, requestView, setupContext } from '@signalbox/testkit';
import type { EndpointValues } from '@signalbox/testkit';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { longestMatch } from './scorer-longest-match/index.ts';
import { loraAffinity } from './scorer-lora-affinity/index.ts';
import { nearest } from './scorer-nearest/index.ts';

function score(
  definition: ScorerDefinition,
  endpoints: readonly EndpointValues[],
  signals: EndpointValues = {},
  options: { readonly [name: string]: Json } = {},
): readonly number[] {
  if (!('setup' in definition)) throw new Error('expected a function');
  const out = new Float64Array(endpoints.length);
  definition
    .setup(setupContext(definition.options, { options }))
    .score(requestView(signals), candidates(endpoints), out);
  return [...out];
}

const bestOf = (costs: readonly number[]): number => costs.indexOf(Math.min(...costs));

describe('longest_match', () => {
  const prompt = { prompt_tokens: 1000 };

  test('the longest cached prefix wins while its endpoint is within the bound', () => {
    // m = 12, three equal shares: the limit is ceil(1.25 · 13 ÷ 3) = 6 requests.
    const endpoints = (first: number): readonly EndpointValues[] => [
      { prefix_hit: 0.9, inflight_requests: first },
      { prefix_hit: 0.5, inflight_requests: 4 },
      { prefix_hit: 0, inflight_requests: 8 - first },
    ];
    expect(bestOf(score(longestMatch, endpoints(5), prompt))).toBe(0);
    expect(bestOf(score(longestMatch, endpoints(6), prompt))).toBe(1);
  });

  test('equal matches are settled by load for each unit of weight, whose difference never outweighs a token', () => {
    const endpoints = [
      { prefix_hit: 0.5, inflight_requests: 4, weight: 1 },
      { prefix_hit: 0.5, inflight_requests: 6, weight: 2 },
    ];
    expect(bestOf(score(longestMatch, endpoints, prompt))).toBe(1);
    const oneToken = [
      { prefix_hit: 0.5, inflight_requests: 0 },
      { prefix_hit: 0.501, inflight_requests: 1 },
    ];
    expect(bestOf(score(longestMatch, oneToken, prompt, { bound: 3 }))).toBe(1);
  });

  test('without prefix hits it is least requests', () => {
    const costs = score(
      longestMatch,
      [{ inflight_requests: 3 }, { inflight_requests: 1 }, { inflight_requests: 2 }],
      prompt,
    );
    expect(bestOf(costs)).toBe(1);
  });

  test('some candidate is always within the bound, and the best one is', () => {
    const endpoint = fc.record({
      prefix_hit: fc.double({ min: 0, max: 1, noNaN: true }),
      inflight_requests: fc.integer({ min: 0, max: 300 }),
      weight: fc.integer({ min: 1, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(endpoint, { minLength: 1, maxLength: 20 }), (endpoints) => {
        const costs = score(longestMatch, endpoints, prompt);
        const best = endpoints[bestOf(costs)];
        const m = endpoints.reduce((sum, one) => sum + one.inflight_requests, 0);
        const total = endpoints.reduce((sum, one) => sum + one.weight, 0);
        const limit = Math.ceil((1.25 * (best?.weight ?? 0) * (m + 1)) / total);
        expect((best?.inflight_requests ?? 0) + 1).toBeLessThanOrEqual(limit);
      }),
    );
  });
});

describe('lora_affinity', () => {
  const endpoints = [
    { loras: ['sql', 'law'], lora_slots_free: 0 },
    { loras: ['law'], lora_slots_free: 2 },
    { loras: ['law'], lora_slots_free: 0 },
    {},
  ];

  test('resident 1, room 0.8, none 0, an engine that says nothing unknown', () => {
    expect(score(loraAffinity, endpoints, { lora: 'sql' })).toEqual([1, 0.8, 0, Number.NaN]);
  });

  test('a request without an adapter has no preference', () => {
    expect(score(loraAffinity, endpoints)).toEqual([Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
  });
});

test('nearest prefers the zone, then the region', () => {
  const endpoints = [
    { zone: 'eu-1a', region: 'eu' },
    { zone: 'eu-1b', region: 'eu' },
    { zone: 'us-1a', region: 'us' },
    {},
  ];
  expect(score(nearest, endpoints, {}, { zone: 'eu-1a', region: 'eu' })).toEqual([1, 0.5, 0, 0]);
  expect(score(nearest, endpoints, {}, { region: 'eu' })).toEqual([0.5, 0.5, 0, 0]);
  expect(score(nearest, endpoints)).toEqual([0, 0, 0, 0]);
});
