import { hashString, rendezvousScore } from '@signalbox/chwbl';
import type { Json, ScorerDefinition } from '@signalbox/plugin-api';
import { candidates, requestView, setupContext } from '@signalbox/testkit';
import type { EndpointValues } from '@signalbox/testkit';
import { describe, expect, test } from 'vitest';
import { random } from './scorer-random/index.ts';
import { rendezvous } from './scorer-rendezvous/index.ts';
import { weightedRandom } from './scorer-weighted-random/index.ts';

const DRAWS = 20_000;

/** Values of a scorer for one request, by position. */
function scorerOf(
  definition: ScorerDefinition,
  options?: { readonly [name: string]: Json },
): (seed: number, endpoints: readonly EndpointValues[], signals?: EndpointValues) => Float64Array {
  if (!('setup' in definition)) throw new Error('expected a function');
  const instance = definition.setup(setupContext(definition.options, options === undefined ? {} : { options }));
  return (seed, endpoints, signals = {}) => {
    const out = new Float64Array(endpoints.length);
    instance.score(requestView(signals, { seed }), candidates(endpoints), out);
    return out;
  };
}

/** Shares of seeds 1, 2, 3 … for which each endpoint is best. */
function sharesOf(definition: ScorerDefinition, endpoints: readonly EndpointValues[]): readonly number[] {
  const score = scorerOf(definition);
  const wins = endpoints.map(() => 0);
  for (let seed = 1; seed <= DRAWS; seed++) {
    const values = score(Math.imul(seed, 0x9e3779b1) >>> 0, endpoints);
    const best = values.indexOf(definition.cost === true ? Math.min(...values) : Math.max(...values));
    wins[best] = (wins[best] ?? 0) + 1;
  }
  return wins.map((count) => count / DRAWS);
}

/** How many standard deviations the share that is furthest off is away from its probability. With fixed seeds it never changes. */
function worstDeviation(shares: readonly number[], expected: readonly number[]): number {
  const deviations = shares.map((share, i) => {
    const p = expected[i] ?? 0;
    return share === p ? 0 : Math.abs(share - p) / Math.sqrt((p * (1 - p)) / DRAWS);
  });
  return Math.max(...deviations);
}

const named = (list: readonly EndpointValues[]): readonly EndpointValues[] =>
  list.map((endpoint, i) => ({ name: `t/${i + 1}`, ...endpoint }));

describe('random', () => {
  test('each of five candidates is best in a fifth of the draws', () => {
    expect(worstDeviation(sharesOf(random, named([{}, {}, {}, {}, {}])), [0.2, 0.2, 0.2, 0.2, 0.2])).toBeLessThan(4);
  });

  test('a draw depends on the endpoint, not on its slot', () => {
    const score = scorerOf(random);
    const [a, b] = score(5, [{ name: 'x' }, { name: 'y' }]);
    const swapped = score(5, [{ name: 'y' }, { name: 'x' }]);
    expect([...swapped]).toEqual([b, a]);
  });
});

describe('weighted_random', () => {
  test('draws in proportion to free capacity', () => {
    const endpoints = named([
      { max_requests: 100, inflight_requests: 30 },
      { max_requests: 100, inflight_requests: 70 },
      { max_requests: 150, inflight_requests: 50 },
    ]);
    expect(worstDeviation(sharesOf(weightedRandom, endpoints), [0.35, 0.15, 0.5])).toBeLessThan(4);
  });

  test('without stated capacities the weights decide', () => {
    const endpoints = named([
      { weight: 1, inflight_requests: 8 },
      { weight: 3, inflight_requests: 2 },
    ]);
    expect(worstDeviation(sharesOf(weightedRandom, endpoints), [0.25, 0.75])).toBeLessThan(4);
  });

  test('an unstated capacity is the mean per weight of the stated ones', () => {
    const endpoints = named([
      { weight: 1, max_requests: 40, inflight_requests: 10 },
      { weight: 2, inflight_requests: 20 },
    ]);
    expect(worstDeviation(sharesOf(weightedRandom, endpoints), [30 / 90, 60 / 90])).toBeLessThan(4);
  });

  test('a full endpoint comes after every other', () => {
    const endpoints = named([
      { max_requests: 10, inflight_requests: 10 },
      { max_requests: 10, inflight_requests: 9 },
    ]);
    expect(sharesOf(weightedRandom, endpoints)).toEqual([0, 1]);
  });
});

describe('rendezvous', () => {
  const endpoints = named([{ weight: 1 }, { weight: 2 }, { weight: 1 }]);

  test('is the weighted rendezvous score of chwbl, negated', () => {
    const values = scorerOf(rendezvous)(3, endpoints, { session: 's-1' });
    const expected = endpoints.map(
      (endpoint) =>
        -rendezvousScore(hashString('s-1'), hashString(String(endpoint['name'])), Number(endpoint['weight'])),
    );
    expect([...values]).toEqual(expected);
  });

  test('a session has the same order whatever the seed', () => {
    const score = scorerOf(rendezvous);
    expect(score(1, endpoints, { session: 's-9' })).toEqual(score(2, endpoints, { session: 's-9' }));
  });

  test('without a session, or with key "seed", the seed spreads requests by weight', () => {
    expect(worstDeviation(sharesOf(rendezvous, endpoints), [0.25, 0.5, 0.25])).toBeLessThan(4);
    const bySeed = scorerOf(rendezvous, { key: 'seed' });
    expect(bySeed(1, endpoints, { session: 's' })).not.toEqual(bySeed(2, endpoints, { session: 's' }));
  });
});
