import type { OptionSchema } from '@signalbox/plugin-api';
import { expect, test } from 'vitest';
import { createOptionChecks } from './option-checks.ts';

const SCHEMA: OptionSchema = { type: 'number', maximum: 10 };
const PROBLEM = { pointer: '', keyword: 'maximum', params: { limit: 10 } };

test('the compiler is run again with what it asked for, until nothing is unknown, and answers are kept', async () => {
  const asked: unknown[] = [];
  const withChecks = createOptionChecks(async (_schema, value) => {
    asked.push(value);
    return Number(value) > 10 ? [PROBLEM] : [];
  });
  let runs = 0;
  // As a compiler that looks at the second option only where the first is in order.
  const compile = withChecks.bind(undefined, (check) => {
    runs++;
    const first = check(SCHEMA, 5);
    return first.length > 0 ? first : check(SCHEMA, 20);
  });
  expect(await compile()).toEqual([PROBLEM]);
  expect(asked).toEqual([5, 20]);
  const before = runs;
  expect(await compile()).toEqual([PROBLEM]);
  expect(runs).toBe(before + 1);
  expect(asked).toEqual([5, 20]);
});

test('a compiler that asks something new each time is run only so often', async () => {
  let runs = 0;
  await createOptionChecks(async () => [])((check) => check(SCHEMA, ++runs));
  expect(runs).toBe(8);
});
