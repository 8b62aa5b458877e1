import type { PickerDefinition } from '@signalbox/plugin-api';
import { candidates, seededRandom, setupContext } from '@signalbox/testkit';
import { describe, expect, test } from 'vitest';
import { best } from './picker-best/index.ts';
import { powerOfTwo } from './picker-power-of-two/index.ts';
import { softmax } from './picker-softmax/index.ts';
import { weighted } from './picker-weighted/index.ts';
import { createRaceTrack, takeHighest } from './race.ts';

const DRAWS = 20_000;

function view(length: number): ReturnType<typeof candidates> {
  return candidates(Array.from({ length }, () => ({})));
}

/** Shares of draws in which each position comes first, and of those in which each comes second. */
function sharesOf(
  definition: PickerDefinition,
  scores: readonly number[],
  options = {},
): { readonly first: readonly number[]; readonly second: readonly number[] } {
  const instance = definition.setup(setupContext(definition.options, { options }));
  const random = seededRandom(11);
  const first = scores.map(() => 0);
  const second = scores.map(() => 0);
  const out = new Int32Array(2);
  for (let i = 0; i < DRAWS; i++) {
    instance.pick?.(Float64Array.from(scores), view(scores.length), random, 2, out);
    const [a = -1, b = -1] = out;
    first[a] = (first[a] ?? 0) + 1;
    second[b] = (second[b] ?? 0) + 1;
  }
  return { first: first.map((n) => n / DRAWS), second: second.map((n) => n / DRAWS) };
}

/** How many standard deviations the share that is furthest off is away from its probability. With fixed seeds it never changes. */
function worstDeviation(shares: readonly number[], expected: readonly number[]): number {
  const deviations = shares.map((share, i) => {
    const p = expected[i] ?? 0;
    return share === p ? 0 : Math.abs(share - p) / Math.sqrt((p * (1 - p)) / DRAWS);
  });
  return Math.max(...deviations);
}

test('best leaves the order to the host', () => {
  expect(best.setup(setupContext(undefined))).toEqual({});
});

describe('power_of_two', () => {
  test('every pair of five is drawn equally often', () => {
    const instance = powerOfTwo.setup(setupContext(undefined));
    const random = seededRandom(3);
    const out = new Int32Array(5);
    const pairs = new Map<string, number>();
    for (let i = 0; i < DRAWS; i++) {
      expect(instance.sample?.(view(5), random, out)).toBe(2);
      const pair = [...out.subarray(0, 2)].sort().join();
      pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
    }
    expect(pairs.size).toBe(10);
    expect(
      worstDeviation(
        [...pairs.values()].map((n) => n / DRAWS),
        Array.from({ length: 10 }, () => 0.1),
      ),
    ).toBeLessThan(4);
  });

  test('of one or two candidates all are taken', () => {
    const instance = powerOfTwo.setup(setupContext(undefined));
    const out = new Int32Array(2);
    for (const n of [0, 1, 2]) expect(instance.sample?.(view(n), seededRandom(1), out)).toBe(n);
    expect([...out]).toEqual([0, 1]);
  });
});

describe('weighted', () => {
  test('draws in proportion to the scores, and the second among what is left', () => {
    const { first, second } = sharesOf(weighted, [0.5, 0.3, 0.2]);
    expect(worstDeviation(first, [0.5, 0.3, 0.2])).toBeLessThan(4);
    // P(second = j) = Σ over i ≠ j of pᵢ · pⱼ ÷ (1 − pᵢ)
    expect(
      worstDeviation(second, [
        0.3 * (0.5 / 0.7) + 0.2 * (0.5 / 0.8),
        0.5 * (0.3 / 0.5) + 0.2 * (0.3 / 0.8),
        0.5 * (0.2 / 0.5) + 0.3 * (0.2 / 0.7),
      ]),
    ).toBeLessThan(4);
  });

  test('a score of zero comes last; with all at zero each is as likely', () => {
    expect(sharesOf(weighted, [0, 1]).first).toEqual([0, 1]);
    expect(worstDeviation(sharesOf(weighted, [0, 0, 0, 0]).first, [0.25, 0.25, 0.25, 0.25])).toBeLessThan(4);
  });
});

describe('softmax', () => {
  test.each([0.05, 0.2, 1])('at temperature %d draws in proportion to exp(score ÷ temperature)', (temperature) => {
    const scores = [1, 0.9, 0.3];
    const powers = scores.map((score) => Math.exp(score / temperature));
    const total = powers.reduce((a, b) => a + b);
    expect(
      worstDeviation(
        sharesOf(softmax, scores, { temperature }).first,
        powers.map((power) => power / total),
      ),
    ).toBeLessThan(4);
  });

  test('a random number of 0 or just below 1 breaks nothing', () => {
    const instance = softmax.setup(setupContext(softmax.options));
    for (const value of [0, 1 - 2 ** -53]) {
      const out = new Int32Array(3);
      expect(instance.pick?.(Float64Array.of(0.2, 0.9, 0.4), view(3), { next: () => value }, 3, out)).toBe(3);
      expect([...out].sort()).toEqual([0, 1, 2]);
      expect(out[0]).toBe(1);
    }
  });
});

test('the highest keys are taken in order, ties by position, within what there is', () => {
  const race = createRaceTrack().begin(5);
  race.keys.set([3, 9, -Infinity, 9, 4]);
  const out = new Int32Array(6).fill(-1);
  expect(takeHighest(race, 5, 6, out)).toBe(5);
  expect([...out]).toEqual([1, 3, 4, 0, 2, -1]);
});
