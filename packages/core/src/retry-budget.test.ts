import { expect, test } from 'vitest';
import { createRetryBudget } from './retry-budget.ts';

test('each ten requests earn one retry, each second another, and no more than ten are saved up', () => {
  const budget = createRetryBudget();
  const left = (nowMs: number): number => {
    let count = 0;
    while (budget.spend('A', nowMs)) count++;
    return count;
  };
  expect(left(0)).toBe(10);
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 9; i++) budget.earn('A');
    expect(left(0)).toBe(0);
    budget.earn('A');
    expect(left(0)).toBe(1);
  }
  expect(left(3000)).toBe(3);
  expect(left(1e6)).toBe(10);
  for (let i = 0; i < 1000; i++) budget.earn('A');
  expect(left(1e6)).toBe(10);
});

test('a tier keeps its budget while as many others come as a policy may have', () => {
  const budget = createRetryBudget();
  for (let i = 0; i < 10; i++) budget.spend('A', 0);
  for (let i = 0; i < 1000; i++) budget.earn(`other ${i}`);
  expect(budget.spend('A', 0)).toBe(false);
});
