import type { ScorerInstance } from '@signalbox/plugin-api';
import { candidates, requestView, setupContext } from '@signalbox/testkit';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { roundRobin } from './index.ts';

function instance(): ScorerInstance {
  if (!('setup' in roundRobin)) throw new Error('expected a function');
  return roundRobin.setup(setupContext(undefined));
}

/** Takes one turn among the slots given and returns the one picked: the lowest cost. */
function turn(scorer: ScorerInstance, slots: readonly number[]): number {
  const view = candidates(
    slots.map((slot) => ({ declared_order: slot })),
    { slots },
  );
  const out = new Float64Array(slots.length);
  scorer.score(requestView(), view, out);
  const slot = slots[out.indexOf(Math.min(...out))] ?? -1;
  scorer.picked?.(slot);
  return slot;
}

function countTurns(turns: readonly number[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const slot of turns) counts.set(slot, (counts.get(slot) ?? 0) + 1);
  return counts;
}

test('1000 turns over three candidates are 334, 333 and 333, in declared order', () => {
  const scorer = instance();
  const turns = Array.from({ length: 1000 }, () => turn(scorer, [4, 7, 9]));
  expect(turns.slice(0, 6)).toEqual([4, 7, 9, 4, 7, 9]);
  expect([...countTurns(turns).values()]).toEqual([334, 333, 333]);
});

test('over any steady set the numbers of turns differ by at most one', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 0, max: 500 }), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 200 }),
      (slots, n) => {
        const scorer = instance();
        const counts = countTurns(Array.from({ length: n }, () => turn(scorer, slots)));
        const all = slots.map((slot) => counts.get(slot) ?? 0);
        expect(Math.max(...all) - Math.min(...all)).toBeLessThanOrEqual(1);
      },
    ),
  );
});

test('one that drops out for a while is next when it is back, and is not given the turns it missed', () => {
  const scorer = instance();
  for (const slot of [1, 2, 3]) expect(turn(scorer, [1, 2, 3])).toBe(slot);
  for (let i = 0; i < 10; i++) turn(scorer, [1, 3]);
  expect(turn(scorer, [1, 2, 3])).toBe(2);
  expect(countTurns(Array.from({ length: 6 }, () => turn(scorer, [1, 2, 3])))).toEqual(
    new Map([
      [1, 2],
      [3, 2],
      [2, 2],
    ]),
  );
});

test('a newcomer is next', () => {
  const scorer = instance();
  for (let i = 0; i < 7; i++) turn(scorer, [1, 2, 3]);
  expect(turn(scorer, [1, 2, 3, 1000])).toBe(1000);
});

test('the endpoint that takes the slot of one that left is a newcomer', () => {
  const scorer = instance();
  for (let i = 0; i < 6; i++) turn(scorer, [1, 2, 3]);
  expect(turn(scorer, [1, 2, 3])).toBe(1);
  scorer.forget?.(1);
  scorer.forget?.(70_000);
  expect(turn(scorer, [1, 2, 3])).toBe(1);
});

test('scoring without a pick takes no turn', () => {
  const scorer = instance();
  const view = candidates([{}, {}]);
  const first = new Float64Array(2);
  const later = new Float64Array(2);
  scorer.score(requestView(), view, first);
  for (let i = 0; i < 9; i++) scorer.score(requestView({}, { seed: i }), view, later);
  expect(later).toEqual(first);
});
